"""First and last lines that ``nmt train`` prints: what it trains, and how the run ended."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nmt import gpu
from nmt.errors import counted

if TYPE_CHECKING:  # this module loads TensorFlow
    from nmt.training.trainer import Trainer


def gpu_notes() -> Iterator[str]:
    """Yield a note about this machine's GPUs, if there is one. TensorFlow is only loaded if there is a GPU driver."""
    if gpu.driver() is not None:
        from nmt import runtime

        if note := runtime.gpu_note():
            yield note


def start_lines(trainer: "Trainer") -> Iterator[str]:
    """Yield the lines printed before training: where a run resumes, changes of its environment, model, data, device."""
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
        f"{name} {value} before, {now.get(name)} now"
        for name, value in trainer.environment_before.items()
        if value != now.get(name)
    ]
    if differences:
        yield (
            f"Note: the environment of run {run.name} has changed: {'; '.join(differences)}. The result may differ in "
            "the last bits from an uninterrupted run."
        )
    yield from gpu_notes()
    used, available = len(trainer.update.devices), len(runtime.devices())
    if used < available and trainer.group.count == 1:
        yield (
            f"Note: training uses {used} of {available} GPUs, since training.micro_batches is {used} and each GPU "
            "computes a micro-batch. To use all GPUs, start another run with --set "
            f"training.micro_batches={available}; the number of pairs in a step grows in proportion."
        )
    shared = f", {trainer.group.count} hosts" if trainer.group.count > 1 else ""
    yield (
        f"{trainer.model.count_params():,} parameters, {counted(trainer.pipeline.pairs, 'training pair')}, "
        f"{runtime.device()}{shared}, {trainer.model.compute_dtype}"
    )
    for span in trainer.config.training.spans if trainer.dataset.manifest.corpora else ():
        epochs = f"Epochs {span[0]} to {span[-1]}" if len(span) > 1 else f"Epoch {span[0]}"
        yield f"{epochs}: {shares(trainer.pipeline.seen(span[0]))}"


def already_finished_message(trainer: "Trainer") -> str:
    """Return the message that a run is finished: how to train longer, and a warning if the run has learned nothing."""
    failure = _failure_message(trainer)
    return "\n".join([_nothing_to_do(trainer), *([failure] if failure else [])])


def _nothing_to_do(trainer: "Trainer") -> str:
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


def _failure_message(trainer: "Trainer") -> str | None:
    """Return the message that a run has learned nothing, with the remedy; None if it has learned something.

    The command succeeds all the same, since it trained as asked and wrote weights and metrics.
    """
    from nmt.training.divergence import without_success

    failure = without_success(trainer.validations, trainer.guessing, trainer.config.training)
    return failure.on_command_line() if failure else None


def stopped_message(trainer: "Trainer") -> str:
    """Return the message for a run that was asked to stop: how to resume it."""
    step = trainer.progress.step
    if not step:
        return "Stopped before the first step; the same command begins again."
    return f"Saved at step {step:,}. Go on with: nmt train --run {trainer.run.name}"


def host_lost_remedy(trainer: "Trainer") -> str:
    """Return the sentence that says from where a run resumes after a host was lost."""
    saved = trainer.saver.saved
    step = f"step {saved.step:,}" if saved else "the beginning"
    start = step if trainer.group.is_chief else "the last checkpoint of host 0"
    return f"The same command goes on from {start}, with any number of hosts."


def disk_error_remedy(trainer: "Trainer") -> str:
    """Return the sentence that says from which state a run resumes after a disk error."""
    if saved := trainer.saver.saved:
        return f"The state after step {saved.step:,} is complete, and training goes on from there."
    return "No state is saved yet, and training begins again."


def finished_message(trainer: "Trainer") -> str:
    """Return the last line of a run: its best epoch, the weights to translate with, and skipped steps."""
    from nmt.runs.metrics import weights_in_words
    from nmt.training.stopping import stopped_early

    run, settings = trainer.run, trainer.config.training
    count = trainer.update.nonfinite.read().skipped
    were = "was" if count == 1 else "were"
    skipped = f" {counted(count, 'step')} {were} skipped for a loss or gradients that were not finite." if count else ""
    average = run.average()
    if failure := _failure_message(trainer):
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
