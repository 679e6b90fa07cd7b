"""Readers of records with named fields: JSON Lines, lists in JSON, Parquet and Arrow."""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from nmt.config.data import DataConfig
from nmt.data.sources.columnar import COLUMNAR, columnar_rows
from nmt.data.sources.columns import choose_columns
from nmt.data.sources.pairs import NumberedPairs, Pair, blank_line
from nmt.data.sources.text_file import TextFile, Unreadable, numbered_lines, open_text
from nmt.errors import DataError
from nmt.storage.json_file import MAX_JSON, parse_json

NESTED = "translation"
"""Field of Hugging Face datasets that holds an object with a text for each language."""
SAMPLE_RECORDS = 100  # first records that tell the fields
_WRONG = "not JSON with both fields"

Records = Iterator[tuple[int, Any]]
"""Iterator over (number, counted from 1; the value, an ``Unreadable``, or a ValueError of the JSON reader)."""


class Fields(NamedTuple):
    """Names of the fields with the source and the target; a dot leads into an object, as in translation.en."""

    source: str
    target: str
    is_recognized: bool
    """Whether the names were found in the file rather than set."""


def read_records(file: TextFile, config: DataConfig, unit: str) -> NumberedPairs:
    """Yield the numbered pairs of a file of records: .jsonl, .ndjson, .json, .parquet or .arrow.

    Args:
        file: the file.
        config: the section data, with the names of the fields.
        unit: word for a record in messages, such as "line".

    Raises:
        DataError: if the fields cannot be told. A single bad record is yielded as ``Unreadable``.
    """
    fields = record_fields(file, config)
    for number, value in _records(file):
        if isinstance(value, Unreadable):
            yield number, value
            continue
        if isinstance(value, ValueError):
            received = f"is not JSON ({value})"
        else:
            texts = [_value_at(value, name) for name in fields[:2]]
            invalid = [text for text in texts if not _is_text(text)]
            if not invalid:
                yield number, Pair(*texts)
                continue
            content = f"the fields {', '.join(value)}" if isinstance(value, dict) else f"a {type(value).__name__}"
            received = f"has {content[:100]}" if invalid[0] is None else f"has {invalid[0]!r:.60} instead of text"
        if number == 1 and file.suffix == ".json" and not is_json_list(file):
            raise DataError(
                f"{file}, line 1 {received}. A corpus in JSON is a list of objects, or has an object with two texts in "
                "each line. Write it with pandas: to_json('pairs.jsonl', orient='records', lines=True), or take the "
                f"list out of an object, here the list data, with jq: jq -c '.data[]' {file} > pairs.jsonl"
            )
        yield number, Unreadable(_WRONG, (
            f"{file}, {unit} {number} {received}. Each {unit} of this corpus is an object with the text fields "
            f"{fields.source!r} and {fields.target!r}. Correct or remove the {unit}, or name other fields in "
            "data.source_column and data.target_column"
        ))  # fmt: skip


def record_fields(file: TextFile, config: DataConfig) -> Fields:
    """Return the fields of source and target: as configured, else by their names in the first record.

    Raises:
        DataError: if columns are configured by number.
    """
    configured = (config.source_column, config.target_column)
    if any(isinstance(field, int) for field in configured):
        raise DataError(
            f"data.source_column is {config.source_column!r} and data.target_column {config.target_column!r}, but "
            f"{file} has fields with names. Set both to the names of fields."
        )
    if configured == (None, None):
        for _, value in itertools.islice(_records(file), SAMPLE_RECORDS):
            if isinstance(value, dict):
                names = list(value)
                if NESTED in value and isinstance(value[NESTED], dict):
                    names += [f"{NESTED}.{name}" for name in value[NESTED]]
                chosen = choose_columns(names, config)
                if chosen:
                    return Fields(*chosen, is_recognized=chosen != ("source", "target"))
                break
    return Fields(str(configured[0] or "source"), str(configured[1] or "target"), is_recognized=False)


def _value_at(value: Any, name: str) -> Any:
    """Return the value of a field, None without it. A dot in its name leads into an object."""
    if isinstance(value, dict) and name in value:
        return value[name]
    first, dot, rest = name.partition(".")
    return _value_at(value[first], rest) if dot and isinstance(value, dict) and first in value else None


def _is_text(value: object) -> bool:
    """Return whether a value is text of valid Unicode. JSON can escape half a surrogate pair, which is not valid."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False


def _records(file: TextFile) -> Records:
    if file.suffix in COLUMNAR:
        return columnar_rows(file)
    return _json_items(file) if is_json_list(file) else _json_lines(file)


def is_json_list(file: TextFile) -> bool:
    """Return whether a .json file is one list of records; otherwise it has a record in each line."""
    if file.suffix != ".json":
        return False
    with open_text(file) as stream:
        return stream.peek(1024).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["


def _json_lines(file: TextFile) -> Records:
    for number, line in numbered_lines(file):
        if isinstance(line, Unreadable):
            yield number, line
        elif not line.strip():
            yield number, blank_line(file, number)
        else:
            try:
                yield number, parse_json(line.removeprefix("\ufeff"))
            except ValueError as error:
                yield number, error


def _json_items(file: TextFile) -> Records:
    with open_text(file) as stream:
        content = stream.read(MAX_JSON + 1)
    if len(content) > MAX_JSON:
        raise DataError(
            f"{file} is longer than {MAX_JSON:,} bytes. A list in JSON is read whole, so its size is limited; JSON "
            f"Lines has no limit. Convert it: jq -c '.[]' {file} > pairs.jsonl"
        )
    try:
        values = parse_json(content.decode("utf-8-sig"))
    except ValueError as error:
        raise DataError(
            f"{file} is not JSON ({error}). A corpus in JSON is one list of objects, or an object in each line. "
            "Write it again, for example with pandas: to_json('pairs.jsonl', orient='records', lines=True)."
        ) from None
    yield from enumerate(values, start=1)
