"""Bounded reader of XML files with translation units (TMX, XLIFF): bounds everything that expat keeps in memory."""

import io
import pyexpat
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator

from nmt.data.sources.memories.units import Unit
from nmt.errors import DataError
from nmt.tokenizers.scripts import continues_word

_WHITE_SPACE_OF_XML = " \t\r\n"
# Characters that XML does not have, in any encoding that contains ASCII; longer numbers are no characters either.
_CONTROL_OR_NUMBER = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|&#(?:x([0-9a-fA-F]{1,8})|([0-9]{1,8}));")
_LONGEST_NUMBER = 12  # bytes of the longest match
SUBSTITUTE = "\x1a"
"""Takes the place of a character that XML does not have, so that the rule about control characters drops the pair."""


class XmlReader(ABC):
    """Base class of readers that collect the segments of each translation unit from the events of expat.

    It refuses declarations, since a few declared entities or attribute defaults can expand to any amount of text.
    """

    MAX_DEPTH = 100  # nested elements; a memory has about six
    MAX_UNIT = 2**20  # characters of a unit, and bytes of a tag, which expat buffers until it ends
    MAX_NAMES = 10_000  # distinct names of elements and attributes, which expat keeps; a memory has about fifty
    FORMAT = ""
    """Name of the format in messages."""
    CODES: frozenset[str] = frozenset()
    """Elements whose text is formatting, not part of the sentence."""
    PLACEHOLDERS: frozenset[str] = frozenset()
    """Elements that stand for something in the sentence, such as a line break. Between letters they are a space."""

    def __init__(self, name: str) -> None:
        """Create a parser; ``name`` is the name of the file in messages."""
        self.name = name
        self.source_language = ""
        """Source language that the file declares, in lower case; "" if none, or if any language may be the source."""
        self.units: list[Unit] = []
        self._parser = pyexpat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self.add_text
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.SkippedEntityHandler = self._refuse_declaration
        self._segment: list[str] | None = None
        self._after_placeholder = False
        self._characters = 0  # in the current unit
        self._codes = 0  # open elements of CODES
        self._depth = 0

    # --- for derived classes

    @property
    def line(self) -> int:
        """Number of the current line, from 1."""
        return self._parser.CurrentLineNumber

    @abstractmethod
    def start(self, element: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element, whose name has no prefix of a namespace."""

    @abstractmethod
    def end(self, element: str) -> None:
        """Handle the end of an element."""

    def open_unit(self) -> None:
        """Count the characters of a new unit."""
        self._characters = 0

    def open_segment(self) -> None:
        """Collect the text that follows."""
        self._segment, self._after_placeholder = [], False

    def close_segment(self) -> str | None:
        """Return the collected text, without white space at its ends; None if no segment is open."""
        segment, self._segment = self._segment, None
        return None if segment is None else "".join(segment).strip(_WHITE_SPACE_OF_XML)

    def add_text(self, text: str) -> None:
        """Add text to the open segment, if there is one."""
        if self._segment is None or self._codes or not text:
            return
        if self._after_placeholder and self._segment and continues_word(self._segment[-1], text):
            self._segment.append(" ")
        self._after_placeholder = False
        self._segment.append(text)
        self.count(len(text))

    def add_invalid_character(self) -> None:
        """Put ``SUBSTITUTE`` into the open segment, if there is one."""
        self.add_text(SUBSTITUTE)

    def count(self, characters: int) -> None:
        """Count characters that are kept for the current unit."""
        self._characters += characters
        if self._characters > self.MAX_UNIT:
            raise self._refusal(
                f": the unit is longer than {self.MAX_UNIT:,} characters, the limit of a unit. Remove it."
            )

    # --- events of expat

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > self.MAX_DEPTH:
            raise self._refusal(
                f" nests more than {self.MAX_DEPTH} elements. {self.FORMAT} files nest about six. Export it again."
            )
        if ":" in element:
            element = element.rpartition(":")[2]
        if element in self.PLACEHOLDERS and not self._codes:
            self._after_placeholder = True
        if element in self.CODES:
            self._codes += 1
        self.start(element, attributes)

    def _end(self, element: str) -> None:
        self._depth -= 1
        if ":" in element:
            element = element.rpartition(":")[2]
        if element in self.CODES:
            self._codes -= 1
        self.end(element)

    def _doctype(self, name: str, system: str | None, public: str | None, declares: int) -> None:
        if declares:
            self._refuse_declaration(f"DOCTYPE {name}")

    def _refuse_declaration(self, name: str, *_: object) -> None:
        raise self._refusal(
            f" has {name[:60]!r}. {self.FORMAT} files must not declare entities or attributes: they could grow "
            "without bound or read other files. Remove the declaration, and write the text itself."
        )

    def _refusal(self, problem: str) -> DataError:
        return DataError(f"{self.name}, line {self.line}{problem}")

    # --- reading

    def read(self, stream: io.BufferedIOBase) -> Iterator[Unit]:
        """Yield the units of a file.

        A character that XML does not have, such as &#x1F;, becomes ``SUBSTITUTE`` in its segment.

        Raises:
            DataError: if the file is not well-formed, declares entities, or exceeds a bound.
        """
        received = 0
        rest = b""  # of a number that may go on
        is_first, contains_ascii = True, True
        while True:
            content = stream.read(2**16)
            is_last = not content
            if is_first:
                contains_ascii, is_first = b"\0" not in content[:4] and content[:1] not in b"\xfe\xff", False
            content = rest + content
            rest = b""
            if contains_ascii and not is_last:
                end = content.rfind(b"&", max(0, len(content) - _LONGEST_NUMBER))
                if end >= 0:
                    content, rest = content[:end], content[end:]
            received += len(content)
            self._parse(content, is_last, contains_ascii)
            if len(self._parser.intern) > self.MAX_NAMES:
                raise self._refusal(
                    f": the file has more than {self.MAX_NAMES:,} distinct tags and attributes. "
                    f"{self.FORMAT} files have about fifty. Export it again."
                )
            if received - self._parser.CurrentByteIndex > self.MAX_UNIT + 2**17:
                raise self._refusal(
                    f" begins a tag or comment longer than {self.MAX_UNIT:,} bytes, the limit in "
                    f"{self.FORMAT} files. Remove it."
                )
            yield from self.units
            self.units.clear()
            if is_last:
                return

    def _parse(self, content: bytes, is_last: bool, contains_ascii: bool) -> None:
        """Give content to expat, but not the characters that XML does not have."""
        start = 0
        for match in _CONTROL_OR_NUMBER.finditer(content) if contains_ascii else ():
            if match[0].startswith(b"&") and _is_character(int(match[1], 16) if match[1] else int(match[2])):
                continue
            self._feed(content[start : match.start()], False)
            self.add_invalid_character()
            start = match.end()
        self._feed(content[start:], is_last)

    def _feed(self, content: bytes, is_last: bool) -> None:
        try:
            self._parser.Parse(content, is_last)
        except pyexpat.ExpatError as error:
            raise DataError(
                f"{self.name}, line {error.lineno}, character {error.offset + 1} is not well-formed XML: "
                f"{pyexpat.errors.messages[error.code]}. Correct this place in a text editor, or export the file again."
            ) from None
        except (LookupError, ValueError) as error:  # from Python, for encodings that expat does not know
            raise DataError(
                f"{self.name} has an encoding that nmt does not read: {error}. {self.FORMAT} files are in UTF-8, "
                "UTF-16 or a single-byte encoding. Export it again."
            ) from None


def _is_character(code: int) -> bool:
    """Return whether XML has the character of this code point (XML 1.0, production 2)."""
    if code < 0x20:
        return code in (0x9, 0xA, 0xD)
    return code < 0xD800 or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF
