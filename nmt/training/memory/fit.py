"""Batches that fit into memory: the choice of ``training.batch_size: auto``, and shortages that are foreseen.

Shapes: K micro-batches of a step, W bytes of all weights.
"""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from nmt import runtime
from nmt.cluster.summation import slots
from nmt.cluster.workers import Workers
from nmt.config.schema import Config
from nmt.config.training import TrainingConfig
from nmt.errors import OutOfMemoryError
from nmt.models.weights import set_weights, weights_of
from nmt.runs.fitted_batch import FittedBatch, memory_size
from nmt.runtime import tf
from nmt.training.divergence import out_of_memory
from nmt.training.input_pipeline import Batch, InputPipeline
from nmt.training.memory.demand import Demand, longest_batches, measure_demand
from nmt.training.memory.free import free_memory
from nmt.training.optimization.batch_limit import ShortageError
from nmt.training.state import TrainState
from nmt.training.validation import Validator

USABLE_SHARE = 0.85
"""Share of the free memory that batches may take: other programs take some too, and the estimate is one."""
MOST_HALVINGS = 6
"""The smallest batch that is chosen is 1/64 of the default: one sentence."""


class Fit(NamedTuple):
    """Comparison of the longest batches with the free memory."""

    training: list[Demand]
    """Demands of the longest batches of training."""
    validation: list[Demand]
    """Demands of the longest batches of validation."""
    free: int
    """Free bytes for this process."""
    weights: int
    """W, for sums of gradients."""

    @property
    def usable(self) -> int:
        """Bytes that batches may take."""
        return round(USABLE_SHARE * self.free)

    def needed(self, halvings: int, sums: int = 0) -> int:
        """Return the bytes of the longest batch after N halvings of all, with N sums of gradients besides."""
        of_training = max(demand.bytes(_halved(demand.rows, halvings)) for demand in self.training)
        of_validation = max((demand.bytes(_halved(demand.rows, halvings)) for demand in self.validation), default=0)
        return max(of_training + sums * self.weights, of_validation)

    def largest(self, demands: list[Demand], sums: int) -> int | None:
        """Return the most tokens to compute at once, so that batches of these demands fit; None: all fit at once."""
        limits = []
        for demand in demands:
            if demand.bytes(demand.rows) <= self.usable:
                continue
            rows = demand.rows
            while rows > 1 and demand.bytes(rows) + sums * self.weights > self.usable:
                rows = -(-rows // 2)
            limits.append(rows * demand.width)
        return min(limits) if limits else None


def _halved(rows: int, halvings: int) -> int:
    return -(-rows // 2**halvings)


@contextmanager
def unchanged(state: TrainState) -> Iterator[None]:
    """Undo all changes to the state at the end of the block."""
    position, totals = dataclasses.replace(state.position), state.totals.read()
    weights, optimizer = weights_of(state.model), state.train_step.state()
    try:
        yield
    finally:
        state.position = position
        state.totals.set(totals)
        set_weights(state.model, weights)
        state.train_step.restore(optimizer)


def measure_fit(pipeline: InputPipeline, state: TrainState, validator: Validator, epoch: int = 1) -> Fit | None:
    """Measure the longest batches of an epoch, in parts too small to be dangerous; the state stays unchanged.

    Returns:
        The measurements; None where the system does not say what memory is free or taken.

    Raises:
        OutOfMemoryError: if memory does not hold a single sentence pair.
    """
    rate, seed = tf.constant(0.0), tf.constant([0, 0], tf.int64)
    micro_batches = state.config.training.micro_batches

    def train(batch: Batch) -> None:
        if micro_batches == 1:
            state.train_step.take(batch, rate, seed)
        else:  # without the update: it exchanges gradients with other workers
            state.train_step.add(batch, seed, state.additions[0])
            state.train_step.sums.clear()
        state.totals.read()

    def validate(batch: Batch) -> None:
        validator.part_sums(*batch) if state.workers.count > 1 else validator.step(*batch)
        validator.totals.read()

    split, plan = pipeline.split(epoch), pipeline.plan(epoch)
    longest = longest_batches(validator.split, validator.plan)
    try:
        with unchanged(state):
            training = [measure_demand(train, batch) for batch in pipeline.batches(epoch, longest_batches(split, plan))]
            validation = [measure_demand(validate, batch) for batch in validator.batches(longest)]
            free = free_memory()
    except ShortageError as error:
        raise out_of_memory(f"before training {error}", None, state.config.training) from None
    of_training, of_validation = ([demand for demand in found if demand] for found in (training, validation))
    if free is None or not of_training or not of_validation:
        return None
    weights = sum(4 * weight.shape.num_elements() for weight in state.train_step.optimizer.variables_trained)
    share = 1 if runtime.GPUS else state.workers.on_this_machine
    return Fit(of_training, of_validation, free // share, weights)


def choose_batch(config: Config, fit: Fit | None, workers: Workers) -> FittedBatch:
    """Choose the batch size for ``training.batch_size: auto``: the default, or the largest half of halves that fits.

    With each halving the number of micro-batches doubles, so that a step learns from as many tokens.

    Raises:
        OutOfMemoryError: if not even the smallest batch fits.
    """
    settings = config.training
    halvings = _halvings_to_fit(settings, fit)
    most = int(tf.reduce_max(workers.gather(tf.constant([halvings], tf.int64))).numpy())
    default = settings.largest_batch
    if most > MOST_HALVINGS:
        raise OutOfMemoryError(_nothing_fits(settings, fit))
    return FittedBatch(
        batch_type=settings.batch_type, batch_size=max(1, default // 2**most),
        micro_batches=settings.micro_batches * 2**most, default_size=default,
        needed_bytes=fit.needed(0) if fit else None,
        chosen_bytes=_needed_after_halvings(settings, fit)[most] if fit else None, free_bytes=fit.free if fit else None,
    )  # fmt: skip


def _halvings_to_fit(settings: TrainingConfig, fit: Fit | None) -> int:
    """Return the number of halvings after which the longest batch fits; one more than allowed if none does."""
    if fit is None:
        return 0
    needed = _needed_after_halvings(settings, fit)
    return next((halvings for halvings, size in enumerate(needed) if size <= fit.usable), MOST_HALVINGS + 1)


def _needed_after_halvings(settings: TrainingConfig, fit: Fit) -> list[int]:
    """Return the bytes of the longest batch after 0, 1, .. halvings, with the sums of as many more micro-batches."""
    return [
        fit.needed(halvings, slots(settings.micro_batches * 2**halvings) if halvings else 0)
        for halvings in range(MOST_HALVINGS + 1)
    ]


def _nothing_fits(settings: TrainingConfig, fit: Fit | None) -> str:
    sizes = (
        f"the smallest takes {memory_size(min(_needed_after_halvings(settings, fit)))}, and "
        f"{memory_size(fit.free)} are free, of which {USABLE_SHARE:.0%} may be used"
        if fit
        else "another worker has too little"
    )
    return (
        f"No batch fits into memory: {sizes}. Besides weights and optimizer, a batch takes memory for its tokens and "
        "for sums of gradients. End other programs, make the model smaller, such as --set model.d_model=256, or drop "
        "long sentences with nmt prepare --set data.max_tokens=100."
    )


def with_batch(config: Config, fitted: FittedBatch) -> Config:
    """Return the configuration with the batch size that was chosen."""
    chosen = {"batch_size": fitted.batch_size, "micro_batches": fitted.micro_batches}
    return config.model_copy(update={"training": config.training.model_copy(update=chosen)})


def foresee_shortage(fit: Fit | None, state: TrainState) -> str | None:
    """Limit the batches to what memory holds, if the longest do not fit; all workers agree.

    Returns:
        The shortage with its remedy, in words; None if all batches fit.
    """
    limits = state.train_step.limit, state.train_step.validation_limit
    before = [limit.tokens for limit in limits]
    found = [fit.largest(fit.training, 1), fit.largest(fit.validation, 0)] if fit else [None, None]
    own = [tokens if most is None else min(tokens, most) for tokens, most in zip(before, found, strict=True)]
    agreed = tf.reduce_min(state.workers.gather(tf.constant(own, tf.int64)), axis=0).numpy().tolist()
    for limit, tokens in zip(limits, agreed, strict=True):
        limit.settle(tokens)
    if fit is None or agreed == before:
        return None
    settings, needed = state.config.training, fit.needed(0)
    halvings = _halvings_to_fit(settings, fit)
    smaller = (
        f"or start another run with --set training.batch_size={max(1, settings.largest_batch // 2**halvings)} --set "
        f"training.micro_batches={settings.micro_batches * 2**halvings}, which learns from as many tokens a step"
    )
    return (
        f"Note: the longest batch takes about {memory_size(needed)}, and {memory_size(fit.free)} are free. Batches of "
        f"more than {min(agreed):,} tokens, padding counted, are computed in parts, with the same result but for "
        "rounding. For whole batches end other programs, "
        f"{smaller if 0 < halvings <= MOST_HALVINGS else 'or make the model smaller'}."
    )
