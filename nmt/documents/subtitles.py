"""Subtitles in SRT and WebVTT: the text of the cues is translated, everything else stays unchanged."""

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar

from nmt.documents.blocks import Item
from nmt.documents.document import Document
from nmt.documents.html import Markup
from nmt.storage.text import as_cell, decode_utf8

_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n)|[^\r\n]++")
_BREAK = re.compile(r"(\r\n|\r|\n)")
_LINE_BEGINNING = re.compile(r"(?:\{\\[^{}]*+\}|[-–—♪] )+")
"""Position of the text, and the dash that marks a change of speaker."""


class Subtitles(Document):
    """A file of subtitles in UTF-8."""

    SUFFIXES = (".srt", ".vtt")

    def __init__(self, content: bytes, name: str) -> None:
        """Find the cues.

        Raises:
            DataError: if the file is not in UTF-8.
        """
        super().__init__(content, name)
        self._text = decode_utf8(content, name)
        self._places = [*find_cues(self._text)]
        has_entities = self._text.lstrip("\ufeff").startswith("WEBVTT")
        self._cues = [Cue(self._text[start:end], has_entities=has_entities) for start, end in self._places]
        self.texts = [text for cue in self._cues for text in cue.texts]

    def render(self, texts: list[str], source: str = "source", target: str = "target") -> bytes:
        """Return the subtitles with these texts in place of ``texts``."""
        remaining, parts, previous_end = iter(texts), list[str](), 0
        for (start, end), cue in zip(self._places, self._cues, strict=True):
            parts += [self._text[previous_end:start], cue.render([next(remaining) for _ in cue.texts])]
            previous_end = end
        return "".join([*parts, self._text[previous_end:]]).encode()


def find_cues(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of the text of each cue: after its line of times, up to an empty line or the next cue.

    A line of spaces does not count as empty. A number before a line of times belongs to the next cue.
    """
    start, position, previous_position, previous = -1, 0, 0, ""
    for line in _LINE.findall(text):
        if _has_times(line):
            end = previous_position if previous.strip().isdecimal() else position
            if 0 <= start < end:
                yield start, end
            start = position + len(line)
        elif start >= 0 and line[0] in "\r\n":
            if start < position:
                yield start, position
            start = -1
        previous_position, previous, position = position, line, position + len(line)
    if 0 <= start < position:
        yield start, position


def _has_times(line: str) -> bool:
    """Return whether a line gives the times of a cue, such as 00:00:01,000 --> 00:00:02,000."""
    start, arrow, end = line.partition("-->")
    start = start.strip(" \t\ufeff")
    return bool(arrow) and ":" in start and not start.strip("-0123456789:.,") and end.lstrip(" \t-")[:1].isdecimal()


class Cue(Markup):
    """Text of a cue, in which a sentence may continue on the next line."""

    BEGIN: ClassVar = re.compile(r"<(?:[a-zA-Z/!?]|\d[\d:.]*+>)")
    IS_CUE: ClassVar = True
    _is_at_line_beginning = True
    """Whether the next text follows only tags and spaces in its line."""

    def _add_text(self, text: str) -> None:
        """Add text, with its line breaks as pieces."""
        for line in _BREAK.split(text):
            if line and line[0] in "\r\n":
                self._add("piece", line, "line")
                self._is_at_line_beginning = True
                continue
            beginning = _LINE_BEGINNING.match(line) if self._is_at_line_beginning else None
            rest = line[beginning.end() :] if beginning else line
            if beginning and self._parts and self._parts[-1].text == "line":
                self._raws[-1] += beginning[0]
            elif beginning:
                self._add("piece", beginning[0])
            super()._add_text(rest)
            if rest and self._parts[-1].kind == "text" and self._parts[-1].text.strip():
                self._is_at_line_beginning = False

    def _write(self, items: Iterator[Item], raws: Sequence[str]) -> str:
        """Return the lines of a translated text, without empty lines, which would end the cue."""
        breaks, lines = [""], [list[str]()]
        for item in items:
            markup = self._item_markup(item, raws)
            if item.kind == "piece" and markup[:1] in ("\r", "\n"):
                breaks.append(markup)
                lines.append([])
            else:
                lines[-1].append(as_cell(markup) if item.kind == "text" else markup)
        cue = ""
        for line_break, parts in zip(breaks, lines, strict=True):
            if line := "".join(parts).strip(" "):
                cue += (line_break if cue else line_break.lstrip("\r\n")) + line
        return cue
