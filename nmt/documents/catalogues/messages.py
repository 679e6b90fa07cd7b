"""Messages of programs, whose translations keep placeholders, accelerators and line breaks at both ends."""

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar, NamedTuple, Self

from nmt.documents.blocks import Block, Item
from nmt.documents.document import Document
from nmt.errors import counted
from nmt.tokenizers.marks import MARK
from nmt.tokenizers.placeholders import PLACEHOLDER, placeholders_of

MOST_CHARACTERS = 60
"""Most characters of a label with an accelerator."""
UNKNOWN = "target"
"""Code of the target language if it is unknown."""
_LINE_BREAKS = "\r\n"
_LITERAL = re.compile(r"%(?: .*)?|[{}]|''?")
"""Signs of a format that stand in ordinary text too, such as "100% sure"."""
_NUMBERED = re.compile(r"%(?:%|\d++\$.*|[(<{].*|L?\d\d?|n)|[^%{].*|\{[^:!}].*")
"""Placeholders that name their argument; the others take the arguments in order."""
_ACCELERATOR = re.compile(
    r"(?<![^\s(\[\"'“«])(?P<before>[^\s(\[\"'“«&_~]*+)(?P<sign>[&_~])(?P<letter>[^\W_])(?!\w*+(?:[;/@=(_\\]|\.\w))"
)
_END = " .…:："
"""Signs at the end of a label, as in "Save as..."."""


class Edit(NamedTuple):
    """Text that replaces a part of a file."""

    start: int
    end: int
    text: str


def edited(text: str, edits: Iterable[Edit]) -> str:
    """Return a text after edits of different places."""
    parts, previous_end = list[str](), 0
    for edit in sorted(edits):
        parts += [text[previous_end : edit.start], edit.text]
        previous_end = edit.end
    return "".join([*parts, text[previous_end:]])


class MessageFile(Document):
    """A file with messages of a program."""

    UNSAFE: ClassVar[str] = "Left untranslated"
    """What happened to messages whose translations changed their placeholders."""

    def __init__(self, content: bytes, name: str) -> None:
        """Start without texts."""
        super().__init__(content, name)
        self.unsafe = 0
        """Number of messages whose translations changed their placeholders."""

    def _changed(self, messages: Iterable["Message"], texts: Iterable[str]) -> Iterator[tuple["Message", str]]:
        """Yield the messages whose translations change the text and keep the placeholders, with the new text."""
        self.unsafe = 0
        for message, text in zip(messages, texts, strict=True):
            rendering = message.render(text)
            self.unsafe += not rendering.is_safe
            if rendering.is_safe and rendering.text != message.source:
                yield message, rendering.text

    @property
    def note(self) -> str:
        """Notes about everything that stays untranslated, and about changed placeholders."""
        if not self.unsafe:
            return super().note
        note = f"{self.UNSAFE}, as a translation changed placeholders or tags: {counted(self.unsafe, 'text')}."
        return f"{super().note} {note}".lstrip()


class Rendering(NamedTuple):
    """Translation of a message."""

    text: str
    is_safe: bool
    """Whether it has the placeholders of the source, and those without a number or a name are in the same order."""


class Message:
    """A text that a program shows."""

    def __init__(self, source: str, placeholder: re.Pattern[str] | None = None, *, is_label: bool = False) -> None:
        """Replace the placeholders by marks, and remove the accelerator.

        Args:
            source: the text.
            placeholder: placeholders of the format of the message; None if the translator finds them by itself.
            is_label: whether the text may be a label with an accelerator, such as &File.
        """
        self.place = 0, 0
        """Start and end of the message in its file."""
        self.source, self._placeholder = source, None if MARK.search(source) else placeholder
        self._accelerator = _Accelerator.of(source) if is_label else None
        plain = self._accelerator.removed_from(source) if self._accelerator else source
        self._block = Block(_items(plain, self._placeholder))
        self.text = self._block.text
        """The text with marks."""
        marks = MARK.findall(self.text)
        self._marks, self._ordered = sorted(marks), list[str]()
        for mark in marks if self._placeholder else ():
            piece = "".join(item.value for item in self._block.items_of(mark))
            if not _NUMBERED.fullmatch(piece):
                self._ordered.append(mark)

    def has_placeholders_of(self, other: "Message") -> bool:
        """Return whether two messages, such as a singular and its plural, have the same placeholders."""
        return same_placeholders(self.source, other.source, self._placeholder)

    def render(self, translation: str) -> Rendering:
        """Return the message with a translation of ``text``."""
        if translation == self.text:
            return Rendering(self.source, is_safe=True)
        marks, ordered = MARK.findall(translation), set(self._ordered)
        is_safe = sorted(marks) == self._marks and [mark for mark in marks if mark in ordered] == self._ordered
        if self._accelerator:
            translation = self._accelerator.added_to(translation)
        text = "".join(item.value for item in self._block.read(translation)).strip(_LINE_BREAKS)
        first, end = len(self.source) - len(self.source.lstrip(_LINE_BREAKS)), len(self.source.rstrip(_LINE_BREAKS))
        text = f"{self.source[:first]}{text}{self.source[end:]}"
        return Rendering(text, is_safe and same_placeholders(self.source, text, self._placeholder))


def same_placeholders(source: str, translation: str, placeholder: re.Pattern[str] | None = None) -> bool:
    """Return whether a translation has the placeholders of its source, and keeps the order of those without a number.

    Args:
        source: the text.
        translation: its translation.
        placeholder: placeholders of a format; None for those of any program.
    """
    find = placeholder.findall if placeholder else placeholders_of
    old, new = find(source), find(translation)
    old_order = [text for text in old if not _NUMBERED.fullmatch(text)]
    new_order = [text for text in new if not _NUMBERED.fullmatch(text)]
    return old_order == new_order and sorted(old) == sorted(new)


def _items(text: str, placeholder: re.Pattern[str] | None) -> Iterator[Item]:
    """Yield a text with its placeholders as pieces."""
    end = 0
    for match in placeholder.finditer(text) if placeholder else ():
        if not _LITERAL.fullmatch(match[0]):
            yield Item("text", text[end : match.start()])
            yield Item("piece", match[0])
            end = match.end()
    yield Item("text", text[end:])


class _Accelerator(NamedTuple):
    """Letter of a label that is a key of the program: &File of Qt and Windows, _File of GTK, ~File of LibreOffice."""

    sign: str
    letter: str
    place: int
    """Index of the sign in the label."""

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Return the accelerator of a label. A text of several lines or many words, or a sentence, is no label."""
        is_sentence = text.endswith(".") and not text.endswith("...")
        if is_sentence or len(text) > MOST_CHARACTERS or len(text.splitlines()) != 1:
            return None
        match = _ACCELERATOR.search(text)
        if match is None or text.count(match["sign"]) > 1:
            return None
        before, sign, letter = match.groups()
        is_word = not before or (before.isalpha() and not letter.isupper())  # not as in AT&T
        is_name = sign != "&" and (before or text.lstrip(sign))[0].islower()  # as in file_name
        return cls(sign, letter, match.start("sign")) if is_word and not is_name else None

    def removed_from(self, text: str) -> str:
        """Return the label without the sign."""
        return text[: self.place] + text[self.place + 1 :]

    def added_to(self, translation: str) -> str:
        """Return a translated label with the sign before the same letter, or else with the letter at its end."""
        masked = _UNMARKED.sub(lambda match: " " * len(match[0]), translation)
        places = [index for index, letter in enumerate(masked) if letter.lower() == self.letter.lower()]
        starts = [place for place in places if not masked[place - 1 : place].isalnum()]
        if places:
            place = (starts or places)[0]
            return f"{translation[:place]}{self.sign}{translation[place:]}"
        end = len(translation.rstrip(_END))
        return f"{translation[:end]}({self.sign}{self.letter.upper()}){translation[end:]}"


_UNMARKED = re.compile(f"{PLACEHOLDER}|<[^<>]*>|{MARK.pattern}")
"""Parts of a label that have no accelerator."""
