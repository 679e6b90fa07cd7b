"""Messages of ICU with plurals and choices, such as {count, plural, one {# dog} other {# dogs}}, as whole sentences.

The text around a choice moves into its branches, so that each branch is a sentence to translate. The branches stay
those of the source: their categories of plurals are chosen by the program, and "other" serves all numbers.
"""

import re
from typing import NamedTuple

from nmt.tokenizers.marks import MOST_MARKS, PIECE

MOST_SENTENCES = 64
"""Most sentences of a message; combinations of several choices multiply."""
MOST_NESTED = 8
"""Most choices within each other, or in a row."""
_FIRST_MARK = PIECE + MOST_MARKS
_CHOICE = re.compile(r"\{\s*+([\w.-]++)\s*+,\s*+(plural|selectordinal|select)\s*+,(?:\s*+offset:\s*+\d++)?")
_BRANCH = re.compile(r"(?<!\s)\s*+(?:=\d++|[\w-]++)\s*+\{")
_END = re.compile(r"(?<!\s)\s*+\}")
# An apostrophe quotes if it stands before a brace or a number sign. Two of them are an apostrophe.
_TOKEN = re.compile(r"''|'[{}#](?:[^']|'')*+'?|\{[^{}']*+\}|[{}#]|[^'{}#]++|'")
_AFTER_APOSTROPHE = re.compile(f"'(?=[{chr(_FIRST_MARK)}-\U0010ffff])")
_BRACES = re.compile(r"[{}]")


class _Choice(NamedTuple):
    """An argument with branches."""

    head: str
    """Text before its first branch."""
    branches: list[tuple[str, "list[str | _Choice]"]]
    """Text up to the brace of each branch, inclusive, and its content."""
    tail: str
    """Text after its last branch."""
    is_plural: bool
    """Whether # in the branches is the number."""


_Parts = list[str | _Choice]


class Sentence(NamedTuple):
    """A sentence of a message, whose arguments are marks."""

    text: str
    """The sentence. Apostrophes stand for themselves."""
    pieces: list[str]
    """Arguments and quoted text of the sentence, by number of their marks."""

    @classmethod
    def of(cls, branch: str, *, is_plural: bool) -> "Sentence":
        """Return the sentence of a branch."""
        text, pieces = "", list[str]()
        for token in _TOKEN.findall(branch):
            if token == "''":
                text += "'"
            elif (len(token) > 1 and token[0] in "{'") or (token == "#" and is_plural):
                text += chr(_FIRST_MARK + len(pieces))
                pieces.append(token)
            else:
                text += token
        return cls(text, pieces)

    def branch(self, translation: str) -> str:
        """Return the branch of the translation of this sentence."""
        text = _AFTER_APOSTROPHE.sub("''", _BRACES.sub(r"'\g<0>'", translation))
        for number, piece in enumerate(self.pieces):
            text = text.replace(chr(_FIRST_MARK + number), piece)
        return text


class Message(NamedTuple):
    """A message whose choices have whole sentences as branches."""

    syntax: list[str]
    """Texts before, between and after its sentences."""
    sentences: list[Sentence]

    def render(self, translations: list[str]) -> str:
        """Return the message with the translations of its sentences."""
        text = self.syntax[0]
        for sentence, translation, syntax in zip(self.sentences, translations, self.syntax[1:], strict=True):
            text += sentence.branch(translation) + syntax
        return text


def has_choices(text: str) -> bool:
    """Return whether a text has a plural or a choice of ICU, well-formed or not."""
    return "{" in text and _CHOICE.search(text) is not None


def read_message(text: str) -> Message | None:
    """Return the message of a text; None if it has no choice, is not well-formed or has too many sentences.

    It is None too where # would become the number of another plural.

    >>> read_message("A {n, plural, one {dog} other {# dogs}}.").syntax
    ['{n, plural, one {', '} other {', '}}']
    """
    if not has_choices(text):
        return None
    try:
        parts, end = _read(text, 0, 0)
        if end != len(text):
            return None
        message = Message([""], [])
        _spread(parts, message, is_plural=False)
    except _NoMessageError:
        return None
    return message


class _NoMessageError(Exception):
    """A text that is no message, or one that cannot be translated branch by branch."""


def _read(text: str, start: int, depth: int) -> tuple[_Parts, int]:
    """Return the parts of a message or a branch, and the place after them."""
    parts, place = _Parts(), start
    while place < len(text):
        if choice := _CHOICE.match(text, place):
            part, place = _read_choice(text, choice, depth + 1)
            parts.append(part)
            continue
        token = _TOKEN.match(text, place)
        if token is None or token[0] == "}":
            break
        if token[0] == "{":
            raise _NoMessageError
        parts.append(token[0])
        place = token.end()
    return parts, place


def _read_choice(text: str, head: re.Match[str], depth: int) -> tuple[_Choice, int]:
    """Return a choice, and the place after it."""
    if depth > MOST_NESTED:
        raise _NoMessageError
    branches, place = list[tuple[str, _Parts]](), head.end()
    while branch := _BRANCH.match(text, place):
        parts, place = _read(text, branch.end(), depth)
        if text[place : place + 1] != "}":
            raise _NoMessageError
        place += 1
        branches.append((branch[0], parts))
    end = _END.match(text, place)
    if end is None or not branches:
        raise _NoMessageError
    return _Choice(head[0], branches, end[0], head[2] != "select"), end.end()


def _spread(parts: _Parts, message: Message, *, is_plural: bool) -> None:
    """Add the sentences of parts to a message, with the text around each choice in its branches."""
    choices = [(index, part) for index, part in enumerate(parts) if isinstance(part, _Choice)]
    if len(choices) > MOST_NESTED or len(message.sentences) == MOST_SENTENCES:
        raise _NoMessageError
    if not choices:
        message.sentences.append(Sentence.of("".join(map(str, parts)), is_plural=is_plural))
        message.syntax.append("")
        return
    place, choice = choices[0]
    before, after = parts[:place], parts[place + 1 :]
    if choice.is_plural and "#" in before + after:
        raise _NoMessageError
    message.syntax[-1] += choice.head
    for opening, branch in choice.branches:
        message.syntax[-1] += opening
        _spread([*before, *branch, *after], message, is_plural=is_plural or choice.is_plural)
        message.syntax[-1] += "}"
    message.syntax[-1] += choice.tail
