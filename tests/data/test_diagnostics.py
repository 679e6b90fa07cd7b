"""The hints about a corpus: swapped and foreign columns are found, and a clean corpus is not suspected."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.cli.commands.demo import CORPUS
from nmt.data.cleaning import count_translations, find_foreign_sides, text_hash
from nmt.data.sources.formats import Pair

CLEAN = [Pair(*line.split("\t")) for line in CORPUS.read_text().splitlines()[:2000]]
PAIRS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")))


@settings(deadline=None)
@given(PAIRS)
def test_translations_are_counted_as_with_a_dictionary(pairs: list[tuple[str, str]]) -> None:
    translations = {source: {target for other, target in pairs if other == source} for source, _ in pairs}
    sides = [np.frombuffer(b"".join(text_hash(pair[side]) for pair in pairs), np.uint64) for side in (0, 1)]
    several = sum(len(targets) > 1 for targets in translations.values())
    assert count_translations(*sides) == (several, max(map(len, translations.values()), default=0))


def test_a_clean_corpus_is_not_suspected() -> None:
    assert find_foreign_sides(CLEAN) == {}


FAULTS = [
    ("sides look swapped", lambda pair: Pair(pair.target, pair.source)),
    ("source looks like the target language", lambda pair: Pair(pair.target, pair.target)),
    ("target looks like the source language", lambda pair: Pair(pair.source, pair.source)),
]


@pytest.mark.parametrize(("reason", "spoil"), FAULTS)
def test_spoiled_pairs_are_found_and_no_other(reason: str, spoil) -> None:
    pairs = list(CLEAN)
    spoiled = random.Random(1).sample([n for n, pair in enumerate(pairs) if len(min(pair, key=len)) > 15], 40)
    for index in spoiled:
        pairs[index] = spoil(pairs[index])
    found = find_foreign_sides(pairs)
    assert found.keys() == {reason}
    assert set(found[reason]) <= set(spoiled)
    assert len(found[reason]) >= 30


@pytest.mark.parametrize("pairs", [[], [Pair("", "")], [Pair("a", "a")] * 5, [Pair("你", "好")]])
def test_too_little_text_gives_no_hint(pairs: list[Pair]) -> None:
    assert find_foreign_sides(pairs) == {}
