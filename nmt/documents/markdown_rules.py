"""The parser of Markdown: CommonMark with tables and strikethrough, and rules for what other programs add to it.

These are footnotes, definitions, admonitions (GitHub, MkDocs, Docusaurus), shortcodes (Hugo, Jekyll), MDX, formulas and
emoji. A block rule that adds no token leaves its lines as they are.
"""

import re
from collections.abc import Callable

from markdown_it import MarkdownIt, rules_inline
from markdown_it.rules_block import StateBlock, reference
from markdown_it.rules_inline import StateInline

END = "end"
"""Key of a token's end in its text."""
_SHORTCODE = r"\{\{(?:(?!\}\})[^\n]){0,500}+\}\}|\{%(?:(?!%\})[^\n]){0,500}+%\}"
_KEPT = re.compile(
    r"\[\^[^\[\]\s]++\]:?|\A\[[ xX]\](?=\s|\Z)|\A:[ \t]++|\[!\w++\](?:[ \t]*+\n[ \t]*+)?"
    rf"|{_SHORTCODE}|\{{/\*(?:(?!\*/)[^\n]){{0,500}}+\*/\}}|\{{[:#.][^{{}}\n]{{1,200}}+\}}"
    r"|</?[A-Z][\w.]*+(?:[^<>{}\n]|\{[^{}\n]*+\}|\{\{[^{}\n]*+\}\}){0,200}+>"
    r"|\$\$[^$\n]++\$\$|\$(?=[^\s$])[^$\n]*+(?<![\s\\])\$(?!\d)"
    r"|(?<![\w:]):[a-z][a-z0-9_+-]*+:(?!\w)"
    r"|(?P<address>(?:(?<=\bhttp)|(?<=\bhttps))"
    r"://(?:(?:[.,:;!?'\")_]|~(?!~))*+[^\s<>`*|\[\]\\.,:;!?'\")_~]++)++)"
)
"""Inline parts that stay: footnote references, check boxes, marks of definitions, labels of alerts with their line
breaks, shortcodes, comments and components of MDX, attributes, formulas, emoji, and addresses after their scheme."""
_PARAGRAPH_START = re.compile(r"\[\^[^\[\]\s]++\]:|:[ \t]")
"""Beginning of a footnote or a definition, which need no empty line before them."""
_BEGINNINGS = (
    re.compile(r"()\$\$(?!.{0,500}\$\$)"),
    re.compile(r"\{%-?+[ \t]*+(raw|highlight|code|comment|mermaid)\b"),
    re.compile(r"\{\{[<%][ \t]*+(highlight|code|mermaid|math)\b(?!.{0,500}/[>%]\}\})"),
    re.compile(r"()(?:import\s++(?:[\"'{*]|\w.{0,500}\bfrom\s++[\"'])|export\s++(?:const|default|function|let)\b)"),
)
"""Beginnings of blocks that stay: formulas, code in shortcodes of Jekyll and Hugo, and code of MDX."""
_ENDINGS = (
    re.compile(r"().{0,500}\$\$"),
    re.compile(r"\{%-?+[ \t]*+end(\w++)"),
    re.compile(r"\{\{[<%][ \t]*+/[ \t]*+(\w++)"),
    re.compile(r"()\Z"),
)
"""Lines that end these blocks, in the same order, with the same word."""
_KEPT_LINE = re.compile(rf"(?:{_SHORTCODE}|[ \t])++\Z|\[\[?_?TOC_?\]?\][ \t]*+\Z", re.IGNORECASE)
"""A line of shortcodes, or a table of contents."""
_CONTAINER = re.compile(r":{3,}[ \t]*+(?:\{[^{}]*+\}|[\w-]++)?(?:\[(.*)\]|[ \t]++(\S.*))?")
"""First or last line of a container of Docusaurus or Pandoc, with its title."""
_ADMONITION = re.compile(r"(?:!!!|\?\?\?\+?+|===[!+]?)[ \t]++(?:[\w -]++)?(?:\"(.*)\")?[ \t]*\Z")
"""First line of an admonition or a tab of MkDocs, with its title. Its text is indented."""


def _rest(state: StateBlock, line: int) -> str:
    """Return a line without its indentation and without the signs of lists and quotes."""
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _paragraph_start(state: StateBlock, start: int, _end: int, silent: bool) -> bool:
    """End a paragraph before a footnote or a definition, which is a paragraph itself."""
    return silent and not state.is_code_block(start) and bool(_PARAGRAPH_START.match(_rest(state, start)))


def _reference(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a link reference definition. The definition of a footnote is none."""
    return not _PARAGRAPH_START.match(_rest(state, start)) and reference(state, start, end, silent)


def _verbatim(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Skip a block that stays as it is."""
    if state.is_code_block(start):
        return False
    line = _rest(state, start)
    for beginning, ending in zip(_BEGINNINGS, _ENDINGS, strict=True):
        match = beginning.match(line)
        if not match:
            continue
        last = _end_of_block(state, start, end, ending, match[1])
        if last is None:
            return False
        if not silent:
            state.line = last
        return True
    return False


def _end_of_block(state: StateBlock, start: int, end: int, ending: re.Pattern[str], word: str) -> int | None:
    """Return the line after a block; None if it has no end. Code of MDX ends with the document at the latest."""
    unclosed = state.env.setdefault("unclosed", {})
    if start < unclosed.setdefault((ending, word), 0):
        return None
    for number in range(start + 1, end):
        match = ending.match(_rest(state, number))
        if match and match[1] == word:
            return number + 1
    if ending is _ENDINGS[-1]:
        return end
    unclosed[ending, word] = end  # so that the time stays linear
    return None


def _line(state: StateBlock, start: int, _end: int, silent: bool) -> bool:
    """Skip a line that stays as it is, or read the title of a container."""
    line = _rest(state, start)
    container = _CONTAINER.fullmatch(line)
    if state.is_code_block(start) or not (container or (line and _KEPT_LINE.match(line))):
        return False
    if not silent:
        state.line = start + 1
        if container:
            _add_title(state, start, container[1] or container[2])
    return True


def _admonition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read an admonition with its indented text."""
    match = None if state.is_code_block(start) else _ADMONITION.match(_rest(state, start))
    if not match or silent:
        return bool(match)
    indent, last = state.sCount[start] + 4, start + 1
    while last < end and (state.isEmpty(last) or state.sCount[last] >= indent):
        last += 1
    outer = state.blkIndent, state.lineMax
    state.push("admonition_open", "div", 1)
    _add_title(state, start, match[1])
    state.blkIndent, state.lineMax = indent, last
    state.md.block.tokenize(state, start + 1, last)
    state.blkIndent, state.lineMax = outer
    state.push("admonition_close", "div", -1)
    state.line = last
    return True


def _add_title(state: StateBlock, line: int, title: str | None) -> None:
    """Add a title as a paragraph."""
    if title:
        state.push("paragraph_open", "p", 1).map = [line, line + 1]
        token = state.push("inline", "", 0)
        token.content, token.map, token.children = title.strip(), [line, line + 1], []
        state.push("paragraph_close", "p", -1)


def _kept(state: StateInline, silent: bool) -> bool:
    """Read an autolink, or a match of ``_KEPT``, as a token of type "kept"."""
    start = state.pos
    match = _KEPT.match(state.src, start, state.posMax)
    if not match and not rules_inline.autolink(state, True):
        return False
    end = match.end() if match else state.pos
    if not silent:
        if match and match["address"]:
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
            state.tokens[-1].meta[END] = state.pos
        return is_match

    return recording_rule


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.block.ruler.at("reference", _reference)
    parser.block.ruler.before("reference", "paragraph_start", _paragraph_start, {"alt": ["paragraph", "reference"]})
    for name, block_rule in (("verbatim", _verbatim), ("line", _line), ("admonition", _admonition)):
        parser.block.ruler.before("fence", name, block_rule, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    rules = {
        "newline": rules_inline.newline, "escape": rules_inline.escape, "backticks": rules_inline.backtick,
        "link": rules_inline.link, "image": rules_inline.image,
    }  # fmt: skip
    for name, rule in rules.items():
        parser.inline.ruler.at(name, _with_end(rule))
    parser.inline.ruler.before("link", "kept", _kept)
    return parser


PARSER = _parser()
"""The parser. ``read_items`` of ``markdown_inline`` reads its inline tokens."""
