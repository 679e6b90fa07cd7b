"""HTML: text translated, everything else kept."""

import pytest
from bs4 import BeautifulSoup, Comment
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.serving.markup import MOST_DEPTH, Markup
from nmt.serving.protocol import RequestError


def shouted(html: str) -> str:
    markup = Markup(html)
    return markup.render([text.upper() for text in markup.texts])


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>one</p>", "<p>ONE</p>"),
        ("one &amp; <b class='x'>two</b>", 'ONE &amp; <b class="x">TWO</b>'),
        ("<p translate=no>one<i translate=yes>two</i></p>", '<p translate="no">one<i translate="yes">TWO</i></p>'),
        ("<p class='a notranslate'>one</p>two", '<p class="a notranslate">one</p>TWO'),
        ("<script>if (a<b) c()</script><style>a{}</style>x", "<script>if (a<b) c()</script><style>a{}</style>X"),
        ("<code>ls</code><!-- note -->a<br/>b", "<code>ls</code><!-- note -->A<br/>B"),
        ("<p>one\n   two</p><pre>one\n two</pre>", "<p>ONE TWO</p><pre>ONE\n TWO</pre>"),
        ("<img alt='one' src=/x.png>", '<img alt="one" src="/x.png"/>'),
        ("<!DOCTYPE html><title>a</title>", "<!DOCTYPE html><title>A</title>"),
        (" <p> a </p>\n", " <p> A </p>\n"),
        ("&lt;b&gt;", "&lt;B&gt;"),
        ("", ""),
    ],
)
def test_text_nodes_are_translated(html: str, expected: str) -> None:
    assert shouted(html).replace("<!DOCTYPE html>\n", "<!DOCTYPE html>") == expected


def test_a_document_is_rendered_again_and_translations_are_text_whatever_they_look_like() -> None:
    markup = Markup("<p>one</p><p>two</p>")
    assert markup.render(["1", "2"]) == "<p>1</p><p>2</p>"
    assert markup.render(["<script>", "4"]) == "<p>&lt;script&gt;</p><p>4</p>"


TAGS = st.sampled_from(["p", "b", "div", "span", "a", "script", "pre", "code", "table"])
PARTS = st.one_of(
    TAGS.map("<{}>".format),
    TAGS.map("</{}>".format),
    st.text(max_size=8),
    st.sampled_from([*"<>&\"'/!-=", "<!--", "-->"]),
)


@settings(max_examples=50)
@given(st.lists(PARTS, max_size=30).map("".join))
def test_tags_stay(html: str) -> None:
    def tags(text: str) -> list[tuple[str, dict[str, object]]]:
        return [(tag.name, tag.attrs) for tag in BeautifulSoup(text, "html.parser").find_all(True)]

    try:
        rendered = shouted(html)
    except RequestError:
        return
    parsed = BeautifulSoup(html, "html.parser")
    assert tags(rendered) == tags(str(parsed))
    assert all(str(comment) in rendered for comment in parsed.find_all(string=lambda each: isinstance(each, Comment)))


REFUSED = ["<b>" * (MOST_DEPTH + 2), "<a " * 5_000, "<p a" * 5_000, "<a b='" * 3_000]
STRANGE = ["<" * 20_000, "&" * 20_000, "<![CDATA[" * 2_000, "</" * 10_000, "<?" * 9_000, "<![x"]


@pytest.mark.parametrize("html", REFUSED + STRANGE)
def test_hostile_html_is_read_or_refused_in_words(html: str) -> None:
    try:
        assert isinstance(shouted(html), str)
        assert html not in REFUSED
    except RequestError as refused:
        assert refused.status == 400
