"""Catalogues of gettext: untranslated entries are translated, all else stays as it was written."""

import itertools
import re

from nmt.storage.text import decoded

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_FIELD = re.compile(
    rf"^(msg(?:ctxt|id|id_plural|str(?:\[\d+\])?))[ \t]+({_STRING}(?:[ \t]*\r?\n[ \t]*{_STRING})*)", re.M
)
_ESCAPE = re.compile(r'\\(.)|"[ \t\r\n]*"', re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"'}
_ESCAPES = str.maketrans({character: f"\\{sign}" for sign, character in _CONTROLS.items()})


class Catalogue:
    """Catalogue in UTF-8, a .po file. The header, translated, fuzzy and obsolete entries stay."""

    def __init__(self, content: bytes, name: str) -> None:
        """Find the untranslated entries.

        Raises:
            DataError: if it is not UTF-8.
        """
        self._text = decoded(content, name)
        self._places: list[tuple[int, int]] = []
        self.texts: list[str] = []
        singular = plural = ""
        fields = list(_FIELD.finditer(self._text))
        for field, after in itertools.zip_longest(fields, fields[1:]):
            kind, value = field[1], _ESCAPE.sub(_unescaped, field[2][1:-1])
            if kind == "msgid":
                singular, plural = value, ""
            elif kind == "msgid_plural":
                plural = value
            elif kind.startswith("msgstr") and singular and not value:
                # A language with one form has that of many.
                is_only = not (after and after[1] == "msgstr[1]")
                self._places.append(field.span(2))
                self.texts.append(singular if not plural or (kind == "msgstr[0]" and not is_only) else plural)

    def render(self, texts: list[str]) -> bytes:
        """Return the catalogue with translations of ``texts``."""
        parts, last = list[str](), 0
        for (start, end), text in zip(self._places, texts, strict=True):
            parts += [self._text[last:start], f'"{text.translate(_ESCAPES)}"']
            last = end
        return "".join([*parts, self._text[last:]]).encode()


def _unescaped(match: re.Match[str]) -> str:
    """Return what a sign after a backslash stands for; nothing for the quotes between two parts of a string."""
    return _CONTROLS.get(match[1], match[0]) if match[1] else ""
