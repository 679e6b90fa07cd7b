"""Test sets from files or from a run's dataset, and their overlap with training data.

A score on sentences that were trained on measures memorization. Shapes: N sentences, R references per sentence.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from nmt.config.languages import same_language
from nmt.config.record import Record
from nmt.data.dataset import DATASETS, Dataset, dataset_of_run
from nmt.data.manifest import Direction, Manifest, read_manifest
from nmt.data.sources.text_file import TextFile, find_text_file, read_lines
from nmt.data.token_arrays import Sequences
from nmt.errors import ConflictError, DataError, NmtError, counted
from nmt.message import Argument
from nmt.runs.directory import Run
from nmt.runs.overview import lineage
from nmt.storage.atomic import sha256

TEST_TEXTS = ("test.source.txt", "test.target.txt")
CHUNK_SENTENCES = 100_000  # training sentences in memory at a time
SCORE_FILES = ("Or score on files: ", Argument("source", "FILE"), " ", Argument("references", ["FILE"]), ".")


@dataclass(frozen=True)
class EvaluationSet:
    """N raw sentences and their references."""

    sources: list[str] | None
    """N source sentences; None if only translations are known."""
    references: list[list[str]]
    """R lists of N sentences: sentence i has the references ``references[r][i]``."""
    source_file: TextFile | None
    """File of the sources; None if unknown."""
    reference_files: list[TextFile]
    """R files of the references."""
    dataset: str | None = None
    """Dataset with this test split; None if files were given."""
    parts: list[tuple[Direction, range]] = field(default_factory=list)
    """Language pairs with their sentences, of the test split of a dataset of several pairs; else empty."""

    def __len__(self) -> int:
        """Return the number of sentences, N."""
        return len(self.references[0])

    def check_translations(self, file: TextFile, lines: list[str]) -> None:
        """Check that a file has one line per sentence.

        Raises:
            DataError: if the numbers differ; the message gives both.
        """
        if len(lines) != len(self):
            raise DataError(
                f"{self.reference_files[0]} has {len(self):,} and {file} has {counted(len(lines), 'line')}. The "
                "files of a test set have a line for each sentence. Give files that belong together; an empty line "
                "stands for a missing sentence."
            )


def find_and_read(name: str) -> tuple[TextFile, list[str]]:
    """Return a text file, gzipped or not, from the given path or ``data/``, and its lines.

    Raises:
        NotFoundError: if it does not exist.
        DataError: if a line is not UTF-8; the message names the first.
    """
    file = find_text_file(name, [DATASETS])
    return file, read_lines(file)


def read_test_files(source: str | None, references: Sequence[str]) -> EvaluationSet:
    """Return the test set of a source file (None: unknown) and R reference files with one sentence per line.

    Raises:
        NotFoundError: if a file is missing.
        DataError: if the files are empty, not text, or differ in their numbers of lines.
    """
    files_and_lines = [find_and_read(name) for name in references]
    reference_files = [file for file, _ in files_and_lines]
    test_set = EvaluationSet(None, [lines for _, lines in files_and_lines], None, reference_files)
    for file, lines in files_and_lines:
        test_set.check_translations(file, lines)
    if source is not None:
        file, lines = find_and_read(source)
        test_set.check_translations(file, lines)
        test_set = dataclasses.replace(test_set, sources=lines, source_file=file)
    if not len(test_set):
        first = test_set.reference_files[0]
        raise DataError(f"{first} is empty. A test set needs at least one sentence. Give a file with one per line.")
    return test_set


def read_test_split(
    manifests: dict[str, Manifest], source_language: str | None = None, target_language: str | None = None
) -> EvaluationSet:
    """Return the test split of the runs' dataset.

    Args:
        manifests: the dataset manifest of each run, by name of the run.
        source_language, target_language: codes of the language pairs to choose; None: all.

    Raises:
        NotFoundError, ConflictError: see ``dataset_of_run``; a ConflictError also if the test splits differ.
        DataError: if the text has changed since it was prepared.
    """
    # An imported run has no test split, and is scored on that of the others.
    with_split = {name: manifest for name, manifest in manifests.items() if TEST_TEXTS[0] in manifest.files}
    first = next(iter(with_split or manifests))
    manifest = manifests[first]
    for name, compared in with_split.items():
        if [compared.files[text] for text in TEST_TEXTS] != [manifest.files[text] for text in TEST_TEXTS]:
            raise ConflictError(
                f"The test splits of {name!r} (dataset {compared.settings.dataset}) and {first!r} (dataset "
                f"{manifest.settings.dataset}) differ. Runs are compared on the same sentences. Give sentences for "
                "both: ",
                Argument("source", "FILE"),
                " ",
                Argument("references", ["FILE"]),
                ".",
            )
    dataset = dataset_of_run(first, manifest, SCORE_FILES)
    files = [dataset.text("test", side) for side in ("source", "target")]
    for file in files:
        if not file.is_file() or sha256(file) != manifest.files[file.name]:
            raise DataError(
                f"{file} is missing or has changed. A dataset's files must be as nmt prepare wrote them. Restore a "
                "copy, or prepare the corpus again with ",
                Argument("overwrite", True),
                ".",
            )
    source, target = (TextFile(file) for file in files)
    whole = EvaluationSet(read_lines(source), [read_lines(target)], source, [target], dataset.name)
    if not manifest.directions:
        return whole
    return _with_pairs(whole, manifest, source_language, target_language)


def _with_pairs(
    whole: EvaluationSet, manifest: Manifest, source_language: str | None, target_language: str | None
) -> EvaluationSet:
    """Return the sentences of the chosen language pairs of a test split.

    Raises:
        NmtError: if the split has no sentence of these languages.
    """
    rows, parts = list[int](), list[tuple[Direction, range]]()
    for direction, indices in manifest.rows("test"):
        is_source = source_language is None or same_language(source_language, direction.source)
        is_target = target_language is None or same_language(target_language, direction.target)
        if is_source and is_target and len(indices):
            parts.append((direction, range(len(rows), len(rows) + len(indices))))
            rows += indices
    if not parts:
        pairs = ", ".join(direction.name for direction, indices in manifest.rows("test") if len(indices))
        raise NmtError(
            f"The test split of dataset {manifest.settings.dataset!r} has no sentence from {source_language or 'any'} "
            f"to {target_language or 'any'}. It has {pairs}. Choose one of these pairs, or score on files: ",
            Argument("source", "FILE"),
            " ",
            Argument("references", ["FILE"]),
            ".",
        )
    sources = [(whole.sources or [])[row] for row in rows]
    references = [[lines[row] for row in rows] for lines in whole.references]
    return dataclasses.replace(whole, sources=sources, references=references, parts=parts)


class TrainingOverlap(Record):
    """Test sentences that were trained on."""

    checked: dict[str, int]
    """Number of test sentences in the training split, by dataset."""
    unchecked: list[str]
    """Reasons why training splits could not be compared."""
    numbers: list[int]
    """Line numbers, from 1, of the test sentences that are in a training split."""


def compare_with_training(sources: list[str] | None, runs: list[Run]) -> TrainingOverlap:
    """Look up N raw sentences in the training splits of runs, and of the runs from whose weights they started.

    A training split that cannot be read adds its reason to ``unchecked``.
    """
    if sources is None:
        reason = "the source sentences are unknown, since no file of sources was given."
        return TrainingOverlap(checked={}, unchecked=[reason], numbers=[])
    checked, unchecked = dict[str, int](), list[str]()
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
                overlap = find_overlap(sources, dataset_of_run(ancestor.name, manifest))
            except NmtError as error:
                unchecked.append(str(error))
                continue
            known |= overlap
            checked[str(manifest.settings.dataset)] = int(overlap.sum())
        unchecked.extend(missing)
    return TrainingOverlap(
        checked=checked,
        unchecked=list(dict.fromkeys(unchecked)),
        numbers=(np.flatnonzero(known) + 1).tolist(),
    )


def find_overlap(sources: list[str], dataset: Dataset) -> np.ndarray:
    """Return which of N raw sentences are sources of the dataset's training split, bool [N].

    Token ids are compared, so sentences are equal if the model cannot distinguish them: "Hello!" and "hello", or two
    unknown words. Sentences are looked up by hash: time grows with N + training pairs, and memory with N.

    Raises:
        DataError: if the dataset is damaged.
    """
    train, tokenizer = dataset.split("train").source, dataset.tokenizers()[0]
    tags = range(tokenizer.size - len(tokenizer.tags), tokenizer.size)
    beginnings = [[], *([tag] for tag in tags), *itertools.permutations(tags, 2)]  # of a corpus, of a language
    indices: dict[bytes, list[int]] = {}
    for index, ids in enumerate(map(tokenizer.encode, sources)):
        for before in beginnings if ids else ():  # training sources may begin with tags
            indices.setdefault(np.array([*before, *ids], train.tokens.dtype).tobytes(), []).append(index)
    is_known = np.zeros(len(sources), bool)
    for start in range(0, len(train), CHUNK_SENTENCES):
        for content in _contents(train, start) & indices.keys():
            is_known[indices[content]] = True
    return is_known


def _contents(train: Sequences, start: int) -> set[bytes]:
    """Return the token ids of up to ``CHUNK_SENTENCES`` sentences from index ``start`` on, as bytes."""
    offsets = np.asarray(train.offsets[start : start + CHUNK_SENTENCES + 1])
    content = train.tokens[offsets[0] : offsets[-1]].tobytes()
    ends = ((offsets - offsets[0]) * train.tokens.dtype.itemsize).tolist()
    return {content[begin:end] for begin, end in itertools.pairwise(ends)}
