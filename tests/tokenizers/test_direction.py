"""The direction of writing follows from the language, or from the script in its code."""

import pytest

from nmt.config.languages import NAMES, standard_code
from nmt.tokenizers.scripts import direction

RIGHT_TO_LEFT = {"ar", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi"}


def test_every_known_language_has_a_direction() -> None:
    assert {code for code in NAMES if direction(code) == "rtl"} == RIGHT_TO_LEFT
    assert {direction(code) for code in NAMES} == {"ltr", "rtl"}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ar-EG", "rtl"), ("fa_IR", "rtl"), ("AR", "rtl"), ("arb", "rtl"), ("pa-Arab", "rtl"), ("az_arab", "rtl"),
        ("ug-Cyrl", "ltr"), ("ar-Latn", "ltr"), ("ks-Deva", "ltr"), ("ff-Adlm", "rtl"), ("zh-Hant-HK", "ltr"),
        ("pt-BR", "ltr"), ("tr", "ltr"), ("de", "ltr"), ("hi", "ltr"), ("th", "ltr"), ("am", "ltr"),
        ("source", "auto"), ("target", "auto"), ("", "auto"),
    ],
)  # fmt: skip
def test_codes_with_scripts_and_regions(code: str, expected: str) -> None:
    assert direction(code) == expected
    assert direction(standard_code(code) or code) == expected
