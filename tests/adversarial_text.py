"""Texts that make a pattern or a parser slow, if anything does: by a pattern's own parse tree, or of fragments.

A pattern takes quadratic time where a part of it repeats, and what follows the repeat fails: it tries all ends of the
repeat from all of its beginnings. So each repeat is given what stands before it, its own text for a whole document, and
an end that fails.
"""

import itertools
import random
import re
from collections.abc import Iterator, Sequence
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

LENGTH = 100_000
MANY = 20
"""A repeat with a larger maximum has no practical limit."""
MOST_EXAMPLES, MOST_FRAGMENTS = 6, 12
ENDS = ("\0", "\n", "a")
CHARACTERS = " a0.,-_\n\t\r:;!?\"'<>/&#%@()[]{}|\\=+*~^$`A\xa0\u2028\u0301\u3002\u65e5\u0645\u0939\U0001f600\0"
MARKS = "\U00100001\U00105001\U0010a001"
REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
OF_A_CHARACTER = (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN)


class Pump(NamedTuple):
    """A repeat of a pattern: what stands before it, and what it repeats."""

    prefix: str
    body: str


class PatternTexts:
    """Adversarial texts for a pattern."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        """Parse the pattern."""
        source = pattern.pattern
        self._source = source.decode("latin-1") if isinstance(source, bytes) else source
        # A pattern of bytes has flags that one of text cannot have, and none of the Unicode ones.
        self._flags = pattern.flags & ~(re.UNICODE | re.ASCII | re.DEBUG | re.LOCALE)
        self._tree = _parser.parse(self._source, self._flags)
        self._classes: dict[str, str] = {}
        self._groups: dict[int, str] = {}
        self._shared = CHARACTERS + MARKS
        counts = dict.fromkeys(CHARACTERS + MARKS, 0)
        for node in _walk(self._tree):
            for character in self._characters(node) if node[0] in OF_A_CHARACTER else "":
                counts[character] = counts.get(character, 0) + 1
        # A character that several parts of the pattern match is the most ambiguous.
        self._shared = "".join(sorted(counts, key=lambda character: -counts[character]))
        self._classes.clear()

    def pumped(self, length: int) -> Iterator[str]:
        """Yield texts of about a length in characters, in which a repeat of the pattern goes on and then fails."""
        for prefix, body in dict.fromkeys(self._pumps(self._tree, "")):
            for end in ENDS:
                yield prefix + repeated(body, length) + end
            yield repeated(prefix + body, length)
            yield repeated(prefix + 30 * body, length)

    def fragments(self) -> list[str]:
        """Return the parts that texts for the pattern are made of."""
        pumps = list(self._pumps(self._tree, ""))
        wholes = self._examples(self._tree)
        literals = re.findall(r"[^\\()\[\]{}|*+?.^$]{2,}", self._source)
        found = [*wholes[:2], *(pump.prefix for pump in pumps), *literals, *(pump.body for pump in pumps)]
        return list(dict.fromkeys(each for each in [*found, *self._shared[:6]] if each))[:MOST_FRAGMENTS]

    def _characters(self, node: Any) -> str:
        """Return characters that a part of the pattern matches, those first that other parts match too."""
        key = repr(node)
        if key not in self._classes:
            own = {value for value in _values(node) if value < 0x110000}
            matcher = _compiler.compile(_parser.SubPattern(self._tree.state, [node]), self._flags)
            candidates = dict.fromkeys([*self._shared, *map(chr, sorted(own))])
            self._classes[key] = "".join(each for each in candidates if matcher.fullmatch(each))
        return self._classes[key]

    def _examples(self, nodes: Any) -> list[str]:
        """Return texts that a sequence of parts matches; lookarounds count as what they look for."""
        parts = [self._of_node(node) or [""] for node in nodes]
        first = [examples[0] for examples in parts]
        found = ["".join(first)]
        for place, examples in enumerate(parts):
            found += ["".join([*first[:place], example, *first[place + 1 :]]) for example in examples[1:]]
        return list(dict.fromkeys(found))[:MOST_EXAMPLES]

    def _of_node(self, node: Any) -> list[str]:
        kind, value = node
        if kind in OF_A_CHARACTER:
            return list(self._characters(node)[:MOST_EXAMPLES])
        if kind in REPEATS:
            least, most, body = value
            examples = [max(1, least) * example for example in self._examples(body)] if most else [""]
            return examples if least else [*examples[:1], "", *examples[1:]]
        if kind is _constants.BRANCH:
            return list(itertools.chain(*itertools.zip_longest(*map(self._examples, value[1]), fillvalue="")))
        if kind is _constants.SUBPATTERN:
            examples = self._examples(value[3])
            self._groups[value[0]] = examples[0]
            return examples
        if kind is _constants.ATOMIC_GROUP:
            return self._examples(value)
        if kind is _constants.GROUPREF:
            return [self._groups.get(value, "")]
        if kind is _constants.ASSERT and value[0] < 0:
            return self._examples(value[1])
        return [""]

    def _pumps(self, nodes: Any, before: str) -> Iterator[Pump]:
        """Yield the repeats of a sequence of parts and of all within it."""
        for place, (kind, value) in enumerate(nodes):
            prefix = before + self._examples(list(nodes)[:place])[0]
            if kind in REPEATS:
                if value[1] > MANY:
                    yield from (Pump(prefix, body) for body in self._examples(value[2]) if body)
                yield from self._pumps(value[2], prefix)
            for inner in _inner(kind, value) if kind not in REPEATS else []:
                yield from self._pumps(inner, prefix)


def _inner(kind: Any, value: Any) -> Sequence[Any]:
    """Return the sequences within a part."""
    if kind is _constants.BRANCH:
        return value[1]
    if kind is _constants.SUBPATTERN:
        return [value[3]]
    if kind in REPEATS:
        return [value[2]]
    if kind in (_constants.ASSERT, _constants.ASSERT_NOT):
        return [value[1]]
    return [value] if kind is _constants.ATOMIC_GROUP else []


def _walk(nodes: Any) -> Iterator[Any]:
    for node in nodes:
        yield node
        for inner in _inner(*node):
            yield from _walk(inner)


def _values(node: Any) -> Iterator[int]:
    """Yield the code points that a part of a single character names."""
    kind, value = node
    if kind is _constants.IN:
        for part in value:
            yield from _values(part)
    elif kind is _constants.RANGE:
        yield from value
    elif kind in (_constants.LITERAL, _constants.NOT_LITERAL):
        yield value


def repeated(text: str, length: int) -> str:
    """Return a text that comes again and again."""
    return text * (length // max(1, len(text)) + 1)


def mixtures(fragments: Sequence[str], length: int) -> Iterator[str]:
    """Yield texts of each fragment, then of pairs in any order, always the same: mixed, and one before many."""
    for fragment in fragments:
        yield repeated(fragment, length)
        yield repeated(fragment, length) + "\0"
    pairs = list(itertools.permutations(fragments, 2))
    random.Random(len(pairs)).shuffle(pairs)
    for first, second in pairs:
        yield repeated(first + second, length)
        yield repeated(first, length // 2) + repeated(second, length // 2)
        yield first + repeated(second, length) + "\0"
