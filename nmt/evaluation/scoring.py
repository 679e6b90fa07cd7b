"""Scores of translations against references, by the field's standard implementation, sacrebleu.

N sentences, R references of each.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric
from sacrebleu.significance import PairedTest

from nmt.config.decoding import DecodingConfig
from nmt.config.record import Record
from nmt.errors import NmtError
from nmt.evaluation.overlap import OverlapReport

METRICS: dict[str, Callable[[str], Metric]] = {
    "bleu": lambda tokenize: BLEU(tokenize=tokenize),  # Papineni et al. 2002
    "chrf": lambda _: CHRF(),  # Popović 2015
    "chrf++": lambda _: CHRF(word_order=2),  # Popović 2017
    "ter": lambda _: TER(),  # Snover et al. 2006
}
TOKENIZATIONS = ("13a", "intl", "zh", "char", "none")  # of BLEU: those of sacrebleu that need no further package
BYTES_OF_RESAMPLED_SENTENCE = 24 * 4 + 8  # of sacrebleu's arrays: float32 for each n-gram count of chrF++, an index
MAX_BYTES = 4 * 2**30


class Score(Record):
    """A system's score by a metric."""

    score: float
    mean: float | None = None
    """Of the bootstrap resamples, None without them."""
    ci: float | None = None
    """Half the width of the 95% confidence interval around the mean."""
    p_value: float | None = None
    """Of the difference from the first system, two-sided; None for the first."""


class Scores(Record):
    """Scores of systems on the same sentences."""

    sentences: int
    signatures: dict[str, str]
    """What makes a score reproducible, by metric (Post 2018)."""
    systems: dict[str, dict[str, Score]]
    """By system and metric."""


class Example(Record):
    """A sentence, to look at."""

    number: int
    """Its line, from 1."""
    chrf: float
    """Sentence-level chrF, 0 to 100."""
    source: str | None
    references: list[str]
    translation: str


class Examples(Record):
    """The sentences that a system translated worst and best."""

    worst: list[Example]
    best: list[Example]


class System(Record):
    """Where translations come from: a run, or a file."""

    name: str
    run: str | None = None
    epoch: int | str | None = None
    """Whose weights: a number, or "average"."""
    dataset: str | None = None
    """What the run was trained on."""
    decoding: DecodingConfig | None = None
    """As it was in force; nothing in it is "auto"."""
    hypothesis: str | None = None
    """The file, where they are not a run's."""
    seconds: float | None = None
    """Of translating; loading the model left out, compiling it not."""
    sentences_per_second: float | None = None
    with_unknown_words: int | None = None
    """Sentences with words that the model does not know."""
    cut_off: int | None = None
    """Translations that the limit on their length ended."""


class SetReport(Record):
    """What was scored against."""

    dataset: str | None
    """Whose test split, if it is one."""
    source: str | None
    references: list[str]
    sentences: int
    sha256: dict[str, str]
    """Of each of the files, as it lies on the disk."""


class Evaluation(Record):
    """All that is known of how good systems are on a test set."""

    format: Literal[1] = 1
    nmt: str
    """Version."""
    sacrebleu: str = sacrebleu.__version__
    """Version."""
    test_set: SetReport
    resamples: int
    """Of the bootstrap; 0: scores alone."""
    systems: list[System]
    """The first is the baseline."""
    scores: Scores
    overlap: OverlapReport
    without_overlap: Scores | None
    """On the sentences that were not trained on; None if that is all of them or none."""
    examples: dict[str, Examples]
    """By system."""


def bleu(translations: list[str], references: list[str]) -> tuple[float, str]:
    """Return corpus BLEU, 0 to 100, and its signature (Post 2018, "A Call for Clarity in Reporting BLEU Scores")."""
    metric = BLEU()
    return float(metric.corpus_score(translations, [references]).score), str(metric.get_signature())


def check_resamples(resamples: int, sentences: int) -> None:
    """Refuse a bootstrap that sacrebleu, which holds all resamples at once, would need too much memory for.

    Raises:
        NmtError: with the number of resamples that fits.
    """
    needed = resamples * sentences * BYTES_OF_RESAMPLED_SENTENCE
    if needed > MAX_BYTES:
        raise NmtError(
            f"All bootstrap resamples are in memory at once, at most {MAX_BYTES / 2**30:.0f} GiB of them; "
            f"{resamples:,} of {sentences:,} sentences would take {needed / 2**30:,.0f} GiB. Give --resamples "
            f"{MAX_BYTES // (sentences * BYTES_OF_RESAMPLED_SENTENCE)} or fewer; 0 gives scores alone."
        )


def score(
    systems: dict[str, list[str]], references: list[list[str]], metrics: list[str], tokenize: str, resamples: int
) -> Scores:
    """Return the scores of systems, with confidence intervals and tests of their difference from the first.

    Paired bootstrap resampling (Koehn 2004) with the seed of sacrebleu, 12345, which the signatures name. Of equal
    scores p is 1, where sacrebleu, which counts the resamples that differ by more than nothing, has its smallest. One
    sentence alone is neither resampled nor tested: all of its resamples are the same.

    Args:
        systems: N translations each, by name.
        references: R lists of N sentences.
        metrics: names in ``METRICS``.
        tokenize: of BLEU, one of ``TOKENIZATIONS``.
        resamples: of the bootstrap; 0: neither intervals nor tests.
    """
    chosen = {name: METRICS[name](tokenize) for name in metrics}
    found: dict[str, dict[str, Score]] = {name: {} for name in systems}
    sentences = len(references[0])
    if not resamples or sentences == 1:
        signatures = {}
        for metric in chosen.values():
            for name, translations in systems.items():
                one = metric.corpus_score(translations, references)
                found[name][one.name] = Score(score=one.score)
                signatures[one.name] = str(metric.get_signature())
        return Scores(sentences=sentences, signatures=signatures, systems=found)
    test = PairedTest(list(systems.items()), chosen, references, test_type="bs", n_samples=resamples)
    signed, results = test()
    for metric_name in signed:
        baseline = results[metric_name][0].score
        for place, (name, result) in enumerate(zip(systems, results[metric_name], strict=True)):
            p_value = 1.0 if place and result.score == baseline else result.p_value
            found[name][metric_name] = Score(
                score=result.score, mean=float(result.mean), ci=float(result.ci), p_value=p_value
            )
    return Scores(sentences=sentences, signatures={name: str(one) for name, one in signed.items()}, systems=found)


def sentence_scores(translations: list[str], references: list[list[str]]) -> np.ndarray:
    """Return chrF of each sentence, the best reference counting: float64 [N], 0 to 100.

    Of single sentences chrF says more than BLEU: most short ones have no 4-gram in common with their reference, and
    what is then said for BLEU is an artefact of its smoothing.
    """
    metric = CHRF()
    pairs = zip(translations, zip(*references, strict=True), strict=True)
    return np.array([metric.sentence_score(text, others).score for text, others in pairs])


def pick_examples(
    translations: list[str], sources: list[str] | None, references: list[list[str]], scores: np.ndarray, count: int
) -> Examples:
    """Return the ``count`` sentences with the lowest and with the highest scores; none is among both.

    Of equals the longest come first, by their reference: there is more to see in them.
    """
    lengths = [max(map(len, others)) for others in zip(*references, strict=True)]
    order = sorted(range(len(scores)), key=lambda place: (scores[place], -lengths[place]))
    worst = order[:count]
    best = sorted(order[len(worst) :], key=lambda place: (-scores[place], -lengths[place]))[:count]

    def example(place: int) -> Example:
        return Example(
            number=place + 1,
            chrf=float(scores[place]),
            source=None if sources is None else sources[place],
            references=[one[place] for one in references],
            translation=translations[place],
        )

    return Examples(worst=[example(place) for place in worst], best=[example(place) for place in best])
