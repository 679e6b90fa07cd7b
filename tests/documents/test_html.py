"""HTML: text is translated, everything else stays byte for byte."""

import random
from typing import Any

import pytest
from chromium import Chromium
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.documents.html import Markup, Page
from nmt.tokenizers.marks import CLOSE, OPEN, PIECE


def to_upper(html: str) -> str:
    """Return HTML whose texts are in upper case instead of translated."""
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
        ("<div>\n  a\n b <i>c</i>\n</div>", "<div>\n  A B <i>C</i>\n</div>"),
        ("", ""),
        # Not translated
        ("<p translate=no>one<i translate=yes>two</i></p>", "<p translate=no>one<i translate=yes>TWO</i></p>"),
        ("<p class='a notranslate'>one<br>two</p>two", "<p class='a notranslate'>one<br>two</p>TWO"),
        ("<code>ls</code><!-- > note -->a<br/>b", "<code>ls</code><!-- > note -->A<br/>B"),
        ("<script>if (a<b) c('</p>')</script>x", "<script>if (a<b) c('</p>')</script>X"),
        ("<svg><title><b>a</b></title></svg>", "<svg><title><b>A</b></title></svg>"),
        # Attributes
        ("<img alt='one' src=/x.png>", "<img alt='ONE' src=/x.png>"),
        ("<img alt=one src=x>", '<img alt="ONE" src=x>'),
        ("<img translate=no alt=one><code title=one>a</code>", "<img translate=no alt=one><code title=one>a</code>"),
        ("<iframe title='one' src=a>b</iframe>", "<iframe title='ONE' src=a>b</iframe>"),
        ("<input TYPE='Submit' value=one><input value=one>", "<input TYPE='Submit' value=\"ONE\"><input value=one>"),
        ("<button value=one>two</button>", "<button value=one>TWO</button>"),
        ("<option label=one value=two>", '<option label="ONE" value=two>'),
        ("<meta name=Description content='one'>", "<meta name=Description content='ONE'>"),
        ("<meta property='og:title' content='one'>", "<meta property='og:title' content='ONE'>"),
        ("<meta name=viewport content='one'><x-a label=one>", "<meta name=viewport content='one'><x-a label=one>"),
        ('<a href="/" href="javascript:x()">a</a>', '<a href="/" href="javascript:x()">A</a>'),  # the first counts
        ("<p translate=no translate=yes>a</p>", "<p translate=no translate=yes>a</p>"),
        ('<a href="?a=1&copy=2&lt=3">a</a>', '<a href="?a=1&copy=2&lt=3">A</a>'),
        ("<a name='>' x=\">\">a</a>", "<a name='>' x=\">\">A</a>"),
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
    assert to_upper(html) == expected


@pytest.mark.parametrize(
    ("html", "texts"),
    [
        ("<p>A <b>b <i>c</i></b> d.</p><div>e</div>f", ["A 1b 2c2'1' d.", "e", "f"]),
        ("<li><b>a</b><li><!-- c --> <i><u>b</u></i>", ["a", "b"]),  # tags around a whole text are not part of it
        ("a <code>x <b>y</b></code> b <span translate=no>c</span>d<img>e", ["a _ b _d_e"]),
        ("a <kbd>x</kbd>+<kbd>y</kbd> \n+ <kbd>z</kbd> b", ["a _ b"]),
        ("a <code>x</code>/<code>y</code>, <code>z</code> b", ["a _, _ b"]),
        ("a <code>x</code> – <code>y</code> b", ["a _ – _ b"]),
        ("a <b>b</i> c</b> d", ["a", "b", "c", "d"]),  # misnested
        ("a<br>B <i>c<br>d</i>", ["a", "B 1c_d1'"]),
        ("<b>a <p>b</p></b>", ["a", "b"]),
        ("a <x-y>b</x-y> <x id=1/>c", ["a 1b1' _c"]),
        ("a <i> b </i>c", ["a  1b1' c"]),
        ("a \U00100007 b", ["a _ b"]),
    ],
)
def test_a_text_is_a_block_with_its_inline_tags(html: str, texts: list[str]) -> None:
    def readable(text: str) -> str:
        numbers: dict[int, int] = {}
        signs = []
        for code in map(ord, text):
            if OPEN <= code < PIECE:
                number = numbers.setdefault((code - OPEN) % (CLOSE - OPEN), len(numbers) + 1)
                signs.append(f"{number}'" if code >= CLOSE else str(number))
            else:
                signs.append("_" if code >= PIECE else chr(code))
        return "".join(signs)

    assert [readable(text) for text in Markup(html).texts] == texts


def test_tags_follow_their_marks_and_lost_tags_come_at_the_end() -> None:
    markup = Markup('<p>a <b class=x>b</b> <img src="1"> c</p>')
    words = markup.texts[0].split()
    assert markup.render([" ".join(reversed(words))]) == '<p>c <img src="1"> <b class=x>b</b> a</p>'
    assert markup.render(["d"]) == '<p>d<b class=x></b><img src="1"></p>'


def test_translations_are_text_whatever_they_look_like() -> None:
    markup = Markup("<p>one</p><p>two</p>")
    assert markup.render(["<script>", "4"]) == "<p>&lt;script&gt;</p><p>4</p>"
    assert markup.render(["1", "2"]) == "<p>1</p><p>2</p>"


@settings(max_examples=200)
@given(st.text(st.one_of(st.sampled_from("<>&\"'/!-= abp;"), st.characters())))
def test_any_text_is_html(html: str) -> None:
    to_upper(html)


NAMES = ("p", "b", "div", "span", "a", "script", "style", "pre", "code", "ul", "li", "dt", "h1", "br", "img", "title",
         "textarea", "template", "svg", "iframe", "xmp", "table", "tr", "td")  # fmt: skip
ATTRIBUTES = ["", "", " a=b", ' href="?a=1&copy=2"', " a='1' a=2", " c = d/", ' e="<p>"', " /", " =x", ' "', " f='",
              " g=h'i", "\n", "\v", "\u2003j=k"]  # fmt: skip
TEXTS = ["one ", "two &amp; ", "three\n", "a &lt; b ", "x<y ", "&copy=2 ", "<!-- > -->", "<!-->", "<!--->",
         "<!-- a --!>", "<!doctype html>", "<?x y>", "</>", "</ x>", "< b", "<![CDATA[x]]>", "<!--", "<a"]  # fmt: skip
STRUCTURE = """
return arguments[0].map((html) => {
  const page = [[], ''];
  const walk = (node) => { for (const child of node.childNodes) {
    if (child.nodeType === 3) page[1] += child.data;
    else page[0].push(child.nodeName, child.data ?? [...(child.attributes ?? [])].map((a) => [a.name, a.value]));
    walk(child);
    if (child.content) walk(child.content);
    page[0].push('/');
  } };
  walk(new DOMParser().parseFromString(html, 'text/html'));
  return page;
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
    results: list[Any] = driver.execute_script(STRUCTURE, pages + [to_upper(page) for page in pages])
    for page, (before, text), (after, translated) in zip(pages, results[:500], results[500:], strict=True):
        assert (before, letters(text)) == (after, letters(translated)), page


def test_labels_of_a_page_are_translated_and_other_attributes_stay() -> None:
    html = """<p title='A &amp; room' data-x='title="no"'>Two <b title="dogs">big <img alt="a dog" src=alt.png> dogs</b>
<img alt="" title=bare><i translate="no" title="kept">x</i><script title="s">let a = "<b title='t'>"</script>"""
    page = Page(html.encode(), "page.html")
    assert page.texts[-4:] == ["A & room", "dogs", "a dog", "bare"] and page.note == "Not translated: 1 script."
    assert page.render(page.texts) == html.encode()
    expected = html.replace("'A &amp; room'", "'&lt;Raum&gt; &amp; &#x27;Zimmer&#x27;'")
    expected = expected.replace('"dogs"', '"Hunde"').replace('"a dog"', '"ein Hund"')
    expected = expected.replace("title=bare", 'title="nackt"')
    assert page.render([*page.texts[:-4], "<Raum> & 'Zimmer'", "Hunde", "ein Hund", "nackt"]) == expected.encode()
