"""Stress test: reproducible variants of a test set as in ordinary text, and scores of their translations."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from random import Random
from typing import Any, NamedTuple

from nmt.data.alignment import words
from nmt.data.repeats import repeats
from nmt.data.sources.formats import Pair
from nmt.data.variants import ENDS, UNKNOWN, VARIANTS, Languages, Variant, is_cased, join_sentences
from nmt.decoding.translation import Translation
from nmt.evaluation.metrics import make_metric
from nmt.evaluation.result import StressRow, pick_examples
from nmt.evaluation.scoring import sentence_scores
from nmt.storage.text import as_cell
from nmt.tokenizers.letter_case import lower, upper
from nmt.tokenizers.scripts import MARKS, join_words, split_words

MOST_SENTENCES = 1000
"""Largest number of sentences of a variant; only the first sentences of a larger test set are used."""
PLAIN, WORDS = "plain", "single_words"
CAPITAL_WORD = "capital_word"
"""Name of a variant whose references have no word in capitals, so its BLEU and the plain BLEU ignore case."""
LEAST_CHANGED = 0.05
"""Share of the sources that a variant changes at least. Others are left out, such as capitals in Chinese."""
EMOJI = "😀😂😍😢😎👍🎉🐶🌞🔥"
_LETTERS = rf"[^\W\d_](?:[{MARKS}]|[^\W\d_])*"
_WORD = re.compile(rf"{_LETTERS}(?:['\u2019-]{_LETTERS})*")


def _lower(pair: Pair, _second: Pair, _dice: Random, languages: Languages) -> Pair:
    return pair._replace(source=lower(pair.source, languages[0])) if is_cased(pair.source) else pair


def _capital_word(pair: Pair, _second: Pair, dice: Random, languages: Languages) -> Pair:
    """Write a random word of the source in capitals."""
    candidates = [word for word in _WORD.finditer(pair.source) if len(word[0]) >= 3]
    if not candidates or not is_cased(pair.source):
        return pair
    word, text = dice.choice(candidates), pair.source
    return pair._replace(source=text[: word.start()] + upper(word[0], languages[0]) + text[word.end() :])


def _no_stop(pair: Pair, _second: Pair, _dice: Random, _languages: Languages) -> Pair:
    """Remove the full stop of both sides, since a translation ends as its source does."""
    return Pair(pair.source.rstrip(ENDS), pair.target.rstrip(ENDS))


CHANGES: dict[str, Variant] = {
    PLAIN: lambda pair, *_: pair,
    "lower": _lower,
    CAPITAL_WORD: _capital_word,
    **VARIANTS,
    "no_stop": _no_stop,
    "join_three": VARIANTS["join"],
    "double_spaces": lambda pair, *_: pair._replace(source=pair.source.replace(" ", "  ")),
}
JOINED = {"join": 2, "join_three": 3}
PIECES: dict[str, Callable[[Random], str]] = {
    "emoji": lambda dice: dice.choice(EMOJI),
    "url": lambda dice: f"https://www.example.org/{dice.choice(('news', 'shop', 'photos'))}/{dice.randrange(10_000)}",
    "email": lambda dice: f"{dice.choice(('anna', 'info', 'peter.w'))}{dice.randrange(100)}@example.com",
    "number": lambda dice: str(dice.randrange(10**4, 10 ** dice.randrange(5, 10))),
}
"""Texts to insert into sources, which translations must copy: an emoji at the end, the rest in the middle."""
SET_APART = {"url", "email"}
"""Pieces with spaces around them even in scripts without spaces, since a link ends only at a space."""


class Case(NamedTuple):
    """A sentence of a variant."""

    number: int
    """Line number in the test set, from 1, of the (first) sentence; 0 for a single word."""
    source: str
    """Changed source."""
    references: list[str]
    """R references of the translation without ``piece``; empty for a single word."""
    piece: str = ""
    """Text that was inserted into the source; empty for none."""


def make_variants(
    sources: Sequence[str], references: Sequence[Sequence[str]], languages: Languages = UNKNOWN
) -> dict[str, list[Case]]:
    """Return the sentences of each variant, the plain ones first.

    Variants without sentences are left out, and variants that change hardly any source.

    Args:
        sources: N source sentences; empty ones are left out.
        references: R lists of N references.
        languages: language codes of source and target.
    """
    rows = enumerate(zip(sources, *references, strict=True), start=1)
    plain = [Case(number, source, targets) for number, (source, *targets) in rows if source.strip()][:MOST_SENTENCES]
    cases = {name: _change_sentences(name, change, plain, languages) for name, change in CHANGES.items()}
    if all(text == text.lower() for case in plain for text in case.references):  # an uncased corpus, as in lessons
        both = zip(plain, cases["upper"], strict=True)
        cases["upper"] = [case._replace(source=changed.source) for case, changed in both]
    cases |= {name: [_insert_piece(name, make, case) for case in plain] for name, make in PIECES.items()}
    single = dict.fromkeys(word for case in plain for word in _single_words(case.source))
    cases[WORDS] = [Case(0, word, []) for word in single][:MOST_SENTENCES]
    numbered = {case.number: case.source for case in plain}
    return {
        name: sentences
        for name, sentences in cases.items()
        if sentences and (name == PLAIN or _changes(sentences, numbered))
    }


def _changes(cases: list[Case], sources: Mapping[int, str]) -> bool:
    """Return whether a variant changes enough of the sources; ``sources`` are the plain ones by number."""
    changed = sum(case.source != sources.get(case.number) for case in cases)
    return changed >= LEAST_CHANGED * len(cases)


def unchanging_variants(variants: Mapping[str, Sequence[Case]]) -> list[str]:
    """Return the names of the variants that ``make_variants`` left out since they change hardly any source."""
    return [name for name in CHANGES if variants and name not in variants and name not in JOINED]


def _change_sentences(name: str, change: Variant, plain: list[Case], languages: Languages) -> list[Case]:
    size, cases = JOINED.get(name, 1), list[Case]()
    for start in range(0, len(plain) - size + 1, size):
        first, *following = plain[start : start + size]
        source = _join((case.source for case in following), languages[0])
        pairs = []
        for place, target in enumerate(first.references):  # an equal seed gives the same source for every reference
            second = Pair(source, _join((case.references[place] for case in following), languages[1]))
            pairs.append(change(Pair(first.source, target), second, Random(f"{name} {first.number}"), languages))
        cases.append(Case(first.number, pairs[0].source, [pair.target for pair in pairs]))
    return cases


def _join(sentences: Iterable[str], language: str) -> str:
    sentences = list(sentences)
    return reduce(partial(join_sentences, language=language), sentences) if sentences else ""


def _single_words(source: str) -> Iterator[str]:
    for word in split_words(source):
        yield from _WORD.findall(word.text)


def _insert_piece(name: str, make: Callable[[Random], str], case: Case) -> Case:
    piece, source_words = make(Random(f"{name} {case.number}")), split_words(case.source)
    place = len(source_words) if name == "emoji" else max(1, len(source_words) // 2)
    before, after = join_words(source_words[:place]), join_words(source_words[place:])
    is_apart = name in SET_APART or source_words[place - 1].space
    left = " " if is_apart or not _ends_without_space(before) else ""
    right = " " if after and (is_apart or not _begins_without_space(after)) else ""
    return case._replace(source=f"{before}{left}{piece}{right}{after}", piece=piece)


def _ends_without_space(text: str) -> bool:
    """Return whether a text ends in a script without spaces between words, perhaps with punctuation after it."""
    end = text.rstrip()[-8:]
    return end != "" and split_words(f"{end}x")[-1].text == "x"


def _begins_without_space(text: str) -> bool:
    """Return whether a text begins in a script without spaces between words."""
    start = text.lstrip()[:8]
    return start != "" and split_words(f"x{start}")[0].text == "x"


def score_variants(
    cases: Mapping[str, Sequence[Case]], translated: Mapping[str, Translation], tokenization: str, *, lowercase: bool
) -> list[StressRow]:
    """Return scores and counts of faults for the translations of each variant.

    Args:
        cases: sentences of each variant from ``make_variants``.
        translated: translation of each source.
        tokenization: see ``score_systems``.
        lowercase: see ``score_systems``.
    """
    metrics = {
        ignores_case: make_metric("bleu", tokenization, lowercase=ignores_case, quiet=True)
        for ignores_case in (lowercase, True)
    }
    plain = dict[bool, float]()
    rows = list[StressRow]()
    for name, variant_cases in cases.items():
        sources = [case.source for case in variant_cases]
        translations = [translated[source] for source in sources]
        texts = [as_cell(translation.text) for translation in translations]
        times, scored = zip(*map(_remove_piece, (case.piece for case in variant_cases), texts), strict=True)
        values: dict[str, Any] = {}
        if name != WORDS:
            references = [list(lines) for lines in zip(*(case.references for case in variant_cases), strict=True)]
            scores = {
                ignores_case: float(metric.corpus_score(scored, references).score)
                for ignores_case, metric in metrics.items()
            }
            plain = plain or scores
            caseless = lowercase or name == CAPITAL_WORD
            values["bleu"] = scores[caseless]
            values["share"] = 100 * scores[caseless] / plain[caseless] if plain[caseless] else None
            chrf = sentence_scores([*scored], references, lowercase=lowercase)
            [example] = pick_examples(texts, sources, references, chrf, 1).worst
            values["worst"] = example.model_copy(update={"number": variant_cases[example.number - 1].number})
        if name in PIECES:
            values["copied"] = 100 * times.count(1) / len(times)
        cut_off = sum(not translation.finished for translation in translations)
        repeating = sum(_repeats(text) > _repeats(source) for source, text in zip(sources, texts, strict=True))
        rows.append(StressRow(variant=name, sentences=len(texts), cut_off=cut_off, repeating=repeating, **values))
    return rows


def _remove_piece(piece: str, text: str) -> tuple[int, str]:
    """Return how often a text contains a piece, except inside a longer number, and the text without the piece."""
    if not piece:
        return 0, text
    rest, times, last, place = "", 0, 0, text.find(piece)
    while place >= 0:
        end = place + len(piece)
        if text[max(0, place - 1) : place].isdecimal() or text[end : end + 1].isdecimal():
            place = text.find(piece, place + 1)
            continue
        rest = _append(rest, text[last:place])
        times += 1
        last, place = end, text.find(piece, end)
    return times, _append(rest, text[last:])


def _append(before: str, after: str) -> str:
    """Return the texts before and after a piece as one text, with single spaces between words that have them."""
    space = "" if _ends_without_space(before) or _begins_without_space(after) else " "
    return " ".join(f"{before.rstrip()}{space}{after.lstrip()}".split())


def _repeats(text: str) -> bool:
    """Return whether up to four words come three times in a row; characters are words in text without spaces."""
    chunks = text.split()
    if len(split_words(text)) > len(chunks):
        return repeats(words(text))
    return repeats(chunks if len(chunks) > 1 else [*text.strip()])
