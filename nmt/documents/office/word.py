"""Word documents (.docx): links, and runs with a format of their own, are inline markup."""

import copy
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from nmt.documents.office.package import OfficeDocument, Package
from nmt.documents.office.paragraphs import Part, Signs, Story, has_letters

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_P, _R, _T, _SIGN, _SIMPLE_FIELD, _BOX = (
    f"{W}{name}" for name in ("p", "r", "t", "fldChar", "fldSimple", "txbxContent")
)
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_SHAPE = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}docPr"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/"
_TYPES = "{http://schemas.openxmlformats.org/package/2006/content-types}"
_MAIN = ("wordprocessingml.document.main+xml", "wordprocessingml.template.main+xml")
_OTHERS = tuple(
    f"wordprocessingml.{name}+xml" for name in ("header", "footer", "footnotes", "endnotes", "comments")
)  # fmt: skip
"""Ends of the content types of the parts that are translated."""
_INVISIBLE = {f"{W}lang", f"{W}noProof"}
_CONTAINERS = {f"{W}{name}" for name in ("hyperlink", "smartTag", "customXml", "ins", "moveTo", "sdt", "dir", "bdo")}
"""Elements around runs whose text is translated. The text of deletions stays."""
_BREAKS = {f"{W}{name}" for name in ("br", "cr", "tab", "ptab")}
_CHARACTERS = {f"{W}noBreakHyphen": "\u2011", f"{W}softHyphen": "\u00ad"}
_TEXT_FIELDS = {"HYPERLINK", "TOC", "INDEX", "INCLUDETEXT", "QUOTE", "FORMTEXT"}
"""Fields whose results are text. Other results, such as page numbers and dates, stay."""
_MOST_NESTED, _MOST_CODE = 50, 1_000
"""Most fields within each other, and most characters of a code that are read."""
_LEFT = {
    f"{_DRAWING}chart}}chart": "chart",
    f"{_DRAWING}diagram}}relIds": "diagram",
    f"{W}object": "embedded object",
    "{http://schemas.openxmlformats.org/officeDocument/2006/math}oMath": "equation",
    f"{W}ruby": "ruby text",
    f"{W}dropDownList": "choice list",
    f"{W}comboBox": "choice list",
}
"""Names of the elements that stay untranslated."""


class WordDocument(OfficeDocument):
    """A Word document (.docx file): its body, headers, footers, notes and comments, with tables and text boxes."""

    SUFFIXES = (".docx",)
    KIND = "a Word document"

    def stories(self, package: Package) -> dict[str, Story]:
        """Return the translated parts by name, the main part first.

        Raises:
            ValueError: if there is no main part.
        """
        overrides = package.read("[Content_Types].xml").iter(f"{_TYPES}Override")
        types = {override.get("PartName", "")[1:]: override.get("ContentType", "") for override in overrides}
        main = [name for name, type_ in types.items() if type_.endswith(_MAIN)]
        if not main:
            raise ValueError("it has no main part")
        others = [name for name, type_ in types.items() if type_.endswith(_OTHERS) and name in package.names]
        return {name: _WordStory(package.read(name)) for name in main + others}


class _Field(NamedTuple):
    """A complete field: a code such as PAGE, and its result."""

    begin: Any
    separate: Any
    """None if the field has no result."""
    end: Any
    is_text: bool
    """Whether the result is translated."""
    has_letters: bool
    """Whether the result has letters."""

    def kept_change(self, sign: Any) -> int:
        """Return by how much a sign of the field changes the number of fields whose text stays."""
        if sign is self.begin:
            return 1
        is_last_kept = sign is self.end
        if self.is_text and self.separate is not None:
            is_last_kept = sign is self.separate
        return -1 if is_last_kept else 0


class _WordStory(Story):
    """The paragraphs of a part."""

    PROPERTIES = frozenset(f"{W}{name}" for name in ("pPr", "smartTagPr", "customXmlPr"))

    def __init__(self, root: Any) -> None:
        if not str(root.tag).startswith(W):
            raise ValueError(f"its XML begins with {root.tag}; a Strict Open XML document is not read")
        fields = [*_fields(root)]
        self._signs: dict[Any, _Field] = {}
        """Fields by the elements at which they begin, change from code to result, and end."""
        for field in fields:
            self._signs |= {field.begin: field, field.end: field}
            if field.separate is not None:
                self._signs[field.separate] = field
        self._keeps_spaces = root.get(_SPACE) == "preserve"
        self._kept = 0
        """Number of open fields whose text stays at this place."""
        self._copies = [*_copies(root)]
        copied = {element for _, box in self._copies for element in box.iter(_P)}
        super().__init__(element for element in root.iter(_P) if element not in copied)
        self.left += Counter(_LEFT[element.tag] for element in root.iter(*_LEFT))
        self.left["alternative text"] += sum(bool(shape.get("descr")) for shape in root.iter(_SHAPE))
        self.left["field"] += sum(field.has_letters and not field.is_text for field in fields)

    def write(self, texts: Sequence[str]) -> bool:
        """Replace the texts, also in the copies of text boxes for older programs."""
        is_changed = super().write(texts)
        if is_changed:
            for box, copied in self._copies:
                copied[:] = [copy.deepcopy(child) for child in box]
        return is_changed

    def parts(self, element: Any) -> list[Part]:
        """Return the parts of a paragraph or link."""
        parts = list[Part]()
        for child in element:
            if child.tag == _R:
                parts += self._run_parts(child)
            elif child.tag in _CONTAINERS or (child.tag == _SIMPLE_FIELD and _is_text(child.get(f"{W}instr", ""))):
                parts.append(self.group(child))
            elif child.tag not in self.PROPERTIES and child.tag != f"{W}proofErr":
                parts.append(Part("piece", child))
                for sign in child.iter(_SIGN):
                    self._pass(sign)
                if child.tag == _SIMPLE_FIELD and has_letters("".join(child.itertext())):
                    self.left["field"] += 1
        return self._group_results(parts)

    def _run_parts(self, run: Any) -> Iterator[Part]:
        """Yield the parts of a run. Comments, instructions and entities within a text are pieces."""
        for element in run:
            self._pass(element)
            if element.tag == _T and not self._kept:
                text = element.text or ""
                if not self._keeps_spaces and element.get(_SPACE) != "preserve" and not len(element):
                    text = text.strip()  # as Word does
                yield Part("text", text, run)
                for inner in element:
                    piece = element.makeelement(_T)
                    piece.append(copy.copy(inner))
                    piece[0].tail = None
                    yield Part("piece", piece, run)
                    yield Part("text", inner.tail or "", run)
            elif element.tag in _CHARACTERS and not self._kept:
                yield Part("text", _CHARACTERS[element.tag], run)
            elif element.tag in _BREAKS and not self._kept:
                yield Part("break", element, run)
            elif element.tag not in (f"{W}rPr", f"{W}lastRenderedPageBreak"):
                yield Part("piece", element, run)

    def _pass(self, sign: Any) -> None:
        """Count the fields whose text stays after an element."""
        field = self._signs.get(sign)
        if field:
            self._kept += field.kept_change(sign)

    def _group_results(self, parts: list[Part]) -> list[Part]:
        """Return parts with the results of their fields, such as links, as groups."""
        grouped, begins = list[Part](), list[int]()
        for part in parts:
            grouped.append(part)
            field = self._signs.get(part.value) if part.kind == "piece" else None
            if field is None or not field.is_text:
                continue
            if part.value is field.begin:
                begins.append(len(grouped) - 1)
            elif part.value is field.end and begins and grouped[begins[-1]].value is field.begin:
                begin = begins.pop()
                values = [inner.value for inner in grouped[begin:]]
                result = begin + values.index(field.separate) + 1 if field.separate in values else len(grouped)
                inner_parts = grouped[result:-1]
                kinds = {inner.kind for inner in inner_parts}
                if kinds & {"text", "group"} and "break" not in kinds:
                    grouped[begin:] = [Part("group", Signs(grouped[begin:result], [part]), parts=inner_parts)]
        return grouped

    def content_of(self, element: Any) -> Any:
        """Return the element that has the content of a link or a content control."""
        content = element.find(f"{W}sdtContent") if element.tag == f"{W}sdt" else None
        return element if content is None else content

    def format_key(self, format_: Any) -> str:
        """Return a text that is equal for runs that look the same."""
        properties = format_.find(f"{W}rPr")
        visible = [] if properties is None else [child for child in properties if child.tag not in _INVISIBLE]
        return "".join(f"{child.tag} {sorted(child.items())} {len(child)}" for child in visible)

    def append(self, parent: Any, format_: Any, content: Any) -> None:
        """Append a text or an element, in a run if it has the format of a run."""
        if isinstance(content, str):
            text = parent.makeelement(_T, {_SPACE: "preserve"})
            text.text = content
            content = text
        elif format_ is None:
            parent.append(content)
            return
        run = parent.makeelement(_R)
        properties = None if format_ is None else format_.find(f"{W}rPr")
        if properties is not None:
            run.append(copy.deepcopy(properties))
        run.append(content)
        parent.append(run)


def _is_text(code: str) -> bool:
    """Return whether the result of a field with this code is translated."""
    return " ".join(code.upper().split()[:1]) in _TEXT_FIELDS


def _fields(root: Any) -> Iterator[_Field]:
    """Yield the fields that begin and end in a part. They may extend over paragraphs, and be in others."""
    opened, codes = list[_Field](), list[str]()
    for element in root.iter(_SIGN, f"{W}instrText", _T):
        kind = element.get(f"{W}fldCharType")
        if kind == "begin":
            opened.append(_Field(element, None, None, is_text=False, has_letters=False))
            codes.append("")
        elif not opened:
            continue
        elif kind == "separate" and opened[-1].separate is None:
            is_text = _is_text(codes[-1]) and len(opened) <= _MOST_NESTED
            opened[-1] = opened[-1]._replace(separate=element, is_text=is_text)
        elif kind == "end":
            codes.pop()
            yield opened.pop()._replace(end=element)
        elif element.tag == _T and opened[-1].separate is not None and has_letters(element.text or ""):
            opened[-1] = opened[-1]._replace(has_letters=True)
        elif element.tag == f"{W}instrText" and len(codes[-1]) < _MOST_CODE:
            codes[-1] += element.text or ""


def _copies(root: Any) -> Iterator[tuple[Any, Any]]:
    """Yield text boxes with their copies for older programs."""
    for alternatives in root.iter(f"{_MC}AlternateContent"):
        boxes = [*alternatives.iterfind(f"{_MC}Choice//{_BOX}")]
        copied = [*alternatives.iterfind(f"{_MC}Fallback//{_BOX}")]
        if [_text(box) for box in boxes] == [_text(box) for box in copied]:
            yield from zip(boxes, copied, strict=True)


def _text(box: Any) -> str:
    return "".join(text.text or "" for text in box.iter(_T))
