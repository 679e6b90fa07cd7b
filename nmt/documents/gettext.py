"""gettext catalogues (.po): untranslated entries are translated, everything else stays byte for byte."""

import codecs
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nmt.documents.charsets import catalogue_codec, decode_exactly
from nmt.documents.document import Document
from nmt.errors import DataError
from nmt.storage.text import decode_utf8

# Comments, strings and keywords, anywhere in a line, as gettext reads a catalogue.
_TOKEN = re.compile(r'#[^\r\n]*+|"(?:[^"\\\r\n]++|\\[^\r\n])*+"?|[a-z_]++')
_ESCAPE = re.compile(r"((?:\\[0-7]{1,3}|\\x[0-9a-fA-F]++)+)|\\(.)")
_BYTE = re.compile(r"\\(?:x([0-9a-fA-F]++)|([0-7]{1,3}))")
_CHARSET = re.compile(r"charset=([\w.:-]+)")
_CONTROLS = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", '"': '"'
}  # fmt: skip
_ESCAPES = str.maketrans({character: f"\\{sign}" for sign, character in _CONTROLS.items()})
LONGEST_FORM = 20
"""Most characters of the number of a plural form, with its brackets."""
TEMPLATE = "CHARSET"
"""Placeholder for the charset in the header of a new catalogue."""


@dataclass
class _Field:
    """Field of an entry, such as msgid."""

    keyword: str
    form: int = -1
    """Number of the plural form, such as 1 for msgstr[1]; -1 without a number."""
    strings: list[re.Match[str]] = field(default_factory=list)
    """Quoted strings of the field, as matches in the catalogue."""

    @property
    def escaped(self) -> str:
        """The joined strings without quotes, with their escapes."""
        return "".join(string[0][1:].removesuffix('"') for string in self.strings)


class Catalogue(Document):
    """A catalogue (.po file) in the charset of its header. The header, translated and obsolete entries stay."""

    SUFFIXES = (".po",)

    def __init__(self, content: bytes, name: str) -> None:
        """Find the untranslated entries.

        Raises:
            DataError: if the catalogue is not in the charset of its header.
        """
        super().__init__(content, name)
        header = _header(content.decode("latin-1"))
        charset = _CHARSET.search(header.escaped) if header else None
        self._is_template = charset is None or charset[1] == TEMPLATE
        self._codec = catalogue_codec("utf-8" if charset is None or self._is_template else charset[1], name)
        is_utf8 = self._codec.name == "utf-8"
        text = decode_utf8(content, name) if is_utf8 else decode_exactly(content, self._codec)
        if text is None:
            raise DataError(
                f"{name} is not in the charset {self._codec.name}. Correct the charset in its header, or convert "
                "the file with msgconv -t UTF-8."
            )
        self._text = text
        self._places: list[tuple[int, int]] = []
        singular = plural = ""
        fields = [*_fields(text)]
        for field_, following in itertools.zip_longest(fields, fields[1:]):
            if field_.keyword == "msgid":
                singular, plural = _unescape(field_.escaped, self._codec), ""
            elif field_.keyword == "msgid_plural":
                plural = _unescape(field_.escaped, self._codec)
            elif field_.keyword == "msgstr" and singular and field_.strings and not field_.escaped:
                # A language with a single form uses it for the plural too.
                is_only = not (following and following.keyword == "msgstr" and following.form == 1)
                is_singular = not plural or (field_.form == 0 and not is_only)
                self._places.append(field_.strings[0].span())
                self.texts.append(singular if is_singular else plural)

    def render(self, texts: list[str], source: str = "source", target: str = "target") -> bytes:
        """Return the catalogue with translations of ``texts``, in UTF-8 if its charset lacks some characters."""
        parts, previous_end = list[str](), 0
        for (start, end), text in zip(self._places, texts, strict=True):
            parts += [self._text[previous_end:start], f'"{text.translate(_ESCAPES)}"']
            previous_end = end
        catalogue = "".join([*parts, self._text[previous_end:]])
        try:
            if self._is_template and not catalogue.isascii():
                return _in_utf8(catalogue)
            return self._codec.encode(catalogue, "strict")[0]
        except UnicodeEncodeError:
            return _in_utf8(catalogue)


def _in_utf8(catalogue: str) -> bytes:
    """Return a catalogue in UTF-8, and correct the charset in its header, if it has one."""
    header = _header(catalogue)
    for string in header.strings if header else []:
        if charset := _CHARSET.search(string[0]):
            start, end = string.start() + charset.start(1), string.start() + charset.end(1)
            catalogue = f"{catalogue[:start]}UTF-8{catalogue[end:]}"
            break
    return catalogue.encode()


def _fields(text: str) -> Iterator[_Field]:
    """Yield the fields of a catalogue in order."""
    current: _Field | None = None
    for token in _TOKEN.finditer(text):
        if token[0].startswith('"'):
            if current is not None:
                current.strings.append(token)
        elif not token[0].startswith("#"):
            if current is not None:
                yield current
            rest = text[token.end() : token.end() + LONGEST_FORM].lstrip()
            form = rest[1:].partition("]")[0].strip() if rest.startswith("[") else ""
            current = _Field(token[0], int(form) if form.isdecimal() else -1)
    if current is not None:
        yield current


def _header(text: str) -> _Field | None:
    """Return the header: the translation of the empty msgid, which describes the catalogue."""
    msgid: _Field | None = None
    for field_ in _fields(text):
        if field_.keyword == "msgid":
            msgid = field_
        elif field_.keyword == "msgstr" and msgid is not None and msgid.strings and not msgid.escaped:
            return field_
    return None


def _unescape(escaped: str, codec: codecs.CodecInfo) -> str:
    """Return a text without its escapes; empty if they are no text in the charset, so that the entry stays."""

    def replace(match: re.Match[str]) -> str:
        if match[1] is None:
            return _CONTROLS.get(match[2], match[0])
        digits = _BYTE.findall(match[1])
        numbers = [int(octal, 8) if octal else int(hexadecimal, 16) for hexadecimal, octal in digits]
        return codec.decode(bytes(number & 0xFF for number in numbers), "strict")[0]

    try:
        return _ESCAPE.sub(replace, escaped)
    except UnicodeDecodeError:
        return ""
