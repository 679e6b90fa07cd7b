"""OpenDocument text (.odt): links, and spans with a format of their own, are inline markup."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from nmt.documents.office.package import OfficeDocument, Package
from nmt.documents.office.paragraphs import Part, Story, has_letters

_NAMES = "{urn:oasis:names:tc:opendocument:xmlns:"
_TEXT, _STYLE, _DRAW, _SVG = (f"{_NAMES}{name}:1.0}}" for name in ("text", "style", "drawing", "svg-compatible"))
_PARAGRAPHS = (f"{_TEXT}p", f"{_TEXT}h")
_SPAN, _SPACES, _COUNT = f"{_TEXT}span", f"{_TEXT}s", f"{_TEXT}c"
_CONTAINERS = (
    f"{_TEXT}a",
    f"{_TEXT}meta",
    "{urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0}content-control",
)
_BREAKS = (f"{_TEXT}tab", f"{_TEXT}line-break")
_LEFT = {
    f"{_DRAW}object": "embedded object",
    f"{_DRAW}object-ole": "embedded object",
    f"{_SVG}title": "alternative text",
    f"{_SVG}desc": "alternative text",
}
"""Names of the elements that stay untranslated."""
_INVISIBLE = re.compile(r"\}(?:paragraph-)?(?:rsid|language|country|script|rfc-language-tag)(?:-asian|-complex)?$")
"""Properties of a style that do not change how text looks."""
_WHITE_SPACE = re.compile(r"[ \t\r\n]+")
_MORE_SPACES = re.compile(r"(?<= ) +")
_LEADING_OR_MORE_SPACES = re.compile(r"^ +|(?<= ) +")
_MOST_SPACES = 100
"""Most spaces of an element that count as text."""


class OpenDocumentText(OfficeDocument):
    """An OpenDocument text: its body, notes, comments, tables, text boxes, headers and footers."""

    SUFFIXES = (".odt",)
    KIND = "an OpenDocument text"

    def stories(self, package: Package) -> dict[str, Story]:
        """Return the body, and the styles with headers and footers.

        Raises:
            KeyError: if there is no body.
        """
        names = ["content.xml"]
        if "styles.xml" in package.names:
            names.append("styles.xml")
        return {name: _OpenDocumentStory(package.read(name)) for name in names}


class _OpenDocumentStory(Story):
    """The paragraphs of a part. The format of a text is a tuple of the spans around it."""

    def __init__(self, root: Any) -> None:
        if not str(root.tag).startswith(f"{_NAMES}office:1.0}}document"):
            raise ValueError(f"its XML begins with {root.tag}")
        self._looks = {style.get(f"{_STYLE}name"): _look(style) for style in _automatic_styles(root)}
        self._spans: tuple[Any, ...] = ()
        """Spans around the link that is read."""
        self._is_after_space = True
        """Whether white space, at the place that is read or written, has no width."""
        changes = root.iter(f"{_TEXT}tracked-changes")
        deleted = {element for change in changes for element in change.iter(*_PARAGRAPHS)}
        super().__init__(element for element in root.iter(*_PARAGRAPHS) if element not in deleted)
        self.left += Counter(_LEFT[element.tag] for element in root.iter(*_LEFT))

    def parts(self, element: Any) -> list[Part]:
        """Return the parts of a paragraph or link."""
        if element.tag in _PARAGRAPHS:
            self._spans, self._is_after_space = (), True
        return [*self._parts(element, self._spans)]

    def _parts(self, element: Any, spans: tuple[Any, ...]) -> Iterator[Part]:
        yield from self._text_parts(element.text, spans)
        for child in element:
            if child.tag == _SPAN:
                yield from self._parts(child, (*spans, child))
            elif child.tag in _CONTAINERS:
                outer_spans, self._spans = self._spans, spans
                yield self.group(child)
                self._spans = outer_spans
            elif child.tag != f"{_TEXT}soft-page-break":
                yield self._child_part(child, spans)
            yield from self._text_parts(child.tail, spans)

    def _text_parts(self, text: str | None, spans: tuple[Any, ...]) -> Iterator[Part]:
        """Yield a text with its white space as it is shown."""
        text = _WHITE_SPACE.sub(" ", text or "")
        if self._is_after_space:
            text = text.lstrip(" ")
        if text:
            self._is_after_space = text.endswith(" ")
            yield Part("text", text, spans)

    def _child_part(self, child: Any, spans: tuple[Any, ...]) -> Part:
        """Return an element that is neither span nor link as a part."""
        self._is_after_space = self._is_after_space and not _has_width(child)
        if child.tag in _BREAKS:
            return Part("break", child, spans)
        count = child.get(_COUNT, "1")
        if child.tag == _SPACES and count.isdecimal() and len(count) < 4 and int(count) <= _MOST_SPACES:
            return Part("text", " " * int(count), spans)
        is_paragraph = next(child.iter(*_PARAGRAPHS, *_LEFT), None) is not None
        if not is_paragraph and isinstance(child.tag, str) and has_letters("".join(child.itertext())):
            self.left["ruby text" if child.tag == f"{_TEXT}ruby" else "field"] += 1
        return Part("piece", child, spans)

    def format_key(self, format_: Any) -> str:
        """Return a text that is equal for spans that look the same."""
        names = (span.get(f"{_TEXT}style-name", "") for span in format_)
        return "".join(self._looks.get(name, f"({name})") for name in names)

    def append(self, parent: Any, format_: Any, content: Any) -> None:
        """Append a text or an element, in spans."""
        for span in format_ or ():
            inner = parent.makeelement(_SPAN, dict(span.attrib))
            parent.append(inner)
            parent = inner
        if not isinstance(content, str):
            content.tail = None
            parent.append(content)
            self._is_after_space = self._is_after_space and not _has_width(content)
            return
        start = 0
        spaces = _LEADING_OR_MORE_SPACES if self._is_after_space else _MORE_SPACES
        for match in spaces.finditer(content):
            _append_text(parent, content[start : match.start()])
            parent.append(parent.makeelement(_SPACES, {_COUNT: str(len(match[0]))}))
            start = match.end()
        _append_text(parent, content[start:])
        self._is_after_space = content.endswith(" ") or (self._is_after_space and not content)

    def empty(self, element: Any) -> None:
        """Remove the content of a paragraph or link."""
        super().empty(element)
        if element.tag in _PARAGRAPHS:
            self._is_after_space = True


def _has_width(element: Any) -> bool:
    """Return whether an element in a paragraph is something to see, so that white space after it is, too."""
    is_wide = element.tag in (_SPACES, *_BREAKS) or str(element.tag).startswith(_DRAW)
    return is_wide or any(map(str.strip, element.itertext()))


def _automatic_styles(root: Any) -> Iterator[Any]:
    """Yield the styles of single texts, which the program and not the user has named."""
    for styles in root.iter(f"{_NAMES}office:1.0}}automatic-styles"):
        yield from (style for style in styles if style.get(f"{_STYLE}family") == "text")


def _look(style: Any) -> str:
    """Return a text that is equal for styles that look the same; empty if text looks as without the style."""
    look = style.get(f"{_STYLE}parent-style-name", "")
    for properties in style:
        visible = [item for item in properties.items() if not _INVISIBLE.search(item[0])]
        if visible:
            look += f"{sorted(visible)}"
    return f"({look})" if look else ""


def _append_text(parent: Any, text: str) -> None:
    """Append characters after the last child of an element."""
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    elif text:
        parent.text = (parent.text or "") + text
