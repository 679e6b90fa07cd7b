"""Test sentences that were trained on: a score on them says what was learnt by heart."""

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
from nmt.runs.lineage import lineage
from nmt.tokenizers.base import UNK

CHUNK = 100_000  # training sentences in memory at a time


class OverlapReport(Record):
    """How many of the sentences were trained on."""

    checked: dict[str, int]
    """Sentences that stand in the training split, by dataset."""
    undecided: dict[str, int]
    """Sentences equal to one of training but for words that the model does not know, by dataset; not counted above."""
    unchecked: list[str]
    """Why a run's training split, or all of them, could not be looked at."""
    numbers: list[int]
    """Lines, from 1, of the sentences that stand in any of them."""


class Overlap(NamedTuple):
    """Which of N sentences stand in a training split."""

    known: np.ndarray
    """Their tokens are those of a training source, and none is unk: bool [N]."""
    undecided: np.ndarray
    """Equal to a training source but for words that the model does not know, which may differ: bool [N]."""


def compare_with_training(sources: list[str] | None, runs: list[Run]) -> OverlapReport:
    """Look for raw sentences in all that runs learnt from: their training splits, and those of runs they started from.

    What cannot be looked at is noted in the report.
    """
    report = OverlapReport(checked={}, undecided={}, unchecked=[], numbers=[])
    if sources is None:
        report.unchecked.append("of what the translations are was not said. Give --source FILE.")
        return report
    if not runs:
        report.unchecked.append(
            "no run was given, and of translations in a file it is not known what they learnt from."
        )
    known, looked_at = np.zeros(len(sources), bool), set[str]()

    def look_at(run: Run) -> None:
        nonlocal known
        manifest = read_manifest(run.dataset_path)
        if manifest.fingerprint in looked_at:
            return
        looked_at.add(manifest.fingerprint)
        found = find_overlap(sources, dataset_of_run(run.name, manifest, SCORE_FILES))
        known |= found.known
        name = str(manifest.settings.dataset)
        report.checked[name], report.undecided[name] = int(found.known.sum()), int(found.undecided.sum())

    for run in runs:
        teachers, unknown = lineage(run)
        for teacher in teachers:
            try:
                look_at(teacher)
            except NmtError as error:
                report.unchecked.append(str(error))
        report.unchecked.extend(unknown)
    numbers = (np.flatnonzero(known) + 1).tolist()
    return report.model_copy(update={"unchecked": list(dict.fromkeys(report.unchecked)), "numbers": numbers})


def find_overlap(sources: list[str], dataset: Dataset) -> Overlap:
    """Compare raw sentences with the sources of the dataset's training split, both as the model reads them.

    Ids are compared, so normalization counts: "Hello!" stands in training as "hello" if the model cannot tell them
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
