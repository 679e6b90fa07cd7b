"""A translation ends as its source does, with the signs of its own script."""

import pytest

from nmt.text.endings import Endings

EVERYTHING = set("abcdefghijklmnopqrstuvwxyz .,:;!?…。！？：，；؟،؛।۔")


@pytest.mark.parametrize(
    ("source", "translation", "language", "expected"),
    [
        ("A dog runs", "Ein Hund rennt.", "de", "Ein Hund rennt"),
        ("A dog runs.", "Ein Hund rennt", "de", "Ein Hund rennt."),
        ("A dog:", "Ein Hund.", "de", "Ein Hund:"), ("A dog?", "Ein Hund.", "de", "Ein Hund?"),
        ("A dog…", "Ein Hund.", "de", "Ein Hund…"), ("A dog...", "Ein Hund…", "de", "Ein Hund…"),
        ("A dog!!", "Ein Hund!", "de", "Ein Hund!!"), ("A dog,", "Ein Hund.", "de", "Ein Hund,"),
        ("A dog::", "狗。", "zh", "狗::"),
        ('He says "no"', 'Er sagt "nein."', "de", 'Er sagt "nein"'), ("(a dog)", "(ein Hund.)", "de", "(ein Hund)"),
        ("at 5 a.m", "um 5 a.m.", "de", "um 5 a.m."), ("A dog runs", "...", "de", "..."),
        ("Is it?", "¿Lo es?", "es", "¿Lo es?"), ("A dog", "¡Un perro!", "es", "¡Un perro!"),
        ("A dog runs", "狗在跑。", "zh", "狗在跑"), ("A dog runs.", "狗在跑", "zh", "狗在跑。"),
        ("A dog?", "狗。", "zh", "狗？"), ("A dog...", "狗……", "zh", "狗……"),
        ("A dog?", "كلب.", "ar", "كلب؟"), ("A dog.", "كلب", "ar", "كلب."), ("A dog,", "كلب", "ar", "كلب،"),
        ("A dog.", "कुत्ता", "hi", "कुत्ता।"), ("A dog", "कुत्ता।", "hi", "कुत्ता"),
        ("A dog!", "Köpek.", "tr", "Köpek!"),
        ("A dog.", "کتا", "ur", "کتا۔"), ("A dog?", "Σκύλος.", "el", "Σκύλος;"), ("A dog.", "สุนัข", "th", "สุนัข"),
        ("狗在跑。", "A dog runs", "en", "A dog runs."), ("كلب؟", "A dog.", "en", "A dog?"),
        ("कुत्ता", "A dog.", "en", "A dog"),
    ],
)  # fmt: skip
def test_the_sign_at_the_end_is_that_of_the_source(source: str, translation: str, language: str, expected: str) -> None:
    assert Endings(EVERYTHING, EVERYTHING, ("en", language)).match(source, translation) == expected
    assert Endings(EVERYTHING, EVERYTHING, ("en", language)).match(source, expected) == expected


def test_models_without_signs_keep_their_endings() -> None:
    letters = set("abc ")
    assert Endings(letters, EVERYTHING, ("en", "de")).match("a dog", "Ein Hund.") == "Ein Hund.", "it restores signs"
    assert Endings(EVERYTHING, letters, ("en", "de")).match("A dog.", "ein hund") == "ein hund"
