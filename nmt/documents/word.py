"""Documents of Word: runs with a format of their own and links are inline markup."""

import copy
import io
import re
import zipfile
from collections import Counter
from typing import Any

from nmt.documents.blocks import Block, Item
from nmt.errors import DataError
from nmt.extras import require

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
MOST_UNPACKED = 64 * 2**20
"""Bytes of all parts of a document."""
MOST_SIGNS = 1_000_000
"""Tags and attributes of all parts: a book of a thousand pages has fewer, a file of 36 KB can have millions."""
_TRANSLATED = re.compile(r"/word/(document|header\d*|footer\d*)\.xml")
_UNSEEN = {f"{W}lang", f"{W}noProof"}


class WordDocument:
    """A document of Word, a .docx file: its paragraphs, also those of tables, headers and footers.

    Fields, insertions under review, notes and all else stay.
    """

    def __init__(self, content: bytes, name: str) -> None:
        """Find the paragraphs.

        Raises:
            DataError: if the file is damaged, or its parts are too long.
            NotFoundError: if python-docx is not installed.
        """
        require("documents", "docx")
        import docx  # noqa: PLC0415 - an extra
        from docx.opc.part import XmlPart  # noqa: PLC0415 - as above

        try:
            _check_size(content)
            self._document = docx.Document(io.BytesIO(content))
            parts = [each for each in self._document.part.package.iter_parts() if isinstance(each, XmlPart)]
        except Exception as error:  # of the zip file, the XML, the relations
            raise DataError(f"{name} is no document of Word: {str(error)[:200]}. Save it as .docx.") from None
        roots = [each.element for each in parts if _TRANSLATED.fullmatch(str(each.partname))]
        paragraphs = (paragraph for root in roots for paragraph in root.iter(f"{W}p"))
        self._paragraphs = [_Paragraph(each) for each in paragraphs if next(each.iter(f"{W}t"), None) is not None]
        self.texts = [each.block.text for each in self._paragraphs]

    def render(self, texts: list[str]) -> bytes:
        """Return the document with other texts in place of ``texts``."""
        for paragraph, text in zip(self._paragraphs, texts, strict=True):
            if text != paragraph.block.text:
                paragraph.write(text)
        content = io.BytesIO()
        self._document.save(content)
        return content.getvalue()


def _check_size(content: bytes) -> None:
    """Refuse a file that would take much time and memory as XML.

    Raises:
        ValueError: with what is too much.
        zipfile.BadZipFile: for another file.
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
    """Paragraph of text in looks (rPr), links and pieces."""

    def __init__(self, element: Any) -> None:
        self._element = element
        self._look, items = _inline(element)
        self.block = Block(items)

    def write(self, translation: str) -> None:
        """Write the paragraph anew."""
        items = [*self.block.read(translation)]
        for element in [self._element, *(each.value[0] for each in items if each.kind == "open")]:
            for child in [] if element is None else [each for each in element if each.tag != f"{W}pPr"]:
                element.remove(child)
        around = [(self._element, self._look)]
        for kind, value in items:
            parent, look = around[-1]
            if kind == "text":
                text = parent.makeelement(f"{W}t", {"{http://www.w3.org/XML/1998/namespace}space": "preserve"})
                text.text = value
                parent.append(_run(parent, look, text))
            elif kind == "piece":
                run, element = value
                parent.append(element if run is None else _run(parent, run.find(f"{W}rPr"), element))
            elif kind == "close":
                around.pop()
            elif value[0] is None:
                around.append((parent, value[1]))
            else:
                parent.append(value[0])
                around.append(value)


def _run(parent: Any, look: Any, content: Any) -> Any:
    run = parent.makeelement(f"{W}r")
    run.extend([content] if look is None else [copy.deepcopy(look), content])
    return run


def _inline(element: Any) -> tuple[Any, list[Item]]:
    """Return the look of most text of a paragraph or a link, and its parts."""
    parts, fields = list[tuple[str, Any, Any]](), 0
    has_fields = next(element.iter(f"{W}fldChar"), None) is not None
    for child in element:
        signs = [each.get(f"{W}fldCharType") for each in child.iter(f"{W}fldChar")] if has_fields else []
        fields += signs.count("begin")
        if child.tag == f"{W}hyperlink" and not fields:
            parts.append(("open", None, child))
        elif child.tag == f"{W}r" and not fields:
            parts += _run_parts(child)
        elif child.tag not in (f"{W}pPr", f"{W}proofErr"):
            parts.append(("piece", None, child))
        fields -= min(fields, signs.count("end"))
    looks = {_name(look): look for kind, look, _ in reversed(parts) if kind == "text"}
    lengths = Counter(dict.fromkeys(looks, 0))
    for kind, look, value in parts:
        if kind == "text":
            lengths[_name(look)] += len(value)
    usual = max(lengths, key=lambda name: lengths[name], default="")
    items, now = list[Item](), usual
    for kind, look, value in [*parts, ("end", None, "")]:
        wanted = _name(look) if kind == "text" and value.strip() else now if kind in ("text", "piece") else usual
        if wanted != now:
            items += [Item("close", None)] if now != usual else []
            items += [Item("open", (None, looks[wanted]))] if wanted != usual else []
            now = wanted
        if kind == "open":
            inner_look, inner_items = _inline(value)
            items += [Item("open", (value, inner_look)), *inner_items, Item("close", None)]
        elif kind != "end":
            items.append(Item("text", value) if kind == "text" else Item("piece", (look, value)))
    return looks.get(usual), items


def _run_parts(run: Any) -> list[tuple[str, Any, Any]]:
    """Return the texts and pieces of a run. Comments, instructions and entities within a text are pieces."""
    look, parts = run.find(f"{W}rPr"), list[tuple[str, Any, Any]]()
    for element in run:
        if element.tag == f"{W}t":
            parts.append(("text", look, element.text or ""))
            for inner in element:
                alone = element.makeelement(element.tag)
                alone.append(copy.copy(inner))
                alone[0].tail = None
                parts += [("piece", run, alone), ("text", look, inner.tail or "")]
        elif element.tag not in (f"{W}rPr", f"{W}lastRenderedPageBreak"):
            parts.append(("piece", run, element))
    return parts


def _name(look: Any) -> str:
    """Return a look as text, without what does not show."""
    shown = [] if look is None else [each for each in look if each.tag not in _UNSEEN]
    return "".join(f"{each.tag} {sorted(each.items())} {len(each)}" for each in shown)
