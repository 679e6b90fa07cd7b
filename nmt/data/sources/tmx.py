"""Reader of TMX files (XML): yields translation units, and bounds everything that expat keeps in memory."""

import pyexpat
from collections.abc import Iterator

from nmt.data.sources.text_file import TextFile, open_bytes
from nmt.errors import DataError

_WHITE_SPACE_OF_XML = " \t\r\n"


class TmxReader:
    """Reader that collects the segments of each translation unit from the events of expat.

    It skips the text in inline codes (bpt, ept, it, ph, ut), which is formatting, and keeps the text in hi. It refuses
    declarations, since a few declared entities or attribute defaults can expand to any amount of text.
    """

    MAX_DEPTH = 100  # nested elements; a TMX file has about six
    MAX_UNIT = 2**20  # characters of a unit, and bytes of a tag, which expat buffers until it ends
    MAX_NAMES = 10_000  # distinct names of elements and attributes, which expat keeps; a TMX file has about fifty
    CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})

    def __init__(self, file: TextFile) -> None:
        """Create a parser for a file; ``read`` opens the file."""
        self.file = file
        self.parser = pyexpat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.SkippedEntityHandler = self._refuse_declaration
        self.units: list[dict[str, str]] = []
        self.unit: dict[str, str] | None = None
        self.language = ""
        self.segment: list[str] | None = None
        self.characters = 0  # in the current unit
        self.codes = 0  # open inline codes
        self.depth = 0

    def _start(self, element: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > self.MAX_DEPTH:
            raise self._refusal(
                f" nests more than {self.MAX_DEPTH} elements. A TMX file nests about six. Export it again."
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
        if self.segment is not None and not self.codes:
            self.segment.append(text)
            self._count(len(text))

    def _count(self, characters: int) -> None:
        self.characters += characters
        if self.characters > self.MAX_UNIT:
            raise self._refusal(
                f": the unit is longer than {self.MAX_UNIT:,} characters, the limit of a TMX unit. Remove it."
            )

    def _doctype(self, name: str, system: str | None, public: str | None, declares: int) -> None:
        if declares:
            self._refuse_declaration(f"DOCTYPE {name}")

    def _refuse_declaration(self, name: str, *_: object) -> None:
        raise self._refusal(
            f" has {name[:60]!r}. A TMX file must not declare entities or attributes: they could grow without bound or "
            "read other files. Remove the declaration, and write the text itself."
        )

    def _refusal(self, problem: str) -> DataError:
        return DataError(f"{self.file}, line {self.parser.CurrentLineNumber}{problem}")

    def read(self) -> Iterator[dict[str, str]]:
        """Yield the segments of each unit by language, in lower case.

        Raises:
            DataError: if the file is not well-formed, declares entities, or exceeds a bound.
        """
        received = 0
        with open_bytes(self.file) as stream:
            while True:
                content = stream.read(2**16)
                received += len(content)
                try:
                    self.parser.Parse(content, not content)
                except pyexpat.ExpatError as error:
                    raise DataError(
                        f"{self.file}, line {error.lineno} is not well-formed XML: "
                        f"{pyexpat.errors.messages[error.code]}. Export it again."
                    ) from None
                except (LookupError, ValueError) as error:  # from Python, for encodings that expat does not know
                    raise DataError(
                        f"{self.file} has an encoding that nmt does not read: {error}. A TMX file is in UTF-8, UTF-16 "
                        "or a single-byte encoding. Export it again."
                    ) from None
                if len(self.parser.intern) > self.MAX_NAMES:
                    raise self._refusal(
                        f": the file has more than {self.MAX_NAMES:,} distinct tags and attributes. A TMX file has "
                        "about fifty. Export it again."
                    )
                if received - self.parser.CurrentByteIndex > self.MAX_UNIT + len(content):
                    raise self._refusal(
                        f" begins a tag or comment longer than {self.MAX_UNIT:,} bytes, the limit of a TMX file. "
                        "Remove it."
                    )
                yield from self.units
                self.units.clear()
                if not content:
                    return
