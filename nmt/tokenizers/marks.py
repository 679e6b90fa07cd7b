"""Marks: characters of a private plane that stand for the tags of a text."""

import re

OPEN, CLOSE, PIECE = 0x100000, 0x105000, 0x10A000
"""First marks: of tags that open something, of those that close it, of what is carried over as one piece."""
MOST_MARKS = 0x5000
"""Marks of each kind."""
OPEN_MARKS, CLOSE_MARKS, PIECE_MARKS = "\U00100000-\U00104fff", "\U00105000-\U00109fff", "\U0010a000-\U0010ffff"
"""Ranges of characters in regular expressions."""
MARK = re.compile(f"[{OPEN_MARKS}{CLOSE_MARKS}{PIECE_MARKS}]")
PAIRED = re.compile(f"[{OPEN_MARKS}{CLOSE_MARKS}]")
CLOSINGS = re.compile(f"[{CLOSE_MARKS}]*")
# A run is tried from its beginning alone and gives nothing back, so that a long one takes linear time.
_SPACE_BEFORE = re.compile(f"(?<!\\s)(\\s++)([{CLOSE_MARKS}]+)")
_SPACE_AFTER = re.compile(f"(?<![{OPEN_MARKS}])([{OPEN_MARKS}]++)(\\s+)")


def tidied(text: str) -> str:
    """Return a text without white space at the inner side of tags: it goes outside."""
    return _SPACE_AFTER.sub(r"\2\1", _SPACE_BEFORE.sub(r"\2\1", text))
