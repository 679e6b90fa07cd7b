"""Reader of gettext catalogues (.po): the translated entries, read line by line.

The package polib, in contrast, keeps a whole catalogue in memory, and takes quadratic time for a text of many lines.
"""

import codecs
import gettext
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import webencodings

from nmt.data.sources.memories.units import SOURCE_TEXT, UNNAMED, Unit, language_key, without_pair
from nmt.data.sources.text_file import MAX_LINE
from nmt.errors import DataError

MAX_ENTRY = 2**20
"""Most characters of an entry."""
_PART = re.compile(r'"((?:[^"\\]++|\\.)*+)"|([a-z_]++)(?:\s*+\[\s*+(\d{1,4})\s*+\])?')
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))")
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_SOME = 5
"""A number of things whose plural form any plural of the source text can have; 2 has a form of its own in Arabic."""


@dataclass
class _Entry:
    """An entry of a catalogue."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    """Quoted strings, still escaped, by field: "msgctxt", "msgid", "msgid_plural", "msgstr" or "msgstr[N]"."""
    characters: int = 0
    is_fuzzy: bool = False
    is_obsolete: bool = False
    line: int = 0
    """Number of the line of its msgid."""
    broken_line: tuple[int, str] | None = None
    """Number and beginning of a line that is no line of a catalogue, or not in its charset."""

    @property
    def is_complete(self) -> bool:
        """Whether a translation or a broken line was read, so that the next comment or msgid begins another entry."""
        return self.broken_line is not None or any(name.startswith("msgstr") for name in self.texts)

    def text(self, name: str) -> str:
        """Return the text of a field without escapes; "" without the field."""
        return _ESCAPE.sub(_unescape, "".join(self.texts.get(name) or ()))


def _unescape(escape: re.Match[str]) -> str:
    octal, hexadecimal, character = escape.groups()
    if character is None:
        return chr(int(octal, 8) if octal else int(hexadecimal, 16))
    return _CONTROLS.get(character) or character


class CatalogueReader:
    """Reader of a catalogue in the charset of its header, which is UTF-8 without one."""

    def __init__(self, name: str) -> None:
        """Store the name of the file in messages."""
        self.name = name
        self.source_language = SOURCE_TEXT
        self._target_language = UNNAMED
        self._codec = codecs.lookup("utf-8")
        self._singular, self._plural = 0, 1  # forms for 1 and for some things; English has the same

    def read(self, stream: io.BufferedIOBase) -> Iterator[Unit]:
        """Yield a unit for each entry but the header; two for an entry with plural forms.

        Raises:
            DataError: for a charset that nmt does not read, and for a line or entry that exceeds its bound.
        """
        entry = _Entry()
        number = 0
        while content := stream.readline(MAX_LINE + 1):
            number += 1
            if len(content) > MAX_LINE:
                raise DataError(f"{self.name}, line {number} is longer than {MAX_LINE:,} bytes. Remove it.")
            line = content.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").strip()
            is_obsolete = line.startswith(b"#~")
            if is_obsolete:
                line = line[2:].lstrip()
            if line.startswith((b"#", b"|")):
                if entry.is_complete:
                    yield from self._units(entry)
                    entry = _Entry()
                if line.startswith(b"#,"):
                    entry.is_fuzzy |= b"fuzzy" in [flag.strip() for flag in line[2:].split(b",")]
                continue
            text = self._decode(line, number, entry)
            position = 0
            while position < len(text):
                part = _PART.match(text, position)
                if part is None:
                    entry.broken_line = number, text[:60]
                    break
                if part[2] in {"msgid", "msgctxt"} and part[2] in entry.texts and not entry.is_complete:
                    entry.broken_line = number, text[:60]  # there is no translation before it
                if part[2] in {"msgid", "msgctxt"} and entry.is_complete:
                    yield from self._units(entry)
                    entry = _Entry()
                entry.is_obsolete |= is_obsolete
                self._add(entry, part, number, text)
                position = part.end()
                while text[position : position + 1].isspace():
                    position += 1
        yield from self._units(entry)

    def _decode(self, line: bytes, number: int, entry: _Entry) -> str:
        """Return a line as text. A line in another charset makes its entry unreadable."""
        try:
            return self._codec.decode(line, "strict")[0]
        except UnicodeDecodeError:
            text = self._codec.decode(line, "replace")[0]
            entry.broken_line = number, text[:60]
            return text

    def _add(self, entry: _Entry, part: re.Match[str], number: int, line: str) -> None:
        """Add a keyword or a quoted string to an entry."""
        string, keyword, form = part.groups()
        entry.characters += len(part[0])
        if entry.characters > MAX_ENTRY:
            raise DataError(
                f"{self.name}, line {number}: the entry is longer than {MAX_ENTRY:,} characters, the limit of an entry "
                "of a catalogue. Remove it."
            )
        if keyword:
            name = keyword if form is None else f"{keyword}[{int(form)}]"
            if keyword not in {"domain", "msgctxt", "msgid", "msgid_plural", "msgstr"} or name in entry.texts:
                entry.broken_line = number, line[:60]
            entry.texts[name] = []
            if keyword == "msgid":
                entry.line = number
        elif entry.texts:
            next(reversed(entry.texts.values())).append(string)
        else:
            entry.broken_line = number, line[:60]

    def _units(self, entry: _Entry) -> Iterator[Unit]:
        """Yield the units of an entry, and read the header."""
        if entry.broken_line:
            yield without_pair("broken entry", self.name, *entry.broken_line)
            return
        if not entry.is_complete and "msgid" not in entry.texts:  # comments at the end
            return
        source = entry.text("msgid")
        if entry.is_obsolete:
            yield without_pair("obsolete", self.name, entry.line, source)
            return
        if not source and "msgctxt" not in entry.texts:
            self._read_header(entry.text("msgstr"))
            return
        pairs = [(source, entry.text("msgstr"))]
        if "msgid_plural" in entry.texts:
            plural = entry.text("msgid_plural"), entry.text(f"msgstr[{self._plural}]")
            # A single form for all numbers translates the plural: the singular may say "one" in words.
            has_singular = self._singular != self._plural
            pairs = [(source, entry.text(f"msgstr[{self._singular}]")), plural] if has_singular else [plural]
        for source_text, target_text in pairs:
            if not target_text.strip():
                yield without_pair("untranslated", self.name, entry.line, source_text)
            elif entry.is_fuzzy:
                yield without_pair("fuzzy", self.name, entry.line, source_text)
            else:
                segments = [(self.source_language, source_text), (self._target_language, target_text)]
                yield Unit(segments, line=entry.line)

    def _read_header(self, header: str) -> None:
        """Take the languages, the charset and the plural forms of the header.

        Raises:
            DataError: for a charset that nmt does not read.
        """
        fields = {}
        for line in header.split("\n"):
            name, _, value = line.partition(":")
            fields[name.strip().lower()] = value.strip()
        self.source_language = language_key(fields.get("x-source-language") or "") or SOURCE_TEXT
        self._target_language = language_key(fields.get("language") or "") or UNNAMED
        charset = (fields.get("content-type") or "").rpartition("charset=")[2].strip()
        if charset and charset != "CHARSET":  # the placeholder of a new catalogue
            self._codec = self._codec_of(charset)
        rule = (fields.get("plural-forms") or "").rpartition("plural=")[2].rstrip("; ")
        try:
            form_of = gettext.c2py(rule)
            self._singular, self._plural = form_of(1), form_of(_SOME)
        except (ValueError, ArithmeticError):  # no rule, or a wrong one
            self._singular, self._plural = 0, 1

    def _codec_of(self, charset: str) -> codecs.CodecInfo:
        """Return the codec of a charset that browsers read; Python has more, some of which take quadratic time."""
        try:
            encoding = webencodings.lookup(charset)
            if encoding is not None and not encoding.name.startswith("utf-16"):
                return codecs.lookup(charset)
        except LookupError:
            pass
        raise DataError(
            f"{self.name} is in the charset {charset[:60]!r}, which nmt does not read. Convert it with "
            "msgconv -t UTF-8."
        )
