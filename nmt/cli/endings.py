"""First and last lines of ``nmt train``: what it trains, and whether it finished, stopped, or had nothing to do."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nmt import gpu
from nmt.errors import counted

if TYPE_CHECKING:  # it loads TensorFlow
    from nmt.training.trainer import Trainer


def about_gpus() -> Iterator[str]:
    """Yield what is to be said of this machine's GPUs; only a driver loads TensorFlow here."""
    if gpu.driver() is not None:
        from nmt import runtime

        if note := runtime.gpu_note():
            yield note


def beginning(trainer: "Trainer") -> Iterator[str]:
    """Yield where a run goes on and what has changed around it, and with what it is trained."""
    from nmt import runtime
    from nmt.cli.commands.prepare import shares

    run, progress = trainer.run, trainer.progress
    if progress.step:
        yield (
            f"Going on with run {run.name} after step {progress.step:,}, in epoch {trainer.progress.epoch + 1} of "
            f"{trainer.config.training.epochs}"
        )
    now = progress.environment
    differences = [
        f"{what} {old} before, {now.get(what)} now"
        for what, old in trainer.environment_before.items()
        if old != now.get(what)
    ]
    if differences:
        yield (
            f"Note: the environment of run {run.name} has changed: {'; '.join(differences)}. Its result may differ in "
            "the last bits from that of an uninterrupted run."
        )
    yield from about_gpus()
    used, there = len(trainer.update.devices), len(runtime.devices())
    if used < there and trainer.group.count == 1:
        yield (
            f"Note: {used} of {there} GPUs compute: a step has training.micro_batches={used}, each for one GPU. "
            f"To use all, start another run with --set training.micro_batches={there}; a step is larger by that factor."
        )
    shared = f", {trainer.group.count} hosts" if trainer.group.count > 1 else ""
    yield (
        f"{trainer.model.count_params():,} parameters, {counted(trainer.pipeline.pairs, 'training pair')}, "
        f"{runtime.device()}{shared}, {trainer.model.compute_dtype}"
    )
    for span in trainer.config.training.spans if trainer.dataset.manifest.corpora else ():
        epochs = f"Epochs {span[0]} to {span[-1]}" if len(span) > 1 else f"Epoch {span[0]}"
        yield f"{epochs}: {shares(trainer.pipeline.seen(span[0]))}"


def nothing_to_do(trainer: "Trainer") -> str:
    """Return in words that a run is finished, how to train on, and whether it has learned nothing."""
    failure = _failure(trainer)
    return "\n".join([_done(trainer), *([failure] if failure else [])])


def _done(trainer: "Trainer") -> str:
    from nmt.runs.metrics import weights_in_words
    from nmt.training.optimization.schedules import ends_with_run
    from nmt.training.stopping import stopped_early

    run, settings, epochs = trainer.run, trainer.config.training, trainer.progress.epoch
    best = weights_in_words(run.best(trainer.config) or "-")
    done = f"Run {run.name} is finished: {counted(epochs, 'epoch')}, best {best}. Nothing to do."
    early = stopped_early(trainer.validations, settings)
    if ends_with_run(settings) and not early:
        return (
            f"{done} Its schedule has ended. To train longer, start another run: --run ANOTHER-NAME --set "
            f"training.epochs={2 * epochs}"
        )
    more = f"training.patience={2 * (settings.patience or 1)}" if early else f"training.epochs={2 * epochs}"
    return f"{done} To train on: --set {more}; to start afresh: --run ANOTHER-NAME"


def _failure(trainer: "Trainer") -> str | None:
    """Return in words that a run has learned nothing, and the remedy; None if it has.

    The command succeeds all the same: it did what was asked, and wrote weights and metrics to look at.
    """
    from nmt.training.divergence import without_success

    failure = without_success(trainer.validations, trainer.guessing, trainer.config.training)
    return failure.on_command_line() if failure else None


def stopped(trainer: "Trainer") -> str:
    """Return in words how a run that was asked to stop goes on."""
    step = trainer.progress.step
    if not step:
        return "Stopped before the first step; the same command begins again."
    return f"Saved at step {step:,}. Go on with: nmt train --run {trainer.run.name}"


def after_loss(trainer: "Trainer") -> str:
    """Return in words from where a run that lost a host goes on."""
    saved = trainer.saver.saved
    step = f"step {saved.step:,}" if saved else "the beginning"
    where = step if trainer.group.is_chief else "the last checkpoint of host 0"
    return f"The same command goes on from {where}, with any number of hosts."


def after_full_disk(trainer: "Trainer") -> str:
    """Return in words what is kept of a run that the disk has stopped, and from where it goes on."""
    if saved := trainer.saver.saved:
        return f"The state after step {saved.step:,} is whole, and training goes on from there."
    return "No state is saved yet, and training begins again."


def finished(trainer: "Trainer") -> str:
    """Return in words how a run has ended."""
    from nmt.runs.metrics import weights_in_words
    from nmt.training.stopping import stopped_early

    run, settings = trainer.run, trainer.config.training
    count = trainer.update.nonfinite.read().skipped
    were = "was" if count == 1 else "were"
    skipped = f" {counted(count, 'step')} {were} skipped for a loss or gradients that were not finite." if count else ""
    average = run.average()
    if failure := _failure(trainer):
        best = weights_in_words(run.best(trainer.config) or "-")
        return f"{failure}{skipped} Kept: best {best}. Weights, metrics and configuration are in {run.folder}"
    early = (
        f"Stopped early, {counted(settings.patience or 0, 'validation')} after the best"
        if stopped_early(trainer.validations, settings)
        else "Finished"
    )
    translated_with = f"; nmt translate uses the average of {len(average.epochs)}" if average else ""
    best = weights_in_words(run.best(trainer.config) or "-")
    return f"{early}: best {best}{translated_with}.{skipped} Weights, metrics and configuration are in {run.folder}"
