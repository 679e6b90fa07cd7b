"""Ratios of lengths are relative to the corpus: right pairs stay for all languages and tokenizers, wrong ones go."""

import gzip
import itertools
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import write_tsv
from hypothesis import given
from hypothesis import strategies as st

import nmt as package
from nmt.config.decoding import LENGTH_RATIO
from nmt.config.schema import Config
from nmt.data.encoding import corpus_median, median_ratio, relative_ratio, search_ratio
from nmt.data.manifest import Manifest
from nmt.data.sources.formats import Pair
from nmt.decoding.lengths import max_lengths

WORDS = ["the", "cat", "sees", "a", "small", "red", "house", "near", "our", "old", "river", "while", "three", "birds"]
# A word of each language for a word of English.
LETTERS = {
    "de": "Wörterbuch ", "tr": "sözcükler ",
    "zh": "词", "ja": "ことば", "th": "คำศัพท์", "ar": "الكلمات ", "hi": "शब्दकोश ",
}  # fmt: skip
TOKENIZERS = ("word", "char", "subword")
FAST = ("de", "zh", "hi")


def corpus(language: str, count: int = 300) -> list[Pair]:
    """Return pairs of English and another language, of 1 to 24 words."""
    draw = random.Random(language)
    sentences = [draw.choices(WORDS, k=1 + number % 24) for number in range(count)]
    return [Pair(" ".join(words), (LETTERS[language] * len(words)).strip()) for words in sentences]


@given(st.text(min_size=1), st.text(min_size=1), st.floats(0.1, 10))
def test_exchanged_sides_have_the_same_ratio(source: str, target: str, median: float) -> None:
    ratio = relative_ratio(Pair(source, target), median)
    assert ratio >= 1
    assert ratio == pytest.approx(relative_ratio(Pair(target, source), 1 / median))


def test_a_pair_of_the_median_has_the_ratio_1() -> None:
    pairs = [Pair("x" * 30, "y" * 10), Pair("x" * 60, "y" * 20), Pair("x", "y" * 50), Pair("", "y"), Pair("x" * 9, "y")]
    median = median_ratio(pairs)
    assert median == pytest.approx(1 / 3)
    assert [relative_ratio(pair, median) for pair in pairs[:2]] == pytest.approx([1, 1])
    assert median_ratio([Pair("", "y")]) is None


@pytest.mark.parametrize(
    "language", [pytest.param(language, marks=() if language in FAST else pytest.mark.slow) for language in LETTERS]
)
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_prepare_keeps_right_pairs_and_drops_wrong_ones(folder: Path, language: str, tokenizer: str) -> None:
    pairs = corpus(language)
    write_tsv("right.tsv", pairs)
    settings: dict[str, Any] = {"data.tokenizer": tokenizer, "data.normalization": "none", "data.max_length_ratio": 3.0,
                                "data.vocabulary_size": 300 if tokenizer == "subword" else None,
                                "data.max_tokens": None, "data.split": "random"}  # fmt: skip
    right = package.prepare("right.tsv", set=settings).manifest
    assert right.dropped == {}
    write_tsv("wrong.tsv", [*pairs, (pairs[1].source, pairs[23].target * 2), (pairs[23].source * 2, pairs[1].target)])
    options: dict[str, Any] = {"set": settings, "validation": "right.tsv", "test": "right.tsv"}
    wrong = package.prepare("wrong.tsv", **options).manifest
    assert wrong.dropped == {"length ratio": 2}
    assert [place.partition(":")[0] for place in wrong.report.places["length ratio"]] == [
        "wrong.tsv, line 301", "wrong.tsv, line 302"
    ]  # fmt: skip
    expected = np.median([len(target) / len(source) for source, target in pairs])
    assert wrong.report.median_length_ratio == pytest.approx(expected, rel=0.1)
    assert not package.prepare("wrong.tsv", **options).is_new


def test_a_corpus_sorted_by_length_has_the_median_of_all_lengths(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.data.prepare.RATIO_PAIRS", 20)
    pairs = [Pair(f"{'x' * n} {n}", "y" * (n if n < 150 else 4 * n)) for n in range(1, 400)]
    write_tsv("sorted.tsv", pairs)
    settings = {"data.tokenizer": "char", "data.split": "random"}
    options: dict[str, Any] = {"set": settings, "validation": "sorted.tsv", "test": "sorted.tsv"}
    manifest = package.prepare("sorted.tsv", **options).manifest
    assert manifest.report.median_length_ratio is not None
    assert manifest.report.median_length_ratio > 3


def manifest_of(pairs: list[Pair]) -> Manifest:
    """Return the manifest of a corpus whose tokens are characters."""
    sides = ("source", "target")
    counts = {side: sum(len(pair[column]) for pair in pairs) for column, side in enumerate(sides)}
    split = {"pairs": len(pairs), "tokens": counts, "longest": counts, "unknown": counts, "sources_in_training": 0,
             "characters": counts}  # fmt: skip
    return Manifest.model_validate({
        "format": 6, "prepared_at": "", "corpus": {"name": "", "bytes": 0, "sha256": "0" * 64}, "settings": {},
        "read": 1, "dropped": {}, "vocabulary": {"source": 9, "target": 9}, "files": {},
        "splits": dict.fromkeys(("train", "validation", "test"), split),
    })  # fmt: skip


def test_an_older_manifest_has_the_mean() -> None:
    pairs = corpus("zh")
    older = manifest_of(pairs)
    assert corpus_median(older) == pytest.approx(median_ratio(pairs), rel=0.2)
    report = older.report.model_copy(update={"median_length_ratio": 0.3})
    assert corpus_median(older.model_copy(update={"report": report})) == 0.3
    unknown = older.splits["train"].model_copy(update={"characters": {}})
    assert corpus_median(older.model_copy(update={"splits": {**older.splits, "train": unknown}})) is None


def translation_limits(manifest: Manifest, lengths: list[int]) -> np.ndarray:
    """Return the limits of search of a run on the dataset, for sources of these numbers of tokens without eos."""
    config = Config()
    decoding = config.decoding.model_copy(update={"max_length_ratio": search_ratio(manifest)})
    return max_lengths(config.model_copy(update={"decoding": decoding}), np.array(lengths) + 1)


@pytest.mark.parametrize("language", LETTERS)
def test_a_search_may_write_as_much_as_the_corpus_has(language: str) -> None:
    for pairs in (corpus(language), [Pair(target, source) for source, target in corpus(language)]):
        manifest = manifest_of(pairs)
        limits = translation_limits(manifest, [len(pair.source) for pair in pairs])
        assert all(len(pair.target) + 1 <= limit for pair, limit in zip(pairs, limits, strict=True))
        assert search_ratio(manifest) >= LENGTH_RATIO
    assert search_ratio(manifest_of([Pair("ab", "ab")])) == LENGTH_RATIO


@pytest.mark.corpora
def test_right_pairs_of_25_languages_stay(corpora: Path) -> None:
    files = sorted((corpora / "ntrex").glob("newstest2019-*.txt.gz"))
    texts = [gzip.decompress(file.read_bytes()).decode().splitlines() for file in files]
    for first, second in itertools.combinations(texts, 2):
        pairs = [Pair(*pair) for pair in zip(first, second, strict=True) if all(len(side) > 1 for side in pair)]
        median = median_ratio(pairs)
        assert median is not None
        assert max(relative_ratio(pair, median) for pair in pairs) < 6.5
        shuffled = [pair.target for pair in pairs]
        random.Random(1).shuffle(shuffled)
        wrong = [
            relative_ratio(Pair(pair.source, target), median) for pair, target in zip(pairs, shuffled, strict=True)
        ]
        assert sum(ratio > 3 for ratio in wrong) > 0.05 * len(pairs)
