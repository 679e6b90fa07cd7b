"""Budget of time: the number of epochs, and if needed a smaller model, that fit into minutes by the measured speed."""

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
from nmt.recipes.recipe import Recipe, compose
from nmt.recipes.sizes import ENOUGH_STEPS, LEAST_EPOCHS, OVERTIME, most_epochs, smaller
from nmt.training.estimate import duration
from nmt.training.interrupts import never_stop
from nmt.training.plan import RunPlan, decided
from nmt.training.trainer import Trainer

TIMED_STEPS = 16
"""Steps of a round of measuring."""
MOST_ROUNDS = 8
STEADY = 0.05
"""Gain in speed from round to round below which the speed is steady."""
VALIDATED_BATCHES = 4


class Speed(NamedTuple):
    """Measured speed of a configuration on a dataset."""

    step_seconds: float
    """Time of an optimizer step."""
    steps: int
    """Number of optimizer steps of an epoch."""
    validation_seconds: float
    """Time of the validation of an epoch, with its translations."""

    @property
    def epoch_seconds(self) -> float:
        """Time of an epoch with its validation."""
        return self.step_seconds * self.steps + self.validation_seconds

    def epochs(self, minutes: float) -> int:
        """Return how many epochs fit into minutes."""
        return math.floor(60 * minutes / self.epoch_seconds + OVERTIME)


def measured_speed(config: Config, dataset: Dataset) -> Speed:
    """Train, validate and translate a few batches, and return the speed; nothing is written or kept."""
    plan = RunPlan(
        run="measured", config=decided(config, dataset), dataset=dataset.name, fingerprint=dataset.manifest.fingerprint
    )
    # A model that has learnt ends its translations; the untrained one goes on to the limit.
    ending = functools.partial(ValidationDecoder, max_length_ratio=1.0, max_length_extra=5)
    with Trainer(plan, ending, keep=False) as trainer:
        step_seconds, steps = _step_seconds(trainer), trainer.pipeline.steps(1)
        validation = trainer.validator.plan
        chosen = np.linspace(0, len(validation) - 1, VALIDATED_BATCHES).astype(int)
        validated = trainer.profile([], [validation[number] for number in chosen])
        validation_seconds = float(np.median(validated[1:])) * len(validation)
        decoded = 0.0
        for _ in range(2):  # the first time also traces
            started = time.perf_counter()
            trainer.validator.translate(trainer.update.weights, never_stop)
            decoded = time.perf_counter() - started
        batches = len(trainer.pipeline.plan(1))
    del trainer
    gc.collect()
    return Speed(step_seconds * batches / steps, steps, validation_seconds + decoded)


def _step_seconds(trainer: Trainer) -> float:
    """Return the time of an ordinary batch once it is steady.

    The first steps trace and allocate, and TensorFlow prepares its matrix products anew for each shape: a process comes
    to its speed in some dozens of steps.
    """
    plan, fastest = trainer.pipeline.plan(1), math.inf
    order = np.random.default_rng(0).permutation(max(len(plan), TIMED_STEPS * MOST_ROUNDS)) % len(plan)
    for numbers in np.split(order[: TIMED_STEPS * MOST_ROUNDS], MOST_ROUNDS):
        seconds = float(np.median(trainer.profile([plan[number] for number in numbers])))
        if seconds > (1 - STEADY) * fastest:
            return min(seconds, fastest)
        fastest = seconds
    return fastest


def fit(config: Config, recipe: Recipe | None, dataset: Dataset, minutes: float) -> tuple[Recipe | None, int, str]:
    """Return the recipe, if there is one, and the number of epochs that fit into minutes, and a line about it.

    A recipe takes a smaller model if few epochs of the chosen one fit; more epochs than its row of the table allows are
    left unused.

    Raises:
        ConfigError: if not an epoch fits.
    """
    chosen = recipe
    while True:
        speed = measured_speed(config, dataset)
        epochs = speed.epochs(minutes)
        lower = smaller(recipe.size) if recipe else None
        if not recipe or epochs >= LEAST_EPOCHS or epochs * speed.steps >= ENOUGH_STEPS or lower is None:
            break
        candidate = compose(recipe.facts, recipe.overrides, size=lower)
        if candidate.config.model == config.model:  # its size was set by the user
            break
        recipe, config = candidate, candidate.config
    takes = f"an epoch takes {duration(speed.epoch_seconds)} here ({1000 * speed.step_seconds:.0f} ms a step, measured)"
    if epochs < 1:
        needed = math.ceil(10 * speed.epoch_seconds / 60) / 10
        raise ConfigError(
            f"--minutes is {minutes:g}, which has no room for an epoch on dataset {dataset.name!r}: {takes}. Give "
            f"--minutes {needed:g} or more, or prepare fewer pairs with --set data.n_sentences=N."
        )
    line = f"Budget: {minutes:g} minutes have room for {counted(epochs, 'epoch')}: {takes}."
    if recipe is None or chosen is None:
        return None, epochs, f"{line} training.epochs is {epochs}."
    used = min(epochs, most_epochs(recipe.size))
    if recipe is not chosen:
        line += f" A larger model, {chosen.config.model.description}, has no room for {LEAST_EPOCHS}."
    if used < epochs:
        line += f" More than {used} teach little on {counted(recipe.facts.pairs, 'pair')}, so the rest is left."
    return compose(recipe.facts, recipe.overrides, size=recipe.size, epochs=used, budget=[line]), used, line
