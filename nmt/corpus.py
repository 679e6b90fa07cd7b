"""Sentence pairs as people have them: read, checked, and split so that test sentences were not trained on."""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from nmt.config import DataConfig
from nmt.errors import DataError
from nmt.normalisation import Normaliser
from nmt.safe_pickle import read_string_array

PICKLES = {".pkl", ".pickle"}
SPLITS: tuple["SplitName", ...] = ("train", "validation", "test")
SplitName = Literal["train", "validation", "test"]


class Pair(NamedTuple):
    """A sentence and its translation, as they stand in the file."""

    source: str
    target: str


@dataclass(frozen=True)
class Corpus:
    """The pairs of a file that are kept, and the count of those that are not, by reason."""

    pairs: list[Pair]
    dropped: dict[str, int]


def read_pairs(path: Path) -> Iterator[tuple[str, Pair]]:
    """Yield (place, pair) from a pickled array (N, 2) of str or from a TSV; "line 7" is a place.

    Raises:
        DataError: for anything else; TSV errors name the line.
    """
    return _read_pickle(path) if path.suffix.lower() in PICKLES else _read_tsv(path)


def _read_pickle(path: Path) -> Iterator[tuple[str, Pair]]:
    rows = read_string_array(path)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise DataError(
            f"A pickled corpus is an array of shape (N, 2), a pair a row; {path} holds one of shape {rows.shape}. "
            "Keep the two columns with the sentences."
        )
    for row, (source, target) in enumerate(rows, start=1):
        yield f"row {row}", Pair(str(source), str(target))


def _read_tsv(path: Path) -> Iterator[tuple[str, Pair]]:
    with path.open("rb") as lines:
        for number, content in enumerate(lines, start=1):  # binary lines end at \n alone
            try:
                line = content.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"A TSV corpus is UTF-8 text; {path}, line {number} holds the byte "
                    f"0x{content[error.start]:02x}. Convert it, for example with: iconv -f latin1 -t utf-8"
                ) from error
            columns = line.split("\t")
            if len(columns) < 2:
                raise DataError(
                    f"Each line of a TSV corpus is a source sentence, a tab and its translation; {path}, line {number} "
                    f"has no tab: {line[:60]!r}. Mend or remove the line."
                )
            yield f"line {number}", Pair(columns[0], columns[1])


def clean_pairs(path: Path, config: DataConfig, normalise: Normaliser) -> Corpus:
    """Read the first ``n_sentences`` pairs and set aside those with a side that normalisation leaves empty.

    Raises:
        DataError: for a corpus too small to split, or an empty side unless ``drop_empty``.
    """
    pairs: list[Pair] = []
    empty = 0
    for place, pair in itertools.islice(read_pairs(path), config.n_sentences):
        if normalise(pair.source) and normalise(pair.target):
            pairs.append(pair)
        elif config.drop_empty:
            empty += 1
        else:
            side = "target" if normalise(pair.source) else "source"
            raise DataError(
                f"Both sides of a pair must hold words; {path}, {place}: the {side} is empty after "
                f"{config.normalisation!r} normalisation: {getattr(pair, side)[:60]!r}. Mend the pair, or leave such "
                "pairs out and count them with --set data.drop_empty=true"
            )
    if len(pairs) < len(SPLITS):
        raise DataError(
            f"A corpus needs at least {len(SPLITS)} pairs, one for each of {', '.join(SPLITS)}; {path} holds "
            f"{len(pairs)}. Give a file with more."
        )
    return Corpus(pairs, {"empty side": empty} if empty else {})


def split_pairs(pairs: list[Pair], config: DataConfig, normalise: Normaliser) -> dict[SplitName, list[Pair]]:
    """Shuffle by seed and deal the pairs out by the configured shares.

    ``by_source`` deals out whole groups of pairs whose normalised source is the same, so no source stands on both
    sides; ``random`` deals out pairs. Test and validation get their share first, rounded, and training the rest.

    Raises:
        DataError: if a split would be empty.
    """
    shuffled = list(pairs)
    random.Random(config.seed).shuffle(shuffled)
    if config.split == "random":
        groups = [[pair] for pair in shuffled]
    else:
        by_source: dict[str, list[Pair]] = {}
        for pair in shuffled:
            by_source.setdefault(normalise(pair.source), []).append(pair)
        groups = list(by_source.values())
        random.Random(config.seed).shuffle(groups)  # in the order of first pairs, large groups would come early
    wanted = {
        "test": max(1, round(config.test_share * len(pairs))),
        "validation": max(1, round(config.validation_share * len(pairs))),
        "train": len(pairs),
    }
    splits: dict[SplitName, list[Pair]] = {name: [] for name in SPLITS}
    for group in groups:
        receiver = next(name for name in reversed(SPLITS) if len(splits[name]) < wanted[name])
        splits[receiver] += group
    for name in SPLITS:
        if not splits[name]:
            raise DataError(
                f"Each of {', '.join(SPLITS)} needs a pair of its own; with {len(groups)} different sources the "
                f"{name} split stays empty. Give more pairs"
                + (", or set data.split=random." if config.split == "by_source" else ".")
            )
    return splits
