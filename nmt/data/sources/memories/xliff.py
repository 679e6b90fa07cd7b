"""Reader of XLIFF 1.2 and 2.x, files of translators (https://docs.oasis-open.org/xliff)."""

from nmt.data.sources.memories.units import Unit, language_key, without_pair
from nmt.data.sources.memories.xml_reader import XmlReader

# Elements that are no part of the translation: notes, proposals with sources and targets of their own, original code.
_SKIPPED = frozenset({
    "alt-trans", "bin-unit", "changeTrack", "count-group", "context-group", "glossary", "header", "matches", "metadata",
    "note", "notes", "originalData", "prop-group", "seg-source", "skeleton",
})  # fmt: skip
_UNTRANSLATED = frozenset({"initial", "needs-translation", "new"})


class XliffReader(XmlReader):
    """Reader of XLIFF: source and target of each translated unit (1.2) or segment (2.x).

    A target whose state is "initial", "new" or begins with "needs-" is not finished. A target without a state counts
    as finished, since many programs write none.
    """

    FORMAT = "XLIFF"
    CODES = frozenset({"bpt", "ept", "it", "ph"})
    PLACEHOLDERS = frozenset({"it", "ph", "x"})

    def __init__(self, name: str) -> None:
        """Create a parser; ``name`` is the name of the file in messages."""
        super().__init__(name)
        self._languages = {"source": "", "target": ""}
        self._unit: dict[str, str] | None = None  # text by element, "source" and "target"
        self._state = ""
        self._skipped = 0  # open elements within and including one of _SKIPPED

    def start(self, element: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""
        if self._skipped or element in _SKIPPED:
            self._skipped += 1
        elif element in {"xliff", "file"}:
            for side, names in (("source", ("srcLang", "source-language")), ("target", ("trgLang", "target-language"))):
                codes = [attributes[name] for name in names if name in attributes]
                if codes:
                    self._languages[side] = language_key(codes[0])
            self.source_language = self._languages["source"]
        elif element in {"trans-unit", "segment"}:
            self._unit, self._state = {}, attributes.get("state") or ""
            self.open_unit()
        elif element in {"source", "target"} and self._unit is not None:
            self._state = attributes.get("state") or self._state
            self.open_segment()
        elif element == "cp":  # a character that XML does not have
            self.add_invalid_character()

    def end(self, element: str) -> None:
        """Handle the end of an element."""
        if self._skipped:
            self._skipped -= 1
        elif element in {"source", "target"} and self._unit is not None:
            self._unit[element] = self.close_segment() or ""
        elif element in {"trans-unit", "segment"} and self._unit is not None:
            self.units.append(self._finished(self._unit))
            self._unit = None

    def _finished(self, texts: dict[str, str]) -> Unit:
        """Return the unit of a source and a target."""
        source, target = texts.get("source") or "", texts.get("target") or ""
        if not target or self._state in _UNTRANSLATED:
            return without_pair("untranslated", self.name, self.line, source)
        if self._state.startswith("needs-"):
            return without_pair("not reviewed", self.name, self.line, source)
        return Unit([(self._languages["source"], source), (self._languages["target"], target)])
