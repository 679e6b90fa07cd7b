"""Inline markup of Markdown: the source of a text is read as items, and written from them."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple

from markdown_it import MarkdownIt, rules_inline
from markdown_it.rules_block import StateBlock, reference
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from nmt.documents.blocks import SOFT_BREAK, Item
from nmt.storage.text import as_cell

DELIMITERS = {"*", "_", "**", "__", "~~"}
"""Delimiters of emphasis, strong emphasis and strikethrough."""
_INDISTINCT = {"``", "**", "__", "~~", "]["}
"""Last and first characters of neighbours that parsers would read together."""
_FOOTNOTE = re.compile(r"\[\^[^\[\]\s]++\]:")
_KEPT = re.compile(
    r"\[\^[^\[\]\s]++\]:?|\A\[[ xX]\](?=\s|\Z)|\[!\w++\](?:[ \t]*+\n[ \t]*+)?"
    r"|(?:(?<=\bhttp)|(?<=\bhttps))://(?:(?:[.,:;!?'\")_]|~(?!~))*+[^\s<>`*|\[\]\\.,:;!?'\")_~]++)++"
)
"""Footnote references, check boxes, labels of alerts with their line breaks, and addresses after their scheme."""
_MARKUP = re.compile(
    r"[`\[\]]|\\(?![^\W_])|(?<!\s)\*|\*(?!\s)|(?<![^\W_])_|_(?![^\W_])|~(?=~|\Z)|(?<=~)~"
    r"|<(?=[a-zA-Z/!?]|\Z)|&(?=#?\w++;)"
)
"""Characters of a text that would become markup without a backslash."""
_END = "end"
"""Key of a token's end in its text."""


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
        tokens: inline tokens of the text, from ``PARSER``.
        images: images by their sources; those of the text are added.
    """
    position = line = 0
    links = list[int]()
    for token in tokens:
        start = position
        length = len("[") if token.type == "link_open" else len(token.markup or token.content)
        position = token.meta.get(_END) or start + length
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


# Rules of markdown-it-py. If a rule is silent, it adds no token and only says whether it matches.


def _is_footnote(state: StateBlock, start: int) -> bool:
    position = state.bMarks[start] + state.tShift[start]
    return not state.is_code_block(start) and bool(_FOOTNOTE.match(state.src, position, state.eMarks[start]))


def _footnote(state: StateBlock, start: int, _end: int, silent: bool) -> bool:
    """End a paragraph before the definition of a footnote, which is a paragraph itself."""
    return silent and _is_footnote(state, start)


def _reference(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a link reference definition. The definition of a footnote is none."""
    return not _is_footnote(state, start) and reference(state, start, end, silent)


def _kept(state: StateInline, silent: bool) -> bool:
    """Read an autolink, or a match of ``_KEPT``, as a token of type "kept"."""
    start = state.pos
    match = _KEPT.match(state.src, start, state.posMax)
    if not match and not rules_inline.autolink(state, True):
        return False
    end = match.end() if match else state.pos
    if not silent:
        if state.src[start] == ":":
            scheme = "https" if state.pending.endswith("https") else "http"
            if not state.pending.endswith(scheme):
                return False
            state.pending = state.pending.removesuffix(scheme)
            start -= len(scheme)
        state.push("kept", "", 0).content = state.src[start:end]
    state.pos = end
    return True


def _with_end(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """Return a rule that records the end of its last token."""

    def recording_rule(state: StateInline, silent: bool) -> bool:
        count = len(state.tokens)
        is_match = rule(state, silent)
        if is_match and len(state.tokens) > count:
            state.tokens[-1].meta[_END] = state.pos
        return is_match

    return recording_rule


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.block.ruler.at("reference", _reference)
    parser.block.ruler.before("reference", "footnote", _footnote, {"alt": ["paragraph", "reference"]})
    rules = {
        "newline": rules_inline.newline, "escape": rules_inline.escape, "backticks": rules_inline.backtick,
        "link": rules_inline.link, "image": rules_inline.image,
    }  # fmt: skip
    for name, rule in rules.items():
        parser.inline.ruler.at(name, _with_end(rule))
    parser.inline.ruler.before("link", "kept", _kept)
    return parser


PARSER = _parser()
"""Parser of CommonMark, tables, strikethrough and footnotes. ``read_items`` reads its inline tokens."""
