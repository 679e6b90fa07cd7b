"""Normalization of examples, and properties that hold for any text."""

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.tokenizers.normalization import (
    INVISIBLE,
    NORMALIZERS,
    REPLACED,
    Change,
    Normalizer,
    ascii_words,
    first_change,
    nfc,
    nfkc,
    stream_safe,
)

TEXTS = st.text() | st.text(st.sampled_from("aÄé ß5'!\t\n\u00a0\u2028\u0308¨ﬁ½\uff21"))
QUICK = settings(deadline=None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I'm thirsty.", "im thirsty"),
        ("Grüße, I'm 5!", "grue im"),
        ("Ärger über Öl", "arger uber ol"),
        ("Naïve café, déjà vu", "naive cafe deja vu"),
        ("A\u030angstro\u0308m", "angstrom"),  # accents as characters of their own
        ("mp3-player is e-mail", "is email"),
        ("  a\t b\r\nc\u00a0d  ", "a b c d"),
        ("Привет, world", "world"),
        ("!? 42", ""),
    ],
)
def test_ascii_words(text: str, words: str) -> None:
    assert ascii_words(text) == words


def test_a_configuration_names_each_normalization() -> None:
    assert sorted(NORMALIZERS) == ["ascii-words", "nfc", "nfkc", "none"]
    assert NORMALIZERS["ascii-words"]("Ä 5 ﬁ") == "a"
    assert NORMALIZERS["nfkc"]("Ä 5 ﬁ") == "Ä 5 fi"
    assert NORMALIZERS["nfc"]("A\u0308 5 ﬁ, 10²\u00ad，") == "Ä 5 ﬁ, 10²，"
    assert NORMALIZERS["none"](" Ä 5\u3000ﬁ\n") == "Ä 5 ﬁ"


@pytest.mark.parametrize("name", NORMALIZERS)
@QUICK
@given(text=TEXTS)
def test_words_are_separated_by_one_space_and_normalizing_again_changes_nothing(name: str, text: str) -> None:
    normal = NORMALIZERS[name](text)
    assert NORMALIZERS[name](normal) == normal == " ".join(normal.split())
    assert name != "none" or normal == " ".join(text.split())


HIDDEN = "\u00ad\u200b\u2060\ufeff\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c"
"""Characters that no reader sees and no model needs."""
JOINERS = "\u200c\u200d"


@QUICK
@given(text=st.text() | st.text(st.sampled_from(f"aä\u0308नक्ी می，² \t{HIDDEN}{JOINERS}")))
def test_nfc_removes_invisible_characters_and_changes_no_other_character_for_a_reader(text: str) -> None:
    visible = "".join(
        character for character in text if character not in f"{HIDDEN}\u206a\u206b\u206c\u206d\u206e\u206f"
    )
    assert nfc(text) == " ".join(unicodedata.normalize("NFC", visible).split())
    assert unicodedata.normalize("NFD", nfc(text)) == unicodedata.normalize("NFD", " ".join(visible.split()))


@pytest.mark.parametrize(
    "text",
    [
        "10² m² ≈ ½ km², Ⅷ, ﬁ", "，？！（）「」『』【】〜", "١٢٣ ؟ می\u200cخواهم", "क\u094d\u200dष क्या?",
        "İstanbul’da ılık",
        "👩\u200d🔬 ❤\ufe0f", "ＡＢＣ１２３", "ｶﾞｷﾞ", "ﷲ", "Ǆ ŉ", "한국어", "ไทย\u0e33", "ᠮᠣᠩᠭᠣᠯ",
    ],
)  # fmt: skip
def test_nfc_keeps_the_characters_of_every_language(text: str) -> None:
    assert nfc(text) == text
    assert nfc(unicodedata.normalize("NFD", text)) == text


@pytest.mark.parametrize(
    ("text", "name", "change"),
    [
        ("Her un\u00adcle saw", "nfc", Change(INVISIBLE, "un\u00adcle", "uncle")),
        ("scho\u0308n und \ufeffgut", "nfc", Change(REPLACED, "scho\u0308n", "schön")),
        ("Fläche: 10²", "nfkc", Change(REPLACED, "10²", "102")),
        ("  schön\u00a0gut \t 10² ", "nfc", None),
        ("schön\u00a0gut", "none", None),
    ],
)
def test_the_first_changed_word_is_named(text: str, name: str, change: Change | None) -> None:
    assert first_change(text, name) == change


@QUICK
@given(TEXTS)
def test_ascii_words_holds_lower_case_letters_and_spaces_alone(text: str) -> None:
    assert set(ascii_words(text)) <= set("abcdefghijklmnopqrstuvwxyz ")


@QUICK
@given(TEXTS)
def test_ascii_words_is_the_same_for_composed_and_decomposed_text(text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert ascii_words(composed) == ascii_words(decomposed)


MARKS = st.text(st.sampled_from("a\u0301\u0316\u0344\u0323\u034f"), min_size=20, max_size=60)


@pytest.mark.parametrize("normalize", [nfc, nfkc, ascii_words])
def test_half_a_million_marks_on_a_letter_are_normalized_before_the_day_is_over(normalize: Normalizer) -> None:
    """Normalization in quadratic time would take minutes for such a line."""
    assert normalize("b" + "\u0301\u0316" * 250_000 + " c").split()[-1] == "c"


@given(st.lists(MARKS, min_size=20, max_size=30).map("".join))
@settings(deadline=None, max_examples=50)
def test_no_row_of_marks_is_longer_than_the_stream_safe_format_allows(text: str) -> None:
    text += "a" * 1000
    safe = stream_safe(text)
    rows = re.split(r"[a\u034f]", safe)
    assert max(map(len, rows)) <= 30
    assert safe.replace("\u034f", "") == text.replace("\u034f", "")
    assert stream_safe(safe) == safe


@given(st.text(max_size=1000))
def test_short_text_is_normalized_as_unicode_defines(text: str) -> None:
    assert nfkc(text) == " ".join(unicodedata.normalize("NFKC", text).split())
