"""Letters that tell that training and validation texts are in different spellings.

Languages that few people write often have several spellings: one text has *mokõi*, another *mokôi*. A model that has
learned the one gets words wrong that are scored by the other, and reads them badly.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

LEAST_LETTERS = 10_000
"""Fewest letters of a text whose shares tell something."""
LEAST_SHARE = 0.002
"""Smallest share among the letters of a text at which a letter counts as frequent."""
FACTOR = 8
"""A letter differs if its share in one text is this many times its share in the other."""
APOSTROPHES = frozenset("'\u2018\u2019`\u00b4")
"""Characters that many languages use like letters, and that are not letters for Unicode."""


class LetterShares(NamedTuple):
    """A letter that is frequent in one of two texts, and rare in the other."""

    letter: str
    """The letter in lower case, or a mark that is written above or below a letter."""
    training: float
    """Share among the letters of the training text."""
    validation: float
    """Share among the letters of the validation text."""


def differing_letters(training: Iterable[str], validation: Iterable[str]) -> list[LetterShares]:
    """Return the letters that are frequent in one text and rare in the other, the largest difference first.

    There are none if a text has fewer than ``LEAST_LETTERS``.
    """
    in_training = _count_letters(training)
    in_validation = _count_letters(validation)
    if min(in_training.total(), in_validation.total()) < LEAST_LETTERS:
        return []
    differing = []
    for letter in sorted({*in_training, *in_validation}):
        training_share = in_training[letter] / in_training.total()
        validation_share = in_validation[letter] / in_validation.total()
        rarer, larger = sorted((training_share, validation_share))
        if larger >= LEAST_SHARE and larger >= FACTOR * rarer:
            differing.append(LetterShares(letter, training_share, validation_share))
    return sorted(differing, key=lambda shares: -abs(shares.training - shares.validation))


def _count_letters(sentences: Iterable[str]) -> Counter[str]:
    characters = Counter[str]()
    for sentence in sentences:
        characters.update(unicodedata.normalize("NFC", sentence.lower()))
    return Counter({character: count for character, count in characters.items() if _is_letter(character)})


def _is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM" or character in APOSTROPHES
