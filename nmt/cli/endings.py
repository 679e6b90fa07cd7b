"""What ``nmt train`` says at the end of training: finished, stopped, or nothing to do."""

from typing import TYPE_CHECKING

from nmt.training.optimization.schedules import ends_with_run

if TYPE_CHECKING:  # it loads TensorFlow
    from nmt.training.trainer import Trainer


def nothing_to_do(trainer: "Trainer") -> str:
    """Return in words that a run is finished, and how to train on."""
    run, settings = trainer.run, trainer.config.training
    if ends_with_run(settings) and not trainer.stopped_early:
        return (
            f"Run {run.name} is finished: {trainer.epoch} epochs, best {run.best()}. Nothing to do. Its schedule has "
            f"ended. To train longer, start another run: --run ANOTHER-NAME --set training.epochs={2 * trainer.epoch}"
        )
    more = (
        f"training.patience={2 * (settings.patience or 1)}"
        if trainer.stopped_early
        else f"training.epochs={2 * trainer.epoch}"
    )
    return (
        f"Run {run.name} is finished: {trainer.epoch} epochs, best {run.best()}. Nothing to do. To train on: "
        f"--set {more}; to start afresh: --run ANOTHER-NAME"
    )


def stopped(trainer: "Trainer") -> str:
    """Return in words how a run that was asked to stop goes on."""
    step = trainer.state.position.step
    if not step:
        return "Stopped before the first step; the same command begins again."
    return f"Saved at step {step:,}. Go on with: nmt train --run {trainer.run.name}"


def after_loss(trainer: "Trainer") -> str:
    """Return in words from where a run that lost a host goes on."""
    saved = trainer.saver.saved
    step = f"step {saved.step:,}" if saved else "the beginning"
    where = step if trainer.group.is_chief else "the last checkpoint of host 0"
    return f"The same command goes on from {where}, with any number of hosts."


def finished(trainer: "Trainer") -> str:
    """Return in words how a run has ended."""
    run = trainer.run
    count = trainer.state.train_step.nonfinite_report().skipped
    skipped = f" {count} steps were skipped, whose loss or gradients were not finite." if count else ""
    average = run.average()
    early = (
        f"Stopped early, {trainer.config.training.patience} validations after the best"
        if trainer.stopped_early
        else "Finished"
    )
    translated_with = f"; nmt translate uses the average of {len(average.epochs)}" if average else ""
    return (
        f"{early}: best epoch {run.best()}{translated_with}.{skipped} Weights, metrics and configuration are in "
        f"{run.folder}"
    )
