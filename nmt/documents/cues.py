"""Turns of speakers in the cues of subtitles, and sentences that run over several turns."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from nmt.documents.blocks import SOFT_BREAK, Block, Item
from nmt.documents.dividing import Word, divide, lines_of, width, words_of
from nmt.documents.html import plain_text
from nmt.tokenizers.marks import CLOSE, MARK, OPEN, PIECE
from nmt.tokenizers.sentences import CLOSING, STOPS, sentences_of

_MARKED = re.compile(f"({MARK.pattern})")

TOKEN = re.compile(
    r"(?P<time><\d[\d:.]*+>)|<(?P<end>/?)(?P<tag>[a-zA-Z]++)[^<>\r\n]*+>|(?P<piece>\{\\[^{}\r\n]*+\})|(?P<line>[\r\n]++)"
)
"""A time stamp, a tag, a position such as {\\an8}, or a line break."""
BEGINNING = re.compile(r"\s*+(?:[-\u2010-\u2015\u2212](?!\d)\s*+|[\u2669-\u266c#]++\s++|(?:>>++|(?:&gt;){2,}+)\s*+)++")
"""Dash or arrows of another speaker, and signs of lyrics."""
ENDING = re.compile(r"(?<!\s)\s*+(?:[\u2669-\u266c]|(?<=\s)#)\s*+\Z")
_INTERRUPTIONS = "-\u2013\u2014"
_QUOTES = f"{CLOSING}\"'"
_MOST_NESTED, _MOST_TOKENS = 50, 2_000
"""Most tags around a word, and most tags and texts of a turn that is translated."""


class _Token(NamedTuple):
    """Part of a turn."""

    kind: str
    """"text", "open", "close", "time" or "piece"."""
    raw: str
    text: str = ""
    """The text, or the name of the tag."""


class _Slot:
    """Text up to the next time stamp. Tags and signs around it stay where they are."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        partners = _partners(tokens)
        blank = [token.kind == "text" and not token.text.strip() for token in tokens]
        fixed = [
            blank[index] or token.kind in ("piece", "time") or (token.kind != "text" and index not in partners)
            for index, token in enumerate(tokens)
        ]
        low, high = 0, len(tokens)
        while low < high:
            if fixed[low]:
                low += 1
            elif fixed[high - 1]:
                high -= 1
            elif partners.get(low) == high - 1:
                low, high = low + 1, high - 1
            else:
                break
        outer = [*range(low), *range(high, len(tokens))]
        self.before = "".join(tokens[index].raw for index in range(low) if not blank[index])
        self.after = "".join(tokens[index].raw for index in range(high, len(tokens)) if not blank[index])
        self.loose = "".join(
            tokens[index].raw for index in outer if tokens[index].kind in ("open", "close") and index not in partners
        )
        """Tags without a partner in the slot, which stay even if no text is left."""
        self.items = [_item(tokens, index, partners) for index in range(low, high)]
        for index, strip in ((0, str.lstrip), (-1, str.rstrip)):
            if self.items and self.items[index].kind == "text":
                self.items[index] = Item("text", strip(self.items[index].value))
        self.shown = "".join(token.text for token in tokens if token.kind == "text")
        self.width = width(self.shown.strip())
        self.words: list[Word] = []
        """Words of the translation, with their tags."""


def _partners(tokens: Sequence[_Token]) -> dict[int, int]:
    """Return the indices of matching tags: the closing tag of each opening tag, and the reverse."""
    opened, partners = list[int](), dict[int, int]()
    for index, token in enumerate(tokens):
        if token.kind == "open" and len(opened) < _MOST_NESTED:
            opened.append(index)
        elif token.kind == "close":
            nearest = reversed(opened)
            count = next((count for count, start in enumerate(nearest, 1) if tokens[start].text == token.text), 0)
            if count:
                partners |= {opened[-count]: index, index: opened[-count]}
                del opened[-count:]
    return partners


def _item(tokens: Sequence[_Token], index: int, partners: dict[int, int]) -> Item:
    """Return a token as part of a block. Tags have the source of both tags as their value."""
    token = tokens[index]
    if token.kind == "text":
        return Item("text", re.sub(r"[ \t]+", " ", token.text))
    if index not in partners:
        return Item("piece", token.raw)
    pair = sorted((index, partners[index]))
    return Item("open" if token.kind == "open" else "close", tuple(tokens[place].raw for place in pair))


class Turn:
    """Lines of a speaker in a cue."""

    def __init__(self, raw: str, times: tuple[float, float], lines: int, has_entities: bool) -> None:
        """Read a turn.

        Args:
            raw: source of the lines.
            times: seconds at which the cue begins and ends.
            lines: number of lines; 0 if the lines of the translation are not balanced.
            has_entities: whether the text has character references.
        """
        self._raw, self._lines = raw, lines
        self.start, self.end = times
        self.original: Turn | None = None
        """Turn of an earlier cue that this turn repeats."""
        tokens = [*_tokens(raw, has_entities)]
        starts = [index for index, token in enumerate(tokens) if token.kind == "time"]
        self.slots = [_Slot(tokens[start:end]) for start, end in itertools.pairwise([0, *starts, len(tokens)])]
        plain = TOKEN.sub("", raw).strip()
        self.begins = BEGINNING.match(plain) is not None or is_bracketed(plain)
        """Whether this is the first turn of a speaker."""
        self._is_closed = ENDING.search(plain) is not None or is_bracketed(plain)
        self._voice = [token.raw for token in tokens if token.kind == "open" and token.text == "v"]
        self.shown = "".join(slot.shown for slot in self.slots).strip() if len(tokens) <= _MOST_TOKENS else ""
        """Text without tags and signs; empty if it is not translated."""

    def continues_in(self, turn: "Turn", most_seconds: float) -> bool:
        """Return whether a sentence may continue in the next turn."""
        if turn.begins or self._is_closed or self._voice != turn._voice:
            return False
        last = self.shown.rstrip(_QUOTES)[-1:]
        return last not in STOPS and last not in _INTERRUPTIONS and abs(turn.start - self.end) <= most_seconds

    def render(self, most_columns: int, line_break: str) -> str:
        """Return the lines with the translation in them."""
        slots = (self.original or self).slots
        words = [word for slot in slots for word in slot.words]
        if not words:
            return self._raw
        if self.original:
            plain = (MARK.sub("", re.sub(TOKEN, "", word.text)) + word.space for word in words)
            return self.slots[0].before + "".join(plain).rstrip(" ") + self.slots[-1].after
        ends = itertools.accumulate(map(len, lines_of(words, self._lines, most_columns))) if self._lines else ()
        breaks, count, parts = {*ends}, 0, list[str]()
        for index, slot in enumerate(slots):
            if not slot.words:
                parts.append(slot.loose if index else slot.before + slot.after)
                continue
            parts.append(slot.before)
            for word in slot.words:
                count += 1
                space = word.space
                if count == len(words):
                    space = ""
                elif count in breaks:
                    space = line_break
                parts.append(word.text + space)
            parts.append(slot.after)
        return "".join(parts)


def is_bracketed(line: str) -> bool:
    """Return whether a line is a sound or a sign, such as [music]."""
    return (line[:1], line[-1:]) in (("[", "]"), ("(", ")"), ("\uff08", "\uff09"), ("\u3010", "\u3011"))


def _tokens(raw: str, has_entities: bool) -> Iterator[_Token]:
    """Yield the tokens of a turn. The signs at its beginning and end are pieces of their own."""
    position, is_beginning = 0, True
    ending = ENDING.search(raw)
    end = ending.start() if ending else len(raw)
    for match in [*TOKEN.finditer(raw, 0, end), None]:
        start = match.start() if match else end
        beginning = BEGINNING.match(raw, position, start) if is_beginning else None
        if beginning:
            yield _Token("piece", beginning[0])
            position = beginning.end()
        text = raw[position:start]
        if text:
            yield _Token("text", text, plain_text(text) if has_entities else text)
        is_beginning = is_beginning and not text.strip()
        if match is None:
            break
        position = match.end()
        if match["line"]:
            yield _Token("text", match[0], SOFT_BREAK)
        elif match["tag"]:
            yield _Token("close" if match["end"] else "open", match[0], match["tag"].lower())
        else:
            yield _Token("time" if match["time"] else "piece", match[0])
    if ending:
        yield _Token("piece", ending[0])


class Sentence:
    """Text that runs over one or more turns."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        """Join the texts of turns."""
        self._turns = turns
        items, previous = list[Item](), ""
        for turn in turns:
            for slot in turn.slots:
                is_apart = slot is turn.slots[0] or previous[-1:].isspace() or slot.shown[:1].isspace()
                if items and is_apart:
                    items.append(Item("text", SOFT_BREAK))
                items += slot.items
                previous = slot.shown
        self.block = Block(items)

    def translate(self, text: str, source: str, target: str, has_entities: bool) -> None:
        """Divide a translation over the turns.

        Each part gets its share of the text. If the translation has as many sentences, a sentence that ends in a turn
        ends there in the translation too.
        """
        if text == self.block.text:
            return
        marked, items = _with_marks(self.block.read(text))
        shares = self._shares(marked, source, target) if len(self._turns) > 1 else [1.0]
        previous = list[Word]()
        opened = list[Item]()
        for turn, words in zip(self._turns, divide(words_of(marked), shares, 1), strict=True):
            # With fewer words than turns, a turn repeats the one before it.
            turn_words = words or previous
            slot_words = divide(turn_words, [slot.width for slot in turn.slots], 0)
            for slot, divided in zip(turn.slots, slot_words, strict=True):
                slot.words = _with_tags(divided, items, opened, has_entities)
            previous = turn_words

    def _shares(self, translation: str, source: str, target: str) -> list[float]:
        """Return the width of each turn in a translation."""
        source_ends, target_ends = (
            np.cumsum([0, *(width(sentence + space) for sentence, space in sentences_of(line.strip(), language))])
            for line, language in ((self.block.text, source), (translation, target))
        )
        if len(source_ends) != len(target_ends):
            source_ends, target_ends = source_ends[[0, -1]], target_ends[[0, -1]]
        widths = [sum(slot.width for slot in turn.slots) + 1 for turn in self._turns]
        ends = np.cumsum([0, *widths]) * source_ends[-1] / sum(widths)
        shares: list[float] = np.diff(np.interp(ends, source_ends, target_ends)).tolist()
        return shares


def _with_marks(items: Iterator[Item]) -> tuple[str, dict[str, Item]]:
    """Return the items of a translation as a text with marks, and the items by their marks."""
    numbers, marked, text = Counter[str](), dict[str, Item](), ""
    for item in items:
        if item.kind == "text" and not MARK.match(item.value):
            text += item.value
            continue
        first = {"open": OPEN, "close": CLOSE}.get(item.kind, PIECE)
        mark = chr(first + numbers[item.kind])
        numbers[item.kind] += 1
        marked[mark] = item
        text += mark
    return text, marked


def _with_tags(words: Sequence[Word], items: dict[str, Item], opened: list[Item], has_entities: bool) -> list[Word]:
    """Return words with tags in place of their marks. Tags that are open between two slots end and begin again.

    Args:
        words: words of a slot.
        items: tags and pieces by their marks.
        opened: tags that are open before the words, and then those that are open after them.
        has_entities: whether characters such as & are escaped.
    """
    tagged = list[Word]()
    for index, word in enumerate(words):
        text = "" if index else "".join(item.value[0] for item in opened)
        for part in _MARKED.split(word.text):
            item = items.get(part)
            if item is None:
                text += escape(part, quote=False) if has_entities else part
            elif item.kind == "open":
                opened.append(item)
                text += item.value[0]
            elif item.kind == "close":
                opened[:] = [tag for tag in opened if tag.value != item.value]
                text += item.value[1]
            else:
                text += item.value
        if index == len(words) - 1:
            text += "".join(item.value[1] for item in reversed(opened))
        tagged.append(word._replace(text=text))
    return tagged
