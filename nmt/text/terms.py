"""Search for translations that keep the terms of a glossary.

Where a translation lacks a term, the words before the place that attends to it are forced, with a form of the term
after them, and the search goes on from there. Loads no TensorFlow.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from nmt.config.schema import DecodingConfig
from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.decoding.translation import BEST, Translation
from nmt.text.glossary import Found, Glossary, Term
from nmt.text.reading import CLOSING
from nmt.text.rewriting import Alignment, align, babbles
from nmt.tokenizers.base import EOS

VARIANTS, BEFORE, TOKENS = 8, 2, 6
"""Beam, words and tokens of the search for other words right before a term, such as an article of its gender."""
MOST_PREFIXES = 3
"""Forced beginnings at a place, the likeliest, from which the search for a translation goes on."""
MOST_ROUNDS = 8
"""Searches for a sentence; each gives it a term at least."""


def varied(decoding: DecodingConfig) -> DecodingConfig:
    """Return the settings of the search for other words before a term."""
    beam = max(VARIANTS, decoding.beam_size)
    return decoding.model_copy(update={"beam_size": beam, "length_penalty": 0.0, "coverage_penalty": 0.0})


def keep_terms(
    translator: SentenceTranslator,
    glossary: Glossary,
    texts: Sequence[str],
    found: Sequence[list[Translation]],
    settings: DecodingConfig | None = None,
) -> list[list[Translation]]:
    """Return translations of what a model read, with terms; best first; a changed one is scored anew.

    Args:
        translator: finds, aligns and scores translations of sentences.
        glossary: the terms.
        texts: what the model read.
        found: its translations.
        settings: settings of the search that found them, instead of the translator's.
    """
    flat = [(text, each) for text, several in zip(texts, found, strict=True) for each in several]
    sentences, translations = [text for text, _ in flat], [each for _, each in flat]
    kept = iter(_kept(translator, glossary, sentences, translations, settings))
    of_each = [{each.text: each for each in itertools.islice(kept, len(several))} for several in found]
    return [sorted(each.values(), key=lambda one: -(one.score or 0.0)) for each in of_each]


def _kept(
    translator: SentenceTranslator,
    glossary: Glossary,
    texts: Sequence[str],
    found: Sequence[Translation],
    settings: DecodingConfig | None,
) -> list[Translation]:
    target, decoding = translator.target, translator.config.decoding
    alpha = decoding.length_penalty if decoding.beam_size > 1 else 0.0
    variants = varied(decoding)
    kept, failures = list(found), Counter[int]()  # after a failure every place is tried
    for _ in range(MOST_ROUNDS):
        missing = {
            index: terms for index, (text, each) in enumerate(zip(texts, kept, strict=True))
            if each.text and failures[index] < 2 and (terms := glossary.missing(text, each.text))
        }  # fmt: skip
        failures.update(missing.keys())
        words = {index: kept[index].text.split() for index in missing}
        incomplete = [kept[index] for index in missing]
        aligned = align(translator, [texts[index] for index in missing], incomplete) if missing else []
        spots = [
            (index, spot) for index, alignment in itertools.zip_longest(missing, aligned)
            for spot in _spots(missing[index], alignment if failures[index] == 1 else None, len(words[index]))
        ]  # fmt: skip
        before = [target.encode(" ".join(words[index][: max(0, spot[0] - BEFORE)])) for index, spot in spots]
        others = list[list[Translation]]()
        if spots:
            several = BEST._replace(n_best=variants.beam_size)
            sources = [texts[index] for index, _ in spots]
            others = translator.search(sources, several, before, settings=variants, max_tokens=TOKENS)
        tries = [
            (index, number, *each) for number, ((index, spot), variations) in enumerate(zip(spots, others, strict=True))
            for each in _tries(words[index], *spot, [other.text.split() for other in variations])
            if all(len(target.encode(text)) < translator.longest for text in each)
        ]  # fmt: skip
        if not tries:
            break
        values = translator.token_scores(
            [texts[index] for index, *_ in tries], [target.encode(start) for *_, start, _ in tries]
        )
        ranked = _ranked([spot for _, spot, *_ in tries], [-each.sum() for each in values])
        tries = [tries[number] for numbers in ranked.values() for number in numbers[:MOST_PREFIXES]]
        indices = [index for index, *_ in tries] * 2
        read = [texts[index] for index in indices]
        begun = [target.encode(start) for *_, start, _ in tries]
        new = [best for best, *_ in translator.search(read[: len(tries)], BEST, begun, settings=settings)]
        for index, *_, whole in tries:
            ids = target.encode(whole)
            new.append(kept[index]._replace(text=target.decode(ids), ids=[*ids, EOS], finished=True))
        values = translator.token_scores(read, [each.ids for each in new])
        lacking = [len(glossary.missing(text, each.text)) for text, each in zip(read, new, strict=True)]
        ranks = [
            (count, babbles(each.ids, text, may_repeat=translator.may_repeat), -value.mean())
            for count, each, text, value in zip(lacking, new, read, values, strict=True)
        ]
        for index, (best, *_) in _ranked(indices, ranks).items():
            if lacking[best] < len(missing[index]):
                penalty = ((5 + len(values[best])) / 6) ** alpha
                kept[index] = new[best]._replace(score=float(values[best].sum()) / penalty)
                failures[index] = 0
    return kept


def _spots(terms: list[Found], alignment: Alignment | None, words: int) -> Iterator[tuple[int, int, Term]]:
    """Yield places in a translation of N words for the first of its missing terms: begin, end, the term.

    Words from begin to end attend to the term; without attention the places are between all words.
    """
    if alignment is None:
        yield from ((place, place, terms[0].term) for place in range(words + 1))
        return
    attending = [sorted({place for word in each.words for place in alignment.targets_of(word)}) for each in terms]
    places, term = min(zip(attending, [each.term for each in terms], strict=True), key=lambda each: each[0])
    for place in places:
        end = next(end for end in itertools.count(place + 1) if end not in places)
        yield place, end, term


def _tries(words: list[str], begin: int, end: int, term: Term, others: list[list[str]]) -> Iterator[tuple[str, str]]:
    """Yield beginnings of a translation up to a form of a term, each also with the words after the term's place."""
    replaced = " ".join(words[begin:end])
    mark = replaced[len(replaced.rstrip(CLOSING)) :]
    for before in dict.fromkeys(tuple(each[:begin]) for each in [words, *others] if len(each) >= begin):
        for form in term.forms:
            start = " ".join([*before, form if before or words[0].islower() else form[:1].upper() + form[1:]])
            yield start, " ".join([start + mark, *words[end:]])


def _ranked(indices: Sequence[int], ranks: Sequence[Any]) -> dict[int, list[int]]:
    """Return the places of each index, those with the lowest ranks first."""
    found: dict[int, list[int]] = {}
    for place in sorted(range(len(indices)), key=ranks.__getitem__):
        found.setdefault(indices[place], []).append(place)
    return found
