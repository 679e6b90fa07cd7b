"""Every pair is in one split, no source is in two, and the split depends on sources and seed alone."""

import itertools
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.data.cleaning import text_hash
from nmt.data.manifest import SPLITS
from nmt.data.sources.formats import Pair
from nmt.data.splitting import split_pairs
from nmt.errors import DataError
from nmt.tokenizers.normalization import NORMALIZERS, Normalizer

ASCII_WORDS, COLLAPSE = NORMALIZERS["ascii-words"], NORMALIZERS["none"]


def hashes(texts: list[str]) -> np.ndarray:
    """Return the hashes that a corpus keeps of its normalized sources."""
    return np.frombuffer(b"".join(map(text_hash, texts)), np.uint64)


def split_as_prepared(pairs: list[Pair], config: DataConfig, normalize: Normalizer) -> dict[str, list[Pair]]:
    """Split as ``prepare`` does."""
    divided = split_pairs(hashes([normalize(pair.source) for pair in pairs]), config)
    return {name: [pairs[index] for index in indices] for name, indices in divided.items()}


def plainly_split(pairs: list[Pair], config: DataConfig, normalize: Normalizer) -> dict[str, list[Pair]]:
    """The same split with lists and dictionaries, as the expected result."""
    shuffled = list(pairs)
    random.Random(config.seed).shuffle(shuffled)
    by_source: dict[object, list[Pair]] = {}
    for number, pair in enumerate(shuffled):
        by_source.setdefault(number if config.split == "random" else normalize(pair.source), []).append(pair)
    groups = list(by_source.values())
    if config.split == "by_source":
        random.Random(config.seed).shuffle(groups)
    sizes = {
        "test": max(1, round(config.test_share * len(pairs))),
        "validation": max(1, round(config.validation_share * len(pairs))),
        "train": len(pairs),
    }
    splits: dict[str, list[Pair]] = {name: [] for name in SPLITS}
    for group in groups:
        splits[next(name for name in reversed(SPLITS) if len(splits[name]) < sizes[name])] += group
    return splits


SOURCES = st.sampled_from(["go", "Go!", "GO", "stop", "Stop.", "run", "é", "e", "E!", "we run", "We  run!"])
PAIRS = st.lists(
    st.builds(Pair, SOURCES | st.text(st.sampled_from("abc"), min_size=1), st.sampled_from("xyz")), min_size=3
)
CONFIGS = st.builds(
    DataConfig,
    split=st.sampled_from(["by_source", "random"]),
    seed=st.integers(0, 99),
    train_share=st.just(0.5),
    validation_share=st.just(0.25),
    test_share=st.just(0.25),
)


def different(count: int) -> list[Pair]:
    """Return pairs with distinct sources."""
    return [Pair(f"s {number}", f"t {number}") for number in range(count)]


@settings(max_examples=150)
@given(PAIRS, CONFIGS)
def test_every_pair_is_in_one_split_and_by_source_no_source_in_two(pairs: list[Pair], config: DataConfig) -> None:
    try:
        splits = split_as_prepared(pairs, config, ASCII_WORDS)
    except DataError:  # too few different sources for three splits
        assume(False)
        raise
    assert tuple(splits) == SPLITS
    assert Counter(pair for split in splits.values() for pair in split) == Counter(pairs)
    assert all(splits.values())
    sources = {name: {ASCII_WORDS(pair.source) for pair in split} for name, split in splits.items()}
    for first, second in itertools.combinations(SPLITS, 2):
        assert config.split == "random" or not sources[first] & sources[second]
    assert splits == plainly_split(pairs, config, ASCII_WORDS)


@pytest.mark.parametrize(
    ("count", "shares", "expected"),
    [
        (10_000, (0.9, 0.05, 0.05), (9000, 500, 500)),
        (100, (0.8, 0.1, 0.1), (80, 10, 10)),
        (101, (0.5, 0.3, 0.2), (51, 30, 20)),
        (3, (0.8, 0.1, 0.1), (1, 1, 1)),
    ],
)
@pytest.mark.parametrize("split", ["by_source", "random"])
def test_shares_of_different_sources_are_exact(
    split: str, count: int, shares: tuple[float, ...], expected: tuple[int, ...]
) -> None:
    train, validation, test = shares
    config = DataConfig(split=split, train_share=train, validation_share=validation, test_share=test)  # type: ignore[arg-type]
    splits = split_as_prepared(different(count), config, COLLAPSE)
    assert tuple(len(splits[name]) for name in SPLITS) == expected


def test_by_source_the_test_split_is_like_the_corpus() -> None:
    """Sources with many translations are half of the corpus, and so half of the test split."""
    single = [Pair(f"single {number}", "t") for number in range(1000)]
    repeated = [Pair(f"repeated {group}", f"t {n}") for group in range(100) for n in range(10)]
    shares = []
    for seed in range(20):
        test = split_as_prepared(single + repeated, DataConfig(seed=seed), COLLAPSE)["test"]
        shares.append(sum(pair.source.startswith("repeated") for pair in test) / len(test))
    assert 0.35 < sum(shares) / len(shares) < 0.65


@pytest.mark.parametrize("names", [("train",), ("train", "validation"), ("train", "test")])
def test_splits_that_are_given_apart_get_no_share(names: tuple) -> None:
    sources = hashes([f"s {number}" for number in range(100)])
    divided = split_pairs(sources, DataConfig(), names)
    assert tuple(divided) == names
    assert sorted(np.concatenate(list(divided.values()))) == list(range(100))
    assert [len(divided[name]) for name in names[1:]] == [10] * (len(names) - 1)
