"""Time budget: the number of epochs, and if needed a smaller model, that fit into minutes at the measured speed."""

import functools
import gc
import math
import time
from typing import NamedTuple

import numpy as np

from nmt.config.schema import Config
from nmt.data.dataset import Dataset
from nmt.errors import ConfigError, counted
from nmt.evaluation.validation_decoder import ValidationDecoder
from nmt.message import Argument, Settings
from nmt.recipes.recipe import Recipe, compose
from nmt.recipes.sizes import ENOUGH_STEPS, LEAST_EPOCHS, OVERTIME, most_epochs, smaller
from nmt.training.estimate import duration
from nmt.training.interrupts import never_stop
from nmt.training.plan import RunPlan, decided
from nmt.training.trainer import Trainer

TIMED_STEPS = 16
"""Number of steps of a measuring round."""
MOST_ROUNDS = 8
STEADY = 0.05
"""Relative gain from round to round below which the speed counts as steady."""
VALIDATED_BATCHES = 4


class Speed(NamedTuple):
    """Measured speed of a configuration on a dataset."""

    step_seconds: float
    """Time of an optimizer step in seconds."""
    steps: int
    """Number of optimizer steps of an epoch."""
    other_seconds: float
    """Time of an epoch apart from its steps, in seconds: sampling subwords, planning batches, validation and its
    translations."""

    @property
    def epoch_seconds(self) -> float:
        """Time of an epoch with its validation in seconds."""
        return self.step_seconds * self.steps + self.other_seconds

    def epochs(self, minutes: float) -> int:
        """Return the number of epochs that fit into minutes."""
        return math.floor(60 * minutes / self.epoch_seconds + OVERTIME)


def measure_speed(config: Config, dataset: Dataset) -> Speed:
    """Train, validate and translate a few batches, and return the speed. Nothing is written or kept."""
    config = decided(config, dataset)
    # Word vectors of co-occurrence take long to compute, and steps are as fast without them.
    training = config.training.model_copy(update={"initial_embeddings": "random"})
    plan = RunPlan(
        run="measured",
        config=config.model_copy(update={"training": training}),
        dataset=dataset.name,
        fingerprint=dataset.manifest.fingerprint,
    )
    # A trained model ends its translations, but this untrained model always reaches the limit. So the limit is low.
    make_decode = functools.partial(ValidationDecoder, max_length_ratio=1.0, max_length_extra=5)
    with Trainer(plan, make_decode, keep=False) as trainer:
        step_seconds, steps = _step_seconds(trainer), trainer.pipeline.steps(1)
        validation = trainer.validator.plan
        chosen = np.linspace(0, len(validation) - 1, VALIDATED_BATCHES).astype(int)
        batch_seconds = trainer.profile([], [validation[number] for number in chosen])
        validation_seconds = float(np.median(batch_seconds[1:])) * len(validation)
        decoding_seconds = 0.0
        for _ in range(2):  # the first time also traces graphs
            started = time.perf_counter()
            trainer.validator.translate(trainer.update.weights, never_stop)
            decoding_seconds = time.perf_counter() - started
        batches = len(trainer.pipeline.plan(1))
        started = time.perf_counter()
        trainer.pipeline.plan(2)  # not 1: sampling is slower when it meets a word for the first time
        planning_seconds = time.perf_counter() - started
    del trainer
    gc.collect()
    return Speed(step_seconds * batches / steps, steps, planning_seconds + validation_seconds + decoding_seconds)


def _step_seconds(trainer: Trainer) -> float:
    """Return the mean time of a batch once the speed is steady.

    The first steps trace graphs and allocate memory, and TensorFlow prepares its matrix products for each new shape. So
    a process needs dozens of steps to reach its speed.
    """
    plan, before = trainer.pipeline.plan(1), math.inf
    order = np.random.default_rng(0).permutation(max(len(plan), TIMED_STEPS * MOST_ROUNDS)) % len(plan)
    for numbers in np.split(order[: TIMED_STEPS * MOST_ROUNDS], MOST_ROUNDS):
        seconds = float(np.mean(trainer.profile([plan[number] for number in numbers])))
        if seconds > (1 - STEADY) * before:
            return (before + seconds) / 2
        before = seconds
    return before


def fit(config: Config, recipe: Recipe | None, dataset: Dataset, minutes: float) -> tuple[Recipe | None, int, str]:
    """Fit a configuration into minutes.

    A recipe gets a smaller model if only a few epochs of the chosen model fit. It uses at most the number of epochs of
    its row of the table.

    Returns:
        The recipe, or None for a configuration that is not a recipe; the number of epochs; a line about both.

    Raises:
        ConfigError: if not even one epoch fits.
    """
    chosen = recipe
    while True:
        speed = measure_speed(config, dataset)
        epochs = speed.epochs(minutes)
        lower = smaller(recipe.size) if recipe else None
        if not recipe or epochs >= LEAST_EPOCHS or epochs * speed.steps >= ENOUGH_STEPS or lower is None:
            break
        candidate = compose(recipe.facts, recipe.overrides, size=lower)
        if candidate.config.model == config.model:  # the user has set the size
            break
        recipe, config = candidate, candidate.config
    takes = f"an epoch takes {duration(speed.epoch_seconds)} here ({1000 * speed.step_seconds:.0f} ms a step, measured)"
    if epochs < 1:
        needed = math.ceil(10 * speed.epoch_seconds / 60) / 10
        raise ConfigError(
            Argument("minutes"),
            f" is {minutes:g}, which has no room for an epoch on dataset {dataset.name!r}: {takes}. Give ",
            Argument("minutes", needed),
            " or more, or prepare fewer pairs with ",
            Settings({"data.n_sentences": "N"}),
            ".",
        )
    line = f"Budget: {minutes:g} minutes have room for {counted(epochs, 'epoch')}: {takes}."
    if recipe is None or chosen is None:
        return None, epochs, f"{line} training.epochs is {epochs}."
    used = min(epochs, most_epochs(recipe.size))
    if recipe is not chosen:
        line += f" A larger model, {chosen.config.model.description}, has no room for {LEAST_EPOCHS}."
    if used < epochs:
        pairs = counted(recipe.facts.pairs, "pair")
        line += f" More than {used} gain little on {pairs}, so the rest of the time is not used."
    return compose(recipe.facts, recipe.overrides, size=recipe.size, epochs=used, budget=[line]), used, line
