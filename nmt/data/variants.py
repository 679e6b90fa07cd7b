"""Variants of a sentence pair, as ordinary text has them: capitals, several sentences in a line, typing errors, quotes.

Training draws some of them anew each epoch (``training.augment``), ``nmt evaluate --stress`` scores them all.
"""

import re
from collections.abc import Callable
from random import Random

from nmt.data.sources.formats import Pair

STOPS = ".!?…。！？"  # noqa: RUF001 - of Chinese and Japanese
SHORTEST_MISTYPED = 4
"""Letters of the shortest word that is mistyped."""
MISTYPED_SHARE = 0.1
"""Probability of a typing error in a word that is long enough."""
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_WORD = re.compile(r"[^\W\d_]+")

Variant = Callable[[Pair, Pair, Random], Pair]
"""Function of a pair, the pair that a joined one goes on with, and random numbers."""


VARIANTS: dict[str, Variant] = {
    "upper": lambda pair, *_: Pair(pair.source.upper(), pair.target.upper()),
    # A heading has a target as it is.
    "title": lambda pair, *_: pair._replace(
        source=_WORD.sub(lambda word: word[0][:1].upper() + word[0][1:], pair.source)
    ),
    "join": lambda pair, other, _: Pair(f"{pair.source} {other.source}", f"{pair.target} {other.target}"),
    "typos": lambda pair, _, dice: pair._replace(source=_WORD.sub(lambda word: _mistyped(word[0], dice), pair.source)),
    # The target keeps its own full stop.
    "no_stop": lambda pair, *_: pair._replace(source=pair.source.rstrip(STOPS)),
    "quotes": lambda pair, *_: Pair(f'"{pair.source}"', f'"{pair.target}"'),
}
"""Variants that training can draw, by the names of ``training.augment``."""


def _mistyped(word: str, dice: Random) -> str:
    """Return a word, perhaps with letters swapped, left out or doubled, or the key beside one."""
    if len(word) < SHORTEST_MISTYPED or dice.random() >= MISTYPED_SHARE:
        return word
    place, kind = dice.randrange(1, len(word) - 1), dice.randrange(4)
    before, letter, after = word[:place], word[place], word[place + 1 :]
    row = next((keys for keys in KEYBOARD if letter in keys), "")
    if kind == 3 and row:
        beside = row.index(letter) + dice.choice((-1, 1))
        return before + row[max(0, min(beside, len(row) - 1))] + after
    return before + {0: after[0] + letter + after[1:], 1: after, 2: 2 * letter + after}.get(kind, after)
