"""Marks: private-use characters of Unicode that stand for the tags of a text, such as <b> or a placeholder."""

import re

OPEN, CLOSE, PIECE = 0x100000, 0x105000, 0x10A000
"""First code points of opening tags, of closing tags, and of pieces that are carried over whole."""
MOST_MARKS = 0x5000
"""Number of marks of a kind."""
OPEN_MARKS, CLOSE_MARKS, PIECE_MARKS = "\U00100000-\U00104fff", "\U00105000-\U00109fff", "\U0010a000-\U0010ffff"
"""Ranges of these marks in regular expressions."""
MARK = re.compile(f"[{OPEN_MARKS}{CLOSE_MARKS}{PIECE_MARKS}]")
PAIRED = re.compile(f"[{OPEN_MARKS}{CLOSE_MARKS}]")
CLOSINGS = re.compile(f"[{CLOSE_MARKS}]*")
# A match starts only at the beginning of a run and is possessive, so that long runs take linear time.
_SPACE_BEFORE = re.compile(f"(?<!\\s)(\\s++)([{CLOSE_MARKS}]+)")
_SPACE_AFTER = re.compile(f"(?<![{OPEN_MARKS}])([{OPEN_MARKS}]++)(\\s+)")


def move_space_out_of_tags(text: str) -> str:
    """Return a text in which white space at the inner side of tags has moved outside."""
    return _SPACE_AFTER.sub(r"\2\1", _SPACE_BEFORE.sub(r"\2\1", text))
