"""Documents of strangers, read and written in a process of their own, with limits of time and memory.

Whatever a document does, it ends with its process, and neither holds the interpreter of a service nor fills its memory.
A document is read twice, for its texts and for their translations, so that no process waits in between.
"""

import json
import os
import subprocess
import sys
from typing import NamedTuple

from nmt.documents.formats import read_document
from nmt.errors import DataError, NmtError

MOST_SECONDS, MOST_MEMORY = 10, 2**30
"""Time until a process is killed, and bytes of its address space."""
_REFUSED = 2
"""Exit code for a document that is refused; the message is the output."""


class Texts(NamedTuple):
    """Texts of a document."""

    texts: list[str]
    """Empty if they have too many characters."""
    characters: int
    """Length of all texts; an empty one counts as a character."""


def read_apart(name: str, content: bytes, most: int) -> Texts:
    """Return the texts of a document, as ``read_document``, if they have at most ``most`` characters.

    Raises:
        DataError: for a damaged document, or one that takes too much time or memory.
    """
    return Texts(**json.loads(_run({"name": name, "most": most}, name, content)))


def render_apart(name: str, content: bytes, texts: list[str]) -> bytes:
    """Return a document with other texts. Raises: as ``read_apart``."""
    return _run({"name": name, "texts": texts}, name, content)


def _run(request: dict[str, object], name: str, content: bytes) -> bytes:
    command = [sys.executable, "-m", __name__]
    given = json.dumps(request).encode() + b"\n" + content
    too_much = f"{name} takes more than {MOST_SECONDS} s or {MOST_MEMORY // 2**20:,} MiB to read. Split it."
    try:
        done = subprocess.run(command, input=given, capture_output=True, timeout=MOST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise DataError(too_much) from None
    if done.returncode == _REFUSED:
        raise DataError(done.stdout.decode())
    if done.returncode:
        raise DataError(too_much)
    return done.stdout


def _limit() -> None:
    """Limit this process, where the system can."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:  # Windows
        return
    os.nice(10)  # translations come first
    # Also where nobody waits any more.
    limits = {resource.RLIMIT_CPU: MOST_SECONDS, resource.RLIMIT_AS: MOST_MEMORY, resource.RLIMIT_CORE: 0}
    for kind, most in limits.items():
        _, highest = resource.getrlimit(kind)
        limit = most if highest == resource.RLIM_INFINITY else min(most, highest)
        resource.setrlimit(kind, (limit, limit))


def _answer(request: dict[str, object], content: bytes) -> bytes:
    document = read_document(str(request["name"]), content)
    translations = request.get("texts")
    if isinstance(translations, list):
        return document.render(translations)
    characters = sum(max(1, len(text)) for text in document.texts)
    is_short = characters <= int(str(request["most"]))
    return json.dumps({"texts": document.texts if is_short else [], "characters": characters}).encode()


def main() -> int:
    """Answer the request of standard input: a line of JSON, and the document."""
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
