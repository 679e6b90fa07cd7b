"""The generated corpus: one order for each seed, every sentence once, words often enough to be learnt."""

import os
import re
import subprocess
import sys
import zlib
from collections import Counter

import pytest

from nmt.data.demo_corpus import patterns, sentence_pairs

PAIRS = sentence_pairs(1)
BY_PATTERN = patterns()
PATTERN_OF = {english: name for name, group in BY_PATTERN.items() for english, _ in group}
GERMAN = dict(pair for group in BY_PATTERN.values() for pair in group)  # all that could be drawn


def test_the_order_depends_on_the_seed_alone_and_not_on_hashing() -> None:
    assert sentence_pairs() == PAIRS != sentence_pairs(2)
    code = "import zlib, nmt.data.demo_corpus as d; print(zlib.crc32(repr(d.sentence_pairs()).encode()))"
    environment = {**os.environ, "PYTHONHASHSEED": "5", "PYTHONPATH": os.pathsep.join(sys.path)}
    elsewhere = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert int(elsewhere) == zlib.crc32(repr(PAIRS).encode())


def test_each_sentence_is_cleaned_text_and_occurs_once_so_that_no_split_has_one_of_another() -> None:
    assert 3500 <= len(PAIRS) <= 5000
    assert len({english for english, _ in PAIRS}) == len(PAIRS)
    assert len(GERMAN) == sum(map(len, BY_PATTERN.values()))
    assert not [text for pair in GERMAN.items() for text in pair if not re.fullmatch("[a-z]+( [a-z]+)*", text)]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_words_occur_often_enough_to_be_learnt_from_short_sentences(seed: int) -> None:
    pairs = sentence_pairs(seed)
    assert pairs.count(("im thirsty", "ich bin durstig")) == 1
    for side in (0, 1):
        counts = Counter(word for pair in pairs for word in pair[side].split())
        assert 150 <= len(counts) <= 250
        assert sum(count < 8 for count in counts.values()) <= 10 and min(counts.values()) >= 3
        assert max(len(pair[side].split()) for pair in pairs) <= 8 + side


def test_every_pattern_has_its_share_and_stands_at_both_ends() -> None:
    shares = Counter(PATTERN_OF[english] for english, _ in PAIRS)
    fair = len(PAIRS) // len(BY_PATTERN)
    assert all(shares[name] >= min(len(group), fair) for name, group in BY_PATTERN.items())
    for held_out in (PAIRS[:1000], PAIRS[-1000:]):
        assert {PATTERN_OF[english] for english, _ in held_out} == set(BY_PATTERN)


@pytest.mark.parametrize(("english", "german"), [
    ("my sister sees the dog", "meine schwester sieht den hund"), ("is he driving to the park", "fahrt er in den park"),
    ("i help my mother", "ich helfe meiner mutter"), ("were going to the park", "wir gehen in den park"),
    ("this is a red table", "das ist ein roter tisch"), ("he doesnt have a new car", "er hat kein neues auto"),
    ("these are our books", "das sind unsere bucher"), ("we dont see the dog", "wir sehen den hund nicht"),
    ("why are you sad", "warum bist du traurig"), ("tom wants to eat cake", "tom will kuchen essen"),
    ("in the morning we drink juice", "am morgen trinken wir saft"), ("tom knows me", "tom kennt mich"),
])  # fmt: skip
def test_german_is_inflected_negated_and_ordered_as_it_should(english: str, german: str) -> None:
    assert GERMAN[english] == german


def test_a_sentence_is_negated_once_on_both_sides() -> None:
    for english, german in GERMAN.items():
        negative = "not" in english.split() or re.search(r"\b(dont|doesnt|isnt|arent|cant|shouldnt)\b", english)
        assert len(re.findall(r"\b(nicht|kein\w*)\b", german)) == bool(negative), (english, german)
