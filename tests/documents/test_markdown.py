"""Markdown: another parser sees the same structure in a translated document, and everything but its text stays."""

from collections.abc import Callable, Iterator

import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from test_document_formats import translate_to_upper

from nmt.documents.formats import read_document, translate_texts
from nmt.tokenizers.marks import MARK

READMES = [ROOT / name for name in ("README.md", "nmt/README.md", "checkpoints/README.md", "configs/README.md")]
DOCUMENT = """\
---
title: {0}
---
# {0} *{1}* and `code` #

{0} {1}
===

- [ ] {0}
- {1} **{0} _{1}_**
  {1} [{0} `x`](http://a.b/c_d "title") {1}

  1. > {0}  
     > {1}\\
     > ~~{0}~~ <b>{1}</b>

| {0} | *{1}* |
|:----|-------|
| `a\\|b` | {1} \\| {0} |
| {0} |

> [!NOTE]
> {0}
{1}.

```
{0}
```

    {0}

<div>
{0}
</div>

***

{0} [^1], [{0}][ref], <http://a.b>, https://a.b/__c__.py. ![{0}](i_j.png) [![{1}](i.svg)](k)

[^1]: {0} {1}
[^2]: {1} {0}

[ref]: http://a.b "title"
"""  # noqa: W291 - two spaces are a hard break
WORDS = {
    "German": ("Straße", "Häuser"), "Chinese": ("公园，", "真。"), "Arabic": ("حديقة،", "كلب"),
    "Hindi": ("पार्क।", "कुत्ता"), "Turkish": ("bahçe", "ılık İyi"),
}  # fmt: skip
MARKUP = [
    "#", "# a", "1.", "2) b", "*x*", "_y_", "**", "[a](b)", "[r]", "![i](j)", "<b>", "<!--", "|", "`", "---", "===",
    "&amp;", "\\", "\\*", "> q", "- l", "+", "~~z~~", "~~~", "!", "(", ":", "[^1]: a", "    c", "http://x.y/z_",
    "|-|", "a | b",
]  # fmt: skip
FRAGMENTS = [
    "word ", "Haus", "公园，", "حديقة", "पार्क", "bahçe", "*", "_", "**", "__", "~~", "`", "``", "***", "[", "](u)",
    '](u "t")', "![", "<b>", "<http://a.b>", "https://c.d/e_f.", "\\", "\\*", "&amp;", "|", "\n", "\n\n",
    "\r\n", "  \n", "\\\n", "> ", "- ", "- [ ] ", "1. ", "# ", " ##", "\n---\n", "\n===\n", "[r]", "[r]: /u\n", "!",
    "(", ":", "| a | b |\n|---|---|\n| c | d |\n", "```\n", "    ", "\t", "<div>\n", "> [!NOTE]\n> ",
]  # fmt: skip


def translated(text: str, translate: Callable[[str], str]) -> str:
    document = read_document("a.md", text.encode())
    texts = translate_texts(document.texts, lambda lines: [translate(line) for line in lines], lambda *_: None)
    return document.render(texts).decode()


def tokens_of(text: str) -> Iterator[Token]:
    """Yield the block tokens of a document, and the inline tokens in place of texts."""
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        yield from (token.children or []) if token.type == "inline" else [token]


def structure_of(text: str) -> list[tuple[str, str, str, dict[str, str | int | float]]]:
    """Return everything that a parser finds in a document, except its text and the descriptions of images."""
    return [
        (token.type, token.tag, "" if token.type in ("image", "html_block") else token.content.replace("\n", " "),
         {key: value for key, value in token.attrs.items() if key != "alt"})
        for token in tokens_of(text)
        if token.type not in ("text", "softbreak")
    ]  # fmt: skip


def text_of(text: str) -> list[str]:
    return [token.content for token in tokens_of(text) if token.type == "text" and token.content.strip()]


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_translated_document_has_the_structure_of_its_source(language: str, end: str) -> None:
    source = DOCUMENT.format(*WORDS[language]).replace("\n", end)
    assert translated(source, lambda line: line) == source
    assert structure_of(translated(source, str.upper)) == structure_of(source)
    new = translated(source, lambda line: f"{line.upper()} a")
    assert structure_of(new) == structure_of(source)
    first, second = WORDS[language]
    assert f"```{end}{first}{end}```{end}{end}    {first}{end}{end}<div>{end}{first.upper()} a{end}</div>{end}" in new
    assert f"{end}# {first.upper()} *{second.upper()}* AND a `code` #{end}" in new
    gap = "" if language == "Chinese" else " "  # Chinese has no space at a line break within a paragraph
    assert f"> [!NOTE]{end}> {first.upper()}{gap}{second.upper()}. a{end}" in new


@pytest.mark.parametrize("path", READMES, ids=str)
def test_a_translated_readme_keeps_everything_but_its_text(path: object) -> None:
    source = path.read_text(encoding="utf-8")  # type: ignore[attr-defined]
    assert translated(source, lambda line: line) == source
    for translate in (str.upper, lambda line: f"公园，{line}。"):
        assert structure_of(translated(source, translate)) == structure_of(source)


@pytest.mark.parametrize("context", ["{}\n", "# {}\n", "> - {}\n", "{}\n---\n", "{}\n===\n", "| b | {} |\n|---|---|\n"])
@pytest.mark.parametrize("translation", MARKUP)
def test_markup_of_a_translation_is_text(translation: str, context: str) -> None:
    """Spaces at the beginning and end of a paragraph are no text of Markdown."""
    source = context.format("word")
    new = translated(source, lambda line: translation if line == "word" else line)
    assert structure_of(new) == structure_of(source)
    assert "".join(text_of(new)) == "".join(text_of(source)).replace("word", translation.strip())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("one [two](a.md) three", "ONE [TWO](a.md) THREE"),
        ("`one`, two", "`one`, TWO"),
        ("- one\n  two\n- three", "- ONE TWO\n- THREE"),
        ("> one\n> two\nthree", "> ONE TWO THREE"),
        ("one  \ntwo\\\nthree", "ONE  \nTWO\\\nTHREE"),
        ("> **one  \n> two**", "> **ONE  \n> TWO**"),
        ("# C#\n# one \\#", "# C#\n# ONE \\#"),
        ("a * b, a_b_c, 2 < 3 & 4", "A * B, A_B_C, 2 < 3 & 4"),
        ("\\*one\\* &lt;two&gt; &copy;", "\\*ONE\\* \\<TWO> ©"),
        ("- [x] one", "- [x] ONE"),
        ("[^1]: one\n[^2]: two", "[^1]: ONE\n[^2]: TWO"),
        ("[one]: /two\n\n[one] [one][] ![one]", "[one]: /two\n\n[ONE][one] [ONE][one] ![ONE][one]"),
        ("| - | one |\n|---|-----|\n| two | x\\|y |", "| - | ONE |\n|---|-----|\n| TWO | X\\|Y |"),
        ("1. | 1 | b |\n   |---|---|", "1. | 1 | B |\n   |---|---|"),
        ("one ![two](a.png) three", "ONE ![TWO](a.png) THREE"),
        ("[![one](a.svg)](b)", "[![ONE](a.svg)](b)"),
        ("\ufeff# one", "\ufeff# ONE"),
        ("---\none: two\n---\nthree", "---\none: two\n---\nTHREE"),
        ("+++\none = 2\n+++\nthree", "+++\none = 2\n+++\nTHREE"),
        ("---\n\none", "---\n\nONE"),
        ("__one__", "__ONE__"),
        # An escape before a hard break, a list marker after one, a number without a list, an empty check box.
        ("one\\\\\\\\\\\ntwo", "ONE\\\\\\\\\\\nTWO"),
        ("3. one:\\\n   \\- two", "3. ONE:\\\n   \\- TWO"),
        ("1\\. one\n\n2)", "1\\. ONE\n\n2)"),
        ("- [x]\n- [ ]\n- one", "- [x]\n- [ ]\n- ONE"),
        # Markup without spaces around it, as German compounds have it.
        ("**one**two ~~three~~.", "**ONE**TWO ~~THREE~~."),
        ("https://a.b/__init__.py one", "https://a.b/__init__.py ONE"),
        ("one\\\nhttps://a.b\\\ntwo", "ONE\\\nhttps://a.b\\\nTWO"),
    ],
)
def test_the_source_of_a_translated_text(source: str, expected: str) -> None:
    assert translated(source, str.upper) == expected


DIALECTS = """\
---
title: {0} {1}
description: "{0}"
draft: true
tags: [a, b]
---
import Tabs from '@theme/Tabs';
export const a = 1

:::note {0}
{1} {{props.a}}
:::

!!! warning "{0}"
    {1} `Ctrl`+`C`.

    - {0}

=== "{1}"

    {0} {{{{< ref "a_b.md" >}}}} {1}

{{{{< youtube id="a_b" >}}}}
{0}
{{{{% /note %}}}}

{{% highlight ruby %}}
{0}

{1}
{{% endhighlight %}}

$$
{0} = {1}
$$

{0} $x_1 * y_2$ {1} :a_b: <Icon name={{a_b}}/> {{/* {0} */}}

## {1} {{#a_b}}

{0}
: {1}

[[_TOC_]]

<div align="center">
  <img alt="{0}">
  {1} <b>{0}</b>
</div>

<Tabs values={{a}}>
{0}
</Tabs>
"""
KEPT_LINES = [
    "draft: true", "tags: [a, b]", "import Tabs from '@theme/Tabs';", "export const a = 1", ":::", "[[_TOC_]]", "$$",
    '{{< youtube id="a_b" >}}', "{{% /note %}}", "{% highlight ruby %}", "{% endhighlight %}", '<div align="center">',
    "</div>", "<Tabs values={a}>", "</Tabs>",
]  # fmt: skip


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_other_programs_add_to_markdown_stays(language: str, end: str) -> None:
    first, second = WORDS[language]
    source = DIALECTS.format(first, second).replace("\n", end)
    assert translated(source, lambda line: line) == source
    new = translated(source, lambda line: line.replace(first, "eins").replace(second, "zwei"))
    lines = new.split(end)
    assert all(line in lines for line in KEPT_LINES)
    code = f"{first}{end}{end}{second}{end}{{% endhighlight %}}"
    formula = f"$${end}{first} = {second}{end}$$"
    comment = f"{{/* {first} */}}"
    for kept in (code, formula, comment):
        assert kept in new
        new = new.replace(kept, "")
    assert first not in new and second not in new
    for line in (
        'title: "eins zwei"', 'description: "eins"', ":::note eins", "zwei {props.a}", '!!! warning "eins"',
        "    zwei `Ctrl`+`C`.", "    - eins", '=== "zwei"', '    eins {{< ref "a_b.md" >}} zwei', "## zwei {#a_b}",
        ": zwei", '  <img alt="eins">', "  zwei <b>eins</b>",
    ):  # fmt: skip
        assert line in lines, line
    assert "eins $x_1 * y_2$ zwei :a_b: <Icon name={a_b}/> " in new


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("title: one", 'title: "ONE"'), ("title = 'one'", 'title = "ONE"'), ("title: 'it''s'", 'title: "IT\'S"'),
        ('summary: "one \\"two\\""', 'summary: "ONE \\"TWO\\""'), ("title: >", "title: >"),
        ("  title: one", "  title: one"), ("slug: one", "slug: one"), ("title: [one]", "title: [one]"),
        ("title:", "title:"), ("title: a: b", "title: a: b"),
        ("title: one # two", "title: one # two"), ('title: "one', 'title: "one'),
    ],
)  # fmt: skip
def test_titles_of_a_front_matter(value: str, expected: str) -> None:
    fence = "+++" if "=" in value else "---"
    assert translated(f"{fence}\n{value}\n{fence}\n", str.upper) == f"{fence}\n{expected}\n{fence}\n"


@pytest.mark.parametrize("source", [
    "It costs $5 and $6 : a: b", "a {b", "a {% b", "{{ a", "a\n\n$$\nb", "{% raw %}\na", "import one", "<A b c",
    "export", "!!!", "::: a b c :::", "$", ":", "!!! a\n\n", "> !!! a\n>     b", "- ::: a\n  b\n  :::", "$$",
    "!!! a\n" * 50,
])  # fmt: skip
def test_what_looks_like_a_dialect_and_is_not_closed_stays(source: str) -> None:
    assert translated(source, lambda line: line) == source
    signs = str.maketrans("", "", "\\ \n")
    assert translated(source, str.upper).upper().translate(signs) == source.upper().translate(signs)


def test_what_is_left_is_counted() -> None:
    source = '---\ntitle: >\n  a\n---\n[a](b "c")\n\n- <p>d</p>\n\n<script>e</script>\n\n' + "[" * 2_000
    note = "1 front matter value, 1 paragraph, 1 link title, 1 HTML block, 1 script"
    assert read_document("a.md", source.encode()).note == f"Not translated: {note}."


def test_emphasis_next_to_chinese_letters_stays_emphasis() -> None:
    assert (
        translated("**Note:** one", lambda line: line.replace("Note:", "注意：").replace(" one", "一"))
        == "**注意：** 一"
    )
    assert translated("one _two_ three", lambda line: line.replace(" ", "").replace("one", "一")) == "一 _two_ three"


def test_lost_tags_leave_no_delimiters_of_nothing() -> None:
    document = read_document("a.md", b"one **two** [three](a)")
    assert document.render(["eins zwei"]) == b"eins zwei[](a)"
    assert document.render([""]) == b"one **two** [three](a)"


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14), st.sampled_from(MARKUP), st.booleans())
def test_any_document_keeps_its_structure(fragments: list[str], markup: str, is_added: bool) -> None:
    source = "".join(fragments)
    assert translated(source, lambda line: line) == source
    new = translated(source, lambda line: f"{line.upper()} {markup}" if is_added else line.upper())
    assert structure_of(new) == structure_of(source)


def test_nested_brackets_and_blocks_take_no_long_time_and_stay() -> None:
    for source in ("[" * 5_000, "> " * 500 + "a", "".join("  " * depth + "- a\n" for depth in range(200))):
        assert translated(source, lambda line: line) == source
    assert translate_to_upper("a.markdown", b"[" * 2_000 + b"one\n\ntwo") == b"[" * 2_000 + b"one\n\nTWO"


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ("今日は\n晴れ。", "今日は晴れ。"),
        ("我们\n*去*公园，\n好吗？", "我们去公园，好吗？"),
        ("我有\niPhone", "我有 iPhone"),
        ("ein\nHund", "ein Hund"), ("ผมไป\nตลาด", "ผมไป ตลาด"), ("वह\nसोता", "वह सोता"), ("لا\nنعم", "لا نعم"),
    ],
)  # fmt: skip
def test_a_line_break_within_a_paragraph_is_a_space_where_the_script_has_spaces(lines: str, text: str) -> None:
    html = lines.replace("*去*", "<i>去</i>")
    for name, content in {"a.md": lines, "a.html": f"<p>{html}</p>"}.items():
        [found] = read_document(name, content.encode()).texts
        assert MARK.sub("", found) == text
