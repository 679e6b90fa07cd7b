"""Word documents (.docx): links, and runs with a format of their own, are inline markup."""

import copy
import io
import re
import zipfile
from collections import Counter
from typing import Any, NamedTuple

from nmt.documents.blocks import Block, Item
from nmt.documents.document import Document
from nmt.errors import DataError
from nmt.extras import require

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
MOST_UNPACKED = 64 * 2**20
"""Most bytes of all unpacked parts of a document."""
MOST_SIGNS = 1_000_000
"""Most tags and attributes of all parts. A book of a thousand pages has fewer; a file of 36 KB can have millions."""
_TRANSLATED = re.compile(r"/word/(document|header\d*|footer\d*)\.xml")
_INVISIBLE = {f"{W}lang", f"{W}noProof"}


class WordDocument(Document):
    """A Word document (.docx file). Its paragraphs are translated, also in tables, headers and footers.

    Fields, tracked insertions, notes and everything else stay unchanged.
    """

    SUFFIXES = (".docx",)
    PACKAGE = "docx"

    def __init__(self, content: bytes, name: str) -> None:
        """Find the paragraphs.

        Raises:
            DataError: if the file is damaged, or its unpacked parts are too large.
            NotFoundError: if python-docx is not installed.
        """
        super().__init__(content, name)
        require("documents", "docx")
        import docx  # noqa: PLC0415 - an extra
        from docx.opc.part import XmlPart  # noqa: PLC0415 - an extra

        try:
            _check_size(content)
            self._document = docx.Document(io.BytesIO(content))
            parts = [part for part in self._document.part.package.iter_parts() if isinstance(part, XmlPart)]
        except Exception as error:  # errors of the zip file, the XML or the relations
            raise DataError(f"{name} is not a Word document: {str(error)[:200]}. Save it as .docx.") from None
        roots = [part.element for part in parts if _TRANSLATED.fullmatch(str(part.partname))]
        elements = (element for root in roots for element in root.iter(f"{W}p"))
        self._paragraphs = [
            _Paragraph(element) for element in elements if next(element.iter(f"{W}t"), None) is not None
        ]
        self.texts = [paragraph.block.text for paragraph in self._paragraphs]

    def render(self, texts: list[str], source: str = "source", target: str = "target") -> bytes:
        """Return the document with these texts in place of ``texts``."""
        for paragraph, text in zip(self._paragraphs, texts, strict=True):
            if text != paragraph.block.text:
                paragraph.write(text)
        content = io.BytesIO()
        self._document.save(content)
        return content.getvalue()


def _check_size(content: bytes) -> None:
    """Refuse a file whose XML would take too much time and memory.

    Raises:
        ValueError: if the unpacked file is too large, or has too many tags and attributes.
        zipfile.BadZipFile: if the file is not a zip file.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        members = file.infolist()
        size = sum(member.file_size for member in members)
        if size > MOST_UNPACKED:
            raise ValueError(f"it unpacks to {size:,} bytes, and may have {MOST_UNPACKED:,}")
        signs = 0
        for member in members:
            part = file.read(member)
            signs += part.count(b"<") + part.count(b"=")
            if signs > MOST_SIGNS:
                raise ValueError(f"it has more than {MOST_SIGNS:,} tags and attributes")


class _Paragraph:
    """Paragraph: formatted texts (formats are rPr elements), links and pieces."""

    def __init__(self, element: Any) -> None:
        self._element = element
        self._format, items = _inline(element)
        self.block = Block(items)

    def write(self, translation: str) -> None:
        """Replace the text of the paragraph by its translation."""
        items = [*self.block.read(translation)]
        links = [item.value[0] for item in items if item.kind == "open" and item.value[0] is not None]
        for element in [self._element, *links]:
            for child in [child for child in element if child.tag != f"{W}pPr"]:
                element.remove(child)
        parents = [(self._element, self._format)]
        for kind, value in items:
            parent, format_ = parents[-1]
            if kind == "text":
                text = parent.makeelement(f"{W}t", {"{http://www.w3.org/XML/1998/namespace}space": "preserve"})
                text.text = value
                parent.append(_run(parent, format_, text))
            elif kind == "piece":
                run, element = value
                parent.append(element if run is None else _run(parent, run.find(f"{W}rPr"), element))
            elif kind == "close":
                parents.pop()
            elif value[0] is None:
                parents.append((parent, value[1]))
            else:
                parent.append(value[0])
                parents.append(value)


def _run(parent: Any, format_: Any, content: Any) -> Any:
    """Return a run with a format and content."""
    run = parent.makeelement(f"{W}r")
    run.extend([content] if format_ is None else [copy.deepcopy(format_), content])
    return run


class _InlinePart(NamedTuple):
    """Part of a paragraph or link."""

    kind: str
    """"text", "piece", "open" for a link, or "end"."""
    source: Any
    """Format (rPr) of a text, run of a piece; None without one."""
    value: Any
    """Text, or the element of a piece or link."""


def _inline(element: Any) -> tuple[Any, list[Item]]:
    """Return the format of most of the text of a paragraph or link, and its parts.

    Text in this usual format has no tags; text in other formats is between tags.
    """
    parts, fields = list[_InlinePart](), 0
    has_fields = next(element.iter(f"{W}fldChar"), None) is not None
    for child in element:
        signs = [sign.get(f"{W}fldCharType") for sign in child.iter(f"{W}fldChar")] if has_fields else []
        fields += signs.count("begin")
        if child.tag == f"{W}hyperlink" and not fields:
            parts.append(_InlinePart("open", None, child))
        elif child.tag == f"{W}r" and not fields:
            parts += _run_parts(child)
        elif child.tag not in (f"{W}pPr", f"{W}proofErr"):
            parts.append(_InlinePart("piece", None, child))
        fields -= min(fields, signs.count("end"))
    formats = {_format_key(part.source): part.source for part in reversed(parts) if part.kind == "text"}
    lengths = Counter(dict.fromkeys(formats, 0))
    for part in parts:
        if part.kind == "text":
            lengths[_format_key(part.source)] += len(part.value)
    usual = max(lengths, key=lambda key: lengths[key], default="")
    items, current = list[Item](), usual
    for kind, source, value in [*parts, _InlinePart("end", None, "")]:
        needed = usual
        if kind in ("text", "piece"):  # spaces and pieces take the format before them
            needed = _format_key(source) if kind == "text" and value.strip() else current
        if needed != current:
            items += [Item("close", None)] if current != usual else []
            items += [Item("open", (None, formats[needed]))] if needed != usual else []
            current = needed
        if kind == "open":
            inner_format, inner_items = _inline(value)
            items += [Item("open", (value, inner_format)), *inner_items, Item("close", None)]
        elif kind != "end":
            items.append(Item("text", value) if kind == "text" else Item("piece", (source, value)))
    return formats.get(usual), items


def _run_parts(run: Any) -> list[_InlinePart]:
    """Return the texts and pieces of a run. Comments, instructions and entities within a text are pieces."""
    format_, parts = run.find(f"{W}rPr"), list[_InlinePart]()
    for element in run:
        if element.tag == f"{W}t":
            parts.append(_InlinePart("text", format_, element.text or ""))
            for inner in element:
                piece = element.makeelement(element.tag)
                piece.append(copy.copy(inner))
                piece[0].tail = None
                parts += [_InlinePart("piece", run, piece), _InlinePart("text", format_, inner.tail or "")]
        elif element.tag not in (f"{W}rPr", f"{W}lastRenderedPageBreak"):
            parts.append(_InlinePart("piece", run, element))
    return parts


def _format_key(format_: Any) -> str:
    """Return a text that is equal for formats that look the same."""
    visible = [] if format_ is None else [child for child in format_ if child.tag not in _INVISIBLE]
    return "".join(f"{child.tag} {sorted(child.items())} {len(child)}" for child in visible)
