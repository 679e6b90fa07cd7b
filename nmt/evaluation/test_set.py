"""Test sets: source sentences and their references, from files or from the test split of a run's dataset.

N sentences, R references of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from nmt.data.dataset import DATASETS, dataset_of_run
from nmt.data.manifest import Manifest
from nmt.data.sources.text_file import TextFile, Undecodable, find_text_file, numbered_lines
from nmt.errors import ConflictError, DataError
from nmt.storage.atomic import sha256
from nmt.storage.text import CONVERT

TEST_TEXTS = ("test.source.txt", "test.target.txt")
SCORE_FILES = "Or score on files: --source FILE --reference FILE."


@dataclass(frozen=True)
class EvaluationSet:
    """N raw sentences and their references."""

    sources: list[str] | None
    """N source sentences; None if only their translations are known."""
    references: list[list[str]]
    """R lists of N sentences: sentence i has the references ``references[r][i]``."""
    source_file: TextFile | None
    """File of the sources; None if they are unknown."""
    reference_files: list[TextFile]
    """R files of the references."""
    dataset: str | None = None
    """Dataset whose test split it is; None for other files."""

    def __len__(self) -> int:
        """Return the number of sentences, N."""
        return len(self.references[0])

    def check_translations(self, file: TextFile, lines: list[str]) -> None:
        """Refuse translations that are not one line per sentence.

        Raises:
            DataError: naming both numbers of lines.
        """
        _check_equal_lengths(self.reference_files[0], len(self), file, len(lines))


def read_sentences(file: TextFile) -> list[str]:
    """Return the lines of a UTF-8 file, gzipped or not.

    Raises:
        DataError: naming the first line that is not UTF-8.
    """
    sentences = []
    for number, line in numbered_lines(file):
        if isinstance(line, Undecodable):
            raise DataError(f"{file}, line {number} is not UTF-8: it holds the byte 0x{line.byte:02x}. {CONVERT}.")
        sentences.append(line)
    return sentences


def find_and_read(name: str) -> tuple[TextFile, list[str]]:
    """Return a text file, found at the path given or in ``data/``, and its lines.

    Raises:
        NotFoundError, DataError: as ``find_text_file`` and ``read_sentences``.
    """
    file = find_text_file(name, [DATASETS])
    return file, read_sentences(file)


def read_test_files(source: str | None, references: Sequence[str]) -> EvaluationSet:
    """Return the test set of one source file, or none, and R reference files, one sentence per line.

    Raises:
        NotFoundError: if a file is missing.
        DataError: if the files are empty, not text, or differ in their numbers of lines.
    """
    reference_files, reference_lines = zip(*(find_and_read(name) for name in references), strict=True)
    source_file, source_lines = find_and_read(source) if source is not None else (None, None)
    first, count = reference_files[0], len(reference_lines[0])
    for file, lines in zip(reference_files, reference_lines, strict=True):
        _check_equal_lengths(first, count, file, len(lines))
    if source_file is not None and source_lines is not None:
        _check_equal_lengths(first, count, source_file, len(source_lines))
    if not count:
        raise DataError(f"{first} is empty. A test set needs at least one sentence. Give a file with one per line.")
    return EvaluationSet(source_lines, list(reference_lines), source_file, list(reference_files))


def _check_equal_lengths(reference: TextFile, reference_count: int, file: TextFile, count: int) -> None:
    if count != reference_count:
        raise DataError(
            f"{reference} has {reference_count:,} and {file} has {count:,} lines. The files of a test set have a line "
            "for each sentence. Give files that belong together; an empty line stands for a missing sentence."
        )


def read_test_split(manifests: dict[str, Manifest]) -> EvaluationSet:
    """Return the test split that runs left out of training.

    Args:
        manifests: the dataset manifest of each run, by the name of the run.

    Raises:
        NotFoundError, ConflictError: as ``dataset_of_run``; also for runs with different test splits.
        DataError: if the text has changed since it was prepared.
    """
    first = next(iter(manifests))
    manifest = manifests[first]
    for name, compared in manifests.items():
        if [compared.files[text] for text in TEST_TEXTS] != [manifest.files[text] for text in TEST_TEXTS]:
            raise ConflictError(
                f"The test split of {name!r} (dataset {compared.settings.dataset}) differs from that of {first!r} "
                f"(dataset {manifest.settings.dataset}). Runs are compared on the same sentences. Give sentences for "
                "both: --source FILE --reference FILE."
            )
    dataset = dataset_of_run(first, manifest, SCORE_FILES)
    files = [dataset.text("test", side) for side in ("source", "target")]
    for file in files:
        if not file.is_file() or sha256(file) != manifest.files[file.name]:
            raise DataError(
                f"{file} is missing or has changed. A dataset's files must be as nmt prepare wrote them. Restore a "
                "copy, or prepare the corpus again with --overwrite."
            )
    source, target = (TextFile(file) for file in files)
    return EvaluationSet(read_sentences(source), [read_sentences(target)], source, [target], dataset.name)
