"""XLIFF 1.2 and 2.x (.xlf, .xliff): untranslated units get a target, everything else stays byte for byte.

Specifications: https://docs.oasis-open.org/xliff. The XML is split at its tags and never serialized again.
"""

import codecs
import pyexpat
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.sax.saxutils import escape

from nmt.documents.blocks import Block, Item
from nmt.documents.catalogues.messages import UNKNOWN, Edit, MessageFile, edited, same_placeholders
from nmt.documents.charsets import decode_exactly
from nmt.documents.html import plain_text
from nmt.errors import DataError
from nmt.tokenizers.marks import CLOSE, MARK, OPEN, PIECE

PAIRED = frozenset({"g", "mrk", "pc"})
"""Inline elements around text. The other elements in a text are pieces with everything that they contain."""
UNTRANSLATED = frozenset({"initial", "needs-translation", "new"})
"""States of a target that is not translated, even if it has a text."""
FINAL = frozenset({"final", "signed-off"})
_MACHINE_TRANSLATED = {"state": "needs-review-translation", "state-qualifier": "mt-suggestion"}
"""Attributes of a target of XLIFF 1.2."""
# Quotes may contain >. Possessive quantifiers keep the time linear.
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[(?P<data>.*?)(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|<!(?!--|\[)[^>]*+>?"
    r"|<(?P<end>/?)(?P<prefix>[^\s/<>:]*+:)?+(?P<name>[^\s/<>:]++)"
    r"(?P<attributes>(?:[^<>\"'/]++|\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|/(?!>))*+)(?P<empty>/?)>?|(?P<text>[^<]++)|<",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"(?<!\S)([^\s=]++)\s*+=\s*+(\"[^\"]*+\"|'[^']*+')")
_ENCODING = re.compile(rb"<\?xml[^>]{1,99}?encoding\s*=\s*[\"']([\w.:-]+)")
# Characters that XML 1.0 does not have.
_INVALID = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass
class _Element:
    """Element of the file. Positions are indices of characters."""

    name: str
    """Name without prefix."""
    prefix: str
    attributes: dict[str, str]
    start: int
    inner_start: int
    """End of the start tag."""
    is_translated: bool
    inner_end: int = 0
    """Beginning of the end tag; ``inner_start`` for an empty element."""
    end: int = 0
    children: list["_Element"] = field(default_factory=list)

    def child(self, name: str) -> "_Element | None":
        """Return the child with this name; None if there is none."""
        return next((child for child in self.children if child.name == name), None)


class _Segment(NamedTuple):
    """Part of a unit: its whole text, or a sentence that a program marked."""

    start: int
    end: int
    block: Block

    def write(self, translation: str) -> str:
        """Return the XML of a translation."""
        parts = [_INVALID.sub("", escape(item.value)) if item.kind == "text" else item.value
                 for item in self.block.read(translation)]  # fmt: skip
        return "".join(parts)

    def is_safe(self, translation: str) -> bool:
        """Return whether a translation has the tags and placeholders of its source, and its tags are nested."""
        old, new = MARK.findall(self.block.text), MARK.findall(translation)
        texts = MARK.sub("", self.block.text), MARK.sub("", translation)
        return sorted(old) == sorted(new) and _are_nested(new) and same_placeholders(*texts)


class _Unit(NamedTuple):
    """A unit (1.2) or a segment (2.x) without a translation."""

    element: _Element
    source: _Element
    """Source, or the source in sentences (1.2)."""
    target: _Element | None
    segments: list[_Segment]


class Xliff(MessageFile):
    """A file of translation units. Translated, approved and final units stay, and those that are not to translate."""

    SUFFIXES = (".xlf", ".xliff")

    def __init__(self, content: bytes, name: str) -> None:
        """Find the untranslated units.

        Raises:
            DataError: if the file is not well-formed XML, is not in the encoding that it declares, or declares
                entities.
        """
        super().__init__(content, name)
        _check(content, name)
        self._codec = _codec_of(content)
        text = decode_exactly(content, self._codec)
        if text is None:
            raise DataError(f"{name} is not in the encoding {self._codec.name}. Save it as UTF-8.")
        self._text = text
        self._elements = _elements(text)
        self._units = [unit for element in self._elements if (unit := self._unit_of(element))]
        self.texts = [segment.block.text for unit in self._units for segment in unit.segments]

    def render(self, texts: list[str], source: str = "source", target: str = "target") -> bytes:
        """Return the file with translations of ``texts``. A unit whose text does not change stays as it is."""
        edits, remaining = list[Edit](), iter(texts)
        self.unsafe = 0
        for unit in self._units:
            translations = [next(remaining) for _ in unit.segments]
            pairs = [*zip(unit.segments, translations, strict=True)]
            is_safe = all(segment.is_safe(text) for segment, text in pairs)
            is_new = any(text != segment.block.text for segment, text in pairs)
            self.unsafe += is_new and not is_safe
            if is_new and is_safe:
                edits += self._unit_edits(unit, translations)
        if edits and target != UNKNOWN:
            edits += self._language_edits(target.replace("_", "-"))
        return self._codec.encode(edited(self._text, edits), "xmlcharrefreplace")[0]

    def _unit_of(self, element: _Element) -> _Unit | None:
        """Return an element as a unit; None if it is none, or has a translation."""
        source, target = element.child("source"), element.child("target")
        if element.name not in ("segment", "trans-unit") or source is None:
            return None
        state = (target if element.name == "trans-unit" and target else element).attributes.get("state")
        has_target = target is not None and bool(self._text[target.inner_start : target.inner_end].strip())
        is_done = has_target and state not in UNTRANSLATED
        if is_done or state in FINAL or element.attributes.get("approved") == "yes":
            return None
        if not element.is_translated:
            self.left["protected unit"] += 1
            return None
        source = element.child("seg-source") or source
        sentences = [child for child in source.children if child.attributes.get("mtype") == "seg"] or [source]
        segments = [_Segment(part.inner_start, part.inner_end, Block(self._items(part))) for part in sentences]
        has_words = any(map(str.isalnum, MARK.sub("", "".join(segment.block.text for segment in segments))))
        return _Unit(element, source, target, segments) if has_words else None

    def _items(self, element: _Element) -> Iterator[Item]:
        """Yield the content of an element: text, tags, and inline elements that are carried over whole."""
        pieces, piece_start = list[str](), 0
        """Names of the open elements of a piece."""
        for token in _TOKEN.finditer(self._text, element.inner_start, element.inner_end):
            is_open = bool(token["name"]) and not token["end"] and not token["empty"]
            is_end = bool(token["end"])
            is_kept = is_open and (token["name"] not in PAIRED or _is_kept(token["attributes"]))
            if pieces or is_kept:
                piece_start = piece_start if pieces else token.start()
                if is_open:
                    pieces.append(token["name"])
                    self.left["sub-flow"] += token["name"] == "sub"
                elif is_end:
                    pieces.pop()
                if not pieces:
                    yield Item("piece", self._text[piece_start : token.end()])
            elif token["text"] is not None or token["data"] is not None:
                yield Item("text", token["data"] if token["text"] is None else plain_text(token["text"]))
            else:
                yield Item("open" if is_open else "close" if is_end else "piece", token[0])

    def _unit_edits(self, unit: _Unit, translations: list[str]) -> Iterator[Edit]:
        """Yield the changes that give a unit a target."""
        source, target = unit.source, unit.target
        segments = [Edit(segment.start - source.inner_start, segment.end - source.inner_start, segment.write(text))
                    for segment, text in zip(unit.segments, translations, strict=True)]  # fmt: skip
        content = edited(self._text[source.inner_start : source.inner_end], segments)
        is_second = unit.element.name == "segment"
        tag = f"<{source.prefix}target>" if target is None else self._text[target.start : target.inner_start]
        if tag.endswith("/>"):
            tag = f"{tag[:-2].rstrip()}>"
        if is_second:
            yield Edit(unit.element.start, unit.element.inner_start, _with_attributes(
                self._text[unit.element.start : unit.element.inner_start], {"state": "translated", "subState": ""}
            ))  # fmt: skip
        else:
            tag = _with_attributes(tag, _MACHINE_TRANSLATED)
        new = f"{tag}{content}</{target.prefix if target else source.prefix}target>"
        if target is None:
            before = self._text[unit.element.inner_start : source.start]
            space = before[len(before.rstrip()) :]
            yield Edit(source.end, source.end, (space if "\n" in space else "") + new)
        else:
            yield Edit(target.start, target.end, new)

    def _language_edits(self, language: str) -> Iterator[Edit]:
        """Yield the changes that declare the language of the targets, if the file does not."""
        for element in self._elements:
            is_second = (element.attributes.get("version") or "").startswith("2.")
            name = "trgLang" if element.name == "xliff" and is_second else "target-language"
            is_declaring = element.name == "file" and "source-language" in element.attributes
            if (name == "trgLang" or is_declaring) and name not in element.attributes:
                tag = self._text[element.start : element.inner_start]
                yield Edit(element.start, element.inner_start, _with_attributes(tag, {name: language}))


def _check(content: bytes, name: str) -> None:
    """Refuse a file that is not well-formed XML, or declares entities, which could grow without bound."""
    parser = pyexpat.ParserCreate()

    def refuse(*_: object) -> None:
        raise DataError(f"{name} declares entities. Write their texts instead.")

    parser.EntityDeclHandler = refuse
    parser.SkippedEntityHandler = refuse
    try:
        parser.Parse(content, True)
    except pyexpat.ExpatError as error:
        problem = pyexpat.errors.messages[error.code]
        raise DataError(
            f"{name}, line {error.lineno}, character {error.offset + 1} is not well-formed XML: {problem}. Correct "
            "this place in a text editor, or export the file again."
        ) from None
    except (LookupError, ValueError) as error:  # from Python, for encodings that expat does not know
        raise DataError(f"{name} has an encoding that nmt does not read: {error}. Save it as UTF-8.") from None


def _codec_of(content: bytes) -> codecs.CodecInfo:
    """Return the codec of a well-formed XML file."""
    for mark, label in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if content.startswith(mark):
            return codecs.lookup(label)
    declared = _ENCODING.match(content.removeprefix(codecs.BOM_UTF8))
    return codecs.lookup(declared[1].decode() if declared else "utf-8")


def _elements(text: str) -> list[_Element]:
    """Return the elements of well-formed XML, in order of their start tags."""
    elements, path = list[_Element](), list[_Element]()
    for token in _TOKEN.finditer(text):
        if token["name"] is None:
            continue
        if token["end"]:
            path[-1].inner_end, path[-1].end = token.span()
            path.pop()
            continue
        attributes = _attributes(token["attributes"])
        declared = attributes.get("translate")
        is_translated = declared == "yes" if declared else not path or path[-1].is_translated
        end = token.end()
        element = _Element(
            token["name"], token["prefix"] or "", attributes, token.start(), end, is_translated, end, end
        )
        elements.append(element)
        if path:
            path[-1].children.append(element)
        if not token["empty"]:
            path.append(element)
    return elements


def _attributes(text: str) -> dict[str, str]:
    """Return the attributes of a start tag."""
    return {name: plain_text(value[1:-1]) for name, value in _ATTRIBUTE.findall(text)}


def _is_kept(attributes: str) -> bool:
    """Return whether the attributes of an inline element protect its text from translation."""
    values = _attributes(attributes)
    return values.get("translate") == "no" or values.get("mtype") == "protected"


def _with_attributes(tag: str, attributes: dict[str, str]) -> str:
    """Return a start tag with other values of attributes. An empty value removes the attribute."""
    for name, value in attributes.items():
        new = f' {name}="{escape(value)}"' if value else ""
        old = next((match for match in _ATTRIBUTE.finditer(tag) if match[1] == name), None)
        if old:
            tag = tag[: old.start()].rstrip() + new + tag[old.end() :]
        else:
            end = len(tag) - (2 if tag.endswith("/>") else 1)
            tag = tag[:end].rstrip() + new + tag[end:]
    return tag


def _are_nested(marks: list[str]) -> bool:
    """Return whether every closing tag follows its opening tag, and encloses whole elements."""
    opened = list[int]()
    for code in map(ord, marks):
        if code < CLOSE:
            opened.append(code)
        elif code < PIECE and (not opened or opened.pop() != code - CLOSE + OPEN):
            return False
    return not opened
