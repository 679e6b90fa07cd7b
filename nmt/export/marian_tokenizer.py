"""Tokenizer files that transformers reads: sentencepiece models for subwords, a tokenizer.json for words and characters.

Subwords are those of MarianTokenizer, which runs sentencepiece itself. A tokenizer.json has a single vocabulary for
reading and writing. Target ids keep their number; source words without one of their own come after them. The encoder's
embedding follows this order (``Vocabularies.source_rows``), and where the source side does not know a target word, it
has the row of unk.
"""

from pathlib import Path
from typing import Any

import numpy as np

from nmt.errors import DataError
from nmt.export.marian_weights import Vocabularies
from nmt.storage.json_file import write_json
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD, PAD, SPECIAL_PIECES, UNK, Tokenizer
from nmt.tokenizers.subword import SubwordTokenizer
from nmt.tokenizers.word import CharacterTokenizer, WordTokenizer

# Characters that str.split() takes for white space, as the inside of a character class.
_WHITE_SPACE = "\t\n\x0b\x0c\r\x1c-\x1f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


def check_tokenizers(source: Tokenizer, target: Tokenizer) -> None:
    """Refuse a vocabulary that tokenizer.json cannot hold.

    Raises:
        DataError: for a word spelled as a special id.
    """
    for side, tokenizer in (("source", source), ("target", target)):
        words = tokenizer.words if isinstance(tokenizer, WordTokenizer) else []
        if found := sorted({*words} & {*SPECIAL_PIECES}):
            raise DataError(
                f"The {side} vocabulary holds the word {found[0]!r}. In a tokenizer.json of transformers this is the "
                "spelling of a special id. Prepare the corpus without that word, or with data.tokenizer=subword."
            )


def vocabularies(source: Tokenizer, target: Tokenizer) -> Vocabularies:
    """Return the ids that the exported model reads and writes."""
    if not isinstance(source, WordTokenizer) or not isinstance(target, WordTokenizer):
        return Vocabularies(np.arange(source.size), target.size)
    known = {word: id_ for id_, word in enumerate(source.words, FIRST_WORD)}
    rows = [*range(FIRST_WORD), *(known[word] if word in known else UNK for word in _joint_words(source, target))]
    return Vocabularies(np.array(rows), target.size)


def write_tokenizer(source: Tokenizer, target: Tokenizer, folder: Path, *, bos: bool, max_length: int) -> None:
    """Write the files of the tokenizer.

    Args:
        source: tokenizer of the source side.
        target: tokenizer of the target side.
        folder: folder of the export.
        bos: whether the encoder reads bos before a sentence.
        max_length: tokens of the longest sentence that the model reads, special ids included.
    """
    names = {"pad_token": SPECIAL_PIECES[PAD], "bos_token": SPECIAL_PIECES[BOS], "eos_token": SPECIAL_PIECES[EOS]}
    settings: dict[str, Any] = {
        **names,
        "model_max_length": max_length,
        "model_input_names": ["input_ids", "attention_mask"],
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,  # "</s>" in a text is text
    }
    if isinstance(source, SubwordTokenizer) and isinstance(target, SubwordTokenizer):
        settings |= _write_subwords(source, target, folder, bos=bos)
    elif isinstance(source, WordTokenizer) and isinstance(target, WordTokenizer):
        settings["tokenizer_class"] = "PreTrainedTokenizerFast"
        write_json(folder / "tokenizer.json", _word_tokenizer(source, target, bos=bos))
    else:
        raise TypeError(f"no tokenizer of transformers for {type(source).__name__} and {type(target).__name__}")
    write_json(folder / "tokenizer_config.json", settings)


def _write_subwords(source: SubwordTokenizer, target: SubwordTokenizer, folder: Path, *, bos: bool) -> dict[str, Any]:
    """Write the files of MarianTokenizer. Return its part of tokenizer_config.json."""
    separate = source.model != target.model
    for tokenizer, name in ((source, "source.spm"), (target, "target.spm")):
        (folder / name).write_bytes(_sentencepiece(tokenizer))
    write_json(folder / "vocab.json", _pieces(source))
    if separate:
        write_json(folder / "target_vocab.json", _pieces(target))
    return {
        "tokenizer_class": "MarianTokenizer",
        "unk_token": SPECIAL_PIECES[UNK],
        "separate_vocabs": separate,
        # MarianTokenizer adds eos alone; sentencepiece adds bos.
        "sp_model_kwargs": {"add_bos": True} if bos else {},
    }


def _sentencepiece(tokenizer: SubwordTokenizer) -> bytes:
    return tokenizer.model


def _pieces(tokenizer: Tokenizer) -> dict[str, int]:
    """Return the id of each piece."""
    return {piece: id_ for id_, piece in enumerate(tokenizer.pieces(range(tokenizer.size)))}


def _joint_words(source: WordTokenizer, target: WordTokenizer) -> list[str]:
    """Return the words of both sides in the order of their ids in the export, from ``FIRST_WORD``."""
    return list(dict.fromkeys([*target.words, *source.words]))


def _word_tokenizer(source: WordTokenizer, target: WordTokenizer, *, bos: bool) -> dict[str, Any]:
    """Return the content of a tokenizer.json."""
    vocabulary = {piece: id_ for id_, piece in enumerate([*SPECIAL_PIECES, *_joint_words(source, target)])}
    characters = isinstance(source, CharacterTokenizer)
    begin = [{"SpecialToken": {"id": SPECIAL_PIECES[BOS], "type_id": 0}}] if bos else []
    end = [{"SpecialToken": {"id": SPECIAL_PIECES[EOS], "type_id": 0}}]
    first, second = ([{"Sequence": {"id": name, "type_id": 0}}] for name in "AB")
    special = {piece: {"id": piece, "ids": [vocabulary[piece]], "tokens": [piece]} for piece in SPECIAL_PIECES}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": id_, "content": SPECIAL_PIECES[id_], "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True}
            for id_ in (PAD, BOS, EOS)  # unk is a piece among others, which a translation can hold
        ],
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(source, characters=characters)},
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
            "special_tokens": special,
        },
        "decoder": {"type": "Fuse"} if characters else None,  # None joins words by spaces
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": SPECIAL_PIECES[UNK]},
    }  # fmt: skip


def _normalizers(tokenizer: WordTokenizer, *, characters: bool) -> list[dict[str, Any]]:
    """Return the steps of the tokenizer's normalization, as those of ``nmt.tokenizers.normalization``."""
    collapse = [_replace(f"[{_WHITE_SPACE}]+", " "), _replace("^ +| +$", "")]
    if tokenizer.normalization == "ascii-words":
        words = [_replace("[^a-z0-9 ]+", ""), _replace("[a-z]*[0-9][a-z0-9]*", ""), *collapse]
        return [*collapse, {"type": "NFD"}, _replace("[^\\x{0}-\\x{7f}]+", ""), {"type": "Lowercase"}, *words]
    steps = [{"type": "NFKC"}, *collapse] if tokenizer.normalization == "nfkc" else collapse
    if not characters:  # a word spelled as a special id is unknown
        names = "|".join(piece for piece in SPECIAL_PIECES if piece != SPECIAL_PIECES[UNK])
        steps.append(_replace(f"(?<![^ ])({names})(?![^ ])", SPECIAL_PIECES[UNK]))
    return steps


def _replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}
