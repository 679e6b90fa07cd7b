"""Cross-attention of sentences and their translations, for the heat maps of the page."""

import base64
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from nmt.config.record import Record
from nmt.errors import DataError, NmtError, printable
from nmt.reporting.facts import RunFacts

DEFAULT_SENTENCES = 3
LONGEST_TOKEN = 30  # characters
MOST_BYTES = 150_000  # of the weights of a sentence; beyond, those of the heads are left out


class AttentionMap(Record):
    """Attention of a translation to its source."""

    run: int
    """Index of the run."""
    sentence: str
    translation: str
    source: list[str]
    """S tokens."""
    target: list[str]
    """T tokens."""
    layers: int
    heads: int
    """Number of heads in ``weights``; 1: their mean alone."""
    all_heads: int
    """Number of heads of a layer."""
    weights: str
    """Weights from 0 to 255 as bytes [layers, heads, T, S] in base64."""

    def mean(self) -> np.ndarray:
        """Return the mean over the heads of the last layer, float64 [T, S], 0 to 1."""
        shape = (self.layers, self.heads, len(self.target), len(self.source))
        weights = np.frombuffer(base64.b64decode(self.weights), np.uint8).reshape(shape)
        return np.asarray(weights[-1].mean(axis=0) / 255)


class AttentionReport(NamedTuple):
    """Maps of all runs, and what has none."""

    maps: list[AttentionMap]
    """Maps of the first sentence by all runs, then of the second ..."""
    notes: list[str]
    """Runs without maps, each with the reason in words."""


NO_ATTENTION = AttentionReport([], [])


def draw_attention(runs: Sequence[RunFacts], sentences: Sequence[str], warn: Callable[[str], None]) -> AttentionReport:
    """Translate sentences with each run, and return its attention; a run without weights does not stop the report.

    Args:
        runs: the runs.
        sentences: raw sentences; none for the first sample sentences of each run.
        warn: called with each problem.

    Raises:
        DataError: for a sentence without words.
    """
    maps: list[AttentionMap] = []
    notes: list[str] = []
    for number, facts in enumerate(runs):
        texts = [*sentences] or _sample_sentences(facts)
        if not texts:
            notes.append(f"{facts.name} has no sample sentences. --sentence TEXT names others.")
            continue
        try:
            of_run = _maps_of_run(number, facts, texts)
        except SentenceError:
            raise
        except NmtError as error:
            notes.append(f"{facts.name}: {error}")
            warn(f"No attention of {notes[-1]}")
            continue
        maps += of_run
        if not of_run:
            notes.append(f"The model of {facts.name} has no attention: its decoder reads the source as one state.")
    order = [*dict.fromkeys(found.sentence for found in maps)]
    return AttentionReport(sorted(maps, key=lambda found: order.index(found.sentence)), notes)


class SentenceError(DataError):
    """Sentence that a run cannot translate."""


def _sample_sentences(facts: RunFacts) -> list[str]:
    samples = facts.run.samples()
    return [sample.source for sample in samples[-1].samples[:DEFAULT_SENTENCES]] if samples else []


def _maps_of_run(number: int, facts: RunFacts, texts: list[str]) -> list[AttentionMap]:
    from nmt.decoding.translator import Translator  # noqa: PLC0415 - it loads TensorFlow

    translator = Translator.load(facts.run)
    for text in texts:
        if not translator.source.encode(text):
            raise SentenceError(
                f"Sentence {text[:60]!r} has no words after the normalization of run {facts.name}. A map of attention "
                "needs a word at least. Give another sentence."
            )
    translations = translator.translate(texts, [repr(text[:60]) for text in texts])
    try:
        found = translator.attention(texts, translations)
    except DataError:  # the model has none
        return []
    maps = []
    for text, translation, attention in zip(texts, translations, found, strict=True):
        weights = attention.weights
        layers, heads = weights.shape[:2]
        if weights.size > MOST_BYTES:
            weights = weights.mean(axis=1, keepdims=True)
        maps.append(
            AttentionMap(
                run=number,
                sentence=text,
                translation=translation.text,
                source=[_label(token) for token in translator.source.pieces(attention.source)],
                target=[_label(token) for token in translator.target.pieces(attention.target)],
                layers=layers,
                heads=weights.shape[1],
                all_heads=heads,
                weights=base64.b64encode(np.rint(weights * 255).astype(np.uint8).tobytes()).decode("ascii"),
            )
        )
    return maps


def _label(token: str) -> str:
    """Return a token as a label of at most ``LONGEST_TOKEN`` printable characters."""
    text = printable(token)
    return text if len(text) <= LONGEST_TOKEN else f"{text[: LONGEST_TOKEN - 1]}…"
