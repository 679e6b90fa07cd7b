"""HTML: text is translated, tags and all else stay as they were written.

HTML is cut where browsers begin and end tags (https://html.spec.whatwg.org/multipage/parsing.html) and never written
anew, so attributes arrive as they were sent. Time grows linearly with the length of the text.

An element without an end tag reaches to the end of the element around it, also where a browser ends it earlier.

Each text between two tags is translated by itself. A sentence with tags inside, such as ``<b>``, so becomes several:
the words that a tag encloses have no counterpart that a model could name.
"""

import re
from collections import deque
from html import escape, unescape
from typing import NamedTuple


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


RAW = _names("script style xmp iframe noembed noframes textarea title")
"""Elements in which browsers look for nothing but their end, unless they stand in a drawing or a formula."""
KEPT = RAW - _names("textarea title") | _names("template code kbd samp")
"""Elements whose content is not translated."""
PREFORMATTED = _names("pre textarea")
VOID = _names("area base br col embed hr img input link meta source track wbr")
MOST_OPEN = 200
"""Open elements that are remembered, the innermost."""

_SPACE = " \t\n\r\f"
_WHITE_SPACE = re.compile(f"[{_SPACE}]+")
# Possessive, for linear time. After an equals sign there must be a value: a quote without an end is no name.
_ATTRIBUTE = (
    rf"""([^{_SPACE}/>][^{_SPACE}/>=]*+)"""
    rf"""(?:[{_SPACE}]*+=[{_SPACE}]*+("[^"]*+"|'[^']*+'|[^{_SPACE}>"'][^{_SPACE}>]*+|(?=>))|(?![{_SPACE}]*+=))"""
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_BEGIN = re.compile(r"<[a-zA-Z/!?]")
_MARKUP = re.compile(
    r"<!--(?:-?>|.*?--!?>)|<(?:!(?!--)|\?|/(?![a-zA-Z]))[^>]*+>"
    rf"|<(?P<end>/?)(?P<tag>[a-zA-Z][^{_SPACE}/>]*+)(?P<attributes>(?:[{_SPACE}/]++|{_ATTRIBUTE})*+)>",
    re.DOTALL,
)


class _Element(NamedTuple):
    """Open element."""

    name: str
    translated: bool
    preformatted: bool


PAGE = _Element("", translated=True, preformatted=False)


class Markup:
    """HTML, a page or a part of it."""

    def __init__(self, html: str) -> None:
        """Find the texts to translate. A tag without an end reaches to the end of the HTML, as in a browser."""
        self._open: deque[_Element] = deque(maxlen=MOST_OPEN)
        self._pieces: list[str] = []
        self._places: list[int] = []
        """Indices of the pieces that are translated."""
        self.texts: list[str] = []
        """Text of each of them."""
        place = 0
        while begin := _BEGIN.search(html, place):
            self._add_text(html[place : begin.start()])
            found = _MARKUP.match(html, begin.start())
            place = found.end() if found else len(html)
            self._pieces.append(html[begin.start() : place])
            if found and found["tag"]:
                name = found["tag"].lower()
                if found["end"]:
                    self._end(name)
                else:
                    self._begin(name, found["attributes"])
                    is_raw = name in RAW and not any(each.name in ("svg", "math") for each in self._open)
                    place = self._add_raw(name, html, place) if is_raw else place
        self._add_text(html[place:])

    def render(self, texts: list[str]) -> str:
        """Return the HTML with other texts in place of ``texts``, of equal number."""
        pieces = self._pieces.copy()
        for place, before, text in zip(self._places, self.texts, texts, strict=True):
            if text != before:
                pieces[place] = escape(text, quote=False)
        return "".join(pieces)

    @property
    def _around(self) -> _Element:
        """Innermost open element."""
        return self._open[-1] if self._open else PAGE

    def _add_text(self, text: str) -> None:
        """Add the text between two tags."""
        element, plain = self._around, unescape(text)
        if element.translated and plain.strip():
            self._places.append(len(self._pieces))
            self.texts.append(plain if element.preformatted else _WHITE_SPACE.sub(" ", plain))
        self._pieces.append(text)

    def _add_raw(self, name: str, html: str, place: int) -> int:
        """Add the content of an element that holds no tags, and return the place of its end tag."""
        end = re.compile(rf"</{name}(?=[{_SPACE}/>])", re.IGNORECASE).search(html, place)
        self._add_text(html[place : end.start() if end else len(html)])
        return end.start() if end else len(html)

    def _begin(self, name: str, attributes: str) -> None:
        """Begin an element. Its text is translated by its name, attribute or class, else as that around it."""
        if name in VOID:
            return
        values: dict[str, str] = {}
        for key, value in _ATTRIBUTES.findall(attributes):
            text = value[1:-1] if value[:1] in ("'", '"') else value
            values.setdefault(key.lower(), unescape(text))  # of two equal names, the first counts
        _, translated, preformatted = self._around
        if "notranslate" in (values.get("class") or "").split():
            translated = False
        if (wanted := values.get("translate")) is not None and wanted.lower() in ("no", "yes", ""):
            translated = wanted.lower() != "no"
        self._open.append(_Element(name, translated and name not in KEPT, preformatted or name in PREFORMATTED))

    def _end(self, name: str) -> None:
        """End the innermost open element of a name, with all within it."""
        for count, element in enumerate(reversed(self._open), start=1):
            if element.name == name:
                for _ in range(count):
                    self._open.pop()
                return
