"""Trials: a candidate is trained for N steps in a run directory of its own, then translates validation sentences."""

import contextlib
import gc
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from nmt.config.schema import Config
from nmt.data.dataset import Dataset
from nmt.errors import ConfigError, DataError, OutOfMemoryError
from nmt.evaluation.validation_decoder import ValidationDecoder
from nmt.runs.directory import Run, create_run_in
from nmt.runs.metrics import DecodedValidation, WeightsId
from nmt.runs.weights import average_weights, save_weights
from nmt.runtime import tf
from nmt.storage.arrays import Arrays
from nmt.storage.atomic import write_text
from nmt.storage.text import as_cell, read_lines
from nmt.training.divergence import DivergedError
from nmt.training.estimate import estimate
from nmt.training.interrupts import StopRequested
from nmt.training.resume import resolved
from nmt.training.stopping import EPOCHS_FOR_EACH_AVERAGED
from nmt.training.trainer import Trainer
from nmt.tuning.plan import Score
from nmt.tuning.record import Speed
from nmt.tuning.runner import Measured, Outcome, TrialFailedError, TrialPlan, Watch

TRANSLATIONS = "translations.txt"


class _LastStep(StopRequested):
    """The trial has taken all of its steps."""


class TrainedTrials:
    """Runner that trains in this process. Of the dataset it reads the training and the validation split alone."""

    def __init__(self, folder: Path, dataset: Dataset, sentences: int) -> None:
        """Take the folder of the tuning, the dataset, and the number of validation sentences that are translated."""
        self.folder, self.dataset, self.sentences = folder, dataset, sentences
        self.references = read_lines(dataset.text("validation", "target"))[:sentences]

    def measure(self, config: Config, watch: Watch, *, translate: bool = False) -> Measured:
        """Return the speed of a configuration; nothing is written. Raises as ``TrialRunner.measure``."""
        started = time.perf_counter()
        with _failures_in_words():
            trainer = Trainer(Run(self.folder / "measured"), config, self.dataset)
            trainer.check = lambda: watch(0)
            estimated = estimate(trainer)
            if translate:  # a model that has learnt ends its translations; the untrained one goes on to the limit
                decoding = config.decoding.model_copy(update={"max_length_ratio": 1.0, "max_length_extra": 5})
                shortened = config.model_copy(update={"decoding": decoding})
                self._decode(shortened, trainer.state.weights, lambda: watch(0))
        speed = Speed(step_seconds=estimated.epoch_seconds / estimated.steps, epoch_steps=estimated.steps)
        return Measured(speed, time.perf_counter() - started)

    def run(self, plan: TrialPlan, watch: Watch) -> Outcome:
        """Train and score a trial. Raises as ``TrialRunner.run``."""
        run = Run(plan.folder)
        with _failures_in_words():
            trainer = self._trainer(run, plan.config)
            step_seconds = _train(trainer, plan.steps, watch)
            weights = _weights_to_score(trainer)
            decoded = self._decode(plan.config, weights, lambda: watch(plan.steps))
        if decoded.bleu is None or decoded.chrf is None:
            raise TrialFailedError("the validation split has no sentences")
        translations = [as_cell(sample.translation) for sample in decoded.samples]
        write_text(run.folder / TRANSLATIONS, "".join(f"{line}\n" for line in translations))
        return Outcome(Score(decoded.bleu, decoded.chrf), translations, step_seconds)

    def _decode(self, config: Config, weights: Arrays, check: Callable[[], None]) -> DecodedValidation:
        """Translate the validation sentences greedily."""
        settings = {"decode_validation": self.sentences, "samples": self.sentences}
        training = config.training.model_copy(update=settings)
        return ValidationDecoder(config.model_copy(update={"training": training}), self.dataset)(weights, check)

    def _trainer(self, run: Run, config: Config) -> Trainer:
        """Return the trainer of a trial, new or resumed; one whose states are damaged begins again."""
        if run.config_path.is_file():
            try:
                return Trainer(run, config, self.dataset)
            except DataError:
                shutil.rmtree(run.folder)
        files = [self.dataset.folder / "manifest.json", *self.dataset.tokenizer_files]
        create_run_in(run.folder, resolved(config, self.dataset), files)
        return Trainer(run, config, self.dataset)

    def translations(self, folder: Path) -> list[str]:
        """Return the translations of a trial that has ended."""
        return read_lines(folder / TRANSLATIONS)

    def clear(self, folder: Path, *, keep_weights: bool) -> None:
        """Delete the states of a trial that has ended, and its weights unless they are to be kept."""
        for name in ("state", *(() if keep_weights else ("weights",))):
            shutil.rmtree(folder / name, ignore_errors=True)


def _train(trainer: Trainer, steps: int, watch: Watch) -> float | None:
    """Train until step N; returns the time of a step, with validation and saving, None without a step."""
    position = trainer.state.position
    first = position.step
    if first >= steps:
        return None

    def check() -> None:
        step = trainer.state.position.step
        watch(step)
        if step >= steps:
            raise _LastStep

    started = time.perf_counter()
    with contextlib.suppress(_LastStep):
        trainer.train((), check)
    return (time.perf_counter() - started) / (trainer.state.position.step - first)


def _weights_to_score(trainer: Trainer) -> Arrays:
    """Save the last weights, and return them; or their mean with those of the epochs before, as training ends with."""
    run, position = trainer.run, trainer.state.position
    last = f"step-{position.step}"
    save_weights(run, trainer.state.weights, last)
    epochs = position.epoch + 1  # the last one is incomplete
    count = min(trainer.config.training.average_last, epochs // EPOCHS_FOR_EACH_AVERAGED)
    kept = [epoch for epoch in run.weights_epochs if epoch > epochs - count]
    averaged: list[WeightsId] = [*kept, last] if count > 1 else [last]
    return average_weights(run, averaged)


@contextlib.contextmanager
def _failures_in_words() -> Iterator[None]:
    """Raise TrialFailedError for what the candidate causes: divergence, lack of memory, sizes that do not fit."""
    gc.collect()  # the model before and its graph refer to each other
    try:
        yield
    except DivergedError as error:
        raise TrialFailedError(str(error).partition(";")[0]) from error  # its remedy is for a single run
    except ConfigError as error:
        raise TrialFailedError(str(error)) from error
    except (MemoryError, OutOfMemoryError, tf.errors.ResourceExhaustedError) as error:
        raise TrialFailedError("out of memory") from error
