"""Reader of TMX files, Translation Memory eXchange (https://www.gala-global.org/tmx-14b)."""

from nmt.data.sources.memories.units import Unit, language_key
from nmt.data.sources.memories.xml_reader import XmlReader

_ANY = "*all*"
"""Source language of a memory in which any language may be the source."""


class TmxReader(XmlReader):
    """Reader of TMX: every segment of a unit, with its language.

    The text of inline codes is formatting and is left out, with the text of ``sub`` in them. The text in ``hi`` is
    part of the sentence.
    """

    FORMAT = "TMX"
    CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})
    PLACEHOLDERS = frozenset({"it", "ph", "ut"})

    def __init__(self, name: str) -> None:
        """Create a parser; ``name`` is the name of the file in messages."""
        super().__init__(name)
        self._unit: Unit | None = None
        self._language = ""

    def start(self, element: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""
        if element == "header":
            declared = attributes.get("srclang") or ""
            self.source_language = "" if declared.lower() == _ANY else language_key(declared)
        elif element == "tu":
            self._unit = Unit([])
            self.open_unit()
        elif element == "tuv":
            codes = [attributes[name] for name in ("xml:lang", "lang") if name in attributes]
            self._language = language_key(codes[0]) if codes else ""
        elif element == "seg":
            self.open_segment()

    def end(self, element: str) -> None:
        """Handle the end of an element."""
        if element == "tu" and self._unit is not None:
            self.units.append(self._unit)
            self._unit = None
        elif element == "seg":
            text = self.close_segment()
            if text is not None and self._unit is not None:
                self.count(len(self._language) + 1)  # even empty segments take memory
                self._unit.segments.append((self._language, text))
