"""HTML: text translated, everything else kept byte for byte."""

import random
from typing import Any

import pytest
from chromium import Chromium
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.serving.markup import Markup


def shouted(html: str) -> str:
    markup = Markup(html)
    assert markup.render(markup.texts) == html
    return markup.render([text.upper() for text in markup.texts])


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("one &amp; <b class='x'>two</b>&nbsp;", "ONE &amp; <b class='x'>TWO</b>&nbsp;"),
        ("&lt;b&gt; a < b &copy=2", "&lt;B&gt; A &lt; B ©=2"),
        ("<p>one\n   two</p><pre>one\n two</pre>", "<p>ONE TWO</p><pre>ONE\n TWO</pre>"),
        ("<!DOCTYPE html>\n<title>a <b></title>", "<!DOCTYPE html>\n<title>A &lt;B&gt;</title>"),
        (" <p> a </p>\n", " <p> A </p>\n"),
        ("", ""),
        # Not translated
        ("<p translate=no>one<i translate=yes>two</i></p>", "<p translate=no>one<i translate=yes>TWO</i></p>"),
        ("<p class='a notranslate'>one<br>two</p>two", "<p class='a notranslate'>one<br>two</p>TWO"),
        ("<code>ls</code><!-- > note -->a<br/>b", "<code>ls</code><!-- > note -->A<br/>B"),
        ("<script>if (a<b) c('</p>')</script>x", "<script>if (a<b) c('</p>')</script>X"),
        ("<svg><title><b>a</b></title></svg>", "<svg><title><b>A</b></title></svg>"),
        # Attributes
        ("<img alt='one' src=/x.png>", "<img alt='one' src=/x.png>"),
        ('<a href="/" href="javascript:x()">a</a>', '<a href="/" href="javascript:x()">A</a>'),  # the first counts
        ("<p translate=no translate=yes>a</p>", "<p translate=no translate=yes>a</p>"),
        ('<a href="?a=1&copy=2&lt=3">a</a>', '<a href="?a=1&copy=2&lt=3">A</a>'),
        ("<a title='>' x=\">\">a</a>", "<a title='>' x=\">\">A</a>"),
        # Elements without an end
        ("<ul>" + "<li>a" * 205, "<ul>" + "<li>A" * 205),
        ("<b>" * 300 + "a" + "</b>" * 300 + "b", "<b>" * 300 + "A" + "</b>" * 300 + "B"),
        ("<ul><li translate=no>a<ul><li>b</ul><li>c</ul>d", "<ul><li translate=no>a<ul><li>b</ul><li>c</ul>D"),
        ("a<b c='", "A<b c='"),
        ("a<!-- b", "A<!-- b"),
        ("a</", "A</"),
    ],
)  # fmt: skip
def test_text_is_translated(html: str, expected: str) -> None:
    assert shouted(html) == expected


def test_translations_are_text_whatever_they_look_like() -> None:
    markup = Markup("<p>one</p><p>two</p>")
    assert markup.render(["<script>", "4"]) == "<p>&lt;script&gt;</p><p>4</p>"
    assert markup.render(["1", "2"]) == "<p>1</p><p>2</p>"


@settings(max_examples=200)
@given(st.text(st.one_of(st.sampled_from("<>&\"'/!-= abp;"), st.characters())))
def test_any_text_is_html(html: str) -> None:
    shouted(html)


NAMES = ("p", "b", "div", "span", "a", "script", "style", "pre", "code", "ul", "li", "dt", "h1", "br", "img", "title",
         "textarea", "template", "svg", "iframe", "xmp", "table", "tr", "td")  # fmt: skip
ATTRIBUTES = ["", "", " a=b", ' href="?a=1&copy=2"', " a='1' a=2", " c = d/", ' e="<p>"', " /", " =x", ' "', " f='",
              " g=h'i", "\n", "\v", "\u2003j=k"]  # fmt: skip
TEXTS = ["one ", "two &amp; ", "three\n", "a &lt; b ", "x<y ", "&copy=2 ", "<!-- > -->", "<!-->", "<!--->",
         "<!-- a --!>", "<!doctype html>", "<?x y>", "</>", "</ x>", "< b", "<![CDATA[x]]>", "<!--", "<a"]  # fmt: skip
STRUCTURE = """
return arguments[0].map((html) => {
  const found = [[], ''];
  const walk = (node) => { for (const child of node.childNodes) {
    if (child.nodeType === 3) found[1] += child.data;
    else found[0].push(child.nodeName, child.data ?? [...(child.attributes ?? [])].map((a) => [a.name, a.value]));
    walk(child);
    if (child.content) walk(child.content);
    found[0].push('/');
  } };
  walk(new DOMParser().parseFromString(html, 'text/html'));
  return found;
});
"""


def test_a_browser_finds_the_same_tags_and_the_translated_text(driver: Chromium) -> None:
    dice = random.Random(1)

    def tag() -> str:
        name, end = dice.choice(NAMES), dice.choice([">"] * 12 + ["/>", ""])
        return f"</{name}{end}" if dice.random() < 0.4 else f"<{name}{dice.choice(ATTRIBUTES)}{end}"

    def letters(text: str) -> str:
        return "".join(text.upper().split())

    pages = ["".join(tag() if dice.random() < 0.6 else dice.choice(TEXTS) for _ in range(20)) for _ in range(500)]
    driver.get("about:blank")
    found: list[Any] = driver.execute_script(STRUCTURE, pages + [shouted(page) for page in pages])
    for page, (before, text), (after, translated) in zip(pages, found[:500], found[500:], strict=True):
        assert (before, letters(text)) == (after, letters(translated)), page


@pytest.mark.parametrize(
    "part",
    ["<b>", "<a ", "<p a", "<a b='", "<", "&", "<![CDATA[", "</", "<?", "<!--", "<title>", "<li>", "</i>", "<a b=c d "],
)
def test_hostile_html_takes_time_that_grows_with_its_length(part: str) -> None:
    shouted(part * (300_000 // len(part)))
    shouted(f"<ul>{'<b>' * 300}{part * (300_000 // len(part))}")
