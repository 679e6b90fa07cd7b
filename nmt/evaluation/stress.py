"""Stress test: variants of a test set, those that training draws and others, always the same; scores of them."""

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from nmt.data.repeats import repeats
from nmt.data.sources.formats import Pair
from nmt.data.variants import VARIANTS, Variant
from nmt.decoding.translation import Translation
from nmt.evaluation.metrics import make_metric
from nmt.evaluation.result import StressRow, pick_examples
from nmt.evaluation.scoring import sentence_scores
from nmt.storage.text import as_cell

MOST_SENTENCES = 1000
"""Sentences of a variant; of a larger test set the first count."""
PLAIN, WORDS = "plain", "single_words"
CAPITAL_WORD = "capital_word"
"""Its references have no word in capitals, so its BLEU and the plain one that it is compared with ignore case."""
EMOJI = "😀😂😍😢😎👍🎉🐶🌞🔥"
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")


def _capital_word(pair: Pair, _other: Pair, dice: Random) -> Pair:
    words = [word for word in _WORD.finditer(pair.source) if len(word[0]) >= 3]
    if not words:
        return pair
    word, text = dice.choice(words), pair.source
    return pair._replace(source=text[: word.start()] + word[0].upper() + text[word.end() :])


CHANGES: dict[str, Variant] = {
    PLAIN: lambda pair, _other, _dice: pair,
    "lower": lambda pair, _other, _dice: pair._replace(source=pair.source.lower()),
    CAPITAL_WORD: _capital_word,
    **VARIANTS,
    "join_three": VARIANTS["join"],
    "double_spaces": lambda pair, _other, _dice: pair._replace(source=pair.source.replace(" ", "  ")),
}
JOINED = {"join": 2, "join_three": 3}
PIECES: dict[str, Callable[[Random], str]] = {
    "emoji": lambda dice: dice.choice(EMOJI),
    "url": lambda dice: f"https://www.example.org/{dice.choice(('news', 'shop', 'photos'))}/{dice.randrange(10_000)}",
    "email": lambda dice: f"{dice.choice(('anna', 'info', 'peter.w'))}{dice.randrange(100)}@example.com",
    "number": lambda dice: str(dice.randrange(10**4, 10 ** dice.randrange(5, 10))),
}
"""Texts that are put into sources, and that translations have to copy: the emoji last, others after a middle word."""


class Case(NamedTuple):
    """A sentence of a variant."""

    number: int
    """Line number in the test set, from 1; of joined sentences that of the first, of a word 0."""
    source: str
    """Changed source."""
    references: list[str]
    """R references of the translation, of its part without ``piece``; none of a word."""
    piece: str = ""
    """Text that was put into the source; "" for none."""


def make_variants(sources: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, list[Case]]:
    """Return the sentences of each variant, the plain ones first; a variant without any is left out.

    Args:
        sources: N source sentences; empty ones are left out.
        references: R lists of N references.
    """
    rows = enumerate(zip(sources, *references, strict=True), start=1)
    plain = [Case(number, source, targets) for number, (source, *targets) in rows if source.strip()][:MOST_SENTENCES]
    cases = {name: _changed(name, change, plain) for name, change in CHANGES.items()}
    if all(text == text.lower() for case in plain for text in case.references):  # no case to give back, as in lessons
        cases["upper"] = [case._replace(source=case.source.upper()) for case in plain]
    cases |= {name: [_with_piece(name, make, case) for case in plain] for name, make in PIECES.items()}
    words = dict.fromkeys(word for case in plain for word in _WORD.findall(case.source))
    cases[WORDS] = [Case(0, word, []) for word in words][:MOST_SENTENCES]
    return {name: of_variant for name, of_variant in cases.items() if of_variant}


def _changed(name: str, change: Variant, plain: list[Case]) -> list[Case]:
    size, cases = JOINED.get(name, 1), list[Case]()
    for start in range(0, len(plain) - size + 1, size):
        first, *others = plain[start : start + size]
        source = " ".join(other.source for other in others)
        pairs = []
        for place, target in enumerate(first.references):  # with the same dice, so the source is always the same
            other = Pair(source, " ".join(other.references[place] for other in others))
            pairs.append(change(Pair(first.source, target), other, Random(f"{name} {first.number}")))
        cases.append(Case(first.number, pairs[0].source, [pair.target for pair in pairs]))
    return cases


def _with_piece(name: str, make: Callable[[Random], str], case: Case) -> Case:
    piece, words = make(Random(f"{name} {case.number}")), case.source.split()
    place = len(words) if name == "emoji" else max(1, len(words) // 2)
    return case._replace(source=" ".join([*words[:place], piece, *words[place:]]), piece=piece)


def score_variants(
    cases: Mapping[str, Sequence[Case]], translated: Mapping[str, Translation], tokenization: str, *, lowercase: bool
) -> list[StressRow]:
    """Return what the translations of each variant are like.

    Args:
        cases: sentences of each variant, as ``make_variants`` returns them.
        translated: translation of each source.
        tokenization: as of ``score_systems``.
        lowercase: as of ``score_systems``.
    """
    metrics = {of: make_metric("bleu", tokenization, lowercase=of, quiet=True) for of in (lowercase, True)}
    plain = dict[bool, float]()
    rows = list[StressRow]()
    for name, of_variant in cases.items():
        sources, found = [case.source for case in of_variant], [translated[case.source] for case in of_variant]
        texts = [as_cell(translation.text) for translation in found]
        times, scored = zip(*map(_without, (case.piece for case in of_variant), texts), strict=True)
        values: dict[str, Any] = {}
        if name != WORDS:
            references = [list(lines) for lines in zip(*(case.references for case in of_variant), strict=True)]
            scores = {of: float(metric.corpus_score(scored, references).score) for of, metric in metrics.items()}
            plain = plain or scores
            caseless = lowercase or name == CAPITAL_WORD
            values["bleu"] = scores[caseless]
            values["share"] = 100 * scores[caseless] / plain[caseless] if plain[caseless] else None
            chrf = sentence_scores([*scored], references, lowercase=lowercase)
            [example] = pick_examples(texts, sources, references, chrf, 1).worst
            values["worst"] = example.model_copy(update={"number": of_variant[example.number - 1].number})
        if name in PIECES:
            values["copied"] = 100 * times.count(1) / len(times)
        cut_off = sum(not translation.finished for translation in found)
        repeating = sum(_repeats(text) > _repeats(source) for source, text in zip(sources, texts, strict=True))
        rows.append(StressRow(variant=name, sentences=len(texts), cut_off=cut_off, repeating=repeating, **values))
    return rows


def _without(piece: str, text: str) -> tuple[int, str]:
    """Return how often a text holds a piece, which is no part of a longer number, and the text without it."""
    if not piece:
        return 0, text
    rest, times, last, place = list[str](), 0, 0, text.find(piece)
    while place >= 0:
        end = place + len(piece)
        if text[max(0, place - 1) : place].isdecimal() or text[end : end + 1].isdecimal():
            place = text.find(piece, place + 1)
            continue
        rest += [text[last:place], " "]
        times += 1
        last, place = end, text.find(piece, end)
    rest.append(text[last:])
    return times, " ".join("".join(rest).split())


def _repeats(text: str) -> bool:
    """Return whether up to four words, or characters without spaces, come three times in a row."""
    return repeats(words if len(words := text.split()) > 1 else [*text.strip()])
