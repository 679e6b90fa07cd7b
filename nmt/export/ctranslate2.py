"""Export to CTranslate2: a Transformer as a model directory that CTranslate2 loads without conversion.

Shapes: D model, V vocabulary, L positions.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from nmt.config.transformer import TransformerConfig
from nmt.data.dataset import dataset_of_run
from nmt.decoding.exported import VOCABULARY_MAP
from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.export import process
from nmt.export.base import Exporter, Tags, TrainedModel
from nmt.export.transformer_weights import BLOCKS, NEVER, complete_weights, transformer_section
from nmt.export.vocabulary import has_sentencepiece, unique_pieces, vocabulary_map, write_sentencepiece
from nmt.message import Argument, Command, Settings
from nmt.runs.directory import Run
from nmt.tokenizers.base import BOS, EOS, PAD, UNK

SINUSOIDS = 2048
"""Number of positions written for models with sinusoids. CTranslate2 reads no longer sentence."""

_SCRIPT = """With CTranslate2 and sentencepiece alone (the sentencepiece models normalize text as in training):

```python
import ctranslate2, sentencepiece

translator = ctranslate2.Translator("FOLDER")
source, target = (sentencepiece.SentencePieceProcessor(f"FOLDER/{side}.spm") for side in ("source", "target"))
sentence = "SENTENCE"
# Text in capitals is lowered for the model. nmt also adapts headings, quotes and lines with several sentences.
tokens = TAGSsource.encode(sentence.capitalize() if sentence.isupper() else sentence, out_type=str)
[result] = translator.translate_batch([tokens], ARGUMENTS)
translation = target.decode(result.hypotheses[0])
print(translation.upper() if sentence.isupper() else translation)
```

"""


class CTranslate2Exporter(Exporter):
    """A CTranslate2 model directory."""

    name: ClassVar = "ctranslate2"
    consumer: ClassVar = "CTranslate2"
    extra: ClassVar = "fast"
    modules: ClassVar = ("ctranslate2",)
    settings: ClassVar = "the call of `translate_batch` above"
    quantizations: ClassVar = (
        "float32", "int8", "int8_float32", "int16", "float16", "int8_float16", "bfloat16", "int8_bfloat16",
    )  # fmt: skip

    def check(self, model: TrainedModel) -> None:
        """Refuse architectures besides the Transformer, and Transformers with unsupported keys."""
        transformer_section(model, self.consumer)

    def positions(self, model: TrainedModel) -> int | None:
        """Return the most tokens that a source sentence may have; None: no limit."""
        section = transformer_section(model, self.consumer)
        return {"learned": section.max_positions, "sinusoidal": SINUSOIDS, "rotary": None}[section.positions]

    def write(self, model: TrainedModel, folder: Path) -> None:
        """Write ``model.bin``, ``config.json``, the vocabularies and, with ``with_map``, a vocabulary map."""
        process.call(self, save_model, str(model.run.folder), str(model.epoch), self.quantization, str(folder))
        if self.with_map:
            train = dataset_of_run(model.run.name, model.manifest).split("train")
            pieces = unique_pieces(model.source, model.target)
            (folder / VOCABULARY_MAP).write_text(vocabulary_map(model, train, *pieces), encoding="utf-8")
        if has_sentencepiece(model.source, model.target):
            write_sentencepiece(model.source, model.target, folder)

    def translate(self, model: TrainedModel, folder: Path, texts: list[str], tags: Tags = ()) -> list[str]:
        """Return greedy translations by CTranslate2, in the number format of the export."""
        arguments = str(folder), str(model.run.folder), str(model.epoch), texts
        return process.call(self, translations_by_model, *arguments, tags=tags)

    def written_tags(self, model: TrainedModel, tags: Sequence[int]) -> str | None:
        """Return the tokens of tags."""
        pieces, _ = unique_pieces(model.source, model.target)
        return " ".join(pieces[tag] for tag in tags)

    def usage(self, model: TrainedModel) -> str:
        """Return instructions for translation with nmt, and with CTranslate2 alone."""
        decoding = model.config.decoding
        arguments = {"beam_size": 1, **decoding.arguments("ctranslate2", decoding.search())}
        script = _SCRIPT.replace("ARGUMENTS", ", ".join(f"{name}={value}" for name, value in arguments.items()))
        first = model.directions[0]
        tags = self.written_tags(model, model.tags(first))
        export = Argument("export", "FOLDER")
        command = Command("translate", export)
        if model.manifest.is_multilingual:
            source, target = first.languages
            languages = Settings({"decoding.source_language": source, "decoding.target_language": target})
            command = Command("translate", export, languages)
        script = script.replace("TAGS", f"{json.dumps(tags.split())} + " if tags else "")
        return (
            f'With nmt:\n\n```console\n{command} "SENTENCE"\n```\n\n'
            f"{script if has_sentencepiece(model.source, model.target) else ''}"
            "In beam search CTranslate2 divides the log-probability of a translation by its length to the power of the "
            "penalty. nmt divides it by ((5 + length) / 6) to that power, and ranks the hypotheses of CTranslate2 by "
            "this score too. The export never generates pad and bos, so its log-probabilities are a little larger than "
            "the run's: by -log(1 - p(pad) - p(bos)) per token."
            f"{self.version_note(model)}"
        )

    def version_note(self, model: TrainedModel) -> str:
        """Return a paragraph on the versions of CTranslate2 that the model needs; nothing if any version will do."""
        if not transformer_section(model, self.consumer).query_key_norm:
            return ""
        return (
            "\n\nThe model needs CTranslate2 4.7 or newer. Older versions ignore its norms of queries and keys, and "
            "translate wrongly without a message."
        )


def save_model(run: str, epoch: str, quantization: str, folder: str) -> None:
    """Write the files of a CTranslate2 model. ``ctranslate2.specs`` may load PyTorch, so this runs in a process."""
    import ctranslate2  # noqa: PLC0415 - an extra

    model = TrainedModel.of(Run(Path(run)), epoch)
    spec = _specification(ctranslate2.specs, transformer_section(model, CTranslate2Exporter.consumer), model)
    spec.validate()
    spec.optimize(quantization)
    spec.save(folder)


def translations_by_model(folder: str, run: str, epoch: str, texts: list[str], tags: Tags = ()) -> list[str]:
    """Return greedy translations by a CTranslate2 model of a run, as ``nmt translate --export`` does.

    ``tags`` are the ids before each text; empty: the tag of the configuration is before all.
    """
    from nmt.decoding.ctranslate2_engine import CTranslate2Engine  # noqa: PLC0415 - an extra

    model = TrainedModel.of(Run(Path(run)), epoch)
    decoding = model.config.decoding.model_copy(update={"beam_size": 1, "mbr_candidates": 0})
    config = model.config.model_copy(update={"decoding": decoding})
    engine = CTranslate2Engine(Path(folder), config)
    translator = SentenceTranslator(engine, model.source, model.target, config, model.epoch)
    if not tags:
        return [best.text for best, *_ in translator.search(texts)]
    translations = [""] * len(texts)
    for own in sorted(set(map(tuple, tags))):
        translator.tags = list(own)
        indices = [index for index, before in enumerate(tags) if tuple(before) == own]
        results = translator.search([texts[index] for index in indices])
        for index, (best, *_) in zip(indices, results, strict=True):
            translations[index] = best.text
    return translations


def _specification(specs: Any, config: TransformerConfig, model: TrainedModel) -> Any:
    """Return the ``ctranslate2.specs.TransformerSpec`` of a model, with its weights."""
    weights = complete_weights(config, model, SINUSOIDS)
    head_dim = config.size_per_head if config.size_per_head * config.heads != config.d_model else None
    options: dict[str, Any] = {
        "pre_norm": config.norm_placement == "pre",
        "head_dim": head_dim,
        "qk_norm": config.query_key_norm,
    }
    if config.activation == "swish":
        options["activation"] = specs.common_spec.Activation.SWISH
    if config.positions == "rotary":
        options |= {"rotary_dim": config.size_per_head, "rotary_base": config.position_base}
        options["rotary_interleave"] = False  # pairs are channels i and i + d/2
    encoder = specs.transformer_spec.TransformerEncoderSpec(config.encoder_layers, config.heads, **options)
    # With 0 alignment heads CTranslate2 returns the mean attention over the heads of the last layer, as nmt does.
    decoder = specs.transformer_spec.TransformerDecoderSpec(
        config.decoder_layers, config.heads, alignment_heads=0, **options
    )

    def linear(spec: Any, *names: str) -> None:
        """Set a linear layer, or several joined into one. CTranslate2 has matrices [outputs, inputs]."""
        spec.weight, spec.bias = (
            np.concatenate([weights[f"{name}/{part}"].T for name in names]) for part in ("kernel", "bias")
        )

    def norm(spec: Any, name: str) -> None:
        # The weights are copied, since a norm that two sublayers share is written twice.
        spec.gamma, spec.beta = (weights[f"{name}/{part}"].copy() for part in ("gamma", "beta"))

    def attention(spec: Any, layer: str, block: str, *parts: tuple[str, ...]) -> None:
        for place, names in enumerate(parts):
            linear(spec.linear[place], *(f"{layer}/{block}/{name}" for name in names))
        norm(spec.layer_norm, f"{layer}/{block}_sublayer/norm")
        if config.query_key_norm:
            joined = config.heads if block == "cross_attention" else 1
            spec.q_norm.gamma = np.ones(joined * config.size_per_head, np.float32)
            spec.k_norm.gamma = np.ones(config.size_per_head, np.float32)
        if config.attention_scale == "projection":
            spec.queries_scale = np.float32(1 / math.sqrt(config.heads * config.size_per_head))

    for spec, stack, side in ((encoder, "encoder", "source"), (decoder, "decoder", "target")):
        embeddings = spec.embeddings[0] if stack == "encoder" else spec.embeddings
        embeddings.weight = weights[f"{side}_embedding/matrix"]
        spec.scale_embeddings = config.scale_embeddings
        if config.positions != "rotary":
            spec.position_encodings.encodings = weights[f"{side}_positions/matrix"]
        elif hasattr(spec, "position_encodings"):  # the encoder's specification always has it
            del spec.position_encodings
        if config.norm_placement == "pre":
            norm(spec.layer_norm, f"{stack}_norm")
        for number, part in enumerate(spec.layer, start=1):
            layer = f"{stack}_{number}"
            attention(part.self_attention, layer, BLOCKS[stack][0], ("query", "key", "value"), ("output",))
            if stack == "decoder":
                attention(part.attention, layer, BLOCKS[stack][1], ("query",), ("key", "value"), ("output",))
            linear(part.ffn.linear_0, f"{layer}/feed_forward/inner")
            linear(part.ffn.linear_1, f"{layer}/feed_forward/outer")
            norm(part.ffn.layer_norm, f"{layer}/feed_forward_sublayer/norm")
    linear(decoder.projection, "output_layer")
    decoder.projection.bias[[PAD, BOS]] = NEVER  # no client generates them, as in nmt's search

    spec = specs.TransformerSpec(encoder, decoder)
    source, target = unique_pieces(model.source, model.target)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.layer_norm_epsilon = config.layer_norm_epsilon
    spec.config.add_source_bos, spec.config.add_source_eos = config.reads_bos, True
    for key, index in (("unk_token", UNK), ("bos_token", BOS), ("eos_token", EOS), ("decoder_start_token", BOS)):
        setattr(spec.config, key, target[index])
    return spec
