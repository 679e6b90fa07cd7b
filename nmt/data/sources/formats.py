"""Sentence pairs out of each kind of file: pickle, TSV, two line-aligned files, JSON Lines, TMX."""

import itertools
import json
from collections.abc import Iterator
from typing import NamedTuple

from nmt.config.data import DataConfig
from nmt.data.sources.pickled_array import MAX_BYTES, read_string_array
from nmt.data.sources.text_file import TextFile, Undecodable, numbered_lines, open_bytes
from nmt.data.sources.tmx import TmxReader
from nmt.errors import DataError
from nmt.storage.text import CONVERT

PICKLES = {".pkl", ".pickle"}
JSON_LINES = {".jsonl", ".ndjson"}


class Pair(NamedTuple):
    """A sentence and its translation, as they stand in the file."""

    source: str
    target: str


class UnreadablePair(NamedTuple):
    """A place in a file where a pair should be and none can be read."""

    reason: str
    """In a word or two, for counting."""
    message: str
    """For a refusal: the rule, what was received, the remedy."""


Read = Iterator[tuple[int, Pair | UnreadablePair]]
"""(line, row or unit from 1, what stands there)."""


def unit_of(files: list[TextFile]) -> str:
    """Return what the numbers of ``read_pairs`` count: "line", "row" of a pickled array, or "unit" of a TMX."""
    suffix = files[0].suffix
    return "row" if suffix in PICKLES else "unit" if suffix == ".tmx" else "line"


def read_pairs(files: list[TextFile], config: DataConfig) -> Read:
    """Yield the pairs of one file, or of two files whose lines belong together, with their numbers.

    The suffix says the format: .pkl and .pickle a NumPy array (N, 2) of str; .jsonl and .ndjson JSON Lines; .tmx TMX;
    anything else a TSV. Each may be gzipped or a member of a zip archive.

    Raises:
        DataError: for a file that is not of its format as a whole. What is wrong with one pair is yielded.
    """
    if len(files) == 2:
        return _read_two_files(*files)
    file = files[0]
    if file.suffix in PICKLES:
        return _read_pickle(file)
    if file.suffix in JSON_LINES:
        return _read_json_lines(file, config)
    if file.suffix == ".tmx":
        return _read_tmx(file, config)
    return _read_tsv(file, config)


def _read_pickle(file: TextFile) -> Read:
    content = None
    if file.member or file.is_gzipped:
        with open_bytes(file) as stream:
            content = stream.read(MAX_BYTES + 1)
    rows = read_string_array(file.path, content)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise DataError(
            f"A pickled corpus is an array of shape (N, 2), a pair a row; {file} holds one of shape {rows.shape}. "
            "Keep the two columns with the sentences."
        )
    for number, (source, target) in enumerate(rows, start=1):
        yield number, Pair(str(source), str(target))


def _read_tsv(file: TextFile, config: DataConfig) -> Read:
    lines = numbered_lines(file)
    columns = [config.source_column or 1, config.target_column or 2]
    if config.header or any(isinstance(column, str) for column in columns):
        _, header = next(lines, (1, ""))
        columns = [_column(file, header, column) for column in columns]
    source, target = (int(column) - 1 for column in columns)
    needed = max(source, target) + 1
    for number, line in lines:
        if isinstance(line, Undecodable):
            yield number, _not_utf8("A TSV corpus", file, number, line)
            continue
        cells = line.split("\t")
        if len(cells) >= needed:
            yield number, Pair(cells[source], cells[target])
        else:
            found = "no tab" if len(cells) == 1 else f"{len(cells)} columns"
            rule = (
                "a source sentence, a tab and its translation"
                if needed == 2
                else f"at least {needed} columns, a tab between each two"
            )
            yield number, UnreadablePair("too few columns", (
                f"Each line of a TSV corpus is {rule}; {file}, line {number} has {found}: {line[:60]!r}. Mend or "
                "remove the line"
            ))  # fmt: skip


def _column(file: TextFile, header: str | Undecodable, column: int | str) -> int:
    if isinstance(column, int):
        return column
    names = [] if isinstance(header, Undecodable) else header.split("\t")
    if column not in names:
        raise DataError(
            f"A column called by name stands in the first line of a TSV corpus; {file}, line 1 names "
            f"{', '.join(names)[:200]!r}, not {column!r}. Set data.source_column and data.target_column to two of "
            "these, or to numbers from 1."
        )
    return names.index(column) + 1


def _not_utf8(what: str, file: TextFile, number: int, line: Undecodable) -> UnreadablePair:
    return UnreadablePair("not UTF-8", (
        f"{what} is UTF-8 text; {file}, line {number} holds the byte 0x{line.byte:02x}. {CONVERT}"
    ))  # fmt: skip


def _read_two_files(source_file: TextFile, target_file: TextFile) -> Read:
    sides = (numbered_lines(source_file), numbered_lines(target_file))
    for number, (source, target) in enumerate(itertools.zip_longest(*sides), start=1):
        if source is None or target is None:
            short, long = (source_file, target_file) if source is None else (target_file, source_file)
            more = sum(1 for _ in sides[source is None])
            raise DataError(
                f"Two files make pairs line by line, so they have as many lines; {short} ends after {number - 1:,}, "
                f"{long} has {number + more:,}. Give two files that belong together."
            )
        texts = (source[1], target[1])
        for file, text in zip((source_file, target_file), texts, strict=True):
            if isinstance(text, Undecodable):
                yield number, _not_utf8("A corpus", file, number, text)
                break
        else:
            yield number, Pair(*texts)  # type: ignore[arg-type]


def _read_json_lines(file: TextFile, config: DataConfig) -> Read:
    fields = [config.source_column or "source", config.target_column or "target"]
    if not all(isinstance(field, str) for field in fields):
        raise DataError(
            f"The fields of JSON Lines are called by name; received data.source_column {config.source_column!r} and "
            f"data.target_column {config.target_column!r} for {file}. Set them to the names of two fields."
        )
    for number, line in numbered_lines(file):
        if isinstance(line, Undecodable):
            yield number, _not_utf8("A JSON Lines corpus", file, number, line)
            continue
        try:
            value = json.loads(line)
            texts = [value[field] for field in fields]
        except (ValueError, RecursionError) as error:
            yield number, _bad_json(file, number, fields, f"is not JSON ({error})")
        except (KeyError, TypeError, IndexError):
            has = ", ".join(value) if isinstance(value, dict) else f"a {type(value).__name__}"
            yield number, _bad_json(file, number, fields, f"has {has[:100]}")
        else:
            wrong = [text for text in texts if not (isinstance(text, str) and _is_unicode(text))]
            if wrong:
                yield number, _bad_json(file, number, fields, f"holds {wrong[0]!r:.60} in one of them")
            else:
                yield number, Pair(*texts)


def _is_unicode(text: str) -> bool:
    r"""Return whether UTF-8 can hold ``text``: half a surrogate pair, which JSON can escape, is no character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _bad_json(file: TextFile, number: int, fields: list[int | str], received: str) -> UnreadablePair:
    return UnreadablePair("not JSON with both fields", (
        f"Each line of a JSON Lines corpus is an object with the text fields {fields[0]!r} and {fields[1]!r}; {file}, "
        f"line {number} {received}. Mend or remove the line, or name other fields with --set data.source_column and "
        "data.target_column"
    ))  # fmt: skip


def _read_tmx(file: TextFile, config: DataConfig) -> Read:
    languages: tuple[str, str] | None = None
    for number, unit in enumerate(TmxReader(file).read(), start=1):
        if languages is None:
            languages = _tmx_languages(file, unit, config)
        texts = [_segment(unit, language) for language in languages]
        if None in texts:
            yield number, UnreadablePair("no such language", (
                f"Each unit of a TMX has a segment in {languages[0]!r} and one in {languages[1]!r}; {file}, unit "
                f"{number} has {', '.join(sorted(unit)) or 'none'}. Name two languages with --set data.source_column "
                "and data.target_column"
            ))  # fmt: skip
        else:
            yield number, Pair(*texts)  # type: ignore[arg-type]


def _tmx_languages(file: TextFile, unit: dict[str, str], config: DataConfig) -> tuple[str, str]:
    said = (config.source_column, config.target_column)
    if all(isinstance(language, str) for language in said):
        return str(said[0]).lower(), str(said[1]).lower()
    if said != (None, None) or len(unit) != 2:
        raise DataError(
            f"The languages of a TMX are called by name, unless its first unit has two; {file} has "
            f"{', '.join(sorted(unit)) or 'none'} there. Name them, for example with --set data.source_column=en "
            "--set data.target_column=de"
        )
    first, second = unit
    return first, second


def _segment(unit: dict[str, str], language: str) -> str | None:
    """The segment in ``language``; "en" is also what "en-us" is."""
    if language in unit:
        return unit[language]
    return next((text for said, text in unit.items() if said.split("-")[0] == language), None)
