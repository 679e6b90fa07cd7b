r"""Java properties (.properties): values are translated; keys, comments and all other bytes stay.

Source: ``java.util.Properties``. A value may continue on the next line, and has escapes such as \n and \u00e9.
"""

import re

from nmt.documents.catalogues.messages import Edit, Message, MessageFile, edited

_BREAK = r"(?:\r\n|\r|\n)"
_PROPERTY = re.compile(
    rf"(?<![^\r\n])[ \t\f]*+(?:[#!][^\r\n]*+|(?P<key>(?:[^\\ \t\f\r\n:=]|\\{_BREAK}|\\[^\r\n])++)"
    rf"(?:\\{_BREAK}|[ \t\f])*+[:=]?(?:\\{_BREAK}|[ \t\f])*+(?P<value>(?:[^\\\r\n]|\\{_BREAK}|\\[^\r\n])*+))"
)
"""A line that is no comment, with the lines that continue it."""
_ESCAPE = re.compile(rf"\\(?:{_BREAK}[ \t\f]*+|u([0-9a-fA-F]{{4}})|(.))")
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_ESCAPES = str.maketrans({character: f"\\{sign}" for sign, character in _CONTROLS.items()} | {"\\": "\\\\"})
_ARGUMENT = re.compile(r"\{\d")
"""Beginning of a placeholder of ``java.text.MessageFormat``, in whose patterns an apostrophe is doubled."""


class Properties(MessageFile):
    r"""A file of Java properties, in UTF-8 or, if it is not, in ISO-8859-1.

    A file in ASCII stays in ASCII, with other characters as \uXXXX, since Java reads such a file in both encodings.
    """

    SUFFIXES = (".properties",)

    def __init__(self, content: bytes, name: str) -> None:
        """Find the values."""
        super().__init__(content, name)
        try:
            self._text, self._encoding = content.decode(), "utf-8"
        except UnicodeDecodeError:
            self._text, self._encoding = content.decode("latin-1"), "latin-1"
        self._last_character = {"utf-8": "\U0010ffff", "latin-1": "\xff"}[self._encoding]
        if self._text.isascii():
            self._last_character = "\x7f"
        self._messages, self._patterns = list[Message](), set[Message]()
        for line in _PROPERTY.finditer(self._text):
            text = _unescape(line["value"] or "")
            is_pattern = bool(_ARGUMENT.search(text)) and "'" not in text.replace("''", "")
            message = Message(text.replace("''", "'") if is_pattern else text)
            message.place = line.span("value")
            if text:
                self._messages.append(message)
            if is_pattern:
                self._patterns.add(message)
        self.texts = [message.text for message in self._messages]

    def render(self, texts: list[str], source: str = "source", target: str = "target") -> bytes:
        """Return the file with translations of ``texts``. A value whose placeholders change stays as it is."""
        changed = self._changed(self._messages, texts)
        edits = [Edit(*message.place, self._escape(message, text)) for message, text in changed]
        return edited(self._text, edits).encode(self._encoding)

    def _escape(self, message: Message, text: str) -> str:
        """Return the new text of a message as a value."""
        spelled = text.replace("'", "''") if message in self._patterns else text
        escaped = spelled.translate(_ESCAPES)
        if escaped.startswith(" "):
            escaped = f"\\{escaped}"
        return "".join(
            character if character <= self._last_character else _in_ascii(character) for character in escaped
        )


def _in_ascii(character: str) -> str:
    r"""Return a character as \uXXXX, or as two of them."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _unescape(escaped: str) -> str:
    """Return a value without its escapes; empty if it has half a character, so that it stays."""

    def replace(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return _CONTROLS.get(match[2], match[2]) if match[2] else ""

    try:
        return _ESCAPE.sub(replace, escaped).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return ""
