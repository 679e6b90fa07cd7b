"""What is scored against: sources and their references, of a run's own test split or of files."""

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
    """N sentences as people wrote them, and what they were translated to by people."""

    sources: list[str] | None
    """N sentences; None where translations are given and nobody said of what."""
    references: list[list[str]]
    """R lists of N sentences each: sentence i has the references ``references[r][i]``."""
    source_file: TextFile | None
    reference_files: list[TextFile]
    dataset: str | None = None
    """Whose test split it is, if it is one."""

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.references[0])

    def check(self, file: TextFile, lines: list[str]) -> None:
        """Refuse translations that are not a line for each sentence.

        Raises:
            DataError: naming both numbers of lines.
        """
        if len(lines) != len(self):
            raise _uneven(self.reference_files[0], len(self), file, len(lines))


def read_sentences(file: TextFile) -> list[str]:
    """Return the lines of a UTF-8 file, gzipped or not.

    Raises:
        DataError: naming the first line that is not UTF-8.
    """
    sentences = []
    for number, line in numbered_lines(file):
        if isinstance(line, Undecodable):
            raise DataError(f"Text must be UTF-8; {file}, line {number} holds the byte 0x{line.byte:02x}. {CONVERT}.")
        sentences.append(line)
    return sentences


def find_sentences(name: str) -> tuple[TextFile, list[str]]:
    """Return a text file, as said or in ``data/``, and its lines.

    Raises:
        NotFoundError, DataError: as ``find_text_file`` and ``read_sentences``.
    """
    file = find_text_file(name, [DATASETS])
    return file, read_sentences(file)


def set_of_files(source: str | None, references: list[str]) -> EvaluationSet:
    """Return the set that files hold, a sentence a line.

    Raises:
        NotFoundError: if one is missing.
        DataError: if they are empty, not text, or not of the same number of lines.
    """
    found = [find_sentences(name) for name in references]
    sources = find_sentences(source) if source is not None else None
    first, lines = found[0]
    for file, others in [*found[1:], *([sources] if sources else [])]:
        if len(others) != len(lines):
            raise _uneven(first, len(lines), file, len(others))
    if not lines:
        raise DataError(f"A test set needs a sentence; {first} is empty. Give a file with a sentence a line.")
    return EvaluationSet(
        sources[1] if sources else None,
        [lines for _, lines in found],
        sources[0] if sources else None,
        [file for file, _ in found],
    )


def _uneven(one: TextFile, lines: int, other: TextFile, others: int) -> DataError:
    return DataError(
        f"The files of a test set have a line for each sentence, so as many lines; {one} has {lines:,}, {other} has "
        f"{others:,}. Give files that belong together; an empty line stands for a missing sentence."
    )


def set_of_runs(manifests: dict[str, Manifest]) -> EvaluationSet:
    """Return the test split that all of the runs, by name, left out of training.

    Raises:
        NotFoundError, ConflictError: as ``dataset_of_run``; also for runs with different test splits.
        DataError: if the text is not as it was when it was prepared.
    """
    (first, manifest), *others = manifests.items()
    for name, other in others:
        if [other.files[text] for text in TEST_TEXTS] != [manifest.files[text] for text in TEST_TEXTS]:
            raise ConflictError(
                f"Runs are compared on the same sentences; the test split of {name!r} (dataset "
                f"{other.settings.dataset}) is another than that of {first!r} (dataset {manifest.settings.dataset}). "
                "Give sentences for both: --source FILE --reference FILE."
            )
    dataset = dataset_of_run(first, manifest, SCORE_FILES)
    files = [dataset.text("test", side) for side in ("source", "target")]
    for file in files:
        if not file.is_file() or sha256(file) != manifest.files[file.name]:
            raise DataError(
                f"A dataset's files are as nmt prepare wrote them; {file} is missing or has changed. Restore a copy or "
                "prepare the corpus again with --overwrite."
            )
    source, target = (TextFile(file) for file in files)
    return EvaluationSet(read_sentences(source), [read_sentences(target)], source, [target], dataset.name)
