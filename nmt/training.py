"""The training loop: one traced step, exact means, and a checkpoint after every epoch.

Shapes: B batch, S source length, T target length.
"""

import functools
import itertools
import math
import time

import numpy as np
import tensorflow as tf

from nmt import runtime
from nmt.batches import batch_dataset, plan_epoch
from nmt.checkpoint import average_weights, restore, rotate_weights, save_state, save_weights
from nmt.config import Config, ModelConfig
from nmt.dataset import Dataset, Manifest, Split, read_manifest
from nmt.errors import ConfigError, ConflictError, NmtError
from nmt.models import build_model
from nmt.optimizer import Adam
from nmt.progress import TrainingProgress
from nmt.run import AverageMetrics, EpochMetrics, Run, StepMetrics, create_run
from nmt.schedule import ends_with_run, learning_rate, steps_of_run
from nmt.steps import Sums, Totals, TrainStep, make_validation_step

# What may differ when a run goes on; everything else would make it another experiment.
SAFE_TO_CHANGE = {("training", key) for key in ("epochs", "max_to_keep", "average_last", "log_every")}
# Weights of early epochs lie too far apart for their mean to be any good.
EPOCHS_FOR_EACH_AVERAGED = 4


class Trainer:
    """A model in training: its steps, its batches, and where it stands."""

    def __init__(self, run: Run, config: Config, dataset: Dataset) -> None:
        """Build the model from the configuration and load the run's newest state, if it has one.

        Raises:
            ConfigError: if the model does not fit the dataset.
            DataError: if nothing that was saved can be used.
        """
        runtime.start(config.training.seed)
        self.run, self.config = run, config
        self.dataset = dataset
        self.train_split, self.validation_split = dataset.split("train"), dataset.split("validation")
        check_positions(config.model, dataset.manifest)
        vocabulary = dataset.manifest.vocabulary
        self.precision = runtime.resolve_precision(config.training.precision)
        self.model = build_model(config.model, vocabulary["source"], vocabulary["target"], self.precision)
        self.optimizer = Adam([variable.value for variable in self.model.trainable_variables], config.training)
        self.totals = Totals()
        self.train_step = TrainStep(self.model, self.optimizer, self.totals, config.training)
        self.validation_step = make_validation_step(self.model, self.totals)
        restored = restore(run, self.model, self.train_step)
        self.damaged = restored.damaged if restored else []
        self.epoch = restored.progress.epoch if restored else 0
        self.step = restored.progress.step if restored else 0

    def train(self, progress: TrainingProgress) -> None:
        """Train the epochs that are still to do, saving after each."""
        self.run.drop_metrics_after(self.step)
        while self.epoch < self.config.training.epochs:
            metrics = self._train_epoch(self.epoch + 1, progress)
            save_weights(self.run, self.model, metrics.epoch)
            self.run.append_metrics(metrics)
            save_state(self.run, self.train_step, metrics.epoch, metrics.step)
            rotate_weights(self.run, self.weights_to_keep)
            self.epoch = metrics.epoch
            progress.end_epoch(metrics, best=self.run.best_epoch() == metrics.epoch)
        if not self.is_finished:
            progress.end_average(self._average())

    @property
    def epochs_to_average(self) -> list[int]:
        """The epochs whose weights the run is to end with the mean of; none if they are too few."""
        settings = self.config.training
        count = min(settings.average_last, settings.epochs // EPOCHS_FOR_EACH_AVERAGED)
        return list(range(settings.epochs - count + 1, settings.epochs + 1)) if count > 1 else []

    @property
    def weights_to_keep(self) -> int | None:
        """Of how many epochs, from the last."""
        kept = self.config.training.max_to_keep
        return None if kept is None else max(kept, len(self.epochs_to_average))

    @property
    def is_finished(self) -> bool:
        """Whether nothing is left to do, neither epochs nor their average."""
        if self.epoch < self.config.training.epochs:
            return False
        average, kept = self.run.average(), set(self.run.weights_epochs)
        wanted = self.epoch == self.config.training.epochs and self.epochs_to_average
        return not wanted or not kept.issuperset(wanted) or bool(average and average.epochs == wanted)

    def _average(self) -> AverageMetrics:
        average_weights(self.run, self.model, self.epochs_to_average)
        loss, accuracy = self._means(self._validate())
        metrics = AverageMetrics(
            epochs=self.epochs_to_average, step=self.step, validation_loss=loss, validation_accuracy=accuracy
        )
        self.run.append_metrics(metrics)
        return metrics

    def _train_epoch(self, epoch: int, progress: TrainingProgress) -> EpochMetrics:
        settings = self.config.training
        split = self._epoch_split(epoch)
        plan = plan_epoch(
            split,
            settings.batch_size,
            seed=settings.seed,
            epoch=epoch if settings.reshuffle else 1,
            sort_by_length=settings.sort_by_length,
            batch_type=settings.batch_type,
        )
        progress.start_epoch(epoch, math.ceil(len(plan) / settings.accumulate))
        started = time.perf_counter()
        logged = Sums(0.0, 0.0, 0.0)
        coming = iter(self._batches(split, plan))
        while batches := tuple(itertools.islice(coming, settings.accumulate)):
            self.step += 1
            learning_rate = self.learning_rate(self.step)
            self._learn(batches, learning_rate)
            if self.step % settings.log_every == 0:
                sums = self.totals.read()
                loss, right = self._means(sums.since(logged))
                logged = sums
                self.run.append_metrics(
                    StepMetrics(epoch=epoch, step=self.step, loss=loss, accuracy=right, learning_rate=learning_rate)
                )
            progress.step(self.totals.read() if progress.is_due() else None)
        train = self.totals.read()
        seconds = time.perf_counter() - started
        self.totals.reset()
        validation = self._validate()
        train_loss, train_accuracy = self._means(train)
        validation_loss, validation_accuracy = self._means(validation)
        return EpochMetrics(
            epoch=epoch,
            step=self.step,
            train_loss=train_loss,
            train_accuracy=train_accuracy,
            validation_loss=validation_loss,
            validation_accuracy=validation_accuracy,
            target_tokens=int(train.tokens),
            seconds=seconds,
        )

    def _epoch_split(self, epoch: int) -> Split:
        """The training split, its text cut into other subwords every epoch if the dataset was prepared for that."""
        if self.dataset.manifest.settings.subword_sampling:
            return self.dataset.resampled(self.config.training.seed, epoch)
        return self.train_split

    def _learn(self, batches: tuple[tuple[tf.Tensor, tf.Tensor], ...], learning_rate: float) -> None:
        """Take a step of the optimizer."""
        rate, first = tf.constant(learning_rate, tf.float32), self.step * self.config.training.accumulate
        seeds = [tf.constant([self.config.training.seed, first + number], tf.int64) for number in range(len(batches))]
        if self.config.training.accumulate == 1:
            self.train_step.step(*batches[0], rate, seeds[0])
            return
        for batch, seed in zip(batches, seeds, strict=True):
            self.train_step.add(*batch, seed)
        self.train_step.apply(rate)

    def _means(self, sums: Sums) -> tuple[float, float]:
        """Mean loss and accuracy; raises NmtError if training has diverged."""
        loss, right = sums.means
        if not math.isfinite(loss):
            saved = f"epoch {self.epoch} is the last one saved" if self.epoch else "no epoch has been saved"
            raise NmtError(
                f"The loss must stay a finite number; at step {self.step} it is {loss}, and {saved}. Start another run "
                f"with a lower rate, such as --set training.learning_rate_scale="
                f"{self.config.training.learning_rate_scale / 2:g}, or more training.warmup_steps."
            )
        return loss, right

    def _validate(self) -> Sums:
        settings = self.config.training
        plan = plan_epoch(
            self.validation_split,
            settings.batch_size,
            seed=0,
            epoch=0,
            sort_by_length=True,
            batch_type=settings.batch_type,
        )
        for source, target in self._batches(self.validation_split, plan):
            self.validation_step(source, target)
        sums = self.totals.read()
        self.totals.reset()
        return sums

    def _batches(self, split: Split, plan: list[np.ndarray]) -> tf.data.Dataset:
        return batch_dataset(
            split,
            plan,
            source_bos=self.config.model.source_bos,
            pad_to_longest=self.config.training.pad_to_longest and split is not self.validation_split,
        )

    def learning_rate(self, step: int) -> float:
        """Return the rate of a step, the first being 1."""
        return learning_rate(step, self.config.model.d_model, self.config.training, self.total_steps)

    @functools.cached_property
    def total_steps(self) -> int | None:
        """What the schedule takes as the steps of the run; None if it does not need to know."""
        settings = self.config.training
        if not ends_with_run(settings):
            return None
        plan = plan_epoch(
            self._epoch_split(1),
            settings.batch_size,
            seed=settings.seed,
            epoch=1,
            sort_by_length=settings.sort_by_length,
            batch_type=settings.batch_type,
        )
        return steps_of_run(len(plan), settings)


def check_positions(config: ModelConfig, manifest: Manifest) -> None:
    """Make sure that learned positions reach to the end of the longest sentence.

    Raises:
        ConfigError: if they do not.
    """
    if config.positions != "learned":
        return
    for name, split in manifest.splits.items():
        for side, longest in split.longest.items():
            needed = longest + 2  # bos and eos
            if needed > config.max_positions:
                raise ConfigError(
                    f"Learned positions must reach to the end of the longest sentence; model.max_positions is "
                    f"{config.max_positions}, the longest {side} of the {name} split needs {needed}. "
                    f"Set model.max_positions={needed}, or model.positions=sinusoidal."
                )


def start_run(name: str, config: Config, dataset: Dataset) -> Run:
    """Make the run directory of a new run."""
    files = [dataset.folder / "manifest.json", *dataset.tokenizer_files]
    return create_run(name, _resolved(config, dataset), files)


def _resolved(config: Config, dataset: Dataset) -> Config:
    """The configuration with what only this machine and this dataset decide."""
    precision = runtime.resolve_precision(config.training.precision)
    training = config.training.model_copy(update={"precision": precision})
    return config.model_copy(update={"data": dataset.manifest.settings, "training": training})


def resume_run(run: Run, config: Config, dataset: Dataset) -> None:
    """Check that going on with ``run`` continues the same experiment, and take over what may change.

    Raises:
        ConflictError: naming each difference in configuration or data.
    """
    before, now = run.config(), _resolved(config, dataset)
    differences = [
        f"{section}.{key}: {old!r} before, {getattr(getattr(now, section), key)!r} now"
        for section in ("model", "training")
        for key, old in getattr(before, section).model_dump().items()
        if old != getattr(getattr(now, section), key) and (section, key) not in SAFE_TO_CHANGE
    ]
    if ends_with_run(before.training) and before.training.epochs != now.training.epochs:
        differences.append(
            f"training.epochs: {before.training.epochs} before, {now.training.epochs} now, with a schedule that falls "
            "to the end of the run"
        )
    trained_on = read_manifest(run.dataset_path)
    if trained_on.fingerprint != dataset.manifest.fingerprint:
        differences.append(f"dataset: {trained_on.settings.dataset!r} before, {dataset.name!r} or new content now")
    if differences:
        raise ConflictError(
            f"A run goes on with the settings and data it began with; run {run.name!r} differs in "
            f"{'; '.join(differences)}. Start another with --run NAME, or undo the change."
        )
    if before != now:
        run.write_config(now)
