"""HTML: text is translated, tags and all else stay as they were written.

HTML is cut where browsers begin and end tags (https://html.spec.whatwg.org/multipage/parsing.html) and never written
anew, so attributes arrive as they were sent. Time grows linearly with the length of the text.

An element without an end tag reaches to the end of the element around it, also where a browser ends it earlier.

Tags of blocks, such as ``<p>``, split text. The others stand in it, and enclose the same words of the translation.
"""

import itertools
import re
from collections import deque
from collections.abc import Iterator, Sequence
from html import escape, unescape
from typing import ClassVar, NamedTuple

from nmt.documents.blocks import Block, Item
from nmt.documents.charsets import decode_exactly, page_codec
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

_FOREIGN = _names("svg math")
_SPACE = " \t\n\r\f"
_WHITE_SPACE = re.compile(f"[{_SPACE}]+")
# Possessive, for linear time. After an equals sign there must be a value: a quote without an end is no name.
_ATTRIBUTE = (
    rf"""[^{_SPACE}/>][^{_SPACE}/>=]*+"""
    rf"""(?:[{_SPACE}]*+=[{_SPACE}]*+(?:"[^"]*+"|'[^']*+'|[^{_SPACE}>"'][^{_SPACE}>]*+|(?=>))|(?![{_SPACE}]*+=))"""
)
_ATTRIBUTES = re.compile(
    rf"""([^{_SPACE}/>][^{_SPACE}/>=]*+)(?:[{_SPACE}]*+=[{_SPACE}]*+("[^"]*+"|'[^']*+'|[^{_SPACE}>"'][^{_SPACE}>]*+))?+"""
)
"""Names and values in a tag that has an end."""
_MARKUP = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?:!(?!--)|\?|/(?![a-zA-Z]))[^>]*+>?|<\d[\d:.]*+>"
    rf"|<(?P<end>/?)(?P<tag>[a-zA-Z][^{_SPACE}/>]*+)(?P<attributes>(?:[{_SPACE}/]++|{_ATTRIBUTE})*+)(?:>|(?P<rest>.*+))",
    re.DOTALL,
)
"""A tag, a comment, or a time of WebVTT. What has no end reaches to the end of the text."""
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[{_SPACE}/>])", re.IGNORECASE) for name in RAW}
_LONG_REFERENCE = re.compile(r"&#0*+([0-9]{8})[0-9]*+|&#0+(?=[0-9])")


def plain_text(html: str) -> str:
    """Return text with characters in place of references such as &amp;."""
    # No character has a number of eight digits, and Python refuses to read one of more than 4,300.
    return unescape(_LONG_REFERENCE.sub(lambda match: "&#99999999" if match[1] else "&#", html))


class _Element(NamedTuple):
    """Open element."""

    name: str
    translated: bool
    preformatted: bool
    foreign: bool
    """Whether it is a drawing or a formula, or within one."""


PAGE = _Element("", translated=True, preformatted=False, foreign=False)


class Page:
    """A page of HTML: a file."""

    def __init__(self, content: bytes, name: str) -> None:
        """Read a page in the encoding that it names, by default UTF-8.

        Raises:
            DataError: if it is in another.
        """
        self._codec = page_codec(content, name)
        html = decode_exactly(content, self._codec)
        if html is None:
            raise DataError(
                f"{name} is not in the encoding {self._codec.name}. Write <meta charset> as it is, or as UTF-8."
            )
        self._markup = Markup(html, has_labels=True)
        self.texts = self._markup.texts

    def render(self, texts: list[str]) -> bytes:
        """Return the page with other texts in place of ``texts``."""
        return self._codec.encode(self._markup.render(texts), "xmlcharrefreplace")[0]


class _Part(NamedTuple):
    """Tag or text."""

    kind: str
    """As of ``Item``; "break" for what splits text."""
    raws: list[int]
    """Indices of how it was written."""
    text: str
    """Text, or name of a tag."""

    @property
    def is_blank(self) -> bool:
        return self.kind == "piece" or (self.kind == "text" and not self.text.strip())


class _Label(NamedTuple):
    """Attribute that is translated: the place of its value, with quotes, in a tag."""

    raw: int
    start: int
    end: int


class Markup:
    """HTML, a page or a part of it."""

    BEGIN: ClassVar = re.compile(r"<[a-zA-Z/!?]")
    """The beginning of a tag or a comment."""
    IS_CUE: ClassVar = False
    """Whether it is the text of a subtitle, whose lines all belong together."""

    def __init__(self, html: str, *, has_entities: bool = True, has_labels: bool = False) -> None:
        """Find the texts to translate. A tag without an end reaches to the end of the HTML, as in a browser.

        Args:
            html: the HTML.
            has_entities: whether &amp; stands for a character.
            has_labels: whether the attributes of ``LABELS`` are translated too.
        """
        self._has_entities, self._has_labels = has_entities, has_labels
        self._raws: list[str] = []
        """Tags and texts in order, as they were written; together they are the HTML."""
        self._labels: list[_Label] = []
        self._open: deque[_Element] = deque(maxlen=MOST_OPEN)
        self._parts: list[_Part] = []
        self._pieces: list[list[int]] = []
        """What stands together, as indices of ``_raws``."""
        self._blocks: list[tuple[int, Block]] = []
        """Indices of the pieces that are translated, with what they hold."""
        place = 0
        while begin := self.BEGIN.search(html, place):
            self._add_text(html[place : begin.start()])
            markup = _MARKUP.match(html, begin.start())
            place = markup.end() if markup else len(html)
            raw = html[begin.start() : place]
            if not markup or not markup["tag"] or markup["rest"] is not None:
                self._add("piece", raw)
                continue
            name = markup["tag"].lower()
            if self.IS_CUE:
                name = name.partition(".")[0]  # <c.yellow>
            if markup["end"]:
                self._add("break" if self._is_block(name) else "close", raw, name)
                self._end(name)
                continue
            self._add_element(name, raw, markup["attributes"], markup.start("attributes") - begin.start())
            if name in RAW and not self._around.foreign:
                place = self._add_raw(name, html, place)
        self._add_text(html[place:])
        self._flush()
        self.texts = [block.text for _, block in self._blocks]
        """The texts, with marks for tags; after them those of attributes."""
        self.texts += [plain_text(self._raws[label.raw][label.start + 1 : label.end - 1]) for label in self._labels]

    def render(self, texts: list[str]) -> str:
        """Return the HTML with other texts in place of ``texts``, of equal number."""
        raws, count = self._raws.copy(), len(self._blocks)
        # From the last, so that the places of others in the same tag stay right.
        for label, old, new in reversed([*zip(self._labels, self.texts[count:], texts[count:], strict=True)]):
            if new != old:
                raw = raws[label.raw]
                quote = raw[label.start]
                raws[label.raw] = f"{raw[: label.start]}{quote}{escape(new)}{quote}{raw[label.end :]}"
        pieces = ["".join(raws[index] for index in piece) for piece in self._pieces]
        for (place, block), text in zip(self._blocks, texts, strict=False):
            if text != block.text:
                pieces[place] = self._write(block.read(text), raws)
        return "".join(pieces)

    def _write(self, items: Iterator[Item], raws: Sequence[str]) -> str:
        """Return the HTML of a translated text."""
        return "".join(self._written(item, raws) for item in items)

    def _written(self, item: Item, raws: Sequence[str]) -> str:
        if item.kind == "text":
            return escape(item.value, quote=False) if self._has_entities else item.value
        return "".join(raws[index] for index in item.value)

    def _is_block(self, name: str) -> bool:
        return name in BLOCKS or self._around.foreign

    def _add_element(self, name: str, raw: str, attributes: str, start: int) -> None:
        """Add the beginning of an element, whose attributes begin at a place of its tag."""
        was_translated = self._around.translated
        self._begin(name, attributes)
        is_kept = was_translated and not self._around.translated
        if self._is_block(name):
            kind = "break"
        else:
            kind = "piece" if name in VOID or attributes.endswith("/") or is_kept else "open"
        self._add(kind, raw, name, is_kept)
        if self._has_labels and was_translated and not is_kept:
            self._add_labels(attributes, start)

    def _add_labels(self, attributes: str, start: int) -> None:
        """Note the attributes of the last tag that a reader sees; of two equal names, the first counts."""
        names = set[str]()
        for attribute in _ATTRIBUTES.finditer(attributes):
            name, value = attribute[1].lower(), attribute[2] or ""
            if name not in LABELS or name in names:
                continue
            names.add(name)
            if value[:1] in ("'", '"') and value[1:-1].strip():
                self._labels.append(_Label(len(self._raws) - 1, start + attribute.start(2), start + attribute.end(2)))

    def _add(self, kind: str, raw: str, text: str = "", is_begun: bool = False) -> None:
        """Add a tag or a text. All of an inline element that is not translated is one piece."""
        if kind == "break" or len(self._parts) >= MOST_PARTS:
            self._flush()
        self._raws.append(raw)
        index = len(self._raws) - 1
        if kind == "break":
            self._pieces.append([index])
            return
        if not is_begun and not self._around.translated:
            if self._parts and self._parts[-1].kind == "piece":
                self._parts[-1].raws.append(index)
                return
            kind, text = "piece", ""
        self._parts.append(_Part(kind, [index], text))

    def _flush(self) -> None:
        """Make pieces and blocks of the parts of a text."""
        parts, self._parts = self._parts, []
        partners = _partners(parts)
        start = 0
        for place in sorted([*_breaks(parts, partners, self.IS_CUE), len(parts)]):
            self._add_block(parts, start, place, partners)
            self._pieces += [part.raws for part in parts[place : place + 1]]
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
        self._pieces += [part.raws for part in parts[start:low]]
        if low < high:
            block = Block(
                Item(part.kind, part.text if part.kind == "text" else part.raws)  # type: ignore[arg-type]
                for part in parts[low:high]
            )
            self._blocks.append((len(self._pieces), block))
            self._pieces.append([index for part in parts[low:high] for index in part.raws])
        self._pieces += [part.raws for part in parts[high:end]]

    @property
    def _around(self) -> _Element:
        """Innermost open element."""
        return self._open[-1] if self._open else PAGE

    def _add_text(self, text: str) -> None:
        """Add the text between two tags."""
        if text:
            plain = plain_text(text) if self._has_entities else text
            self._add("text", text, plain if self._around.preformatted else _WHITE_SPACE.sub(" ", plain))

    def _add_raw(self, name: str, html: str, place: int) -> int:
        """Add the content of an element that holds no tags, and return the place of its end tag."""
        end = _RAW_ENDS[name].search(html, place)
        self._add_text(html[place : end.start() if end else len(html)])
        return end.start() if end else len(html)

    def _begin(self, name: str, attributes: str) -> None:
        """Begin an element. Its text is translated by its name, attribute or class, else as that around it."""
        if name in VOID:
            return
        values: dict[str, str] = {}
        for key, value in _ATTRIBUTES.findall(attributes):
            text = value[1:-1] if value[:1] in ("'", '"') else value
            values.setdefault(key.lower(), text)  # of two equal names, the first counts
        around = self._around
        translated = around.translated
        if "notranslate" in plain_text(values.get("class") or "").split():
            translated = False
        if (wanted := values.get("translate")) is not None:
            wanted = plain_text(wanted).lower()
            translated = wanted != "no" if wanted in ("no", "yes", "") else translated
        self._open.append(_Element(
            name, translated and name not in KEPT, around.preformatted or name in PREFORMATTED,
            around.foreign or name in _FOREIGN,
        ))  # fmt: skip

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
