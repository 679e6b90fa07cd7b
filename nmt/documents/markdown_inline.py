"""Inline markup of Markdown: the source of a text is read as items, and written from them."""

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from markdown_it.token import Token

from nmt.documents.blocks import SOFT_BREAK, Item
from nmt.documents.markdown_rules import END
from nmt.storage.text import as_cell

DELIMITERS = {"*", "_", "**", "__", "~~"}
"""Delimiters of emphasis, strong emphasis and strikethrough."""
_INDISTINCT = {"``", "**", "__", "~~", "]["}
"""Last and first characters of neighbours that parsers would read together."""
_MARKUP = re.compile(
    r"[`\[\]]|\\(?![^\W_])|(?<!\s)\*|\*(?!\s)|(?<![^\W_])_|_(?![^\W_])|~(?=~|\Z)|(?<=~)~"
    r"|<(?=[a-zA-Z/!?]|\Z)|&(?=#?\w++;)"
)
"""Characters of a text that would become markup without a backslash."""


class Image(NamedTuple):
    """An image."""

    description: str
    rest: str
    """Source after the description."""


def read_items(content: str, breaks: list[str], tokens: list[Token], images: dict[str, Image]) -> Iterator[Item]:
    """Yield the items of a text. A hard break is a piece with a line break, which no other piece has.

    Args:
        content: source of the text, without the signs of lists and quotes.
        breaks: source between the lines of the text.
        tokens: inline tokens of the text, from ``PARSER`` of ``markdown_rules``.
        images: images by their sources; those of the text are added.
    """
    position = line = 0
    links = list[int]()
    for token in tokens:
        start = position
        length = len("[") if token.type == "link_open" else len(token.markup or token.content)
        position = token.meta.get(END) or start + length
        raw = content[start:position]
        line += raw.count("\n")
        if token.type in ("text", "text_special"):
            yield Item("text", token.content)
        elif token.type == "softbreak":
            yield Item("text", SOFT_BREAK)
        elif token.type in ("hardbreak", "kept") and "\n" in raw:
            yield Item("piece", raw.partition("\n")[0].rstrip() + breaks[line - 1])
        else:
            if token.type == "link_open":
                links.append(position)
            elif token.type == "link_close":
                raw = _full_reference(raw, content[links.pop() : start])
            raw = raw.replace("\n", " ")
            children = token.children or []
            if token.type == "image" and {child.type for child in children} <= {"text", "text_special"}:
                description = "".join(child.content for child in children)
                rest = _full_reference(raw[len("![") + len(token.content) :], token.content)
                images[raw] = Image(description, rest.replace("\n", " "))
            yield Item({1: "open", 0: "piece", -1: "close"}[token.nesting], raw)  # type: ignore[arg-type]


def _full_reference(end: str, label: str) -> str:
    """Return the end of a link. If the label of its reference is its text, the label is added."""
    return f"][{label}]" if end in ("]", "][]") else end


def write_items(items: list[Item]) -> str:
    """Return the source of the items of a line, with spaces between those that would be read together."""
    sources = list[Item]()
    for item in items:
        if item.kind == "close" and item.value in DELIMITERS and sources and sources[-1].kind == "open":
            sources.pop()  # nothing is emphasized
        elif item.kind == "text" and item.value:
            sources.append(Item("text", escape(item.value)))
        elif item.value:
            sources.append(item)
    nothing = Item("text", "")
    line = list[str]()
    for previous, item, following in zip([nothing, *sources], sources, [*sources[1:], nothing], strict=False):
        source, before, after = item.value, previous.value[-1:], following.value[:1]
        is_before_start = item.kind in ("open", "piece") and previous.kind in ("close", "piece")
        if item.kind == "text":
            if previous.kind != "text" and before == "]" and source[0] in "(:":
                source = f"\\{source}"  # no link or definition
            if following.kind == "open" and after == "[" and source.endswith("!"):
                source = f"{source[:-1]}\\!"  # no image
        elif item.kind == "open" and _needs_space(source, before, after):
            source = f" {source}"
        elif item.kind == "close" and _needs_space(source, after, before):
            source = f"{source} "
        if is_before_start and before + item.value[0] in _INDISTINCT:
            source = f" {source}"
        line.append(source)
    return "".join(line)


def escape(text: str) -> str:
    """Return the source of a text: one line, with a backslash before each character that would be markup."""
    return _MARKUP.sub(r"\\\g<0>", as_cell(text))


def _needs_space(tag: str, outer: str, inner: str) -> bool:
    """Return whether a delimiter between these characters would be text, such as ** between a comma and a letter."""
    return tag in DELIMITERS and _is_word(outer) and ("_" in tag or not _is_word(inner))


def _is_word(character: str) -> bool:
    """Return whether a character is neither white space nor punctuation."""
    return bool(character) and not character.isspace() and unicodedata.category(character)[0] not in "PS"
