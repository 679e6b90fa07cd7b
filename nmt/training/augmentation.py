"""Data augmentation: in each epoch, variants replace some training pairs."""

from array import array
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np

from nmt.config.training import VariantName
from nmt.data.sources.formats import Pair
from nmt.data.token_arrays import Sequences, Split, offsets_of
from nmt.data.variants import UNKNOWN, VARIANTS, Languages
from nmt.tokenizers.base import UNK, Tokenizer, leading_tags

STREAM = 2
"""Last number of the random seed, after (seed, epoch). Subword sampling uses 0 and 1, the numbers of the sides."""


def augment_split(
    split: Split,
    tokenizers: tuple[Tokenizer, Tokenizer],
    shares: Mapping[VariantName, float],
    seed: int,
    epoch: int,
    parts: Sequence[tuple[range, Languages]] = (),
) -> Split:
    """Return a split in memory in which variants replace some pairs: pair i is pair i of ``split``, or its variant.

    The random choice depends on (seed, epoch) alone. A pair stays unchanged if the tokens of the pair or of its variant
    contain unk, if a side of the variant is empty, or if it is longer than the longest sentence of that side in
    ``split``.

    Args:
        split: training split.
        tokenizers: tokenizers of source and target, which decode the pairs and encode the variants.
        shares: share of the pairs that each variant replaces; the sum is at most 1.
        seed: seed of the run.
        epoch: number of the epoch, from 1.
        parts: ranges of pairs with their codes of source and target, for a split of several language pairs; a pair is
            joined with a pair of the same part. Empty: all pairs are alike, and their languages are unknown.
    """
    parts = parts or [(range(len(split)), UNKNOWN)]
    random = np.random.default_rng([seed, epoch, STREAM])
    kinds = np.searchsorted(np.cumsum([*shares.values()]), random.random(len(split)), side="right")
    chosen = np.flatnonzero(kinds < len(shares))
    partners, languages = chosen.copy(), []  # a partner continues a joined pair
    for pairs, codes in parts:
        is_part = (chosen >= pairs.start) & (chosen < pairs.stop)
        here = chosen[is_part] - pairs.start
        partners[is_part] = pairs.start + (here + random.integers(1, max(2, len(pairs)), len(here))) % len(pairs)
        languages += [codes] * len(here)
    dice = Random(int(random.integers(2**63)))
    variants = [VARIANTS[name] for name in shares]
    sides = split.source, split.target
    longest = [int(side.lengths.max()) for side in sides]
    # Arrays of numbers rather than lists: a large corpus has millions of variants.
    indices, lengths, tokens = array("q"), (array("q"), array("q")), (array("I"), array("I"))
    draws = zip(chosen.tolist(), partners.tolist(), kinds[chosen].tolist(), languages, strict=True)
    for index, partner, kind, codes in draws:
        pair, variant = _text(split, tokenizers, index), variants[kind]
        following = _text(split, tokenizers, partner) if variant is VARIANTS["join"] else pair
        if pair is None or following is None:
            continue
        texts = variant(pair, following, dice, codes)
        rows = [tokenizer.encode(text) for tokenizer, text in zip(tokenizers, texts, strict=True)]
        if rows[0]:  # the variant keeps the tags of its pair
            rows[0] = [*leading_tags(tokenizers[0], split.source[index].tolist()), *rows[0]]
        if any(not 0 < len(row) <= most or UNK in row for row, most in zip(rows, longest, strict=True)):
            continue
        indices.append(index)
        for number, row in enumerate(rows):
            lengths[number].append(len(row))
            tokens[number].extend(row)
    source = _replace_rows(split.source, indices, lengths[0], tokens[0])
    target = _replace_rows(split.target, indices, lengths[1], tokens[1])
    return Split(source, target)


def _text(split: Split, tokenizers: tuple[Tokenizer, Tokenizer], index: int) -> Pair | None:
    """Return the text of a pair, or None if it contains an unknown token."""
    source, target = split.source[index].tolist(), split.target[index].tolist()
    return None if UNK in source or UNK in target else Pair(tokenizers[0].decode(source), tokenizers[1].decode(target))


def _replace_rows(
    sequences: Sequences, indices: Sequence[int], lengths: Sequence[int], tokens: Sequence[int]
) -> Sequences:
    """Return a copy of sequences with new ones at ``indices``, which ascend; ``lengths`` and ``tokens`` are theirs."""
    is_new, before = np.zeros(len(sequences), bool), sequences.lengths
    after = before.copy()
    is_new[indices], after[indices] = True, lengths
    of_new = np.repeat(is_new, after)
    joined = np.empty(len(of_new), sequences.tokens.dtype)
    joined[of_new] = tokens
    joined[~of_new] = sequences.tokens[np.repeat(~is_new, before)]
    return Sequences(joined, offsets_of(after))
