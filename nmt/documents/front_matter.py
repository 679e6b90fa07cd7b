"""Front matter of Markdown, in YAML or TOML: the values for readers, such as the title of a page, are translated."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_FENCES = ("---", "+++")
_VALUE = re.compile(r"(?:title|subtitle|description|summary|excerpt)[ \t]*+[:=][ \t]*+(\S.*+)")
"""A line with a value at the top level."""
_NO_PLAIN_TEXT = re.compile(r"[\[\]{}&*!|>%@`\"'#,?:-]|.*(?:: |:\Z| #)")
"""Beginning of a YAML value that is no text, or text whose meaning this module does not know."""


class Value(NamedTuple):
    """A value of the front matter."""

    line: int
    """Number of its line, from 0."""
    start: int
    """Position in the line, with quotes."""
    end: int
    text: str | None
    """The text; None if it cannot be read, such as one of several lines."""


def front_matter_length(lines: Sequence[str]) -> int:
    """Return the number of lines of the front matter, with its fences; 0 if there is none."""
    fence = lines[0].removeprefix("\ufeff").rstrip()
    if fence not in _FENCES:
        return 0
    stripped = [line.rstrip() for line in lines]
    return stripped.index(fence, 1) + 1 if fence in stripped[1:] else 0


def read_values(lines: Sequence[str]) -> Iterator[Value]:
    """Yield the values for readers in the lines of a front matter."""
    is_yaml = "---" in lines[0]
    for number, line in enumerate(lines):
        if match := _VALUE.match(line):
            source = match[1].rstrip()
            yield Value(number, match.start(1), match.start(1) + len(source), _text(source, is_yaml=is_yaml))


def quoted(text: str) -> str:
    """Return the source of a value, in YAML and TOML."""
    return json.dumps(text, ensure_ascii=False)


def _text(source: str, *, is_yaml: bool) -> str | None:
    """Return the text of a value on a single line; None if it is none."""
    is_quoted = len(source) > 1 and source[0] == source[-1]
    if is_quoted and source[0] == '"':
        try:
            return str(json.loads(source))
        except ValueError:
            return None
    if is_quoted and source[0] == "'":
        return source[1:-1].replace("''", "'") if is_yaml else source[1:-1]
    return source if is_yaml and not _NO_PLAIN_TEXT.match(source) else None
