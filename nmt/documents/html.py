"""HTML: text is translated, tags and all else stay as they were written.

HTML is cut where browsers begin and end tags (https://html.spec.whatwg.org/multipage/parsing.html) and never written
anew, so attributes arrive as they were sent. Time grows linearly with the length of the text.

An element without an end tag reaches to the end of the element around it, also where a browser ends it earlier.

Tags of blocks, such as ``<p>``, split text. The others stand in it, and enclose the same words of the translation.
"""

import itertools
import re
from collections import deque
from collections.abc import Iterator
from html import escape, unescape
from typing import NamedTuple

from nmt.documents.blocks import Block, Item
from nmt.errors import DataError


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


RAW = _names("script style xmp iframe noembed noframes textarea title")
"""Elements in which browsers look for nothing but their end, unless they stand in a drawing or a formula."""
KEPT = RAW - _names("textarea title") | _names("template code kbd samp")
"""Elements whose content is not translated."""
PREFORMATTED = _names("pre textarea")
VOID = _names("area base br col embed hr img input link meta source track wbr")
BLOCKS = _names(
    "address article aside blockquote body button canvas caption center col colgroup dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li link "
    "main map math menu meta nav noframes noscript object ol optgroup option p param plaintext pre search section "
    "select summary svg table tbody td textarea tfoot th thead title tr ul video"
)
"""Elements that split text. Others, also unknown ones, are inline."""
LABELS = _names("alt title")
"""Attributes that are read as text."""
MOST_OPEN = 200
"""Open elements that are remembered, the innermost."""
MOST_NESTED, MOST_PARTS = 50, 1_000
"""Tags around a word of a text, and parts of a text, beyond which tags split it."""

_LABEL = "\ue0fe"  # of a private area of Unicode
_SPACE = " \t\n\r\f"
_WHITE_SPACE = re.compile(f"[{_SPACE}]+")
# Possessive, for linear time. After an equals sign there must be a value: a quote without an end is no name.
_ATTRIBUTE = (
    rf"""([^{_SPACE}/>][^{_SPACE}/>=]*+)"""
    rf"""(?:[{_SPACE}]*+=[{_SPACE}]*+("[^"]*+"|'[^']*+'|[^{_SPACE}>"'][^{_SPACE}>]*+|(?=>))|(?![{_SPACE}]*+=))"""
)
_ATTRIBUTES = re.compile(_ATTRIBUTE)
_CHARSET = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
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


class Page:
    """A page of HTML: a file."""

    def __init__(self, content: bytes, name: str) -> None:
        """Read a page in the encoding that it names, by default UTF-8.

        Raises:
            DataError: if it is in another.
        """
        declared = _CHARSET.search(content[:1024])
        self._encoding = declared[1].decode().lower() if declared else "utf-8"
        try:
            html = content.decode(self._encoding)
            is_whole = html.encode(self._encoding) == content
        except (LookupError, ValueError):
            is_whole = False
        if not is_whole:
            raise DataError(
                f"{name} is not in the encoding {self._encoding}. Write <meta charset> as it is, or as UTF-8."
            )
        self._markup = Markup(html, has_labels=True)
        self.texts = self._markup.texts

    def render(self, texts: list[str]) -> bytes:
        """Return the page with other texts in place of ``texts``."""
        return self._markup.render(texts).encode(self._encoding, "xmlcharrefreplace")


class _Part(NamedTuple):
    """Tag or text."""

    kind: str
    """As of ``Item``; "break" for what splits text."""
    raws: list[str]
    text: str
    """Text, or name of a tag."""

    @property
    def raw(self) -> str:
        return "".join(self.raws)

    @property
    def is_blank(self) -> bool:
        return self.kind == "piece" or (self.kind == "text" and not self.text.strip())


class Markup:
    """HTML, a page or a part of it."""

    def __init__(self, html: str, *, is_cue: bool = False, has_entities: bool = True, has_labels: bool = False) -> None:
        """Find the texts to translate. A tag without an end reaches to the end of the HTML, as in a browser.

        Args:
            html: the HTML.
            is_cue: whether it is the text of a subtitle, whose lines all belong together.
            has_entities: whether &amp; stands for a character.
            has_labels: whether the attributes of ``LABELS`` are translated too.
        """
        self._has_labels = has_labels and _LABEL not in html
        self._labels: list[str] = []
        """Their values, with quotes; ``_LABEL`` and its index stand for one in its tag."""
        self._is_cue, self._has_entities = is_cue, has_entities
        self._open: deque[_Element] = deque(maxlen=MOST_OPEN)
        self._parts: list[_Part] = []
        self._pieces: list[str] = []
        self._blocks: list[tuple[int, Block]] = []
        """Indices of the pieces that are translated, with what they hold."""
        place = 0
        while begin := _BEGIN.search(html, place):
            self._add_text(html[place : begin.start()])
            found = _MARKUP.match(html, begin.start())
            place = found.end() if found else len(html)
            raw, name = html[begin.start() : place], (found["tag"] or "").lower() if found else ""
            name = name.partition(".")[0] if self._is_cue else name  # <c.yellow>
            is_block = name in BLOCKS or any(each.name in ("svg", "math") for each in self._open)
            if name and found and found["end"]:
                self._add("break" if is_block else "close", raw, name)
                self._end(name)
            elif name and found:
                is_piece = name in VOID or found["attributes"].endswith("/")
                was_translated = self._around.translated
                self._begin(name, found["attributes"])
                is_kept = was_translated and not self._around.translated
                if self._has_labels and was_translated and not is_kept:
                    start, end = (at - begin.start() for at in found.span("attributes"))
                    raw = raw[:start] + _ATTRIBUTES.sub(self._label, raw[start:end]) + raw[end:]
                self._add("break" if is_block else "piece" if is_piece or is_kept else "open", raw, name, is_kept)
                is_raw = name in RAW and not any(each.name in ("svg", "math") for each in self._open)
                place = self._add_raw(name, html, place) if is_raw else place
            else:
                self._add("piece", raw)
        self._add_text(html[place:])
        self._flush()
        self.texts = [block.text for _, block in self._blocks] + [unescape(each[1:-1]) for each in self._labels]
        """The texts, with marks for tags; after them those of attributes."""

    def render(self, texts: list[str]) -> str:
        """Return the HTML with other texts in place of ``texts``, of equal number."""
        pieces = self._pieces.copy()
        for (place, block), text in zip(self._blocks, texts, strict=False):
            if text != block.text:
                items = block.read(text)
                pieces[place] = "".join(
                    escape(each.value, quote=False) if each.kind == "text" and self._has_entities else each.value
                    for each in items
                )
        labels = [
            old if unescape(old[1:-1]) == text else f"{old[0]}{escape(text)}{old[0]}"
            for old, text in zip(self._labels, texts[len(self._blocks) :], strict=True)
        ]
        return re.sub(rf"{_LABEL}(\d+){_LABEL}", lambda found: labels[int(found[1])], "".join(pieces))

    def _label(self, attribute: re.Match[str]) -> str:
        """Return an attribute; what a reader sees of it becomes a text."""
        value = attribute[2] or ""
        if attribute[1].lower() not in LABELS or value[:1] not in ("'", '"') or not value[1:-1].strip():
            return attribute[0]
        self._labels.append(value)
        return f"{attribute[0].removesuffix(value)}{_LABEL}{len(self._labels) - 1}{_LABEL}"

    def _add(self, kind: str, raw: str, text: str = "", is_begun: bool = False) -> None:
        """Add a tag or a text. All of an inline element that is not translated is one piece."""
        if kind == "break" or len(self._parts) >= MOST_PARTS:
            self._flush()
            if kind == "break":
                self._pieces.append(raw)
                return
        if not is_begun and not self._around.translated:
            if self._parts and self._parts[-1].kind == "piece":
                self._parts[-1].raws.append(raw)
                return
            kind, text = "piece", ""
        self._parts.append(_Part(kind, [raw], text))

    def _flush(self) -> None:
        """Make pieces and blocks of the parts of a text."""
        parts, self._parts = self._parts, []
        partners = _partners(parts)
        start = 0
        for place in sorted([*_breaks(parts, partners, self._is_cue), len(parts)]):
            self._add_block(parts, start, place, partners)
            self._pieces += [each.raw for each in parts[place : place + 1]]
            start = place + 1

    def _add_block(self, parts: list[_Part], start: int, end: int, partners: dict[int, int]) -> None:
        """Add the parts from ``start`` to before ``end``; what stands around their text is outside."""
        low, high = start, end
        while low < high:
            first, last = parts[low], parts[high - 1]
            if first.is_blank:
                low += 1
            elif last.is_blank:
                high -= 1
            elif partners.get(low) == high - 1:
                low, high = low + 1, high - 1
            else:
                break
        self._pieces += [each.raw for each in parts[start:low]]
        if low < high:
            block = Block(
                Item(each.kind, each.text if each.kind == "text" else each.raw)  # type: ignore[arg-type]
                for each in parts[low:high]
            )
            self._blocks.append((len(self._pieces), block))
            self._pieces.append("".join(each.raw for each in parts[low:high]))
        self._pieces += [each.raw for each in parts[high:end]]

    @property
    def _around(self) -> _Element:
        """Innermost open element."""
        return self._open[-1] if self._open else PAGE

    def _add_text(self, text: str) -> None:
        """Add the text between two tags."""
        if text:
            plain = unescape(text) if self._has_entities else text
            self._add("text", text, plain if self._around.preformatted else _WHITE_SPACE.sub(" ", plain))

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


def _partners(parts: list[_Part]) -> dict[int, int]:
    """Return the index of the end of each tag that has one, and the reverse."""
    opened, found = list[int](), dict[int, int]()
    for index, part in enumerate(parts):
        if part.kind == "open" and len(opened) < MOST_NESTED:
            opened.append(index)
        elif part.kind == "close":
            for count, other in enumerate(reversed(opened), start=1):
                if parts[other].text == part.text:
                    found |= {index: other, other: index}
                    del opened[-count:]
                    break
    return found


def _breaks(parts: list[_Part], partners: dict[int, int], is_cue: bool) -> Iterator[int]:
    """Yield the indices of tags that split text: those without a partner, line breaks before no small letter.

    So do tags around those.
    """
    counts, after = [0] * (len(parts) + 1), ""
    for index, part in reversed([*enumerate(parts)]):
        is_alone = part.kind in ("open", "close") and index not in partners
        is_end = part.kind == "piece" and part.text == "br" and not (is_cue or after[:1].islower())
        counts[index] = is_alone or is_end
        after = part.text.lstrip() or after if part.kind == "text" else "" if part.text == "br" else after
    total = [0, *itertools.accumulate(counts)]
    for index in range(len(parts)):
        low, high = sorted((index, partners.get(index, index)))
        if total[high + 1] > total[low]:
            yield index
