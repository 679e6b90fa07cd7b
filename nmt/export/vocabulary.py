"""Vocabularies for other programs: different strings for all ids, vocabulary maps, sentencepiece models of raw text.

Shapes: S source length, T target length.
"""

import functools
import io
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from nmt.data.batch_plan import length_batches
from nmt.data.token_arrays import Split
from nmt.errors import NmtError
from nmt.export.base import TrainedModel
from nmt.message import Argument, Settings
from nmt.runs.weights import WeightsFile
from nmt.storage.atomic import scratch_folder
from nmt.tokenizers.base import FIRST_WORD, SPACE_MARK, SPECIAL_PIECES, Tokenizer
from nmt.tokenizers.subword import SubwordTokenizer

MOST_PAIRS = 20_000
BATCH = 256
ALIGNED = 3
"""Source tokens that a target token counts for: those that it attends to most."""
CANDIDATES = 50
"""Most target tokens of a source token."""
FREQUENT = 300
"""Target tokens that every sentence may have: the most frequent ones."""
REPLACING = ("none", "nfkc")
"""Normalizations that replace characters alone, never whole words."""


def unique_pieces(source: Tokenizer, target: Tokenizer) -> tuple[list[str], list[str]]:
    """Return the piece of each id of both sides, each different from the others of its side.

    Special pieces are spelled alike on both sides. A special piece that is also a word of a vocabulary gets underscores
    behind it, and so does a word that looks like an earlier one: characters show a space as ``SPACE_MARK``.
    """
    sides = [tokenizer.pieces(range(FIRST_WORD, tokenizer.size)) for tokenizer in (source, target)]
    taken = {word for side in sides for word in side}
    special: list[str] = []
    for piece in SPECIAL_PIECES:
        special.append(_different(piece, taken.union(special)))
    taken.update(special)
    found = []
    for side in sides:
        pieces = dict.fromkeys(special)
        for word in side:
            pieces[_different(word, taken.union(pieces)) if word in pieces else word] = None
        found.append(list(pieces))
    return found[0], found[1]


def _different(piece: str, taken: set[str]) -> str:
    """Return a piece with as many underscores behind it as make it different from those taken."""
    while piece in taken:
        piece += "_"
    return piece


def vocabulary_map(model: TrainedModel, train: Split, source: list[str], target: list[str]) -> str:
    """Return the content of CTranslate2's ``vmap.txt``: target tokens among which it chooses, for each source token.

    Search computes logits of these alone, so that the output layer costs less (Jean et al. 2015, section 3). They are
    the tokens that attend to the source token in training pairs. A line is source token TAB target tokens; the first
    is for every sentence.

    Args:
        model: a Transformer.
        train: pairs that it was trained on.
        source: spelling of each source id.
        target: spelling of each target id.

    Raises:
        NmtError: for tokens with white space, which separates tokens in the file.
    """
    if spaced := next((piece for piece in [*source, *target] if piece.split() != [piece]), None):
        raise NmtError(
            f"The vocabulary map cannot be written: the token {spaced!r} has white space, which separates the tokens "
            "in the file. Leave ",
            Argument("vocabulary_map"),
            " out.",
        )
    aligned, frequencies = _count(model, train)
    frequent = [id_ for id_, _ in frequencies.most_common(FREQUENT)]
    lines = ["\t" + " ".join(target[id_] for id_ in frequent)]
    for id_, counts in sorted(aligned.items()):
        lines.append(f"{source[id_]}\t{' '.join(target[found] for found, _ in counts.most_common(CANDIDATES))}")
    return "\n".join(lines) + "\n"


def _count(model: TrainedModel, train: Split) -> tuple[dict[int, Counter[int]], Counter[int]]:
    """Return the target tokens that attend to each source token, and all target tokens, with their numbers."""
    from nmt.decoding.tensorflow_engine import TensorFlowEngine  # noqa: PLC0415 - it loads TensorFlow

    weights = WeightsFile(model.run, model.epoch)
    engine = TensorFlowEngine.load(model.config, model.source.size, model.target.size, weights)
    aligned: dict[int, Counter[int]] = defaultdict(Counter)
    frequencies: Counter[int] = Counter()
    bos = int(model.config.model.reads_bos)
    for batch in length_batches((train.source.lengths[:MOST_PAIRS] + 1).tolist(), BATCH):
        sources, targets = ([side[index].tolist() for index in batch.tolist()] for side in (train.source, train.target))
        attention: Any = engine.cross_attention(sources, targets)  # [layers, heads, T, S] each
        for source, target, layers in zip(sources, targets, attention, strict=True):
            among = layers[-1].mean(axis=0)[:, bos : bos + len(source)]
            for token, places in zip(target, np.argsort(-among, axis=1)[:, :ALIGNED], strict=True):
                if token >= FIRST_WORD:
                    frequencies[token] += 1
                    for place in places:
                        aligned[source[place]][token] += 1
    return aligned, frequencies


def has_sentencepiece(*tokenizers: Tokenizer) -> bool:
    """Return whether sentencepiece models can do all that the tokenizers do."""
    return all(isinstance(side, SubwordTokenizer) and side.normalization in REPLACING for side in tokenizers)


def check_normalization(tokenizer: Tokenizer, consumer: str) -> SubwordTokenizer:
    """Return the tokenizer if its normalization can live inside a sentencepiece model.

    Raises:
        NmtError: for words and characters, and for normalization by words.
    """
    if not isinstance(tokenizer, SubwordTokenizer):
        raise NmtError(
            f"The model has {tokenizer.unit} as tokens. {consumer} makes tokens with sentencepiece. Prepare the corpus "
            "with ",
            Settings({"data.tokenizer": "subword"}),
            " and train again, or export with ",
            Argument("to", "saved-model"),
            ".",
        )
    if not has_sentencepiece(tokenizer):
        raise NmtError(
            f"The model normalizes text to ascii-words, which drops whole words with digits. {consumer} replaces "
            "characters alone. Prepare the corpus with ",
            Settings({"data.normalization": "nfkc"}),
            " and train again, or export with ",
            Argument("to", "ctranslate2"),
            ".",
        )
    return tokenizer


def write_sentencepiece(source: Tokenizer, target: Tokenizer, folder: Path) -> None:
    """Write ``source.spm`` and ``target.spm``, which take raw text."""
    for side, tokenizer in (("source", source), ("target", target)):
        (folder / f"{side}.spm").write_bytes(with_normalization(check_normalization(tokenizer, "sentencepiece")))


def with_normalization(tokenizer: SubwordTokenizer) -> bytes:
    """Return the sentencepiece model of a tokenizer, which normalizes as the tokenizer does before its model.

    The rules become a table of strings with their replacements, the longest match first, computed from the same
    functions. Combining marks in another order than Unicode's are left as they are.
    """
    model = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model)
    if model.normalizer_spec.precompiled_charsmap:  # that of an imported run, which normalizes itself
        return tokenizer.model
    model.normalizer_spec.name = f"nmt-{tokenizer.normalization}"
    model.normalizer_spec.precompiled_charsmap = _compiled_rules(tokenizer.normalization)
    model.normalizer_spec.remove_extra_whitespaces = True
    return model.SerializeToString()


@functools.cache
def _compiled_rules(normalization: str) -> bytes:
    """Return the rules of a normalization in sentencepiece's binary form, which only its trainer writes."""
    rules = sorted({key: value for key, value in _rules(normalization) if key != value}.items())
    lines = ["\t".join(" ".join(f"{ord(character):X}" for character in text) for text in rule) for rule in rules]
    model = io.BytesIO()
    with scratch_folder() as folder:
        table = folder / "rules.tsv"
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b"]), model_writer=model, model_type="char", vocab_size=8,
            hard_vocab_limit=False, normalization_rule_tsv=str(table), minloglevel=2,
        )  # fmt: skip
    trained = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    return bytes(trained.normalizer_spec.precompiled_charsmap)


def _rules(normalization: str) -> Iterator[tuple[str, str]]:
    """Yield strings with their normalized form: single characters, and with NFKC what composes to one."""
    for code in range(1, sys.maxunicode + 1):
        if 0xD800 <= code <= 0xDFFF:  # halves of surrogate pairs
            continue
        character = chr(code)
        yield character, _spaced(unicodedata.normalize("NFKC", character) if normalization == "nfkc" else character)
        if normalization == "nfkc" and (decomposed := unicodedata.normalize("NFD", character)) != character:
            composed = _spaced(unicodedata.normalize("NFKC", character))
            yield decomposed, composed
            # The last mark alone may stand behind a character that is composed already.
            yield unicodedata.normalize("NFC", decomposed[:-1]) + decomposed[-1], composed


def _spaced(text: str) -> str:
    """Return text with spaces for white space, and "_" for sentencepiece's own sign of a space."""
    return "".join(" " if character.isspace() else character for character in text).replace(SPACE_MARK, "_")
