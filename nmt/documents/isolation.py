"""Untrusted documents, read and written in a separate process with limits of time and memory.

A malicious document can only crash this process. It neither blocks the interpreter of a service nor fills its memory.
A document is read twice, for its texts and to insert their translations, so that no process waits in between.
"""

import json
import os
import subprocess
import sys
from typing import NamedTuple

from nmt.documents.formats import read_document
from nmt.errors import DataError, NmtError

MOST_SECONDS, MOST_MEMORY = 30, 2**30
"""Seconds until a process is killed, and largest size of its address space in bytes."""
_REFUSED = 2
"""Exit code for a refused document; the output is then the message."""


class Texts(NamedTuple):
    """Texts of a document."""

    texts: list[str]
    """Empty if they have too many characters."""
    characters: int
    """Number of characters of all texts; an empty text counts as a character."""


class Rendered(NamedTuple):
    """A translated document."""

    content: bytes
    note: str
    """What is not translated, as in ``Document``."""


def read_isolated(name: str, content: bytes, max_characters: int) -> Texts:
    """Read a document in a process of its own, and return its texts if they have at most ``max_characters``.

    Raises:
        DataError: if the document is damaged, or takes too much time or memory.
    """
    return Texts(**json.loads(_run({"name": name, "max_characters": max_characters}, name, content)))


def render_isolated(
    name: str, content: bytes, texts: list[str], source: str, target: str, needs_review: bool = False
) -> Rendered:
    """Return a document with texts that are translated from ``source`` to ``target``, from a process of its own.

    Args: as for ``Document.render``; ``needs_review`` is the attribute of the document.
    Raises: the errors of ``read_isolated``.
    """
    request = {"name": name, "texts": texts, "languages": [source, target], "needs_review": needs_review}
    note, _, rendered = _run(request, name, content).partition(b"\n")
    return Rendered(rendered, note.decode())


def _run(request: dict[str, object], name: str, content: bytes) -> bytes:
    command = [sys.executable, "-m", __name__]
    input_bytes = json.dumps(request).encode() + b"\n" + content
    too_much = f"{name} takes more than {MOST_SECONDS} s or {MOST_MEMORY // 2**20:,} MiB to read. Split it."
    try:
        process = subprocess.run(command, input=input_bytes, capture_output=True, timeout=MOST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise DataError(too_much) from None
    if process.returncode == _REFUSED:
        raise DataError(process.stdout.decode())
    if process.returncode:
        raise DataError(too_much)
    return process.stdout


def _limit() -> None:
    """Limit the time and memory of this process if the operating system can."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:  # Windows
        return
    os.nice(10)  # translations have priority
    # The limits also end a process whose parent is gone.
    limits = {resource.RLIMIT_CPU: MOST_SECONDS, resource.RLIMIT_AS: MOST_MEMORY, resource.RLIMIT_CORE: 0}
    for kind, maximum in limits.items():
        _, highest = resource.getrlimit(kind)
        limit = maximum if highest == resource.RLIM_INFINITY else min(maximum, highest)
        resource.setrlimit(kind, (limit, limit))


def _answer(request: dict[str, object], content: bytes) -> bytes:
    document = read_document(str(request["name"]), content)
    translations = request.get("texts")
    if isinstance(translations, list):
        document.needs_review = bool(request["needs_review"])
        rendered = document.render(translations, *request["languages"])  # type: ignore[misc]
        return document.note.encode() + b"\n" + rendered
    characters = sum(max(1, len(text)) for text in document.texts)
    is_short = characters <= int(str(request["max_characters"]))
    texts = Texts(document.texts if is_short else [], characters)
    return json.dumps(texts._asdict()).encode()


def main() -> int:
    """Answer a request from standard input: a line of JSON, then the document."""
    _limit()
    request, _, content = sys.stdin.buffer.read().partition(b"\n")
    try:
        answer = _answer(json.loads(request), content)
    except NmtError as error:
        sys.stdout.buffer.write(str(error).encode(errors="replace"))
        return _REFUSED
    sys.stdout.buffer.write(answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
