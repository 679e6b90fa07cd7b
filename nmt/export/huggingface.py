"""Export to transformers of Hugging Face: MarianMTModel for post-norm models, Pegasus for pre-norm models.

``marian_weights`` has the arrays. Subwords are those of MarianTokenizer, which runs sentencepiece itself; words and
characters have a tokenizer.json with a single vocabulary for reading and writing. Target ids keep their number there;
source words without one of their own come after them. The encoder's embedding follows this order
(``Vocabularies.source_rows``), and where the source side does not know a target word, it has the row of unk.
"""

import re
import warnings
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from safetensors.numpy import save_file

from nmt.data.batch_plan import length_batches
from nmt.decoding.translator import max_lengths
from nmt.errors import NmtError
from nmt.export.base import Exporter, TrainedModel
from nmt.export.marian_weights import (
    Vocabularies,
    embedding_keys,
    exported_heads,
    exported_weights,
    keeps_positions,
    shares_embeddings,
)
from nmt.export.transformer_weights import complete_weights, transformer_section
from nmt.export.vocabulary import check_normalization, unique_pieces, write_sentencepiece
from nmt.storage.json_file import write_json
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD, PAD, UNK, Tokenizer
from nmt.tokenizers.subword import SubwordTokenizer
from nmt.tokenizers.word import CharacterTokenizer, WordTokenizer

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
# Characters that str.split() takes for white space, as the inside of a character class.
WHITE_SPACE = "\t\n\x0b\x0c\r\x1c-\x1f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

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
        """Refuse architectures besides the Transformer, wide heads, rotary positions, subwords normalized by words."""
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
            if isinstance(tokenizer, SubwordTokenizer):
                check_normalization(tokenizer, self.consumer)

    def positions(self, model: TrainedModel) -> int:
        """Return the most tokens of a sentence that the export reads or writes."""
        config = transformer_section(model, self.consumer)
        return config.max_positions if config.positions == "learned" else SINUSOIDS

    def write(self, model: TrainedModel, folder: Path) -> None:
        """Write model.safetensors, config.json, generation_config.json and the files of the tokenizer."""
        config, positions = transformer_section(model, self.consumer), self.positions(model)
        ids = vocabularies(model.source, model.target)
        weights = exported_weights(config, complete_weights(config, model, positions), ids)
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
        write_json(folder / "config.json", described | SPECIAL_IDS | embedding_keys(config, ids))
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
        subwords = isinstance(model.source, SubwordTokenizer)
        lines = [
            "`generate` has one limit for all sentences, `nmt translate` one for each.",
            "Beam search of transformers divides the score of a translation of T tokens by T^`length_penalty`, nmt by "
            "((5 + T) / 6)^`length_penalty`. The best translations of a beam can differ.",
        ]
        if subwords:
            lines.append("`MarianTokenizer` takes `>>` to `<<` at the beginning of a sentence for a language code.")
        if config.norm_placement == "pre" and not shares_embeddings(config, vocabularies(model.source, model.target)):
            lines.append("Transformers 5 is needed: Pegasus of transformers 4 takes one embedding for both sides.")
        else:
            lines.append("`optimum-cli export onnx` of optimum-onnx 0.1, which needs transformers 4, makes it ONNX.")
        if config.norm_placement == "post" and not keeps_positions(config):
            lines.append(
                "`save_pretrained` of `MarianMTModel` leaves out the positions. Copy both `embed_positions.weight` "
                "from `model.safetensors` into a model saved by transformers."
            )
        packages, kind = "torch transformers" + (" sentencepiece" if subwords else ""), config.norm_placement
        head = f"A `{MODEL_CLASSES[kind]}` of transformers 5 with its tokenizer: `pip install {packages}`."
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


def vocabularies(source: Tokenizer, target: Tokenizer) -> Vocabularies:
    """Return the ids that the exported model reads and writes."""
    if not isinstance(source, WordTokenizer) or not isinstance(target, WordTokenizer):
        return Vocabularies(np.arange(source.size), target.size)
    pieces = _joint_pieces(source, target)
    ours = dict.fromkeys(pieces, UNK) | _ids([*pieces[:FIRST_WORD], *source.words])
    return Vocabularies(np.array([ours[piece] for piece in pieces]), target.size)


def write_tokenizer(source: Tokenizer, target: Tokenizer, folder: Path, *, bos: bool, max_length: int) -> None:
    """Write the files of a tokenizer.

    Args:
        source: tokenizer of the source side; subwords as ``has_sentencepiece`` asks.
        target: tokenizer of the target side, of the same kind.
        folder: folder of the export.
        bos: whether the encoder reads bos before a sentence.
        max_length: tokens of the longest sentence that the model reads, special ids included.
    """
    special = unique_pieces(source, target)[0][:FIRST_WORD]
    settings: dict[str, Any] = {
        **{f"{name}_token": special[id_] for name, id_ in (("pad", PAD), ("bos", BOS), ("eos", EOS))},
        "model_max_length": max_length,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # "</s>" in a text is text
    }
    if isinstance(source, WordTokenizer) and isinstance(target, WordTokenizer):
        settings["tokenizer_class"] = "PreTrainedTokenizerFast"
        write_json(folder / "tokenizer.json", _word_tokenizer(source, target, bos=bos))
    else:
        pieces = [tokenizer.pieces(range(tokenizer.size)) for tokenizer in (source, target)]
        settings |= {"tokenizer_class": "MarianTokenizer", "unk_token": special[UNK]}
        settings["separate_vocabs"] = pieces[0] != pieces[1]
        # MarianTokenizer adds eos alone; sentencepiece adds bos.
        settings["sp_model_kwargs"] = {"add_bos": True} if bos else {}
        write_sentencepiece(source, target, folder)
        write_json(folder / "vocab.json", _ids(pieces[0]))
        if settings["separate_vocabs"]:
            write_json(folder / "target_vocab.json", _ids(pieces[1]))
    write_json(folder / "tokenizer_config.json", settings)


def _ids(pieces: list[str]) -> dict[str, int]:
    return {piece: id_ for id_, piece in enumerate(pieces)}


def _joint_pieces(source: WordTokenizer, target: WordTokenizer) -> list[str]:
    """Return the pieces of both sides in the order of their ids in the export."""
    special = unique_pieces(source, target)[0][:FIRST_WORD]
    return list(dict.fromkeys([*special, *target.words, *source.words]))


def _word_tokenizer(source: WordTokenizer, target: WordTokenizer, *, bos: bool) -> dict[str, Any]:
    """Return the content of a tokenizer.json."""
    pieces = _joint_pieces(source, target)
    characters = isinstance(source, CharacterTokenizer)
    begin, end = ([{"SpecialToken": {"id": pieces[id_], "type_id": 0}}] for id_ in (BOS, EOS))
    first, second = ([{"Sequence": {"id": name, "type_id": 0}}] for name in "AB")
    begin = begin if bos else []
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": id_, "content": pieces[id_], "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True}
            for id_ in (PAD, BOS, EOS)  # unk is a piece among others, which a translation can hold
        ],
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(source, pieces[:FIRST_WORD])},
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": "[\\s\\S]"} if characters else {"String": " "},
            "behavior": "Isolated" if characters else "Removed",
            "invert": False,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [*begin, *first, *end],
            "pair": [*begin, *first, *second, *end],
            "special_tokens": {
                pieces[id_]: {"id": pieces[id_], "ids": [id_], "tokens": [pieces[id_]]} for id_ in (BOS, EOS)
            },
        },
        "decoder": {"type": "Fuse"} if characters else None,  # None joins words by spaces
        "model": {"type": "WordLevel", "vocab": _ids(pieces), "unk_token": pieces[UNK]},
    }  # fmt: skip


def _normalizers(tokenizer: WordTokenizer, special: list[str]) -> list[dict[str, Any]]:
    """Return the steps of the tokenizer's normalization, as those of ``nmt.tokenizers.normalization``."""
    collapse = [_replace(f"[{WHITE_SPACE}]+", " "), _replace("^ +| +$", "")]
    if tokenizer.normalization == "ascii-words":
        words = [_replace("[^a-z0-9 ]+", ""), _replace("[a-z]*[0-9][a-z0-9]*", ""), *collapse]
        return [*collapse, {"type": "NFD"}, _replace("[^\\x{0}-\\x{7f}]+", ""), {"type": "Lowercase"}, *words]
    steps = [{"type": "NFKC"}, *collapse] if tokenizer.normalization == "nfkc" else collapse
    if isinstance(tokenizer, CharacterTokenizer):
        return steps
    # A word spelled as a special id is unknown.
    names = "|".join(map(re.escape, special))
    return [*steps, _replace(f"(?<![^ ])({names})(?![^ ])", special[UNK])]


def _replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}
