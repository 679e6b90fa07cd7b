"""TODO."""

import pyexpat
from collections.abc import Iterator

from nmt.data.sources.text_file import TextFile, open_bytes
from nmt.errors import DataError

_WHITE_SPACE_OF_XML = " \t\r\n"


class TmxReader:
    """Collects the segments of translation units as expat meets them, within bounds on all that expat keeps.

    Text of inline codes (bpt, ept, it, ph, ut) is formatting and left out; that of hi is kept. Declarations are
    refused: a few of them, of entities or of attributes' defaults, make any amount of text.
    """

    MAX_DEPTH = 100  # elements inside each other; a TMX has about six
    MAX_UNIT = 2**20  # characters, and bytes of a tag, which expat keeps until it ends
    MAX_NAMES = 10_000  # different ones of elements and attributes, which it keeps to the end; a TMX has about fifty
    CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})

    def __init__(self, file: TextFile) -> None:
        """Take the file to read."""
        self.file = file
        self.parser = pyexpat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.SkippedEntityHandler = self._refuse
        self.units: list[dict[str, str]] = []
        self.unit: dict[str, str] | None = None
        self.language = ""
        self.segment: list[str] | None = None
        self.characters = 0  # of the unit
        self.codes = 0
        self.depth = 0

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > self.MAX_DEPTH:
            raise DataError(
                f"Elements of a TMX stand at most {self.MAX_DEPTH} deep inside each other; {self._place()} goes "
                "deeper. Export it again."
            )
        if element == "tu":
            self.unit, self.characters = {}, 0
        elif element == "tuv":
            self.language = next((attributes[key] for key in ("xml:lang", "lang") if key in attributes), "").lower()
        elif element == "seg":
            self.segment = []
        elif element in self.CODES:
            self.codes += 1

    def _end(self, element: str) -> None:
        self.depth -= 1
        if element == "tu" and self.unit is not None:
            self.units.append(self.unit)
            self.unit = None
        elif element == "seg" and self.segment is not None:
            if self.unit is not None:
                self._count(len(self.language))
                self.unit.setdefault(self.language, "".join(self.segment).strip(_WHITE_SPACE_OF_XML))
            self.segment = None
        elif element in self.CODES:
            self.codes -= 1

    def _text(self, text: str) -> None:
        if self.segment is None or self.codes:
            return
        self.segment.append(text)
        self._count(len(text))

    def _count(self, characters: int) -> None:
        self.characters += characters
        if self.characters > self.MAX_UNIT:
            raise DataError(
                f"A unit of a TMX has at most {self.MAX_UNIT:,} characters; {self._place()} goes on. Remove the unit."
            )

    def _doctype(self, name: str, system: str | None, public: str | None, declares: int) -> None:
        if declares:
            self._refuse(f"DOCTYPE {name}")

    def _refuse(self, name: str, *_: object) -> None:
        raise DataError(
            "A TMX declares no entities or attributes of its own, which could grow without bound or read other files; "
            f"{self._place()} has {name[:60]!r}. Remove the declaration, and write the text instead."
        )

    def _place(self) -> str:
        return f"{self.file}, line {self.parser.CurrentLineNumber}"

    def read(self) -> Iterator[dict[str, str]]:
        """Yield the units, each as its segments by language in lower case."""
        given = 0
        with open_bytes(self.file) as stream:
            while True:
                content = stream.read(2**16)
                given += len(content)
                try:
                    self.parser.Parse(content, not content)
                except pyexpat.ExpatError as error:
                    raise DataError(
                        f"A TMX is well-formed XML; {self.file}, line {error.lineno} is not: "
                        f"{pyexpat.errors.messages[error.code]}. Export it again."
                    ) from None
                except (LookupError, ValueError) as error:  # what Python says of an encoding that expat asks it for
                    raise DataError(
                        f"A TMX is in UTF-8, UTF-16 or an encoding of a byte a character; {self.file} is not: {error}. "
                        "Export it again."
                    ) from None
                if len(self.parser.intern) > self.MAX_NAMES:
                    raise DataError(
                        f"A TMX has some fifty different tags and attributes; {self._place()} has seen more than "
                        f"{self.MAX_NAMES:,}. Export it again."
                    )
                if given - self.parser.CurrentByteIndex > self.MAX_UNIT + len(content):
                    raise DataError(
                        f"A tag or comment of a TMX has at most {self.MAX_UNIT:,} bytes; {self._place()} begins one "
                        "that goes on. Remove it."
                    )
                yield from self.units
                self.units.clear()
                if not content:
                    return
