"""The result of an evaluation: systems, scores, overlap with training, examples, and every sentence.

N sentences, R references of each.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import sacrebleu
from pydantic import Field

from nmt.config.record import Record
from nmt.config.schema import DecodingConfig
from nmt.evaluation.overlap import TrainingOverlap
from nmt.evaluation.scoring import LengthBucket, Scores


class Example(Record):
    """A sentence with its references and its translation by a system."""

    number: int
    """Line number of the sentence, from 1."""
    chrf: float
    """Sentence-level chrF, 0 to 100."""
    source: str | None
    """Source sentence; None if the sources are unknown."""
    references: list[str]
    """R references."""
    translation: str
    """Translation by the system."""


class Examples(Record):
    """The sentences with the lowest and with the highest chrF of a system."""

    worst: list[Example]
    """Sentences with the lowest chrF, in rising order."""
    best: list[Example]
    """Sentences with the highest chrF, in falling order."""


class System(Record):
    """A source of translations: a run, or a file."""

    name: str
    """Name as it was given: RUN, RUN:EPOCH or FILE."""
    run: str | None = None
    """Name of the run; None for a file."""
    epoch: int | str | None = None
    """Weights: a number, "average", or such as "step-1500"; None for a file."""
    dataset: str | None = None
    """Dataset that the run was trained on."""
    decoding: DecodingConfig | None = None
    """Settings of decoding as resolved, without "auto"."""
    export: str | None = None
    """Folder of the export that translated, by CTranslate2; None for a run and a file."""
    computed_in: str | None = None
    """Number format in which CTranslate2 computed; None for a run and a file."""
    hypothesis: str | None = None
    """Path of the file; None for a run."""
    seconds: float | None = None
    """Seconds of translating N sentences: compiling counts, loading the model does not."""
    sentences_per_second: float | None = None
    """Sentences by ``seconds``."""
    with_unknown_words: int | None = None
    """Number of source sentences with words that the model does not know."""
    cut_off: int | None = None
    """Number of translations that reached the limit on their length."""


class EvaluationSetRecord(Record):
    """The files of a test set."""

    dataset: str | None
    """Dataset whose test split it is; None for other files."""
    source: str | None
    """Path of the sources; None if they are unknown."""
    references: list[str]
    """Paths of the R references."""
    sentences: int
    """Number of sentences, N."""
    sha256: dict[str, str]
    """SHA-256 of each file, as on disk, by its path."""


class EvaluationRecord(Record):
    """The results of an evaluation, as ``nmt evaluate --json`` prints them."""

    format: Literal[1] = 1
    """Format number."""
    nmt: str
    """Version of nmt."""
    sacrebleu: str = sacrebleu.__version__
    """Version of sacrebleu."""
    test_set: EvaluationSetRecord
    """Files that were scored against."""
    resamples: int
    """Number of bootstrap resamples; 0: scores alone."""
    systems: list[System]
    """Systems in the order given; the first is the baseline."""
    scores: Scores
    """Scores on all N sentences."""
    overlap: TrainingOverlap
    """Sentences that were trained on."""
    without_overlap: Scores | None
    """Scores on the sentences that were not trained on; None if these are all N or none."""
    examples: dict[str, Examples]
    """Examples by name of the system; empty if none were asked for."""
    by_length: list[LengthBucket] = Field(default_factory=list)
    """Buckets of source length, in rising order; empty unless asked for."""


@dataclass(frozen=True)
class EvaluationTexts:
    """All N sentences of an evaluation."""

    sources: list[str] | None
    """N source sentences; None if they are unknown."""
    references: list[list[str]]
    """R lists of N references."""
    translations: dict[str, list[str]]
    """N translations by name of the system."""
    chrf: dict[str, np.ndarray]
    """chrF of each sentence, float64 [N], by name of the system."""


@dataclass(frozen=True)
class Evaluation:
    """An evaluation: its results and the sentences they are computed from."""

    record: EvaluationRecord
    """Results without the sentences."""
    texts: EvaluationTexts
    """All sentences."""


def pick_examples(
    translations: list[str], sources: list[str] | None, references: list[list[str]], chrf: np.ndarray, count: int
) -> Examples:
    """Return the ``count`` sentences with the lowest and with the highest chrF; no sentence is in both lists.

    Among equal scores the sentence with the longest reference comes first: it shows most.
    """
    lengths = [max(map(len, sentence_references)) for sentence_references in zip(*references, strict=True)]
    order = sorted(range(len(chrf)), key=lambda index: (chrf[index], -lengths[index]))
    worst = order[:count]
    best = sorted(order[len(worst) :], key=lambda index: (-chrf[index], -lengths[index]))[:count]

    def example(index: int) -> Example:
        return Example(
            number=index + 1,
            chrf=float(chrf[index]),
            source=None if sources is None else sources[index],
            references=[lines[index] for lines in references],
            translation=translations[index],
        )

    return Examples(worst=[example(index) for index in worst], best=[example(index) for index in best])
