"""Subtitles: SRT and WebVTT. The text of a cue is translated, lines and all else stay as they were written."""

import re

from nmt.documents.html import Markup
from nmt.storage.text import decoded

# The lines after a line of times, up to an empty line, without the position and the dash that they begin with.
_CUE = re.compile(
    r"(?<=\n)[^\n]*?-->[^\n]*\n(?:\{\\[^}\n]*\}|[-–—♪] )*((?:(?!\r?(?:\n|$)|[^\n]*-->)[^\n]+\n?)+)"  # noqa: RUF001
)
_LINE = re.compile(r"(\r?\n(?:[-–—♪] )?)")  # noqa: RUF001 - the dash of another speaker
_MARKED = re.compile(r" *<br \t([^>]*)> ?")


class Subtitles:
    """Subtitles in UTF-8."""

    def __init__(self, content: bytes, name: str) -> None:
        """Find the cues.

        Raises:
            DataError: if they are not UTF-8.
        """
        self._text = decoded(content, name)
        self._cues = [match.span(1) for match in _CUE.finditer(self._text)]
        has_entities = self._text.lstrip("\ufeff").startswith("WEBVTT")
        self._markups = [
            Markup(_LINE.sub(r"<br \t\1>", self._text[start:end]), is_cue=True, has_entities=has_entities)
            for start, end in self._cues
        ]
        self.texts = [text for markup in self._markups for text in markup.texts]

    def render(self, texts: list[str]) -> bytes:
        """Return the subtitles with other texts in place of ``texts``."""
        waiting, parts, last = iter(texts), list[str](), 0
        for (start, end), markup in zip(self._cues, self._markups, strict=True):
            cue, new = self._text[start:end], [next(waiting) for _ in markup.texts]
            if new != markup.texts:
                cue = _MARKED.sub(r"\1", markup.render(new))
            parts += [self._text[last:start], cue]
            last = end
        return "".join([*parts, self._text[last:]]).encode()
