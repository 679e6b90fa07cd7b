"""Validation by teacher forcing: how likely a model finds each token of the validation split, given those before it."""

from collections.abc import Callable, Iterator

import numpy as np

from nmt.config.schema import Config
from nmt.data.batch_plan import plan_epoch
from nmt.data.batching import batch_dataset
from nmt.data.token_arrays import Split
from nmt.runtime import keras, tf
from nmt.training.optimization.accumulators import Sums, Totals
from nmt.training.optimization.step import make_validation_step


class ValidationPass:
    """A model, and the batches it is validated on: the same in the same order each time."""

    def __init__(self, model: keras.Model, config: Config, split: Split) -> None:
        """Take the model, whose weights may change later, and the validation split."""
        self.config, self.split = config, split
        self.totals = Totals()
        self.step = make_validation_step(model, self.totals)

    @property
    def plan(self) -> list[np.ndarray]:
        """The batches, as indices of pairs: sorted by length, since their order does not matter."""
        settings = self.config.training
        return plan_epoch(
            self.split, settings.batch_size, seed=0, epoch=0, sort_by_length=True, batch_type=settings.batch_type
        )

    def batches(self, plan: list[np.ndarray]) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
        """Yield source int32 [B, S] and target int32 [B, T + 1] of each batch of a plan."""
        return iter(batch_dataset(self.split, plan, source_bos=self.config.model.source_bos, pad_to_longest=False))

    def measure(self, check: Callable[[], None]) -> tuple[float, float]:
        """Return mean loss of a token in nats, and the share of tokens predicted right, with the weights of just now.

        ``check`` is called after each batch, and may raise to break off.
        """
        self.totals.set(Sums())
        for source, target in self.batches(self.plan):
            self.step(source, target)
            check()
        return self.totals.read().means
