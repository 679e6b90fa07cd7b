"""HTML: texts and attributes with text are translated, everything else but the language stays byte for byte.

The HTML is split where browsers begin and end tags (https://html.spec.whatwg.org/multipage/parsing.html) and never
serialized again, so tags keep their spelling. Time grows linearly with the length of the text.

An element without an end tag extends to the end of its parent, even if a browser ends it earlier.

Block tags, such as ``<p>``, split text. Inline tags stay in the text and enclose the corresponding words of the
translation.
"""

import itertools
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from nmt.documents.attributes import (
    LANGUAGE_ATTRIBUTES,
    SPACE,
    Attribute,
    Edit,
    Tag,
    is_translated,
    labels,
    language_edits,
    language_of,
    plain_text,
    read_attributes,
    value_of,
)
from nmt.documents.blocks import SOFT_BREAK, Block, Item
from nmt.documents.charsets import decode_exactly, page_codec
from nmt.documents.document import Document
from nmt.errors import DataError


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


RAW = _names("script style xmp iframe noembed noframes textarea title")
"""Elements in which browsers look only for the end tag, unless they are within SVG or MathML."""
KEPT = RAW - _names("textarea title") | _names("template code kbd samp")
"""Elements whose content is not translated."""
LEFT = _names("noembed noframes script")
"""Elements of ``RAW`` that may have text for readers, but are not translated."""
PREFORMATTED = _names("pre textarea")
VOID = _names("area base br col embed hr img input link meta source track wbr")
BLOCKS = _names(
    "address article aside blockquote body button canvas caption center col colgroup dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li link "
    "main map math menu meta nav noframes noscript object ol optgroup option p param plaintext pre search section "
    "select summary svg table tbody td textarea tfoot th thead title tr ul video"
)
"""Elements that split text. All other elements, also unknown ones, are inline."""
MOST_OPEN = 200
"""Open elements that are remembered; the outermost are forgotten first."""
MOST_NESTED, MOST_PARTS = 50, 1_000
"""Most tags around a word, and most parts of a text; further tags split the text."""

_FOREIGN = _names("svg math")
_LINE_BREAK = frozenset("\r\n")
_WHITE_SPACE = re.compile(f"[{SPACE}]+")
# Possessive quantifiers keep the time linear. An equals sign needs a value: an unclosed quote is not a name.
_ATTRIBUTE = (
    rf"""[^{SPACE}/>][^{SPACE}/>=]*+"""
    rf"""(?:[{SPACE}]*+=[{SPACE}]*+(?:"[^"]*+"|'[^']*+'|[^{SPACE}>"'][^{SPACE}>]*+|(?=>))|(?![{SPACE}]*+=))"""
)
_MARKUP = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?:!(?!--)|\?|/(?![a-zA-Z]))[^>]*+>?"
    rf"|<(?P<end>/?)(?P<tag>[a-zA-Z][^{SPACE}/>]*+)(?P<attributes>(?:[{SPACE}/]++|{_ATTRIBUTE})*+)(?:>|(?P<rest>.*+))",
    re.DOTALL,
)
"""A tag or a comment. Without an end, it extends to the end of the text."""
_BEGINNING = re.compile(r"<[a-zA-Z/!?]")
"""Beginning of a tag or a comment."""
_RAW_ENDS = {name: re.compile(rf"</{name}(?=[{SPACE}/>])", re.IGNORECASE) for name in RAW}


class _Element(NamedTuple):
    """An open element."""

    name: str
    translated: bool
    preformatted: bool
    foreign: bool
    """Whether the element is SVG or MathML, or within it."""
    language: str
    """Declared language of the element or of those around it; empty if there is none."""


PAGE = _Element("", translated=True, preformatted=False, foreign=False, language="")


class Page(Document):
    """An HTML file."""

    SUFFIXES = (".html", ".htm")

    def __init__(self, content: bytes, name: str) -> None:
        """Read a page in the encoding that it declares, by default UTF-8.

        Raises:
            DataError: if the page is not in this encoding, or browsers do not read it.
        """
        super().__init__(content, name)
        self._codec = page_codec(content, name)
        html = decode_exactly(content, self._codec)
        if html is None:
            raise DataError(
                f"{name} is not in the encoding {self._codec.name}. Correct <meta charset>, or save the page as UTF-8."
            )
        self._markup = Markup(html)
        self.texts, self.left = self._markup.texts, self._markup.left

    def render(self, texts: list[str], source: str = "source", target: str = "target") -> bytes:
        """Return the page with these texts in place of ``texts``; they are in the language ``target``."""
        return self._codec.encode(self._markup.render(texts, source, target), "xmlcharrefreplace")[0]


class _Part(NamedTuple):
    """A tag or a piece of text."""

    kind: str
    """Kind as in ``Item``, or "break" for a tag that splits text."""
    raws: list[int]
    """Indices of its source text in ``Markup._raws``."""
    text: str
    """Text, or the name of the tag."""

    @property
    def is_blank(self) -> bool:
        return self.kind == "piece" or (self.kind == "text" and not self.text.strip())


class Markup:
    """HTML, a page or a part of a page, split into translatable texts and markup."""

    def __init__(self, html: str) -> None:
        """Find the texts to translate. An unfinished tag extends to the end of the HTML, as in a browser."""
        self._raws: list[str] = []
        """Tags and texts in order; joined, they are the HTML."""
        self._labels: list[tuple[int, Attribute]] = []
        """Attributes to translate, with the index of their tag in ``_raws``."""
        self._tags: list[Tag] = []
        """Tags that may declare the language of the translation."""
        self._open: deque[_Element] = deque(maxlen=MOST_OPEN)
        self._parts: list[_Part] = []
        self._pieces: list[list[int]] = []
        """Consecutive entries of ``_raws`` that are rendered together, by index."""
        self._blocks: list[tuple[int, Block]] = []
        """Pieces to translate, by index, with their blocks."""
        self.left = Counter[str]()
        """Number of things with text that are not translated, as for ``Document``."""
        position = 0
        while beginning := _BEGINNING.search(html, position):
            start = beginning.start()
            self._add_text(html[position:start])
            markup = _MARKUP.match(html, start)
            position = markup.end() if markup else len(html)
            raw = html[start:position]
            if not markup or not markup["tag"] or markup["rest"] is not None:
                self._add("piece", raw)
                continue
            name = markup["tag"].lower()
            if markup["end"]:
                self._add("break" if self._is_block(name) else "close", raw, name)
                self._end(name)
                continue
            self._add_element(name, raw, markup["attributes"], markup.start("attributes") - start)
            if name in RAW and not self._parent.foreign:
                position = self._add_raw(name, html, position)
        self._add_text(html[position:])
        self._flush()
        self.texts = [block.text for _, block in self._blocks]
        """The texts with marks in place of tags, followed by the values of attributes."""
        self.texts += [label.value for _, label in self._labels]

    def render(self, texts: list[str], source: str = "source", target: str = "target") -> str:
        """Return the HTML with these texts in place of ``texts``; their numbers are equal.

        Args:
            texts: texts in the language ``target``.
            source, target: language codes; "source" and "target" if they are unknown.
        """
        raws, count = self._raws.copy(), len(self._blocks)
        edits = [*language_edits(self._tags, source, target)]
        for (raw, label), new in zip(self._labels, texts[count:], strict=True):
            if new != label.value:
                quote = "'" if raws[raw][label.start] == "'" else '"'
                edits.append(Edit(raw, label.start, label.end, f"{quote}{escape(new)}{quote}"))
        # Last edit first, so that the positions of other edits in the same tag stay valid.
        for edit in sorted(edits, reverse=True):
            tag = raws[edit.raw]
            raws[edit.raw] = f"{tag[: edit.start]}{edit.text}{tag[edit.end :]}"
        pieces = ["".join(raws[index] for index in piece) for piece in self._pieces]
        for (index, block), text in zip(self._blocks, texts, strict=False):
            if text != block.text:
                pieces[index] = "".join(self._item_markup(item, raws) for item in block.read(text))
        return "".join(pieces)

    @staticmethod
    def _item_markup(item: Item, raws: Sequence[str]) -> str:
        """Return the HTML of an item of a translated text."""
        if item.kind == "text":
            return escape(item.value, quote=False)
        return "".join(raws[index] for index in item.value)

    def _is_block(self, name: str) -> bool:
        return name in BLOCKS or self._parent.foreign

    def _add_element(self, name: str, raw: str, attributes: str, start: int) -> None:
        """Add the start tag of an element; ``start`` is the position of its attributes in the tag."""
        values, parent = read_attributes(attributes, start), self._parent
        may_translate = is_translated(values, default=parent.translated)
        element = _Element(
            name, may_translate and name not in KEPT, parent.preformatted or name in PREFORMATTED,
            parent.foreign or name in _FOREIGN, language_of(values) or parent.language,
        )  # fmt: skip
        if name not in VOID:
            self._open.append(element)
        is_kept = parent.translated and not element.translated
        if self._is_block(name):
            kind = "break"
        else:
            kind = "piece" if name in VOID or attributes.endswith("/") or is_kept else "open"
        self._add(kind, raw, name, is_kept)
        if not may_translate:
            return
        self.left["embedded page"] += "srcdoc" in values
        self.left["template"] += name == "template"
        self.left["keyword list"] += name == "meta" and value_of(values, "name") == "keywords"
        if name not in KEPT or name == "iframe":
            self._add_attributes(element, values)

    def _add_attributes(self, element: _Element, values: dict[str, Attribute]) -> None:
        """Record the attributes of the last tag that the translation changes."""
        raw = len(self._raws) - 1
        self._labels += [(raw, label) for label in labels(element.name, values)]
        declared = {
            name: attribute for name, attribute in values.items()
            if attribute.value and (name == "dir" or name in LANGUAGE_ATTRIBUTES)
        }  # fmt: skip
        if declared or element.name == "html":
            self._tags.append(Tag(raw, element.name, element.language, declared))

    def _add(self, kind: str, raw: str, text: str = "", is_begun: bool = False) -> None:
        """Add a tag or a text. An inline element that is not translated becomes a single piece with its content."""
        if kind == "break" or len(self._parts) >= MOST_PARTS:
            self._flush()
        self._raws.append(raw)
        index = len(self._raws) - 1
        if kind == "break":
            self._pieces.append([index])
            return
        if not is_begun and not self._parent.translated:
            if self._parts and self._parts[-1].kind == "piece":
                self._parts[-1].raws.append(index)
                return
            kind, text = "piece", ""
        self._parts.append(_Part(kind, [index], text))

    def _flush(self) -> None:
        """Turn the parts of a text into pieces and blocks."""
        parts, self._parts = self._parts, []
        partners = _partners(parts)
        start = 0
        for end in sorted([*_breaks(parts, partners), len(parts)]):
            self._add_block(parts, start, end, partners)
            self._pieces += [part.raws for part in parts[end : end + 1]]
            start = end + 1

    def _add_block(self, parts: list[_Part], start: int, end: int, partners: dict[int, int]) -> None:
        """Add ``parts[start:end]`` as a block, without the tags, pieces and spaces around its text."""
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
    def _parent(self) -> _Element:
        """Innermost open element."""
        return self._open[-1] if self._open else PAGE

    def _add_text(self, text: str) -> None:
        """Add the text between two tags."""
        # White space at the ends is a part of its own, which stays as it is at the beginning and end of a block.
        core = text.strip(SPACE)
        before, _, after = text.partition(core) if core else (text, "", "")
        for part in filter(None, (before, core, after)):
            plain = plain_text(part)
            self._add("text", part, plain if self._parent.preformatted else _WHITE_SPACE.sub(_collapsed, plain))

    def _add_raw(self, name: str, html: str, start: int) -> int:
        """Add the content of an element without tags inside, and return the position of its end tag."""
        end_tag = _RAW_ENDS[name].search(html, start)
        end = end_tag.start() if end_tag else len(html)
        content = html[start:end]
        self._add_text(content)
        self.left[name] += name in LEFT and bool(content.strip())
        return end

    def _end(self, name: str) -> None:
        """Close the innermost open element with this name, and the elements within it."""
        for count, element in enumerate(reversed(self._open), start=1):
            if element.name == name:
                for _ in range(count):
                    self._open.pop()
                return


def _collapsed(white_space: re.Match[str]) -> str:
    """Return what a browser shows in place of white space."""
    return " " if _LINE_BREAK.isdisjoint(white_space[0]) else SOFT_BREAK


def _partners(parts: list[_Part]) -> dict[int, int]:
    """Return the indices of matching tags: the closing tag of each opening tag, and the reverse."""
    opened, partners = list[int](), dict[int, int]()
    for index, part in enumerate(parts):
        if part.kind == "open" and len(opened) < MOST_NESTED:
            opened.append(index)
        elif part.kind == "close":
            for count, start in enumerate(reversed(opened), start=1):
                if parts[start].text == part.text:
                    partners |= {index: start, start: index}
                    del opened[-count:]
                    break
    return partners


def _breaks(parts: list[_Part], partners: dict[int, int]) -> Iterator[int]:
    """Yield the indices of tags that split text.

    These are tags without a partner, line breaks that no lower-case letter follows, and the tags around them.
    """
    counts, following = [0] * (len(parts) + 1), ""
    for index, part in reversed([*enumerate(parts)]):
        is_alone = part.kind in ("open", "close") and index not in partners
        is_end = part.kind == "piece" and part.text == "br" and not following[:1].islower()
        counts[index] = is_alone or is_end
        if part.kind == "text":
            following = part.text.lstrip() or following
        elif part.text == "br":
            following = ""
    total = [0, *itertools.accumulate(counts)]
    for index in range(len(parts)):
        low, high = sorted((index, partners.get(index, index)))
        if total[high + 1] > total[low]:
            yield index
