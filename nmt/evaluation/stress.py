"""Stress test: reproducible variants of a test set as in ordinary text, and scores of their translations."""

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
"""Largest number of sentences of a variant; only the first sentences of a larger test set are used."""
PLAIN, WORDS = "plain", "single_words"
CAPITAL_WORD = "capital_word"
"""Name of a variant whose references have no word in capitals, so its BLEU and the plain BLEU ignore case."""
EMOJI = "😀😂😍😢😎👍🎉🐶🌞🔥"
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")


def _capital_word(pair: Pair, _second: Pair, dice: Random) -> Pair:
    """Write a random word of the source in capitals."""
    words = [word for word in _WORD.finditer(pair.source) if len(word[0]) >= 3]
    if not words:
        return pair
    word, text = dice.choice(words), pair.source
    return pair._replace(source=text[: word.start()] + word[0].upper() + text[word.end() :])


CHANGES: dict[str, Variant] = {
    PLAIN: lambda pair, _second, _dice: pair,
    "lower": lambda pair, _second, _dice: pair._replace(source=pair.source.lower()),
    CAPITAL_WORD: _capital_word,
    **VARIANTS,
    "join_three": VARIANTS["join"],
    "double_spaces": lambda pair, _second, _dice: pair._replace(source=pair.source.replace(" ", "  ")),
}
JOINED = {"join": 2, "join_three": 3}
PIECES: dict[str, Callable[[Random], str]] = {
    "emoji": lambda dice: dice.choice(EMOJI),
    "url": lambda dice: f"https://www.example.org/{dice.choice(('news', 'shop', 'photos'))}/{dice.randrange(10_000)}",
    "email": lambda dice: f"{dice.choice(('anna', 'info', 'peter.w'))}{dice.randrange(100)}@example.com",
    "number": lambda dice: str(dice.randrange(10**4, 10 ** dice.randrange(5, 10))),
}
"""Texts to insert into sources, which translations must copy: an emoji at the end, the rest in the middle."""


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


def make_variants(sources: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, list[Case]]:
    """Return the sentences of each variant, the plain ones first. Variants without sentences are left out.

    Args:
        sources: N source sentences; empty ones are left out.
        references: R lists of N references.
    """
    rows = enumerate(zip(sources, *references, strict=True), start=1)
    plain = [Case(number, source, targets) for number, (source, *targets) in rows if source.strip()][:MOST_SENTENCES]
    cases = {name: _change_sentences(name, change, plain) for name, change in CHANGES.items()}
    if all(text == text.lower() for case in plain for text in case.references):  # an uncased corpus, as in lessons
        cases["upper"] = [case._replace(source=case.source.upper()) for case in plain]
    cases |= {name: [_insert_piece(name, make, case) for case in plain] for name, make in PIECES.items()}
    words = dict.fromkeys(word for case in plain for word in _WORD.findall(case.source))
    cases[WORDS] = [Case(0, word, []) for word in words][:MOST_SENTENCES]
    return {name: sentences for name, sentences in cases.items() if sentences}


def _change_sentences(name: str, change: Variant, plain: list[Case]) -> list[Case]:
    size, cases = JOINED.get(name, 1), list[Case]()
    for start in range(0, len(plain) - size + 1, size):
        first, *following = plain[start : start + size]
        source = " ".join(case.source for case in following)
        pairs = []
        for place, target in enumerate(first.references):  # an equal seed gives the same source for every reference
            second = Pair(source, " ".join(case.references[place] for case in following))
            pairs.append(change(Pair(first.source, target), second, Random(f"{name} {first.number}")))
        cases.append(Case(first.number, pairs[0].source, [pair.target for pair in pairs]))
    return cases


def _insert_piece(name: str, make: Callable[[Random], str], case: Case) -> Case:
    piece, words = make(Random(f"{name} {case.number}")), case.source.split()
    place = len(words) if name == "emoji" else max(1, len(words) // 2)
    return case._replace(source=" ".join([*words[:place], piece, *words[place:]]), piece=piece)


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
    """Return whether up to four words, or characters in a text without spaces, come three times in a row."""
    words = text.split()
    return repeats(words if len(words) > 1 else [*text.strip()])
