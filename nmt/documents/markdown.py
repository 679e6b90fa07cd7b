"""Markdown: the texts of paragraphs, headings, lists, quotes and tables are translated.

markdown-it-py finds the blocks and the inline markup of their texts. A translated text replaces its own lines, as a
single line. HTML blocks are translated as HTML. The source of everything else stays byte for byte: code, shortcodes,
link reference definitions, front matter except titles and descriptions, and texts whose translations are equal to them.
"""

import itertools
import re
from typing import Any, NamedTuple

from markdown_it.token import Token

from nmt.documents.blocks import Block, Item
from nmt.documents.document import Document
from nmt.documents.front_matter import front_matter_length, quoted, read_values
from nmt.documents.html import BLOCKS, RAW, Markup
from nmt.documents.markdown_inline import Image, escape, read_items, write_items
from nmt.documents.markdown_rules import PARSER
from nmt.storage.text import decode_utf8
from nmt.tokenizers.marks import move_space_out_of_tags

MOST_BRACKETS = 1_000
"""Most opening brackets of a text. Brackets take long to read, so a text with more is not translated."""
_LINE_END = re.compile(r"(\r\n|\r|\n)")
_START_TAG = re.compile(r"[ ]*<([a-zA-Z][a-zA-Z0-9.-]*)")
_CONTAINERS = re.compile(r"(?:[ \t>]|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))*+")
"""Signs of the lists and quotes that contain a line."""
_BLOCK_START = re.compile(r"\d{1,9}(?=[.)](?:\s|\Z))|(?=(?:#{1,6}|[-+])(?:\s|\Z)|>|~~~|=++\s*+\Z|[-:|][-:|\s]*+\Z)")
"""Beginning of a line that would become a block without a backslash after it."""
_CLOSING_SEQUENCE = re.compile(r"(?<!\S)(?=#++\s*+\Z)")
"""Place before number signs that would not be shown at the end of a heading."""
_OUTER_PIPE = re.compile(r"\A\||\|\Z")
"""Signs that make a table of one column out of a line and the line of hyphens after it."""


class _Part(NamedTuple):
    """Text between hard breaks."""

    before: list[Item]
    """Pieces and tags before the translated items."""
    block: Block
    after: list[Item]
    """Pieces and tags after the translated items."""
    end: str
    """Source from here to the next part; empty after the last part."""


class _Span(NamedTuple):
    """A paragraph, a heading or a cell of a table."""

    opening: Token
    """Block token before the text."""
    start: int
    """Position in the source."""
    end: int
    parts: list[_Part]
    images: set[str]
    """Sources of images whose descriptions are translated."""

    @property
    def texts(self) -> list[str]:
        return [part.block.text for part in self.parts]


class _Value(NamedTuple):
    """A value of the front matter."""

    start: int
    end: int
    texts: list[str]


class _Html(NamedTuple):
    """An HTML block."""

    start: int
    end: int
    markup: Markup

    @property
    def texts(self) -> list[str]:
        return self.markup.texts


class Markdown(Document):
    """A Markdown file in UTF-8."""

    SUFFIXES = (".md", ".markdown")

    def __init__(self, content: bytes, name: str) -> None:
        """Find the texts.

        Raises:
            DataError: if the file is not in UTF-8, or a text has too many tags.
        """
        super().__init__(content, name)
        self._source = decode_utf8(content, name)
        pieces = _LINE_END.split(self._source)
        self._lines = pieces[::2]
        """Lines without line breaks."""
        self._offsets = [0, *itertools.accumulate(map(len, pieces))][::2]
        """Positions of the lines in the source."""
        self._images: dict[str, Image] = {}
        """Images whose descriptions are translated, by their sources."""
        self._spans: list[_Span | _Value | _Html] = []
        self._add_front_matter()
        env: dict[str, Any] = {}
        tokens = list[Token]()
        PARSER.block.parse("\n".join(_parsed_lines(self._lines)), PARSER, env, tokens)
        previous_end = 0
        for opening, token in itertools.pairwise(tokens):
            if token.type == "html_block":
                self._add_html(token)
            if token.type != "inline" or not token.content:
                continue
            is_simple = token.content.count("[") <= MOST_BRACKETS
            places = self._places(opening, token, previous_end) if is_simple else []
            self.left["paragraph"] += not places
            if places:
                previous_end = places[-1][1]
                self._add_span(opening, token.content, places, env)
        self.texts = [text for span in self._spans for text in span.texts]
        self._images_start = len(self.texts)
        self.texts += [image.description for image in self._images.values()]
        """The texts, followed by the descriptions of images."""

    def render(self, texts: list[str], source: str = "source", target: str = "target") -> bytes:
        """Return the document with these texts in place of ``texts``."""
        images: dict[str, str] = {}
        for (image_source, image), description in zip(self._images.items(), texts[self._images_start :], strict=True):
            if description != image.description:
                images[image_source] = f"![{escape(description)}{image.rest}"
        remaining, written, previous_end = iter(texts), list[str](), 0
        for span in self._spans:
            translations = [next(remaining) for _ in span.texts]
            has_images = isinstance(span, _Span) and not span.images.isdisjoint(images)
            if translations == span.texts and not has_images:
                continue
            match span:
                case _Span():
                    new = _span_source(span, translations, images)
                case _Value():
                    new = quoted(translations[0])
                case _Html():
                    # An empty line would end the block.
                    kept = [new if new.strip() else old for new, old in zip(translations, span.texts, strict=True)]
                    new = span.markup.render(kept, source, target)
            written += [self._source[previous_end : span.start], new]
            previous_end = span.end
        return "".join([*written, self._source[previous_end:]]).encode()

    def _add_front_matter(self) -> None:
        """Add the values of the front matter."""
        length = front_matter_length(self._lines)
        for value in read_values(self._lines[:length]) if length else ():
            self.left["front matter value"] += value.text is None
            if value.text:
                offset = self._offsets[value.line]
                self._spans.append(_Value(offset + value.start, offset + value.end, [value.text]))

    def _add_html(self, token: Token) -> None:
        """Add an HTML block. In a list or quote it stays, since its lines are indented."""
        first, end = token.map or (0, 0)
        is_whole = token.content.splitlines() == self._lines[first:end]
        tag = _START_TAG.match(self._lines[first])
        if tag and tag[1].lower() not in BLOCKS | RAW:
            first += 1  # such a tag begins a block only if nothing follows it in its line
        if first >= end:
            return
        start, stop = self._offsets[first], self._offsets[end - 1] + len(self._lines[end - 1])
        markup = Markup(self._source[start:stop])
        if is_whole:
            self.left.update(markup.left)
            self._spans.append(_Html(start, stop, markup))
        else:
            self.left["HTML block"] += bool(markup.texts)

    def _places(self, opening: Token, token: Token, previous_end: int) -> list[tuple[int, int]]:
        """Return start and end of each line of a text in the source; nothing if they are not found.

        Args:
            opening: block token before the text.
            token: inline token with the text.
            previous_end: end of the text before, which may be in the same row of a table.
        """
        first = token.map[0] if token.map else 0
        is_cell = opening.tag in ("th", "td")
        content = token.content.replace("|", "\\|") if is_cell else token.content
        places = list[tuple[int, int]]()
        for number, text in enumerate(map(str.strip, content.split("\n")), start=first):
            line, offset = self._lines[number], self._offsets[number]
            if is_cell:
                beginning = _CONTAINERS.match(line)
                column = line.find(text, max(beginning.end() if beginning else 0, previous_end - offset))
            elif opening.markup.startswith("#"):
                column = line.find(text, line.find(opening.markup) + len(opening.markup))
            else:
                column = line.rfind(text)
            if column < 0:
                return []
            places.append((offset + column, offset + column + len(text)))
        return places

    def _add_span(self, opening: Token, content: str, places: list[tuple[int, int]], env: dict[str, Any]) -> None:
        """Add a text and the descriptions of its images.

        Args:
            opening: block token before the text.
            content: source of the text, without the signs of lists and quotes.
            places: start and end of its lines in the source.
            env: link reference definitions of the document.
        """
        breaks = [self._source[end:start] for (_, end), (start, _) in itertools.pairwise(places)]
        tokens = PARSER.inline.parse(content, PARSER, env, [])
        self.left["link title"] += sum(token.type == "link_open" and "title" in token.attrs for token in tokens)
        parts, current, images, depth = list[_Part](), list[Item](), set[str](), 0
        for item in read_items(content, breaks, tokens, self._images):
            depth += {"open": 1, "close": -1}.get(item.kind, 0)
            if depth == 0 and item.kind == "piece" and _LINE_END.search(item.value):
                parts.append(_part(current, item.value))
                current = []
                continue
            current.append(item)
            if item.kind == "piece" and item.value in self._images:
                images.add(item.value)
        parts.append(_part(current, ""))
        if images or any(part.block.text for part in parts):
            self._spans.append(_Span(opening, places[0][0], places[-1][1], parts, images))


def _parsed_lines(lines: list[str]) -> list[str]:
    """Return the lines of a document without its byte-order mark, and with empty lines for its front matter."""
    length = front_matter_length(lines)
    return [""] * length + [
        line.removeprefix("\ufeff") if number == 0 else line for number, line in enumerate(lines[length:], start=length)
    ]


def _part(items: list[Item], end: str) -> _Part:
    """Return the items before a hard break as a part. Its text is without the pieces, tags and spaces around it."""
    opened, partners = list[int](), dict[int, int]()
    for index, item in enumerate(items):
        if item.kind == "open":
            opened.append(index)
        elif item.kind == "close":
            partners[opened.pop()] = index
    low, high = 0, len(items)
    while low < high:
        if _is_blank(items[low]):
            low += 1
        elif _is_blank(items[high - 1]):
            high -= 1
        elif partners.get(low) == high - 1:
            low, high = low + 1, high - 1
        else:
            break
    return _Part(items[:low], Block(items[low:high]), items[high:], end)


def _is_blank(item: Item) -> bool:
    return item.kind == "piece" or (item.kind == "text" and not item.value.strip())


def _span_source(span: _Span, translations: list[str], images: dict[str, str]) -> str:
    """Return the source of a text.

    Args:
        span: the text.
        translations: translations of its parts. An empty one leaves its part as it is.
        images: new sources of images by their old sources.
    """
    source, markup = "", span.opening.markup
    is_cell = span.opening.tag in ("th", "td")
    for part, translation in zip(span.parts, translations, strict=True):
        text = move_space_out_of_tags(translation) if translation.strip() else part.block.text
        items = [*part.before, *part.block.read(text), *part.after]
        for index, item in enumerate(items):
            if item.kind == "piece" and item.value in images:
                items[index] = Item("piece", images[item.value])
        line = write_items(items).strip()
        if not is_cell:
            line = _OUTER_PIPE.sub("&#124;", line)
        if markup.startswith("#"):
            line = _CLOSING_SEQUENCE.sub(r"\\", line)
        elif beginning := _BLOCK_START.match(line):
            line = f"{beginning[0]}\\{line[beginning.end() :]}"
        source += line + part.end
    if is_cell:
        source = source.replace("|", "\\|")
        source += " " if source.endswith("\\") else ""
    return source
