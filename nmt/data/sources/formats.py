"""Readers of sentence pairs for each file format: pickle, TSV, two line-aligned files, JSON Lines, memories."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from nmt.config.data import DataConfig
from nmt.data.sources.memories.reading import is_memory, read_memory, unit_name
from nmt.data.sources.pickled_array import MAX_BYTES, read_string_array
from nmt.data.sources.text_file import TextFile, Unreadable, numbered_lines, open_bytes
from nmt.errors import DataError, counted
from nmt.message import Settings
from nmt.storage.json_file import parse_json

PICKLES = {".pkl", ".pickle"}
JSON_LINES = {".jsonl", ".ndjson"}


class Pair(NamedTuple):
    """A sentence and its translation, as they stand in the file."""

    source: str
    target: str


NumberedPairs = Iterator[tuple[int, Pair | Unreadable]]
"""Iterator over (number of the line, row or unit, counted from 1; its content)."""


def unit_of(files: list[TextFile]) -> str:
    """Return the unit that ``read_pairs`` numbers: "line", "row" of a pickled array, "unit" or "entry" of a memory."""
    if is_memory(files[0]):
        return unit_name(files[0])
    return "row" if files[0].suffix in PICKLES else "line"


def read_pairs(files: list[TextFile], config: DataConfig) -> NumberedPairs:
    """Yield the numbered pairs of one file, or of two line-aligned files.

    The suffix determines the format: .pkl and .pickle for a NumPy array of str, [N, 2], .jsonl and .ndjson for JSON
    Lines, .tmx, .xlf, .xliff and .po for memories and catalogues, any other for TSV. A file may be gzipped or a member
    of a zip archive.

    Raises:
        DataError: if a file as a whole breaks its format. A single bad pair is yielded as ``Unreadable``.
    """
    if len(files) == 2:
        return _read_two_files(*files)
    file = files[0]
    if file.suffix in PICKLES:
        return _read_pickle(file)
    if file.suffix in JSON_LINES:
        return _read_json_lines(file, config)
    if is_memory(file):
        return _read_memory(file, config)
    return _read_tsv(file, config)


def _read_pickle(file: TextFile) -> NumberedPairs:
    with open_bytes(file) as stream:
        rows = read_string_array(stream.read(MAX_BYTES + 1), str(file))
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise DataError(
            f"{file} holds an array of shape {rows.shape}. A pickled corpus is an array of shape (N, 2), with a pair "
            "in each row. Keep only the two columns with the sentences."
        )
    for number, (source, target) in enumerate(rows, start=1):
        yield number, Pair(str(source), str(target))


def _read_tsv(file: TextFile, config: DataConfig) -> NumberedPairs:
    lines = numbered_lines(file)
    columns = [config.source_column or 1, config.target_column or 2]
    if config.header or any(isinstance(column, str) for column in columns):
        _, header = next(lines, (1, ""))
        columns = [_column(file, header, column) for column in columns]
    source, target = (int(column) - 1 for column in columns)
    needed = max(source, target) + 1
    for number, line in lines:
        if isinstance(line, Unreadable):
            yield number, line
            continue
        cells = line.split("\t")
        if len(cells) >= needed:
            yield number, Pair(cells[source], cells[target])
        else:
            received = "no tab" if len(cells) == 1 else f"{len(cells)} columns"
            yield number, Unreadable("too few columns", (
                f"{file}, line {number} has {received}: {line[:60]!r}. Each line of a TSV corpus has a source sentence "
                f"in column {source + 1} and its translation in column {target + 1}, separated by tabs. Correct or "
                "remove the line"
            ))  # fmt: skip


def _column(file: TextFile, header: str | Unreadable, column: int | str) -> int:
    if isinstance(column, int):
        return column
    names = [] if isinstance(header, Unreadable) else header.split("\t")
    if column not in names:
        raise DataError(
            f"{file}, line 1 names the columns {', '.join(names)[:200]!r}, not {column!r}. Set data.source_column and "
            "data.target_column to two of these names, or to numbers from 1."
        )
    return names.index(column) + 1


def _read_two_files(source_file: TextFile, target_file: TextFile) -> NumberedPairs:
    sides = (numbered_lines(source_file), numbered_lines(target_file))
    for number, (source, target) in enumerate(itertools.zip_longest(*sides), start=1):
        if source is None or target is None:
            short, long = (source_file, target_file) if source is None else (target_file, source_file)
            unread = sum(1 for _ in sides[source is None])
            raise DataError(
                f"{short} has {counted(number - 1, 'line')}, {long} has {number + unread:,}. Two files are paired line "
                "by line, so they need the same number of lines. Give two files that belong together."
            )
        source_line, target_line = source[1], target[1]
        if isinstance(source_line, Unreadable):
            yield number, source_line
        elif isinstance(target_line, Unreadable):
            yield number, target_line
        else:
            yield number, Pair(source_line, target_line)


def _read_json_lines(file: TextFile, config: DataConfig) -> NumberedPairs:
    fields = [config.source_column or "source", config.target_column or "target"]
    if not all(isinstance(field, str) for field in fields):
        raise DataError(
            f"data.source_column is {config.source_column!r} and data.target_column {config.target_column!r}, but "
            f"{file} is JSON Lines, whose fields have names. Set both to the names of fields."
        )
    for number, line in numbered_lines(file):
        if isinstance(line, Unreadable):
            yield number, line
            continue
        try:
            value = parse_json(line)
            texts = [value[field] for field in fields]
        except ValueError as error:
            received = f"is not JSON ({error})"
        except (KeyError, TypeError, IndexError):
            content = f"the fields {', '.join(value)}" if isinstance(value, dict) else f"a {type(value).__name__}"
            received = f"has {content[:100]}"
        else:
            invalid = [text for text in texts if not _is_text(text)]
            if not invalid:
                yield number, Pair(*texts)
                continue
            received = f"has {invalid[0]!r:.60} instead of text"
        yield number, Unreadable("not JSON with both fields", (
            f"{file}, line {number} {received}. Each line of a JSON Lines corpus is an object with the text fields "
            f"{fields[0]!r} and {fields[1]!r}. Correct or remove the line, or name other fields in "
            "data.source_column and data.target_column"
        ))  # fmt: skip


def read_scores(files: list[TextFile]) -> Iterator[float]:
    """Yield the field ``score`` of each line of JSON Lines; 0 for a line that is not JSON (see ``read_pairs``).

    Raises:
        DataError: if the file is not JSON Lines, or a line has no number in this field.
    """
    if files[0].suffix not in JSON_LINES:
        raise DataError(
            f"{' and '.join(map(str, files))} has no scores. The filter score reads the field score of JSON Lines, as "
            "nmt synthesize writes it, or scores with runs. Name a run with ",
            Settings({"data.score_runs": ["RUN"]}),
            ", or leave the filter out.",
        )
    for number, line in numbered_lines(files[0]):
        try:
            score = parse_json(line)["score"] if isinstance(line, str) else 0.0
        except ValueError:
            score = 0.0
        except (KeyError, TypeError, IndexError):
            score = None
        if not isinstance(score, int | float):
            raise DataError(
                f"{files[0]}, line {number} has no number in the field score, which the filter score reads. Correct "
                "the line, or name a run that scores with ",
                Settings({"data.score_runs": ["RUN"]}),
                ".",
            )
        yield score


def _is_text(value: object) -> bool:
    """Return whether a value is text of valid Unicode. JSON can escape half a surrogate pair, which is not valid."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _read_memory(file: TextFile, config: DataConfig) -> NumberedPairs:
    for number, item in read_memory(file, config):
        yield number, item if isinstance(item, Unreadable) else Pair(*item)
