"""Augmentation: variants in place of some training pairs, drawn anew for each epoch."""

from array import array
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np

from nmt.config.training import VariantName
from nmt.data.sources.formats import Pair
from nmt.data.token_arrays import Sequences, Split, offsets_of
from nmt.data.variants import VARIANTS
from nmt.tokenizers.base import UNK, Tokenizer

STREAM = 2
"""Last number of the seed, after (seed, epoch); sampled subwords have the numbers of the sides there."""


def augmented(
    split: Split, tokenizers: tuple[Tokenizer, Tokenizer], shares: Mapping[VariantName, float], seed: int, epoch: int
) -> Split:
    """Return a split with variants in place of some pairs, in memory: pair i is pair i of ``split``, or its variant.

    The draw depends on (seed, epoch) alone. A pair stays as it is if its tokens or those of its variant hold unk, or if
    the variant is empty on a side, or longer than the longest sentence of that side in ``split``.

    Args:
        split: training split.
        tokenizers: tokenizers of source and target, which decode the pairs and encode the variants.
        shares: share of the pairs that each variant replaces, together at most 1.
        seed: seed of the run.
        epoch: number of the epoch, from 1.
    """
    random = np.random.default_rng([seed, epoch, STREAM])
    kinds = np.searchsorted(np.cumsum([*shares.values()]), random.random(len(split)), side="right")
    chosen = np.flatnonzero(kinds < len(shares))
    others = (chosen + random.integers(1, max(2, len(split)), len(chosen))) % len(split)
    dice, variants = Random(int(random.integers(2**63))), [VARIANTS[name] for name in shares]
    sides = split.source, split.target
    first_tag = tokenizers[0].size - len(tokenizers[0].tags)
    longest = [int(side.lengths.max()) for side in sides]
    # Arrays of numbers rather than lists: a large corpus has millions of variants.
    indices, lengths, tokens = array("q"), (array("q"), array("q")), (array("I"), array("I"))
    for index, other, kind in zip(chosen.tolist(), others.tolist(), kinds[chosen].tolist(), strict=True):
        pair, variant = _text(split, tokenizers, index), variants[kind]
        following = _text(split, tokenizers, other) if variant is VARIANTS["join"] else pair
        if pair is None or following is None:
            continue
        texts = variant(pair, following, dice)
        rows = [tokenizer.encode(text) for tokenizer, text in zip(tokenizers, texts, strict=True)]
        if rows[0] and (tag := int(split.source[index][0])) >= first_tag:  # its corpus stays the same
            rows[0] = [tag, *rows[0]]
        if any(not 0 < len(row) <= most or UNK in row for row, most in zip(rows, longest, strict=True)):
            continue
        indices.append(index)
        for number, row in enumerate(rows):
            lengths[number].append(len(row))
            tokens[number].extend(row)
    return Split(*(_replaced(side, indices, *new) for side, *new in zip(sides, lengths, tokens, strict=True)))


def _text(split: Split, tokenizers: tuple[Tokenizer, Tokenizer], index: int) -> Pair | None:
    """Return the text of a pair; None if a part of it is unknown."""
    source, target = split.source[index].tolist(), split.target[index].tolist()
    return None if UNK in source or UNK in target else Pair(tokenizers[0].decode(source), tokenizers[1].decode(target))


def _replaced(sequences: Sequences, indices: Sequence[int], lengths: Sequence[int], tokens: Sequence[int]) -> Sequences:
    """Return sequences with others, given by lengths and tokens, in place of those at ``indices``, which ascend."""
    is_new, before = np.zeros(len(sequences), bool), sequences.lengths
    after = before.copy()
    is_new[indices], after[indices] = True, lengths
    of_new = np.repeat(is_new, after)
    joined = np.empty(len(of_new), sequences.tokens.dtype)
    joined[of_new] = tokens
    joined[~of_new] = sequences.tokens[np.repeat(~is_new, before)]
    return Sequences(joined, offsets_of(after))
