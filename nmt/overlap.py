"""Test sentences that were trained on: a score on them says what was learnt by heart."""

import itertools
from typing import NamedTuple

import numpy as np

from nmt.dataset import Dataset
from nmt.manifest import Sequences
from nmt.tokenizer import UNK

CHUNK = 100_000  # training sentences in memory at a time


class Overlap(NamedTuple):
    """Which of N sentences stand in a training split."""

    known: np.ndarray
    """Their tokens are those of a training source, and none is unk: bool [N]."""
    undecided: np.ndarray
    """Equal to a training source but for words that the model does not know, which may differ: bool [N]."""


def find_overlap(sources: list[str], dataset: Dataset) -> Overlap:
    """Compare raw sentences with the sources of the dataset's training split, both as the model reads them.

    Ids are compared, so normalisation counts: "Hello!" stands in training as "hello" if the model cannot tell them
    apart. Takes time in proportion to N + training pairs, and memory to N: each sentence is looked up by hash.

    Raises:
        DataError: if the dataset is damaged.
    """
    train, tokenizer = dataset.split("train").source, dataset.tokenizers()[0]
    encoded = [np.array(tokenizer.encode(text), train.tokens.dtype) for text in sources]
    places: dict[bytes, list[int]] = {}
    for place, ids in enumerate(encoded):
        if len(ids):
            places.setdefault(ids.tobytes(), []).append(place)
    seen = np.zeros(len(sources), bool)
    for start in range(0, len(train), CHUNK):
        for content in _contents(train, start) & places.keys():
            seen[places[content]] = True
    doubtful = np.array([UNK in ids for ids in encoded], bool)
    return Overlap(seen & ~doubtful, seen & doubtful)


def _contents(train: Sequences, start: int) -> set[bytes]:
    """The bytes of the ids of up to ``CHUNK`` sentences."""
    offsets = np.asarray(train.offsets[start : start + CHUNK + 1])
    content = train.tokens[offsets[0] : offsets[-1]].tobytes()
    ends = ((offsets - offsets[0]) * train.tokens.itemsize).tolist()
    return {content[begin:end] for begin, end in itertools.pairwise(ends)}
