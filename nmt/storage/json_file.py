"""JSON files: a reader with limits on size and depth, and an atomic writer."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from nmt.errors import DataError, NotFoundError
from nmt.message import Argument, Part
from nmt.storage.atomic import write_text

MANIFEST = "manifest.json"
"""Name of the manifest, which every dataset has."""
MAX_DEPTH = 100
"""Deepest nesting of JSON values; files of nmt have fewer than ten levels."""
MAX_JSON = 64 * 2**20  # bytes; enough for a tokenizer of four million words


def restore_remedy(path: Path) -> tuple[Part, ...]:
    """Return the remedy for a missing or damaged file. Files of a dataset can be made again."""
    if path.name == MANIFEST or (path.parent / MANIFEST).exists():
        return ("Restore a copy, or prepare the corpus again with ", Argument("overwrite", True), ".")
    return ("Restore a copy.",)


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON atomically."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def parse_json(text: str | bytes) -> Any:
    """Return the value of JSON text.

    Raises:
        ValueError: if the text is not JSON, is nested too deeply, or has a number that JSON lacks, such as NaN.
    """

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not a JSON number")

    try:
        value = json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if _is_deep(value):
        raise ValueError(f"its values are nested over {MAX_DEPTH} deep")
    return value


def read_json(path: Path, role: str) -> Any:
    """Return the JSON value of a file.

    Args:
        path: file to read.
        role: role of the file in messages, such as "A tokenizer".

    Raises:
        NotFoundError: if the file does not exist.
        DataError: if the file is not JSON, or is longer than ``MAX_JSON``.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_JSON + 1)
        if len(content) > MAX_JSON:
            raise DataError(f"{path} is too long. {role} has at most {MAX_JSON:,} bytes. ", *restore_remedy(path))
        return parse_json(content.decode("utf-8"))
    except FileNotFoundError:
        raise NotFoundError(f"{role} is missing: {path} does not exist. ", *restore_remedy(path)) from None
    except ValueError as error:
        raise DataError(f"{path} is damaged: {error}. {role} is JSON. ", *restore_remedy(path)) from error


def _is_deep(value: Any) -> bool:
    """Return whether values are nested deeper than ``MAX_DEPTH``.

    Python's parser accepts values that are nested too deeply for repr.
    """
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner for outer in level if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]  # fmt: skip
        if not level:
            return False
    return True


def check_format(number: object, readable: Collection[object], file: str) -> None:
    """Refuse a file whose format this version does not know.

    Args:
        number: format number of the file.
        readable: format numbers that this version reads.
        file: name of the file in the message.

    Raises:
        DataError: if ``number`` is not one of ``readable``.
    """
    if type(number) in map(type, readable) and number in readable:
        return
    shown = str(number) if len(str(number)) <= 60 else f"{str(number)[:60]}..."
    raise DataError(
        f"{file} has format {shown}. This version of nmt reads format {' or '.join(map(str, readable))}. Update nmt, "
        "or use the version that wrote the file."
    )
