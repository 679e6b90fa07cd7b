"""Overlap of test sentences with training data: a score on such sentences shows memorization.

N source sentences.
"""

import itertools
from typing import NamedTuple

import numpy as np

from nmt.config.record import Record
from nmt.data.dataset import Dataset, dataset_of_run
from nmt.data.manifest import read_manifest
from nmt.data.token_arrays import Sequences
from nmt.errors import NmtError
from nmt.evaluation.test_set import SCORE_FILES
from nmt.runs.directory import Run
from nmt.runs.overview import lineage
from nmt.tokenizers.base import UNK

CHUNK_SENTENCES = 100_000  # training sentences in memory at a time


class TrainingOverlap(Record):
    """Test sentences that were trained on."""

    checked: dict[str, int]
    """Number of test sentences in the training split, by dataset."""
    undecided: dict[str, int]
    """Number of test sentences that differ from a training sentence at most in unknown words, by dataset; they are not
    counted in ``checked``."""
    unchecked: list[str]
    """Reasons why a training split, or all of them, could not be compared."""
    numbers: list[int]
    """Line numbers, from 1, of the test sentences that are in a training split."""


class OverlapMasks(NamedTuple):
    """Which of N sentences are in a training split."""

    known: np.ndarray
    """Sentences whose tokens equal those of a training source and hold no unk: bool [N]."""
    undecided: np.ndarray
    """Sentences whose tokens equal those of a training source and hold an unk, so the words may differ: bool [N]."""


def compare_with_training(sources: list[str] | None, runs: list[Run]) -> TrainingOverlap:
    """Look up N raw sentences in the training splits of runs, and of the runs whose weights they started from.

    A training split that cannot be read becomes a line in ``unchecked``.
    """
    if sources is None:
        reason = "the source sentences are unknown. Give --source FILE."
        return TrainingOverlap(checked={}, undecided={}, unchecked=[reason], numbers=[])
    checked, undecided, unchecked = dict[str, int](), dict[str, int](), list[str]()
    if not runs:
        unchecked.append("no run was given, and the training data behind translations in a file is unknown.")
    known, fingerprints = np.zeros(len(sources), bool), set[str]()
    for run in runs:
        ancestors, missing = lineage(run)
        for ancestor in ancestors:
            try:
                manifest = read_manifest(ancestor.dataset_path)
                if manifest.fingerprint in fingerprints:
                    continue
                fingerprints.add(manifest.fingerprint)
                masks = find_overlap(sources, dataset_of_run(ancestor.name, manifest, SCORE_FILES))
            except NmtError as error:
                unchecked.append(str(error))
                continue
            known |= masks.known
            dataset = str(manifest.settings.dataset)
            checked[dataset], undecided[dataset] = int(masks.known.sum()), int(masks.undecided.sum())
        unchecked.extend(missing)
    return TrainingOverlap(
        checked=checked,
        undecided=undecided,
        unchecked=list(dict.fromkeys(unchecked)),
        numbers=(np.flatnonzero(known) + 1).tolist(),
    )


def find_overlap(sources: list[str], dataset: Dataset) -> OverlapMasks:
    """Compare N raw sentences with the sources of the dataset's training split, both as the model reads them.

    Token ids are compared, so normalization counts: "Hello!" equals "hello" if the model cannot tell them apart.
    Sentences are looked up by hash: time grows with N + training pairs, memory with N.

    Raises:
        DataError: if the dataset is damaged.
    """
    train, tokenizer = dataset.split("train").source, dataset.tokenizers()[0]
    encoded = [np.array(tokenizer.encode(text), train.tokens.dtype) for text in sources]
    indices: dict[bytes, list[int]] = {}
    for index, ids in enumerate(encoded):
        if len(ids):
            indices.setdefault(ids.tobytes(), []).append(index)
    found = np.zeros(len(sources), bool)
    for start in range(0, len(train), CHUNK_SENTENCES):
        for content in _contents(train, start) & indices.keys():
            found[indices[content]] = True
    has_unknown = np.array([UNK in ids for ids in encoded], bool)
    return OverlapMasks(found & ~has_unknown, found & has_unknown)


def _contents(train: Sequences, start: int) -> set[bytes]:
    """Return the token ids, as bytes, of up to ``CHUNK_SENTENCES`` sentences."""
    offsets = np.asarray(train.offsets[start : start + CHUNK_SENTENCES + 1])
    content = train.tokens[offsets[0] : offsets[-1]].tobytes()
    ends = ((offsets - offsets[0]) * train.tokens.dtype.itemsize).tolist()
    return {content[begin:end] for begin, end in itertools.pairwise(ends)}
