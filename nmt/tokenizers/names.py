"""Names that a small corpus lacks, and whether its languages leave names unchanged.

A model learns from many names to copy a name. A small corpus has few, so the model makes up words in place of a new
name. Such names are copied to the translation, as addresses and numbers are. A name is a word with a capital letter
within a sentence, so scripts without capitals have none. Many such words are no names in German, and Russian spells
names in another script. So names are copied only if they mostly are in the validation pairs.
"""

import itertools
import re
from collections.abc import Iterable, Set

LEAST_NAMES = 20
"""Fewest new names in the validation pairs that tell whether names are copied."""
COPIED_SHARE = 0.5
"""Smallest share of new names found unchanged in the other language at which names are copied."""
_WORD = re.compile(r"[^\W\d_]\w*(?:-\w+)*")
FEWEST_LETTERS = 3
"""Fewest characters of a name. Shorter words with a capital, such as Al and I, are often something else."""


def words_of(texts: Iterable[str]) -> set[str]:
    """Return the words of texts, in lower case."""
    return {word.lower() for text in texts for word in _WORD.findall(text)}


def find_names(sentence: str, known: Set[str]) -> list[tuple[int, int]]:
    """Return the spans of names in a sentence that are not among the known words, which are in lower case."""
    names = list[tuple[int, int]]()
    if sentence.isupper():
        return names
    words = list(_WORD.finditer(sentence))
    for before, word in itertools.pairwise(words):
        between = sentence[before.end() : word.start()]
        is_within = between.replace(" ", "") in ("", ",")  # elsewhere a capital may begin a sentence
        is_capital = word[0][0].isupper() and len(word[0]) >= FEWEST_LETTERS
        if is_within and is_capital and word[0].lower() not in known:
            names.append(word.span())
    return names


def count_copied(pairs: Iterable[tuple[str, str]], known: Set[str]) -> tuple[int, int]:
    """Return the number of new names in the sources of pairs, and how many of them are in the target unchanged."""
    found = copied = 0
    for source, target in pairs:
        for start, end in find_names(source, known):
            found += 1
            copied += source[start:end] in target
    return found, copied
