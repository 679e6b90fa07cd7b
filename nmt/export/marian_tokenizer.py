"""Tokenizer files that transformers reads: sentencepiece models for subwords, tokenizer.json for words and characters.

Subwords are those of MarianTokenizer, which runs sentencepiece itself. A tokenizer.json has a single vocabulary for
reading and writing. Target ids keep their number; source words without one of their own come after them. The encoder's
embedding follows this order (``Vocabularies.source_rows``), and where the source side does not know a target word, it
has the row of unk.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np

from nmt.export.marian_weights import Vocabularies
from nmt.export.normalizing_sentencepiece import write_sentencepiece
from nmt.export.vocabulary import unique_pieces
from nmt.storage.json_file import write_json
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD, PAD, UNK, Tokenizer
from nmt.tokenizers.word import CharacterTokenizer, WordTokenizer

# Characters that str.split() takes for white space, as the inside of a character class.
_WHITE_SPACE = "\t\n\x0b\x0c\r\x1c-\x1f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


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
    """Return the id of each piece."""
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
    begin = begin if bos else []
    first, second = ([{"Sequence": {"id": name, "type_id": 0}}] for name in "AB")
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
    collapse = [_replace(f"[{_WHITE_SPACE}]+", " "), _replace("^ +| +$", "")]
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
