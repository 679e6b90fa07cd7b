"""TODO."""

import json
from pathlib import Path
from typing import Any

from nmt.errors import DataError, NotFoundError
from nmt.storage.atomic import write_text

RESTORE = "Restore a copy, or prepare the corpus again with --overwrite."


MAX_JSON = 64 * 2**20  # bytes; four million words of a tokenizer


def write_json(path: Path, value: Any) -> None:
    """Write readable JSON, whole or not at all."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def read_json(path: Path, what: str) -> Any:
    """Return the JSON value in ``path``; ``what`` names the file's role in an error.

    Raises:
        NotFoundError: if there is no such file.
        DataError: if it is not JSON, or longer than ``MAX_JSON``.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_JSON + 1)
        if len(content) > MAX_JSON:
            raise DataError(f"{what} has at most {MAX_JSON:,} bytes; {path} has more. {RESTORE}")
        return json.loads(content.decode("utf-8"))
    except FileNotFoundError:
        raise NotFoundError(f"{what} is missing: {path} does not exist. {RESTORE}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{what} is JSON; {path} is damaged ({error}). {RESTORE}") from error
