"""Export to CTranslate2: a Transformer as a model directory that CTranslate2 loads as is.

Shapes: D model, V vocabulary, L positions.
"""

import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from nmt.config.transformer import TransformerConfig
from nmt.data.dataset import dataset_of_run
from nmt.decoding.exported import VOCABULARY_MAP
from nmt.decoding.text_ids import max_lengths
from nmt.decoding.translator import Translator
from nmt.errors import NmtError
from nmt.export.base import Exporter, TrainedModel
from nmt.export.normalizing_sentencepiece import normalizes_alone, with_normalization
from nmt.export.transformer_weights import (
    AttentionWeights,
    FeedForwardWeights,
    LinearWeights,
    NormWeights,
    TransformerWeights,
)
from nmt.export.vocabulary import unique_pieces
from nmt.export.vocabulary_map import vocabulary_map
from nmt.tokenizers.base import BOS, EOS, PAD, UNK
from nmt.tokenizers.subword import SubwordTokenizer

SINUSOIDS = 2048
"""Positions written for models with sinusoids. CTranslate2 reads no sentence past the table's end."""
NEVER = -1e9
"""Bias of a token that is never generated; finite, so that no product with it is undefined."""
QUANTIZATIONS = ("float32", "int8", "int8_float32", "int16", "float16", "int8_float16", "bfloat16", "int8_bfloat16")


class CTranslate2Exporter(Exporter):
    """A CTranslate2 model directory."""

    name: ClassVar = "ctranslate2"
    consumer: ClassVar = "CTranslate2"
    extra: ClassVar = "fast"
    modules: ClassVar = ("ctranslate2",)

    def __init__(self, quantization: str = "float32", *, with_map: bool = False) -> None:
        """Take the number format of the matrices, and whether to write a vocabulary map."""
        self.quantization, self.with_map = quantization, with_map

    @property
    def is_exact(self) -> bool:
        """Whether greedy translations have to be those of the run: neither rounded, nor from part of a vocabulary."""
        return super().is_exact and not self.with_map

    def check(self, model: TrainedModel) -> None:
        """Refuse architectures besides the Transformer, and Transformers with an ablated encoder."""
        transformer_section(model, self.consumer)

    def positions(self, model: TrainedModel) -> int | None:
        """Return the most tokens of a sentence that the export reads."""
        section = transformer_section(model, self.consumer)
        return {"learned": section.max_positions, "sinusoidal": SINUSOIDS, "rotary": None}[section.positions]

    def write(self, model: TrainedModel, folder: Path) -> None:
        """Write ``model.bin``, ``config.json``, the vocabularies and, if asked for, a vocabulary map."""
        import ctranslate2  # noqa: PLC0415 - an extra

        section = transformer_section(model, self.consumer)
        spec = _specification(ctranslate2.specs, section, model)
        spec.validate()
        spec.optimize(self.quantization)
        spec.save(str(folder))
        if self.with_map:
            train = dataset_of_run(model.run.name, model.manifest).split("train")
            pieces = unique_pieces(model.source, model.target)
            (folder / VOCABULARY_MAP).write_text(vocabulary_map(model, train, *pieces), encoding="utf-8")
        for side, tokenizer in (("source", model.source), ("target", model.target)):
            if isinstance(tokenizer, SubwordTokenizer) and normalizes_alone(tokenizer):
                (folder / f"{side}.spm").write_bytes(with_normalization(tokenizer))

    def translate(self, model: TrainedModel, folder: Path, texts: list[str]) -> list[str]:
        """Translate greedily with CTranslate2, in the number format of the export."""
        from nmt.decoding.ctranslate2_engine import CTranslate2Engine  # noqa: PLC0415 - an extra

        decoding = model.config.decoding.model_copy(update={"beam_size": 1})
        config = model.config.model_copy(update={"decoding": decoding})
        engine = CTranslate2Engine(folder, config)
        return Translator(engine, model.source, model.target, config, model.epoch).translate(texts)

    def usage(self, model: TrainedModel) -> str:
        """Return how to translate with nmt and with CTranslate2 alone."""
        parts = [
            'With nmt:\n\n```console\nnmt translate --backend ctranslate2 --export FOLDER "SENTENCE"\n```',
        ]
        if all(isinstance(side, SubwordTokenizer) and normalizes_alone(side) for side in (model.source, model.target)):
            parts.append(
                "With CTranslate2 and sentencepiece alone. The sentencepiece models normalize text as in training:\n\n"
                "```python\n"
                "import ctranslate2, sentencepiece\n\n"
                'translator = ctranslate2.Translator("FOLDER")\n'
                'source = sentencepiece.SentencePieceProcessor("FOLDER/source.spm")\n'
                'target = sentencepiece.SentencePieceProcessor("FOLDER/target.spm")\n'
                'tokens = source.encode("SENTENCE", out_type=str)\n'
                "[result] = translator.translate_batch([tokens], beam_size=5)\n"
                "print(target.decode(result.hypotheses[0]))\n"
                "```"
            )
        parts.append(
            "In beam search CTranslate2 divides the log-probability of a translation by its length to the power of the "
            "penalty, nmt by ((5 + length) / 6) to that power. nmt ranks the hypotheses of CTranslate2 by its own "
            "formula; CTranslate2 alone may prefer another hypothesis."
        )
        return "\n\n".join(parts)


def transformer_section(model: TrainedModel, consumer: str) -> TransformerConfig:
    """Return the model section of a Transformer.

    Raises:
        NmtError: for another architecture, and for an encoder that lacks a part.
    """
    section = model.config.model
    if not isinstance(section, TransformerConfig):
        raise NmtError(
            f"Run {model.run.name!r} has the architecture {section.architecture!r}. {consumer} runs Transformers. "
            "Export it with --to saved-model, or train a model of architecture transformer."
        )
    if section.ablations:
        keys = " and ".join(f"model.{key}: false" for key in section.ablations)
        raise NmtError(
            f"Run {model.run.name!r} has an encoder without {' and '.join(section.ablations.values())} ({keys}). "
            f"{consumer} runs whole Transformers. Export it with --to saved-model."
        )
    return section


def _specification(specs: Any, config: TransformerConfig, model: TrainedModel) -> Any:
    """Return the ``ctranslate2.specs.TransformerSpec`` of a model, filled."""
    weights = TransformerWeights(config, model.weights())
    head_dim = config.size_per_head if config.size_per_head * config.heads != config.d_model else None
    options: dict[str, Any] = {"pre_norm": config.norm == "pre", "head_dim": head_dim}
    if config.positions == "rotary":
        options |= {"rotary_dim": config.size_per_head, "rotary_base": config.position_base}
        options["rotary_interleave"] = False  # pairs are channels i and i + d/2
    encoder = specs.transformer_spec.TransformerEncoderSpec(config.encoder_layers, config.heads, **options)
    # 0 alignment heads: attention that is returned is the mean over the heads of the last layer, as ours.
    decoder = specs.transformer_spec.TransformerDecoderSpec(
        config.decoder_layers, config.heads, alignment_heads=0, **options
    )
    for stack, side, vocabulary in (
        (encoder, "source", model.source.size),
        (decoder, "target", model.target.size),
    ):
        embeddings = stack.embeddings[0] if side == "source" else stack.embeddings
        embeddings.weight = weights.embedding(side, vocabulary)
        stack.scale_embeddings = config.scale_embeddings
        if config.positions != "rotary":
            stack.position_encodings.encodings = weights.positions(side, SINUSOIDS)
        elif hasattr(stack, "position_encodings"):  # the encoder's specification has it in any case
            del stack.position_encodings
        if config.norm == "pre":
            _set_norm(stack.layer_norm, weights.final_norm("encoder" if side == "source" else "decoder"))
    for number, layer in enumerate(encoder.layer, start=1):
        attention, feed_forward = weights.encoder_layer(number)
        _set_self_attention(layer.self_attention, attention, config)
        _set_feed_forward(layer.ffn, feed_forward)
    for number, layer in enumerate(decoder.layer, start=1):
        self_attention, cross_attention, feed_forward = weights.decoder_layer(number)
        _set_self_attention(layer.self_attention, self_attention, config)
        _set_cross_attention(layer.attention, cross_attention, config)
        _set_feed_forward(layer.ffn, feed_forward)
    matrix, bias = weights.output_layer(model.target.size)
    bias = bias.copy()
    bias[[PAD, BOS]] = NEVER  # search never generates them, so that every client does what ours does
    decoder.projection.weight, decoder.projection.bias = matrix, bias

    spec = specs.TransformerSpec(encoder, decoder)
    source, target = unique_pieces(model.source, model.target)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.layer_norm_epsilon = config.layer_norm_epsilon
    spec.config.add_source_bos, spec.config.add_source_eos = config.reads_bos, True
    for key, index in (("unk_token", UNK), ("bos_token", BOS), ("eos_token", EOS), ("decoder_start_token", BOS)):
        setattr(spec.config, key, target[index])
    return spec


def length_limits(model: TrainedModel, tokens: list[int]) -> list[int]:
    """Return the most tokens of the translation of each sentence with these numbers of tokens, eos included."""
    bos_and_eos = 1 + int(model.config.model.reads_bos)
    return max_lengths(model.config, np.array(tokens, np.int64) + bos_and_eos).tolist()


def _set_linear(spec: Any, *layers: LinearWeights) -> None:
    """Set a linear layer, or several side by side as one: CTranslate2 has [outputs, inputs]."""
    spec.weight = np.concatenate([layer.kernel.T for layer in layers])
    spec.bias = np.concatenate([layer.bias for layer in layers])


def _set_norm(spec: Any, norm: NormWeights) -> None:
    # Copies: the norm that two sublayers share is written twice.
    spec.gamma, spec.beta = norm.gamma.copy(), norm.beta.copy()


def _set_scale(spec: Any, config: TransformerConfig) -> None:
    if config.attention_scale == "projection":
        spec.queries_scale = np.float32(1 / math.sqrt(config.heads * config.size_per_head))


def _set_self_attention(spec: Any, attention: AttentionWeights, config: TransformerConfig) -> None:
    _set_linear(spec.linear[0], attention.query, attention.key, attention.value)
    _set_linear(spec.linear[1], attention.output)
    _set_norm(spec.layer_norm, attention.norm)
    _set_scale(spec, config)


def _set_cross_attention(spec: Any, attention: AttentionWeights, config: TransformerConfig) -> None:
    _set_linear(spec.linear[0], attention.query)
    _set_linear(spec.linear[1], attention.key, attention.value)
    _set_linear(spec.linear[2], attention.output)
    _set_norm(spec.layer_norm, attention.norm)
    _set_scale(spec, config)


def _set_feed_forward(spec: Any, feed_forward: FeedForwardWeights) -> None:
    _set_linear(spec.linear_0, feed_forward.inner)
    _set_linear(spec.linear_1, feed_forward.outer)
    _set_norm(spec.layer_norm, feed_forward.norm)
