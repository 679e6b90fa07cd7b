"""Catalogues of gettext: untranslated entries are translated, all else stays as it was written."""

import codecs
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nmt.documents.charsets import catalogue_codec, decode_exactly
from nmt.errors import DataError
from nmt.storage.text import decoded

# As gettext reads a catalogue: of comments, strings and keywords, wherever they stand in a line.
_TOKEN = re.compile(r'#[^\r\n]*+|"(?:[^"\\\r\n]++|\\[^\r\n])*+"?|[a-z_]++')
_ESCAPE = re.compile(r"((?:\\[0-7]{1,3}|\\x[0-9a-fA-F]++)+)|\\(.)")
_BYTE = re.compile(r"\\(?:x([0-9a-fA-F]++)|([0-7]{1,3}))")
_CHARSET = re.compile(r"charset=([\w.:-]+)")
_CONTROLS = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", '"': '"'
}  # fmt: skip
_ESCAPES = str.maketrans({character: f"\\{sign}" for sign, character in _CONTROLS.items()})
LONGEST_FORM = 20
"""Characters of a number of a plural form, with its brackets."""
TEMPLATE = "CHARSET"
"""Charset in the header of a catalogue that nobody has worked at."""


@dataclass
class _Field:
    """Field of an entry, such as msgid."""

    keyword: str
    form: int = -1
    """Number of the plural form that it is the translation of."""
    strings: list[re.Match[str]] = field(default_factory=list)

    @property
    def written(self) -> str:
        """Its strings, joined, with escapes."""
        return "".join(string[0][1:].removesuffix('"') for string in self.strings)


class Catalogue:
    """Catalogue, a .po file, in the charset of its header. The header, translated and obsolete entries stay."""

    def __init__(self, content: bytes, name: str) -> None:
        """Find the untranslated entries.

        Raises:
            DataError: if it is not in its charset.
        """
        header = _header(content.decode("latin-1"))
        charset = _CHARSET.search(header.written) if header else None
        self._is_template = charset is None or charset[1] == TEMPLATE
        self._codec = catalogue_codec("utf-8" if charset is None or self._is_template else charset[1], name)
        is_utf8 = self._codec.name == "utf-8"
        text = decoded(content, name) if is_utf8 else decode_exactly(content, self._codec)
        if text is None:
            raise DataError(
                f"{name} is not in the charset {self._codec.name}. Write its charset into the header, or convert it "
                "with msgconv -t UTF-8."
            )
        self._text = text
        self._places: list[tuple[int, int]] = []
        self.texts: list[str] = []
        singular = plural = ""
        fields = [*_fields(text)]
        for this, after in itertools.zip_longest(fields, fields[1:]):
            if this.keyword == "msgid":
                singular, plural = _unescaped(this.written, self._codec), ""
            elif this.keyword == "msgid_plural":
                plural = _unescaped(this.written, self._codec)
            elif this.keyword == "msgstr" and singular and this.strings and not this.written:
                # A language with one form has that of many.
                is_only = not (after and after.keyword == "msgstr" and after.form == 1)
                self._places.append(this.strings[0].span())
                self.texts.append(singular if not plural or (this.form == 0 and not is_only) else plural)

    def render(self, texts: list[str]) -> bytes:
        """Return the catalogue with translations of ``texts``: in UTF-8 if its charset lacks their characters."""
        parts, last = list[str](), 0
        for (start, end), text in zip(self._places, texts, strict=True):
            parts += [self._text[last:start], f'"{text.translate(_ESCAPES)}"']
            last = end
        catalogue = "".join([*parts, self._text[last:]])
        try:
            if self._is_template and not catalogue.isascii():
                return _in_utf8(catalogue)
            return self._codec.encode(catalogue, "strict")[0]
        except UnicodeEncodeError:
            return _in_utf8(catalogue)


def _in_utf8(catalogue: str) -> bytes:
    """Return a catalogue in UTF-8, with a header that says so if it has one that says another charset."""
    header = _header(catalogue)
    for string in header.strings if header else []:
        if charset := _CHARSET.search(string[0]):
            start, end = string.start() + charset.start(1), string.start() + charset.end(1)
            catalogue = f"{catalogue[:start]}UTF-8{catalogue[end:]}"
            break
    return catalogue.encode()


def _fields(text: str) -> Iterator[_Field]:
    """Yield the fields of a catalogue in order."""
    last: _Field | None = None
    for token in _TOKEN.finditer(text):
        if token[0].startswith('"'):
            if last is not None:
                last.strings.append(token)
        elif not token[0].startswith("#"):
            if last is not None:
                yield last
            after = text[token.end() : token.end() + LONGEST_FORM].lstrip()
            form = after[1:].partition("]")[0].strip() if after.startswith("[") else ""
            last = _Field(token[0], int(form) if form.isdecimal() else -1)
    if last is not None:
        yield last


def _header(text: str) -> _Field | None:
    """Return the translation of the empty text, which holds what is known of a catalogue."""
    msgid: _Field | None = None
    for this in _fields(text):
        if this.keyword == "msgid":
            msgid = this
        elif this.keyword == "msgstr" and msgid is not None and msgid.strings and not msgid.written:
            return this
    return None


def _unescaped(written: str, codec: codecs.CodecInfo) -> str:
    """Return a text for its escapes; nothing if its bytes are none in the charset, so that its entry stays."""

    def read(match: re.Match[str]) -> str:
        if match[1] is None:
            return _CONTROLS.get(match[2], match[0])
        written = _BYTE.findall(match[1])
        numbers = [int(octal, 8) if octal else int(hexadecimal, 16) for hexadecimal, octal in written]
        return codec.decode(bytes(number & 0xFF for number in numbers), "strict")[0]

    try:
        return _ESCAPE.sub(read, written)
    except UnicodeDecodeError:
        return ""
