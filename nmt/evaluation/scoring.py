"""Scores of translations against references, computed by the standard implementation, sacrebleu.

Shapes: N sentences, R references per sentence, B bootstrap resamples.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from sacrebleu.significance import PairedTest

from nmt.config.record import Record
from nmt.errors import NmtError, counted
from nmt.evaluation.metrics import DEFAULT_TOKENIZATION, METRICS, make_metric
from nmt.message import Argument
from nmt.tokenizers.scripts import split_words

BYTES_PER_RESAMPLED_SENTENCE = 24 * 4 + 8  # sacrebleu's arrays: float32 n-gram counts of chrF++, and an index
MAX_BOOTSTRAP_BYTES = 4 * 2**30


class Score(Record):
    """The score of a system by a metric."""

    score: float
    """Score on all N sentences."""
    mean: float | None = None
    """Mean score of the bootstrap resamples; None without resampling."""
    ci: float | None = None
    """Half the width of the 95% confidence interval around the mean; None without resampling."""
    p_value: float | None = None
    """Two-sided p-value of the difference from the first system; None for the first system and without resampling."""


class Scores(Record):
    """Scores of systems on the same N sentences."""

    sentences: int
    """Number of sentences, N."""
    signatures: dict[str, str]
    """Signature of each metric: the settings that make a score reproducible (Post 2018). Metrics have sacrebleu's
    names, such as "chrF2". Lower-cased scores are named "BLEU lc", so that tables do not mix them with "BLEU"."""
    systems: dict[str, dict[str, Score]]
    """Scores by system name, then by metric name."""


def check_bootstrap_memory(resamples: int, sentences: int) -> None:
    """Refuse a bootstrap that needs more than ``MAX_BOOTSTRAP_BYTES``, since sacrebleu keeps all resamples in memory.

    Raises:
        NmtError: if it needs more; the message gives the number of resamples that fits.
    """
    needed = resamples * sentences * BYTES_PER_RESAMPLED_SENTENCE
    if needed > MAX_BOOTSTRAP_BYTES:
        raise NmtError(
            f"{counted(resamples, 'bootstrap resample')} of {counted(sentences, 'sentence')} would take "
            f"{needed / 2**30:,.0f} GiB of memory. All resamples are in memory at once, in at most "
            f"{MAX_BOOTSTRAP_BYTES / 2**30:.0f} GiB. Give ",
            Argument("resamples", MAX_BOOTSTRAP_BYTES // (sentences * BYTES_PER_RESAMPLED_SENTENCE)),
            " or fewer; 0 gives scores alone.",
        )


def score_systems(
    systems: dict[str, list[str]],
    references: list[list[str]],
    metrics: Sequence[str],
    tokenization: str = DEFAULT_TOKENIZATION,
    resamples: int = 0,
    chosen: Sequence[int] | None = None,
    *,
    lowercase: bool = False,
) -> Scores:
    """Return the scores of systems, with confidence intervals and significance tests against the first system.

    The test is paired bootstrap resampling (Koehn 2004) with sacrebleu's seed 12345, which is in the signatures.
    A single sentence is neither resampled nor tested: all of its resamples are the same.

    Args:
        systems: N translations by system name.
        references: R lists of N sentences.
        metrics: names in ``METRICS``.
        tokenization: tokenization of BLEU, one of ``TOKENIZATIONS``.
        resamples: number of bootstrap resamples, B; 0 computes neither intervals nor tests.
        chosen: indices of the sentences to score; None for all.
        lowercase: whether BLEU and chrF compare texts in lower case, as TER always does.
    """
    if chosen is not None:
        systems = {name: [lines[index] for index in chosen] for name, lines in systems.items()}
        references = [[lines[index] for index in chosen] for lines in references]
    sentences, signatures = len(references[0]), dict[str, str]()
    by_system: dict[str, dict[str, Score]] = {name: {} for name in systems}
    for name in metrics:
        metric, tested = make_metric(name, tokenization, lowercase=lowercase), resamples > 0 and sentences > 1
        if tested:
            test = PairedTest([*systems.items()], {name: metric}, references, test_type="bs", n_samples=resamples)
            test_signatures, test_results = test()
            [(shown, signature)] = test_signatures.items()
            results: list[Any] = test_results[shown]
        else:
            results = [metric.corpus_score(translations, references) for translations in systems.values()]
            shown, signature = results[0].name, metric.get_signature()
        shown += " lc" if lowercase and METRICS[name].cased else ""
        signatures[shown] = str(signature)
        for number, (system, result) in enumerate(zip(systems, results, strict=True)):
            tests: dict[str, float | None] = {}
            if tested:
                # sacrebleu counts resamples with a difference above 0, so equal scores would get the smallest p-value.
                p_value = 1.0 if number and result.score == results[0].score else result.p_value
                tests = {"mean": float(result.mean), "ci": float(result.ci), "p_value": p_value}
            by_system[system][shown] = Score(score=result.score, **tests)
    return Scores(sentences=sentences, signatures=signatures, systems=by_system)


def sentence_scores(translations: list[str], references: list[list[str]], *, lowercase: bool = False) -> np.ndarray:
    """Return chrF of each sentence against its best reference, float64 [N], 0 to 100.

    chrF ranks single sentences better than BLEU: most short sentences share no 4-gram with their reference, so their
    BLEU is an artefact of smoothing.
    """
    metric = make_metric("chrf", lowercase=lowercase)
    rows = zip(translations, zip(*references, strict=True), strict=True)
    return np.array([metric.sentence_score(text, sentence_references).score for text, sentence_references in rows])


class PairScores(Record):
    """The scores on the sentences of a language pair."""

    languages: str
    """Codes of source and target, such as "es-gn"."""
    scores: Scores
    """Scores without intervals and tests."""


class Gap(Record):
    """The difference between two systems."""

    system: str
    """Name of a system."""
    baseline: str
    """Name of the system that it is compared with."""
    differences: dict[str, float]
    """Score of the system minus score of the baseline, by metric."""
    p_values: dict[str, float | None]
    """Two-sided p-value of each difference; None without resampling."""


def gaps(translations: dict[str, list[str]], score: Callable[[dict[str, list[str]]], Scores]) -> list[Gap]:
    """Return the gap between each system and the one before it.

    Args:
        translations: N translations by system name.
        score: function that scores systems.
    """
    found = []
    for baseline, system in pairwise(translations):
        scores = score({name: translations[name] for name in (baseline, system)})
        before, after = scores.systems[baseline], scores.systems[system]
        differences = {metric: after[metric].score - before[metric].score for metric in scores.signatures}
        p_values = {metric: after[metric].p_value for metric in scores.signatures}
        found.append(Gap(system=system, baseline=baseline, differences=differences, p_values=p_values))
    return found


METRICS_BY_LENGTH = ["bleu", "chrf"]
# A bucket ends at each percentile. The shortest and the longest tenth are separate, since systems differ most there.
PERCENTILES = (10, 30, 50, 70, 90)
FEWEST_SENTENCES = 20  # per bucket; corpus BLEU of fewer sentences varies by several points


class LengthBucket(Record):
    """The scores on sentences of similar source length."""

    shortest: int
    """Number of words or characters of the shortest source."""
    longest: int
    """Number of words or characters of the longest source."""
    unit: Literal["words", "characters"] = "words"
    """Unit of the lengths: characters in languages without spaces between words."""
    scores: Scores
    """BLEU and chrF on these sentences, without intervals and tests."""

    @property
    def lengths(self) -> str:
        """Range of lengths as text, such as "4-8", or "3" for a single length."""
        return f"{self.shortest}" if self.shortest == self.longest else f"{self.shortest}-{self.longest}"


def length_buckets(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Return the shortest and the longest length of each bucket, in rising order.

    Buckets end at the lengths of ``PERCENTILES``, so there are at most six. A bucket with fewer than
    ``FEWEST_SENTENCES`` is merged with the next bucket, and the last with the previous bucket.

    Args:
        lengths: N lengths in any order, where N > 0.
    """
    ordered = sorted(lengths)
    count = len(ordered)
    starts = [0]  # index into ``ordered`` of the first sentence of each bucket
    for percentile in PERCENTILES:
        longest = ordered[math.ceil(count * percentile / 100) - 1]
        end = bisect_right(ordered, longest)  # sentences of equal length stay together
        if end - starts[-1] >= FEWEST_SENTENCES and count - end >= FEWEST_SENTENCES:
            starts.append(end)
    return [(ordered[start], ordered[end - 1]) for start, end in pairwise([*starts, count])]


def score_by_length(
    systems: dict[str, list[str]],
    sources: Sequence[str],
    references: list[list[str]],
    tokenization: str,
    *,
    lowercase: bool = False,
) -> list[LengthBucket]:
    """Return the length buckets of a test set with the scores of systems.

    Args:
        systems: N translations by system name.
        sources: N source sentences.
        references: R lists of N sentences.
        tokenization: tokenization of BLEU, one of ``TOKENIZATIONS``.
        lowercase: see ``score_systems``.
    """
    lengths = [len(split_words(source)) for source in sources]
    is_spaced = sum(lengths) <= 1.5 * sum(len(source.split()) for source in sources)
    buckets = []
    for shortest, longest in length_buckets(lengths):
        chosen = [index for index, length in enumerate(lengths) if shortest <= length <= longest]
        scores = score_systems(systems, references, METRICS_BY_LENGTH, tokenization, 0, chosen, lowercase=lowercase)
        buckets.append(
            LengthBucket(shortest=shortest, longest=longest, unit="words" if is_spaced else "characters", scores=scores)
        )
    return buckets
