"""Messages in JSON (.json, .arb): strings are translated; keys, metadata and all other bytes stay.

Formats: files of i18next and vue-i18n, in which every string is a message; messages.json of browser extensions
(https://developer.chrome.com/docs/extensions/reference/api/i18n), in which "message" is one; and Application Resource
Bundles (https://github.com/google/app-resource-bundle), in which keys with @ describe messages.
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from nmt.documents.catalogues.messages import UNKNOWN, Edit, Message, MessageFile, edited
from nmt.errors import DataError
from nmt.storage.text import decode_utf8

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[{}\[\]:,]')
_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character, which no text has."""
_LOCALE = ("@@locale",)
"""Path of the language of an Application Resource Bundle."""


class _String(NamedTuple):
    """String that is a value."""

    path: tuple[str, ...]
    """Keys of at most three objects around it, from the outside; "" for an element of a list."""
    key: str
    """Its own key."""
    place: tuple[int, int]
    """Its start and end in the file."""


class JsonMessages(MessageFile):
    """A file of messages in JSON."""

    SUFFIXES = (".json", ".arb")

    def __init__(self, content: bytes, name: str) -> None:
        """Find the messages.

        Raises:
            DataError: if the file is not JSON in UTF-8.
        """
        super().__init__(content, name)
        self._text = decode_utf8(content, name)
        try:
            value = json.loads(self._text.removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{name} is not JSON: {error}. Correct it in a text editor.") from None
        # Some programs write all characters but those of ASCII as \uXXXX.
        self._is_ascii = self._text.isascii() and "\\u" in self._text
        is_extension = isinstance(value, dict) and bool(value) and all(
            isinstance(entry, dict) and isinstance(entry.get("message"), str) for entry in value.values()
        )  # fmt: skip
        self._locales = list[tuple[int, int]]()
        self._messages = list[Message]()
        for string in _strings(self._text):
            source = json.loads(self._text[slice(*string.place)])
            is_message = not is_extension or (len(string.path) == 2 and string.key == "message")
            is_metadata = bool(string.path) and string.path[0].startswith("@")
            if string.path == _LOCALE:
                self._locales.append(string.place)
            elif is_message and not is_metadata and not _SURROGATE.search(source):
                self._messages.append(Message(source))
                self._messages[-1].place = string.place
            elif string.key == "description":
                self.left["description"] += 1
        self.texts = [message.text for message in self._messages]

    def render(self, texts: list[str], source: str = "source", target: str = "target") -> bytes:
        """Return the file with translations of ``texts``. A message whose placeholders change stays as it is."""
        edits = [self._edit(message.place, text) for message, text in self._changed(self._messages, texts)]
        if edits and target != UNKNOWN:
            edits += [self._edit(place, target.replace("-", "_")) for place in self._locales]
        return edited(self._text, edits).encode()

    def _edit(self, place: tuple[int, int], text: str) -> Edit:
        """Return the change of a string to a text."""
        return Edit(*place, json.dumps(text, ensure_ascii=self._is_ascii))


def _strings(text: str) -> Iterator[_String]:
    """Yield the strings of valid JSON that are values."""
    keys, is_object = list[str](), list[bool]()
    """Of each open object or list: its current key, "" in a list, and whether it is an object."""
    is_key = False
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in "{[":
            keys.append("")
            is_object.append(sign == "{")
            is_key = sign == "{"
        elif sign in "}]":
            keys.pop()
            is_object.pop()
        elif sign in ":,":
            is_key = sign == "," and is_object[-1]
        elif is_key:
            keys[-1] = json.loads(sign)
        else:
            yield _String(tuple(keys[:3]), keys[-1] if keys else "", token.span())
