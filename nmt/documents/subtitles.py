"""Subtitles in SRT and WebVTT: the text of the cues is translated, everything else stays unchanged.

A sentence that runs over several cues is translated as a whole, and divided over the same cues again. Roll-up captions,
such as the automatic ones of YouTube, repeat lines of the cue before; such a line repeats its translation.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from nmt.documents.cues import BEGINNING, ENDING, TOKEN, Sentence, Turn, is_bracketed
from nmt.documents.document import Document
from nmt.storage.text import decode_utf8
from nmt.tokenizers.sentences import STOPS

MOST_TURNS = 6
"""Most cues over which a sentence runs."""
MOST_GAP = 2.0
"""Seconds without a cue after which a sentence does not continue."""
PUNCTUATED_SHARE = 0.25
"""Share of cues with a full stop or the like from which on a cue without one continues in the next cue."""
_MOST_ROLLED = 4
"""Most lines of a cue that the next cue repeats."""

_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n)|[^\r\n]++")
_TIME = re.compile(r"[\s\ufeff]*(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9})(?:[.,](\d*))?")


class Subtitles(Document):
    """A file of subtitles in UTF-8."""

    SUFFIXES = (".srt", ".vtt")
    MOST_COLUMNS: ClassVar[int] = 42
    """Longest line of a translated cue. A Chinese character has two columns."""

    def __init__(self, content: bytes, name: str) -> None:
        """Find the cues.

        Raises:
            DataError: if the file is not in UTF-8.
        """
        super().__init__(content, name)
        text = decode_utf8(content, name)
        self._has_entities = text.lstrip("\ufeff").startswith("WEBVTT")
        cues = [*find_cues(text)]
        self._pieces: list[str | Turn] = []
        """Turns, and everything between them."""
        line_break = re.search(r"\r\n|\r|\n", text)
        self._line_break = line_break[0] if line_break else "\n"
        lines = [_shown_lines(text[cue.start : cue.end]) for cue in cues]
        repeated = [0, *itertools.starmap(_overlap, itertools.pairwise(lines)), 0]
        """Number of lines that each cue shares with the cue before it."""
        previous_end, previous_turns = 0, list[Turn]()
        for cue, before, after in zip(cues, repeated, repeated[1:], strict=False):
            pieces = [*_turns(text[cue.start : cue.end], cue.times, before > 0 or after > 0, self._has_entities)]
            turns = [piece for piece in pieces if isinstance(piece, Turn)]
            if before:
                for turn, previous in zip(turns, previous_turns[-before:], strict=False):
                    turn.original = previous.original or previous
            self._pieces += [text[previous_end : cue.start], *pieces]
            previous_end, previous_turns = cue.end, turns
        self._pieces.append(text[previous_end:])
        new = [piece for piece in self._pieces if isinstance(piece, Turn) and not piece.original]
        self._sentences = [Sentence(group) for group in _groups(new)]
        self.texts = [sentence.block.text for sentence in self._sentences]

    def render(self, texts: list[str], source: str = "source", target: str = "target") -> bytes:
        """Return the subtitles with these texts in place of ``texts``."""
        for sentence, text in zip(self._sentences, texts, strict=True):
            sentence.translate(text, source, target, self._has_entities)
        parts = [
            piece if isinstance(piece, str) else piece.render(self.MOST_COLUMNS, self._line_break)
            for piece in self._pieces
        ]
        return "".join(parts).encode()


class CuePlace(NamedTuple):
    """Place of the text of a cue in a file."""

    start: int
    end: int
    times: tuple[float, float]
    """Seconds at which the cue begins and ends."""


def find_cues(text: str) -> Iterator[CuePlace]:
    """Yield the text of each cue: after its line of times, up to an empty line or the next cue.

    A line of spaces does not count as empty. A number before a line of times belongs to the next cue.
    """
    start, position, previous_position, previous, times = -1, 0, 0, "", (0.0, 0.0)
    for line in _LINE.findall(text):
        if _has_times(line):
            end = previous_position if previous.strip().isdecimal() else position
            if 0 <= start < end:
                yield CuePlace(start, end, times)
            start = position + len(line)
            times = _seconds(line.partition("-->")[0]), _seconds(line.partition("-->")[2])
        elif start >= 0 and line[0] in "\r\n":
            if start < position:
                yield CuePlace(start, position, times)
            start = -1
        previous_position, previous, position = position, line, position + len(line)
    if 0 <= start < position:
        yield CuePlace(start, position, times)


def _has_times(line: str) -> bool:
    """Return whether a line gives the times of a cue, such as 00:00:01,000 --> 00:00:02,000."""
    start, arrow, end = line.partition("-->")
    start = start.strip(" \t\ufeff")
    return bool(arrow) and ":" in start and not start.strip("-0123456789:.,") and end.lstrip(" \t-")[:1].isdecimal()


def _seconds(time: str) -> float:
    """Return a time such as 00:01:02,500 in seconds; 0 if it is not one."""
    match = _TIME.match(time)
    if not match:
        return 0.0
    hours, minutes, seconds, fraction = match.groups("0")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction[:6] or 0}")


def _shown_lines(cue: str) -> list[str]:
    """Return the text of the lines of a cue, without those that are blank."""
    lines = (TOKEN.sub("", line).strip() for line in _LINE.findall(cue))
    return [line for line in lines if line]


def _overlap(lines: Sequence[str], next_lines: Sequence[str]) -> int:
    """Return how many lines at the end of a cue the next cue begins with."""
    counts = range(min(len(lines), len(next_lines), _MOST_ROLLED), 0, -1)
    return next((count for count in counts if lines[-count:] == next_lines[:count]), 0)


def _turns(cue: str, times: tuple[float, float], is_rolling: bool, has_entities: bool) -> Iterator[str | Turn]:
    """Yield the turns of speakers in a cue, with the line breaks and blank lines between them."""
    lines, count, is_closed = list[str](), 0, False
    for line in [*_LINE.findall(cue), ""]:
        shown = TOKEN.sub("", line).strip()
        begins = is_closed or is_bracketed(shown) or "<v" in line or BEGINNING.match(shown)
        if lines and ((shown and begins) or not line):
            raw = "".join(lines)
            text = raw.rstrip()
            yield Turn(text, times, 0 if is_rolling else count, has_entities)
            yield raw[len(text) :]
            lines, count = [], 0
        if shown or lines:
            lines.append(line)
            count += bool(shown)
        else:
            yield line
        if shown:
            is_closed = is_rolling or is_bracketed(shown) or ENDING.search(shown) is not None


def _groups(turns: Sequence[Turn]) -> list[list[Turn]]:
    """Return the turns over which each sentence runs. Without punctuation, a turn counts as a sentence.

    A turn without text, such as a dash alone, is in no group, and no sentence runs across it.
    """
    with_text = sum(turn.shown != "" for turn in turns)
    stops = sum(not STOPS.isdisjoint(turn.shown) for turn in turns)
    most_turns = MOST_TURNS if stops >= PUNCTUATED_SHARE * with_text else 1
    groups = list[list[Turn]]()
    previous: Turn | None = None
    for turn in turns:
        if not turn.shown:
            previous = None
            continue
        if previous and len(groups[-1]) < most_turns and previous.continues_in(turn, MOST_GAP):
            groups[-1].append(turn)
        else:
            groups.append([turn])
        previous = turn
    return groups
