"""Data augmentation: kinds, shares and lengths of the variants, and their dependence on seed and epoch."""

import numpy as np
import pytest
from conftest import small_pairs
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.config.training import VARIANT_NAMES
from nmt.data.token_arrays import Sequences, Split
from nmt.data.variants import VARIANTS
from nmt.tokenizers.base import FIRST_WORD, UNK, Tokenizer
from nmt.tokenizers.registry import fit_tokenizer
from nmt.training.augmentation import augment_split

LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZß ",.!'
CHARACTERS = fit_tokenizer([LETTERS], DataConfig(tokenizer="char", normalization="nfkc"))
BOTH = CHARACTERS, CHARACTERS


def split_of(pairs: list[tuple[str, str]], tokenizer: Tokenizer = CHARACTERS) -> Split:
    sides = ([tokenizer.encode(text) for text in side] for side in zip(*pairs, strict=True))
    return Split(*(Sequences.from_rows(rows, tokenizer.size) for rows in sides))


def texts_of(split: Split, tokenizer: Tokenizer = CHARACTERS) -> list[tuple[str, str]]:
    pairs = ((split.source[index], split.target[index]) for index in range(len(split)))
    return [(tokenizer.decode(source), tokenizer.decode(target)) for source, target in pairs]


LONG = ("x" * 90, "y" * 90)
PAIRS = [*small_pairs(), LONG]
SPLIT = split_of(PAIRS)
MANY = split_of([*((f"{source}.", f"{target}.") for source, target in PAIRS[:-1]), LONG] * 40)
ALL = dict.fromkeys(VARIANT_NAMES, 0.1)


def test_the_configuration_names_the_variants() -> None:
    assert list(VARIANTS) == list(VARIANT_NAMES)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 10**6))
def test_it_is_a_function_of_seed_and_epoch(seed: int, epoch: int) -> None:
    once = texts_of(augment_split(SPLIT, BOTH, ALL, seed, epoch))
    assert texts_of(augment_split(SPLIT, BOTH, ALL, seed, epoch)) == once
    for different_seed in ((seed, epoch + 1), ((seed + 1) % 2**32, epoch)):
        assert texts_of(augment_split(SPLIT, BOTH, ALL, *different_seed)) != once


@pytest.mark.parametrize("name", ["upper", "title", "join", "no_stop", "quotes"])
def test_a_share_of_the_pairs_becomes_the_variant_and_the_others_stay(name: str) -> None:
    before, after = texts_of(MANY), texts_of(augment_split(MANY, BOTH, {name: 0.2}, 1, 1))
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert len(changed) / len(before) == pytest.approx(0.2, abs=0.02)
    known = set(before)
    for (source, target), new in changed:
        made = {
            "upper": (source.upper(), target.upper()), "title": (source.title(), target),
            "no_stop": (source[:-1], target), "quotes": (f'"{source}"', f'"{target}"'), "join": None,
        }[name]  # fmt: skip
        if made is None:
            assert new[0].startswith(f"{source} ") and new[1].startswith(f"{target} ")
            assert (new[0][len(source) + 1 :], new[1][len(target) + 1 :]) in known
        assert made in (new, None)


def test_each_variant_has_its_own_share() -> None:
    before = texts_of(MANY)
    after = texts_of(augment_split(MANY, BOTH, {"upper": 0.3, "no_stop": 0.1, "quotes": 0.6}, 1, 1))
    counts = {
        "upper": sum(new[0].isupper() for new in after), "quotes": sum(new[0][0] == '"' for new in after),
        "no_stop": sum(new[0] == old[0][:-1] for old, new in zip(before, after, strict=True)),
    }  # fmt: skip
    shares = {name: count / len(before) for name, count in counts.items()}
    assert shares == pytest.approx({"upper": 0.3, "no_stop": 0.1, "quotes": 0.6}, abs=0.02)


SENTENCE = st.text("abcXYZß. ?", min_size=1, max_size=20).map(CHARACTERS.normalize).filter(bool)


@given(st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=8), st.dictionaries(
    st.sampled_from(VARIANT_NAMES), st.sampled_from([0.0, 0.05, 1 / 6]), min_size=1), st.integers(0, 99))  # fmt: skip
def test_what_stays_has_its_ids_and_nothing_is_longer_empty_or_unknown(
    pairs: list[tuple[str, str]], shares: dict, seed: int
) -> None:
    before = split_of(pairs)
    after = augment_split(before, BOTH, shares, seed, 1)
    for old, new in ((before.source, after.source), (before.target, after.target)):
        new.check(len(pairs), len(new.tokens), int(new.lengths.max()), CHARACTERS.size)
        assert new.lengths.min() > 0 and new.lengths.max() <= old.lengths.max()
        unknown = [UNK in old[index] for index in range(len(pairs))]  # a question mark
        assert unknown == [UNK in new[index] for index in range(len(pairs))]
    for index, (old_pair, new_pair) in enumerate(zip(texts_of(before), texts_of(after), strict=True)):
        if old_pair == new_pair or "?" in "".join(pairs[index]):
            assert before.source[index].tolist() == after.source[index].tolist()
            assert before.target[index].tolist() == after.target[index].tolist()


def test_what_a_vocabulary_cannot_express_stays_as_it_is() -> None:
    texts = [text for pair in PAIRS for text in pair]
    words = fit_tokenizer(texts, DataConfig(tokenizer="word", normalization="none"))
    split = split_of(PAIRS, words)
    after = augment_split(split, (words, words), {"upper": 0.5, "typos": 0.3, "quotes": 0.2}, 1, 1)
    assert np.array_equal(split.source.tokens, after.source.tokens) and after.source.tokens.min() >= FIRST_WORD
    assert after.source.tokens.dtype == split.source.tokens.dtype
