"""Attributes with text are translated, and a translated page declares the language and direction of its text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.documents.formats import read_document
from nmt.documents.html import Page


def translated(html: str, source: str, target: str) -> str:
    page = Page(html.encode(), "a.html")
    return page.render(page.texts, source, target).decode()


@pytest.mark.parametrize(
    ("source", "target", "html", "expected"),
    [
        ("en", "ar", '<html lang="en"><p>a', '<html dir="rtl" lang="ar"><p>a'),
        ("en", "ar", "<html lang=en dir=ltr><p>a", '<html lang="ar" dir="rtl"><p>a'),
        ("en", "he", "<!DOCTYPE html><HTML><p>a", '<!DOCTYPE html><HTML dir="rtl"><p>a'),
        ("ar", "en", '<html lang="ar" dir="rtl"><p>a', '<html lang="en" dir="ltr"><p>a'),
        ("ar", "fa", '<html dir="rtl" lang="ar-EG"><p>a', '<html dir="rtl" lang="fa"><p>a'),
        ("en", "de", '<html xml:lang="en-GB" lang="en-GB"><p>a', '<html xml:lang="de" lang="de"><p>a'),
        ("en", "pt-BR", '<html class="x"\n lang=\'EN_us\'><p>a', '<html class="x"\n lang="pt-BR"><p>a'),
        ("zh", "tr", '<html lang="zh-Hans"><p>a', '<html lang="tr"><p>a'),
        ("en", "th", "<html><p>a", "<html><p>a"),
        # Parts of a page
        ("en", "ur", '<div lang="en"><p>a</div><p dir="ltr">b', '<div dir="rtl" lang="ur"><p>a</div><p dir="rtl">b'),
        ("ar", "hi", '<p dir=rtl>a <b dir="ltr">1</b><i dir=auto>b', '<p dir="ltr">a <b dir="ltr">1</b><i dir=auto>b'),
        # Other languages, and text that is not translated
        ("en", "ar", '<html lang="fr"><p dir="ltr">a', '<html lang="fr"><p dir="ltr">a'),
        (
            "en", "ar", '<html lang="en"><q lang="ja" dir="ltr">a<b dir="ltr">b</b></q><b dir="ltr">c',
            '<html dir="rtl" lang="ar"><q lang="ja" dir="ltr">a<b dir="ltr">b</b></q><b dir="rtl">c',
        ),
        ("en", "ar", '<html lang="en"><code lang="en" dir=ltr>', '<html dir="rtl" lang="ar"><code lang="en" dir=ltr>'),
        # Unknown languages
        ("source", "ar", '<html lang="en"><p>a', '<html lang="en"><p>a'),
        ("en", "target", '<html lang="en" dir="ltr"><p>a', '<html lang="en" dir="ltr"><p>a'),
    ],
)  # fmt: skip
def test_lang_and_dir_become_those_of_the_target(source: str, target: str, html: str, expected: str) -> None:
    assert translated(html, source, target) == expected
    assert read_document("a.html", html.encode()).render(Page(html.encode(), "").texts, source, target) == (
        expected.encode()
    )


def test_labels_and_languages_of_the_same_tag_are_both_changed() -> None:
    page = Page(b'<html lang="en"><p title="a" lang="en" dir=ltr alt=\'b\'>c', "a.html")
    texts = [text.upper() for text in page.texts]
    assert page.render(texts, "en", "ar") == (b'<html dir="rtl" lang="ar"><p title="A" lang="ar" dir="rtl" alt=\'B\'>C')


@pytest.mark.parametrize("text", ["Straße & Häuser", "公园“狗”", "حديقة", "पार्क", "ılık 'bahçe'"])
def test_attributes_are_translated_into_any_language(text: str) -> None:
    html = "<html lang=en><meta name=description content='one'><input placeholder=one aria-label=\"one\">"
    page = Page(html.encode(), "a.html")
    assert page.texts == ["one"] * 3
    translated_page = Page(page.render([text] * 3, "en", "de"), "a.html")
    assert translated_page.texts == [text] * 3
    assert translated_page.render(["one"] * 3, "de", "en").decode() == (
        '<html lang="en"><meta name=description content=\'one\'><input placeholder="one" aria-label="one">'
    )


def test_text_that_is_left_is_counted() -> None:
    html = "<script>a</script><script src=b></script><iframe srcdoc='<p>c'></iframe><template>d</template>"
    html += "<meta name=keywords content='e, f'><noembed>g</noembed><style>h</style><div translate=no><template>"
    note = "Not translated: 1 embedded page, 1 template, 1 keyword list, 1 script, 1 noembed."
    assert Page(html.encode(), "a.html").note == note


TAGS = ("<html", "<p", "<div", "</div>", "<q", "<code", " lang=en", ' lang="ar"', " lang", " dir=ltr", " dir='rtl'",
        ">", " title='x'", "a", " ", "/", '"', "<br")  # fmt: skip


@settings(max_examples=300)
@given(st.lists(st.sampled_from(TAGS)).map("".join), st.sampled_from(["ar", "de", "zh"]))
def test_only_attributes_change_and_only_once(html: str, target: str) -> None:
    page = Page(html.encode(), "a.html")
    there = page.render(page.texts, "en", target).decode()
    assert Page(there.encode(), "a.html").texts == page.texts
    assert translated(there, "en", target) == there
    assert translated(html, "en", "target") == html
