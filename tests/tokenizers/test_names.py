"""New names: which words are names, and whether the validation pairs of a dataset copy them."""

import re
from pathlib import Path

import pytest
from conftest import nmt, write_tsv
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.dataset import open_dataset
from nmt.tokenizers.names import count_copied, find_names, words_of

KNOWN = words_of(["We saw a dog in Rome, and a well-known Cat."])
TRAINING = [
    (f"we saw {count} {thing}s", f"wir sahen {count} {thing}e") for count in range(60) for thing in ("dog", "hat")
]
NAMES = [
    first + second for first in ("Zor", "Kel", "Mip", "Dra", "Lun") for second in ("bla", "vin", "tok", "gur", "sem")
]


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("We saw Kelvin in Rome, Zorbla and Jean-Luc.", ["Kelvin", "Zorbla", "Jean-Luc"]),
        ("Kelvin saw a dog. Zorbla saw: Kelvin", []),
        ("we saw a Dog, the well-known CAT and Al", []),
        ("WE SAW KELVIN", []),
        ("We saw the IRT and İstanbul'da Ürümqi", ["IRT", "İstanbul", "Ürümqi"]),
        ("мы видели Зорблу", ["Зорблу"]),
        ("我们在 Zorbla 看见", ["Zorbla"]),
        ("", []),
    ],
)
def test_a_name_is_an_unknown_word_with_a_capital_within_a_sentence(sentence: str, names: list[str]) -> None:
    assert [sentence[start:end] for start, end in find_names(sentence, KNOWN)] == names


@given(st.text(), st.sets(st.text(max_size=3)))
def test_names_are_words_of_the_sentence_in_order(sentence: str, known: set[str]) -> None:
    end = 0
    for start, next_end in find_names(sentence, known):
        assert end <= start < next_end
        end = next_end
        assert sentence[start].isupper() and sentence[:start].strip(" ,")
        assert re.fullmatch(r"[\w-]{3,}", sentence[start:end])
        assert (
            not find_names(sentence, {*known, *words_of([sentence[start:end]])}) or len(find_names(sentence, known)) > 1
        )


def test_copied_names_are_those_that_the_target_has() -> None:
    pairs = [
        ("we met Zorbla", "wir trafen Zorbla"),
        ("we met Kelvin and Mipgur", "wir trafen Kelvins Freund"),
        ("", ""),
    ]
    assert count_copied(pairs, words_of(["we met"])) == (3, 2)


@pytest.mark.parametrize(
    ("targets", "pairs", "copied"),
    [("wir sahen {}", 25, 25), ("wir sahen ihn", 25, 0), ("wir sahen {}", 19, None)],
    ids=["copied", "translated", "too few"],
)
def test_validation_pairs_tell_whether_translations_copy_names(
    targets: str, pairs: int, copied: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tsv("pairs.tsv", TRAINING)
    write_tsv("dev.tsv", [(f"we saw {name}", targets.format(name)) for name in NAMES[:pairs]])
    keys = [f"data.{key}" for key in ("tokenizer=subword", "vocabulary_size=60", "byte_fallback=false")]
    small = [part for key in keys for part in ("--set", key)]
    output = nmt("prepare", "pairs.tsv", "--validation", "dev.tsv", *small, cwd=tmp_path).stdout
    manifest = open_dataset("pairs").manifest
    assert manifest.names is not None and manifest.names.found == pairs
    assert manifest.names.copied == (pairs if copied is None else copied)
    assert (manifest.known_words == {"dogs", "hats", "saw", "we"}) == bool(copied)
    assert f"{pairs} words with a capital in validation sources, but in no training source" in output
    assert ("translations copy them" in output) == bool(copied)


def test_a_dataset_without_its_training_text_knows_nothing_of_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_tsv("pairs.tsv", TRAINING)
    nmt("prepare", "pairs.tsv", "--set", "data.tokenizer=word", cwd=tmp_path)
    manifest = open_dataset("pairs").manifest
    assert manifest.names is None and manifest.known_words is None
