"""Export to transformers of Hugging Face: MarianMTModel for post-norm models, Pegasus for pre-norm models.

``marian_weights`` has the arrays. Subwords are those of MarianTokenizer, which runs sentencepiece itself.
"""

import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from safetensors.numpy import save_file

from nmt.data.batch_plan import length_batches
from nmt.decoding.translator import max_lengths
from nmt.errors import NmtError
from nmt.export.base import Exporter, TrainedModel
from nmt.export.marian_weights import embedding_keys, exported_heads, exported_weights, keeps_positions
from nmt.export.transformer_weights import complete_weights, transformer_section
from nmt.export.vocabulary import check_normalization, unique_pieces, write_sentencepiece
from nmt.storage.json_file import write_json
from nmt.tokenizers.base import BOS, EOS, PAD, UNK, Tokenizer

SINUSOIDS = 1024
"""Positions written for models with sinusoids, as many as Marian has."""
MAX_LENGTH = 512
"""Tokens of the longest translation that transformers generates unless told otherwise."""
SPECIAL_IDS = {
    "pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS, "decoder_start_token_id": BOS,
    "forced_eos_token_id": None,
}  # fmt: skip
MODEL_CLASSES = {"post": "MarianMTModel", "pre": "PegasusForConditionalGeneration"}
MODEL_TYPES = {"post": "marian", "pre": "pegasus"}

_EXAMPLE = """```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

folder = "."  # path of this folder
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForSeq2SeqLM.from_pretrained(folder)
inputs = tokenizer(["A first sentence.", "A second sentence."], padding=True, return_tensors="pt")
ids = model.generate(**inputs, num_beams=1, max_new_tokens=100)
translations = tokenizer.batch_decode(ids, skip_special_tokens=True)
print(translations)
```"""


class HuggingFaceExporter(Exporter):
    """A model directory of transformers: safetensors, configuration, tokenizer."""

    name: ClassVar[str] = "huggingface"
    consumer: ClassVar[str] = "transformers"
    extra: ClassVar[str | None] = "huggingface"
    modules: ClassVar[tuple[str, ...]] = ("torch", "transformers")
    settings: ClassVar[str] = "`generation_config.json`"

    def check(self, model: TrainedModel) -> None:
        """Refuse all but Transformers on subwords, wide heads and rotary positions."""
        config = transformer_section(model, self.consumer)
        if exported_heads(config) is None:
            raise NmtError(
                f"Run {model.run.name!r} has {config.heads} attention heads of size {config.size_per_head} and d_model "
                f"{config.d_model:,}. Heads of {self.consumer} divide d_model: heads x head_size is at most d_model. "
                "Export it with --to ctranslate2 or saved-model, or train with a smaller model.head_size."
            )
        if config.positions == "rotary":
            raise NmtError(
                f"Run {model.run.name!r} has model.positions: rotary. {self.consumer}'s Marian adds position vectors "
                "to the words. Export it with --to ctranslate2 or saved-model, or train with model.positions: "
                "sinusoidal."
            )
        for tokenizer in (model.source, model.target):
            check_normalization(tokenizer, self.consumer)

    def positions(self, model: TrainedModel) -> int:
        """Return the most tokens of a sentence that the export reads or writes."""
        config = transformer_section(model, self.consumer)
        return config.max_positions if config.positions == "learned" else SINUSOIDS

    def write(self, model: TrainedModel, folder: Path) -> None:
        """Write model.safetensors, config.json, generation_config.json and the files of the tokenizer."""
        config, positions = transformer_section(model, self.consumer), self.positions(model)
        size = max(model.source.size, model.target.size)
        weights = exported_weights(config, complete_weights(config, model, positions), size)
        save_file(weights, folder / "model.safetensors", {"format": "pt"})
        heads, decoding = exported_heads(config), model.config.decoding
        described = {
            "architectures": [MODEL_CLASSES[config.norm_placement]], "model_type": MODEL_TYPES[config.norm_placement],
            "is_encoder_decoder": True, "dtype": "float32", "d_model": config.d_model,
            "encoder_layers": config.encoder_layers, "decoder_layers": config.decoder_layers,
            "encoder_attention_heads": heads, "decoder_attention_heads": heads,
            "encoder_ffn_dim": config.d_ff, "decoder_ffn_dim": config.d_ff, "activation_function": "relu",
            "dropout": config.dropout, "attention_dropout": config.attention_dropout,
            "activation_dropout": config.feed_forward_dropout, "scale_embedding": config.scale_embeddings,
            "max_position_embeddings": positions, "use_cache": True,
        }  # fmt: skip
        write_json(folder / "config.json", described | SPECIAL_IDS | embedding_keys(config, size))
        search = {"suppress_tokens": [PAD, BOS], "do_sample": False, "max_new_tokens": min(MAX_LENGTH, positions)}
        search |= decoding.arguments(self.name, decoding.search())
        write_json(folder / "generation_config.json", SPECIAL_IDS | search)
        write_tokenizer(model.source, model.target, folder, bos=config.reads_bos, max_length=positions)

    def translate(self, model: TrainedModel, folder: Path, texts: list[str]) -> list[str]:
        """Return greedy translations by ``generate`` of transformers."""
        return translations_of(*load(folder), model, texts, self.positions(model))

    def usage(self, model: TrainedModel) -> str:
        """Return how to use the export with transformers, and where its translations may differ."""
        config = transformer_section(model, self.consumer)
        lines = [
            "`generate` has one limit for all sentences, `nmt translate` one for each.",
            "Beam search of transformers divides the score of a translation of T tokens by T^`length_penalty`, nmt by "
            "((5 + T) / 6)^`length_penalty`. The best translations of a beam can differ.",
            "`MarianTokenizer` takes `>>` to `<<` at the beginning of a sentence for a language code.",
        ]
        if config.norm_placement == "pre" and config.tie_embeddings != "all":
            lines.append("Transformers 5 is needed: Pegasus of transformers 4 takes one embedding for both sides.")
        else:
            lines.append("`optimum-cli export onnx` of optimum-onnx 0.1, which needs transformers 4, makes it ONNX.")
        if config.norm_placement == "post" and not keeps_positions(config):
            lines.append(
                "`save_pretrained` of `MarianMTModel` leaves out the positions. Copy both `embed_positions.weight` "
                "from `model.safetensors` into a model saved by transformers."
            )
        head = (
            f"A `{MODEL_CLASSES[config.norm_placement]}` of transformers 5 with its tokenizer: "
            "`pip install torch transformers sentencepiece`."
        )
        return "\n\n".join([head, _EXAMPLE, "\n".join(f"- {line}" for line in lines)])


def load(folder: Path) -> tuple[Any, Any]:
    """Return tokenizer and model of an export, as transformers loads them: float32, without dropout."""
    import torch  # noqa: PLC0415 - an optional extra
    import transformers  # noqa: PLC0415 - an optional extra

    transformers.utils.logging.disable_progress_bar()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*sacremoses")  # which no export needs
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    return tokenizer, model.eval()


def translations_of(tokenizer: Any, consumer: Any, model: TrainedModel, texts: list[str], positions: int) -> list[str]:
    """Return greedy translations by a tokenizer and a model of transformers, of at most ``positions`` tokens each."""
    encoded = [[id_ for id_ in ids if id_ not in (BOS, EOS)] for ids in tokenizer(texts)["input_ids"]]
    translations = [""] * len(texts)
    for batch in length_batches([len(ids) for ids in encoded], model.config.decoding.batch_size):
        inputs = tokenizer([texts[index] for index in batch], padding=True, return_tensors="pt")
        lengths = np.asarray(inputs["attention_mask"]).sum(axis=1)
        limits = np.minimum(max_lengths(model.config, lengths), positions).tolist()
        found = consumer.generate(**inputs, num_beams=1, do_sample=False, max_new_tokens=max(limits))
        for index, row, limit in zip(batch, found.tolist(), limits, strict=True):
            translations[index] = tokenizer.decode(row[1 : 1 + limit], skip_special_tokens=True)
    return translations


def write_tokenizer(source: Tokenizer, target: Tokenizer, folder: Path, *, bos: bool, max_length: int) -> None:
    """Write the files of a MarianTokenizer.

    Args:
        source: tokenizer of the source side, as ``has_sentencepiece`` asks.
        target: tokenizer of the target side.
        folder: folder of the export.
        bos: whether the encoder reads bos before a sentence.
        max_length: tokens of the longest sentence that the model reads, special ids included.
    """
    write_sentencepiece(source, target, folder)
    special = unique_pieces(source, target)[0]
    ids = [{piece: id_ for id_, piece in enumerate(side.pieces(range(side.size)))} for side in (source, target)]
    write_json(folder / "vocab.json", ids[0])
    if ids[0] != ids[1]:
        write_json(folder / "target_vocab.json", ids[1])
    settings = {
        **{f"{name}_token": special[id_] for name, id_ in (("pad", PAD), ("bos", BOS), ("eos", EOS), ("unk", UNK))},
        "tokenizer_class": "MarianTokenizer",
        "separate_vocabs": ids[0] != ids[1],
        "sp_model_kwargs": {"add_bos": True} if bos else {},  # MarianTokenizer adds eos alone
        "model_max_length": max_length,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # "</s>" in a text is text
    }
    write_json(folder / "tokenizer_config.json", settings)
