"""Vocabularies for other programs: unique pieces, vocabulary maps, and sentencepiece models that take raw text.

Shapes: S source length, T target length.
"""

import functools
import io
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

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
from nmt.tokenizers.normalization import without_invisible
from nmt.tokenizers.subword import SubwordTokenizer

MOST_PAIRS = 20_000
"""Most training pairs that are aligned for a vocabulary map."""
BATCH = 256
"""Number of sentence pairs in a batch."""
ALIGNED = 3
"""Number of source tokens that a target token is aligned with: the tokens that it attends to most."""
CANDIDATES = 50
"""Most target tokens that a vocabulary map lists for a source token."""
FREQUENT = 300
"""Number of the most frequent target tokens, which every translation may have."""
CHARACTER_NORMALIZATIONS = ("none", "nfc", "nfkc")
"""Normalizations that replace characters, and never whole words."""


def unique_pieces(source: Tokenizer, target: Tokenizer) -> tuple[list[str], list[str]]:
    """Return the piece of each id of both sides. No two pieces of a side are equal.

    Special pieces are spelled alike on both sides. A special piece gets underscores behind it if it is also a word of a
    vocabulary. So does a word that looks like an earlier word, such as a space beside ``SPACE_MARK``.
    """
    sides = [tokenizer.pieces(range(FIRST_WORD, tokenizer.size)) for tokenizer in (source, target)]
    taken = {word for side in sides for word in side}
    special: list[str] = []
    for piece in SPECIAL_PIECES:
        special.append(_unique_piece(piece, taken.union(special)))
    taken.update(special)
    unique = []
    for side in sides:
        pieces = dict.fromkeys(special)
        for word in side:
            pieces[_unique_piece(word, taken.union(pieces)) if word in pieces else word] = None
        unique.append(list(pieces))
    return unique[0], unique[1]


def _unique_piece(piece: str, taken: set[str]) -> str:
    """Return a piece with underscores behind it until it is not in ``taken``."""
    while piece in taken:
        piece += "_"
    return piece


def vocabulary_map(model: TrainedModel, train: Split, source: list[str], target: list[str]) -> str:
    """Return the content of CTranslate2's ``vmap.txt``, with candidate target tokens for each source token.

    Search computes the logits of the candidates only, so that the output layer costs less (Jean et al. 2015, section
    3). The candidates attend to the source token in training pairs. A line is source token TAB target tokens. The
    first line has no source token and holds for every sentence.

    Args:
        model: a Transformer.
        train: training pairs of the model.
        source: piece of each source id.
        target: piece of each target id.

    Raises:
        NmtError: for a piece with white space, since white space separates tokens in the file.
    """
    invalid = next((piece for piece in [*source, *target] if piece.split() != [piece]), None)
    if invalid:
        raise NmtError(
            f"The vocabulary map cannot be written: the token {invalid!r} has white space, which separates the tokens "
            "in the file. Leave ",
            Argument("vocabulary_map"),
            " out.",
        )
    aligned, frequencies = _count_aligned(model, train)
    frequent = [id_ for id_, _ in frequencies.most_common(FREQUENT)]
    lines = ["\t" + " ".join(target[id_] for id_ in frequent)]
    for id_, counts in sorted(aligned.items()):
        candidates = " ".join(target[candidate] for candidate, _ in counts.most_common(CANDIDATES))
        lines.append(f"{source[id_]}\t{candidates}")
    return "\n".join(lines) + "\n"


def _count_aligned(model: TrainedModel, train: Split) -> tuple[dict[int, Counter[int]], Counter[int]]:
    """Return the counts of target tokens aligned with each source token, and the counts of all target tokens."""
    from nmt.decoding.tensorflow_engine import TensorFlowEngine  # noqa: PLC0415 - it loads TensorFlow

    weights = WeightsFile(model.run, model.epoch)
    engine = TensorFlowEngine.load(model.config, model.source.size, model.target.size, weights)
    aligned: dict[int, Counter[int]] = defaultdict(Counter)
    frequencies: Counter[int] = Counter()
    bos = int(model.config.model.reads_bos)
    for batch in length_batches((train.source.lengths[:MOST_PAIRS] + 1).tolist(), BATCH):
        sources, targets = ([side[index].tolist() for index in batch.tolist()] for side in (train.source, train.target))
        attention: Any = engine.cross_attention(sources, targets)  # a list of [layers, heads, T, S]
        for source, target, layers in zip(sources, targets, attention, strict=True):
            weights = layers[-1].mean(axis=0)[:, bos : bos + len(source)]  # [T, S]
            for token, places in zip(target, np.argsort(-weights, axis=1)[:, :ALIGNED], strict=True):
                if token >= FIRST_WORD:
                    frequencies[token] += 1
                    for place in places:
                        aligned[source[place]][token] += 1
    return aligned, frequencies


def has_sentencepiece(*tokenizers: Tokenizer) -> bool:
    """Return whether sentencepiece models can replace the tokenizers, including their normalization."""
    return all(
        isinstance(side, SubwordTokenizer) and side.normalization in CHARACTER_NORMALIZATIONS for side in tokenizers
    )


def check_normalization(tokenizer: Tokenizer, consumer: str) -> SubwordTokenizer:
    """Return the tokenizer if a sentencepiece model can replace it, including its normalization.

    Raises:
        NmtError: for a tokenizer of words or characters, and for a normalization that drops words.
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
            Settings({"data.normalization": "nfc"}),
            " and train again, or export with ",
            Argument("to", "ctranslate2"),
            ".",
        )
    return tokenizer


def check_joint_vocabulary(model: TrainedModel, consumer: str) -> None:
    """Check that one sentencepiece model can replace the tokenizers of both sides.

    Raises:
        NmtError: as ``check_normalization``, and for a vocabulary for each side.
    """
    source, target = (check_normalization(side, consumer) for side in (model.source, model.target))
    if with_normalization(source) != with_normalization(target):
        raise NmtError(
            f"Run {model.run.name!r} has a vocabulary for each side. {consumer} has one sentencepiece model for both. "
            "Prepare the corpus with ",
            Settings({"data.joint_vocabulary": True}),
            " and train again, or export with ",
            Argument("to", "ctranslate2"),
            ".",
        )


def write_sentencepiece(source: Tokenizer, target: Tokenizer, folder: Path) -> None:
    """Write the sentencepiece models ``source.spm`` and ``target.spm``, which take raw text."""
    for side, tokenizer in (("source", source), ("target", target)):
        (folder / f"{side}.spm").write_bytes(with_normalization(check_normalization(tokenizer, "sentencepiece")))


def with_normalization(tokenizer: SubwordTokenizer) -> bytes:
    """Return the sentencepiece model of a tokenizer, with the tokenizer's normalization as rules of the model.

    The rules are a table of strings and their replacements, of which the longest match applies. They are computed with
    the same functions. Combining marks in another order than Unicode's stay as they are, as does a
    mark that an invisible character separates from its letter.
    """
    model = sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model)
    if model.normalizer_spec.precompiled_charsmap:  # an imported model has its own rules
        return tokenizer.model
    model.normalizer_spec.name = f"nmt-{tokenizer.normalization}"
    model.normalizer_spec.precompiled_charsmap = _compiled_rules(tokenizer.normalization)
    model.normalizer_spec.remove_extra_whitespaces = True
    return model.SerializeToString()


@functools.cache
def _compiled_rules(normalization: str) -> bytes:
    """Return the rules of a normalization in sentencepiece's binary format, which only its trainer writes."""
    rules = {text: normal for text, normal in _rules(normalization) if text != normal}
    lines = [f"{_code_points(text)}\t{_code_points(normal)}" for text, normal in sorted(rules.items())]
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


def _code_points(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)


def _rules(normalization: str) -> Iterator[tuple[str, str]]:
    """Yield strings with their normalized forms: single characters, and with NFC or NFKC also their decompositions."""
    for code in range(1, sys.maxunicode + 1):
        if 0xD800 <= code <= 0xDFFF:  # halves of surrogate pairs
            continue
        character = chr(code)
        if normalization == "none":
            yield character, _replace_spaces(character)
            continue
        if normalization == "nfc" and not without_invisible(character):
            yield character, ""
            continue
        form: Literal["NFC", "NFKC"] = "NFC" if normalization == "nfc" else "NFKC"
        composed = _replace_spaces(unicodedata.normalize(form, character))
        yield character, composed
        decomposed = unicodedata.normalize("NFD", character)
        if decomposed != character:
            yield decomposed, composed
            # The last mark may also follow a character that is composed already.
            yield unicodedata.normalize("NFC", decomposed[:-1]) + decomposed[-1], composed


def _replace_spaces(text: str) -> str:
    """Return text with spaces for white space, and with "_" for ``SPACE_MARK``."""
    return "".join(" " if character.isspace() else character for character in text).replace(SPACE_MARK, "_")
