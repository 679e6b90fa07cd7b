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
            with zipfile.ZipFile(io.BytesIO(content)) as file:
                size = sum(each.file_size for each in file.infolist())
            if size > MOST_UNPACKED:
                raise ValueError(f"it unpacks to {size:,} bytes, and may have {MOST_UNPACKED:,}")
            self._document = docx.Document(io.BytesIO(content))
            parts = [each for each in self._document.part.package.iter_parts() if isinstance(each, XmlPart)]
        except Exception as error:  # of the zip file, the XML, the relations
            raise DataError(f"{name} is no document of Word: {str(error)[:200]}. Save it as .docx.") from None
        roots = [each.element for each in parts if _TRANSLATED.fullmatch(str(each.partname))]
        self._paragraphs = [_Paragraph(each) for root in roots for each in root.iter(f"{W}p")]
        self.texts = [each.block.text for each in self._paragraphs]

    def render(self, texts: list[str]) -> bytes:
        """Return the document with other texts in place of ``texts``."""
        for paragraph, text in zip(self._paragraphs, texts, strict=True):
            if text != paragraph.block.text:
                paragraph.write(text)
        content = io.BytesIO()
        self._document.save(content)
        return content.getvalue()


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
    for child in element:
        signs = [each.get(f"{W}fldCharType") for each in child.iter(f"{W}fldChar")]
        fields += signs.count("begin")
        if child.tag == f"{W}hyperlink" and not fields:
            parts.append(("open", None, child))
        elif child.tag == f"{W}r" and not fields:
            look = child.find(f"{W}rPr")
            inner = [each for each in child if each.tag not in (f"{W}rPr", f"{W}lastRenderedPageBreak")]
            parts += [
                ("text", look, each.text or "") if each.tag == f"{W}t" else ("piece", child, each) for each in inner
            ]
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


def _name(look: Any) -> str:
    """Return a look as text, without what does not show."""
    shown = [] if look is None else [each for each in look if each.tag not in _UNSEEN]
    return "".join(f"{each.tag} {sorted(each.items())} {len(each)}" for each in shown)
