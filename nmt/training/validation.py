"""Validation: loss and accuracy by teacher forcing, BLEU and chrF by translating, always on the same batches."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt.config.schema import Config
from nmt.data.batch_plan import plan_epoch
from nmt.data.dataset import Dataset
from nmt.data.token_arrays import Split
from nmt.models.base import Seq2SeqModel
from nmt.models.weights import swapped_weights
from nmt.runs.metrics import DecodedValidation
from nmt.runtime import tf
from nmt.storage.arrays import Arrays
from nmt.training.divergence import DivergedError, shortage_in_words
from nmt.training.input_pipeline import batch_dataset
from nmt.training.optimization.losses import cross_entropy
from nmt.training.optimization.totals import RunningTotals, TokenTotals, loss_and_counts
from nmt.training.optimization.update import BATCH, Batch

SAMPLE = 200
"""Training pairs of each corpus whose loss is measured, at even distances."""
Decode = Callable[[Arrays, Callable[[], None]], DecodedValidation]
"""Translates validation sentences with weights; calls the second argument between batches, which may raise."""
MakeDecode = Callable[[Config, Dataset], Decode]
"""Returns the function that translates validation sentences, for a configuration and a dataset."""


class ValidationResult(NamedTuple):
    """Quality of weights on the validation split."""

    loss: float
    """Mean cross-entropy of a token, in nats."""
    accuracy: float
    """Share of tokens predicted correctly, given the tokens before them."""
    decoded: DecodedValidation
    """Scores of translations, and samples."""
    loss_by_corpus: dict[str, float] | None = None
    """Loss of sample pairs of each training corpus; None if there is one corpus."""

    def fields(self) -> dict[str, Any]:
        """Return loss, accuracy and scores of translations by their names in the metrics file."""
        values = {"validation_loss": self.loss, "validation_accuracy": self.accuracy, **self.decoded.scores}
        by_direction = self.decoded.chrf_by_direction
        return {**values, "chrf_by_direction": by_direction, "loss_by_corpus": self.loss_by_corpus}


class Validator:
    """A model with the validation batches, the same in the same order each time."""

    def __init__(self, model: Seq2SeqModel, config: Config, split: Split, decode: Decode | None = None) -> None:
        """Take the model, whose weights may change later, the validation split, and a function that translates."""
        self.model, self.config, self.split, self.decode = model, config, split, decode
        self.samples: dict[str, Split] = {}
        self.totals = RunningTotals()
        self.step = make_validation_step(model, self.totals)

    @classmethod
    def of(cls, model: Seq2SeqModel, config: Config, dataset: Dataset, decode: Decode | None = None) -> "Validator":
        """Return the validator of a prepared dataset, which samples the training corpora if there are several."""
        validator, start = cls(model, config, dataset.split("validation"), decode), 0
        corpora = dataset.manifest.corpora
        train = dataset.split("train") if corpora else validator.split
        for name, corpus in corpora.items():
            indices = start + np.unique(np.linspace(0, corpus.pairs - 1, min(corpus.pairs, SAMPLE)).astype(int))
            validator.samples[name], start = train.select(indices), start + corpus.pairs
        return validator

    def validate(self, weights: Arrays, check: Callable[[], None], *, own: bool = False) -> ValidationResult:
        """Return the quality of weights.

        Args:
            weights: the weights.
            check: is called after each batch, and may raise to break off.
            own: whether they are the weights that the model has now.

        Raises:
            DivergedError: if the loss is not finite; nothing is translated then.
            OutOfMemoryError: if memory does not hold a batch.
        """
        with swapped_weights(self.model, None if own else weights), shortage_in_words("in validation", self.config):
            loss, accuracy = self._means(self.split, check)
            by_corpus = {name: self._means(sample)[0] for name, sample in self.samples.items()}
        if not math.isfinite(loss):
            raise DivergedError(
                f"The validation loss of these weights is {loss}. A loss must be finite. Choose other weights."
            )
        return ValidationResult(loss, accuracy, self.translate(weights, check), by_corpus or None)

    def _means(self, split: Split, check: Callable[[], None] = lambda: None) -> tuple[float, float]:
        """Return loss and accuracy of the pairs of a split."""
        self.totals.set(TokenTotals())
        for batch in self.batches(self._plan(split), split):
            self.step(*batch)
            check()
        return self.totals.read().means

    def translate(self, weights: Arrays, check: Callable[[], None]) -> DecodedValidation:
        """Return scores and samples of translations with weights; empty where nothing is translated."""
        return self.decode(weights, check) if self.decode else DecodedValidation()

    @property
    def plan(self) -> list[np.ndarray]:
        """Batches as indices of pairs, sorted by length: their order does not matter."""
        return self._plan(self.split)

    def _plan(self, split: Split) -> list[np.ndarray]:
        settings = self.config.training
        return plan_epoch(
            split, settings.batch_size, seed=0, epoch=0, sort_by_length=True, batch_type=settings.batch_type
        )

    def batches(self, plan: Sequence[np.ndarray], split: Split | None = None) -> Iterator[Batch]:
        """Yield the batches of a plan, of the validation split if no other is given."""
        return iter(batch_dataset(split or self.split, list(plan), source_bos=self.config.model.reads_bos))


def make_validation_step(model: Seq2SeqModel, totals: RunningTotals) -> Callable[[tf.Tensor, tf.Tensor], None]:
    """Return the traced validation step: teacher forcing without dropout, loss in float32, added to ``totals``."""

    @tf.function(input_signature=BATCH, autograph=False)
    def validation_step(source: tf.Tensor, target: tf.Tensor) -> None:
        states, targets = model.teacher_forcing(source, target)
        totals.add(loss_and_counts(cross_entropy(model.output_projection().logits(states), targets)))

    return validation_step
