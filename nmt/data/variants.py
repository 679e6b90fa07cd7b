"""Variants of a sentence pair as in ordinary text: capitals, several sentences in a line, typing errors, quotes.

Training applies them to random pairs in each epoch (``training.augment``). ``nmt evaluate --stress`` scores them all.
"""

import re
from collections.abc import Callable
from random import Random

from nmt.data.sources.formats import Pair

STOPS = ".!?…。！？"
SHORTEST_MISTYPED = 4
"""Number of letters of the shortest word that gets typing errors."""
MISTYPED_SHARE = 0.1
"""Probability of a typing error in a sufficiently long word."""
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_WORD = re.compile(r"[^\W\d_]+")

Variant = Callable[[Pair, Pair, Random], Pair]
"""Function of a pair, a second pair to join to it, and a random generator."""


VARIANTS: dict[str, Variant] = {
    "upper": lambda pair, *_: Pair(pair.source.upper(), pair.target.upper()),
    # The target of a heading stays unchanged.
    "title": lambda pair, *_: pair._replace(
        source=_WORD.sub(lambda word: word[0][:1].upper() + word[0][1:], pair.source)
    ),
    "join": lambda pair, second, _: Pair(f"{pair.source} {second.source}", f"{pair.target} {second.target}"),
    "typos": lambda pair, _, dice: pair._replace(source=_WORD.sub(lambda word: _mistyped(word[0], dice), pair.source)),
    # The target keeps its own full stop.
    "no_stop": lambda pair, *_: pair._replace(source=pair.source.rstrip(STOPS)),
    "quotes": lambda pair, *_: Pair(f'"{pair.source}"', f'"{pair.target}"'),
}
"""Variants for training, by the names in ``training.augment``."""


def _mistyped(word: str, dice: Random) -> str:
    """Return a word, at random with swapped letters, a letter missing or doubled, or an adjacent key."""
    if len(word) < SHORTEST_MISTYPED or dice.random() >= MISTYPED_SHARE:
        return word
    place, kind = dice.randrange(1, len(word) - 1), dice.randrange(4)
    before, letter, after = word[:place], word[place], word[place + 1 :]
    row = next((keys for keys in KEYBOARD if letter in keys), "")
    if kind == 3 and row:
        beside = row.index(letter) + dice.choice((-1, 1))
        return before + row[max(0, min(beside, len(row) - 1))] + after
    return before + {0: after[0] + letter + after[1:], 1: after, 2: 2 * letter + after}.get(kind, after)
