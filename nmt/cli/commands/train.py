"""``nmt train``: estimate and training of a run, new or resumed."""

import contextlib
import signal
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli import endings
from nmt.cli.options import DatasetOption, NoConfigOption, SetOption
from nmt.cli.usage import SIGNAL
from nmt.errors import NmtError, on_command_line
from nmt.message import Message

if TYPE_CHECKING:
    from nmt.training.trainer import Trainer

Say = Callable[[str | Message], None]
VIEWER = "tensorboard --logdir checkpoints"


def train(
    config: NoConfigOption = None,
    overrides: SetOption = None,
    dataset: DatasetOption = None,
    run: Annotated[
        str | None, typer.Option(help="Run to train or resume. Default: the name of --config or dataset.")
    ] = None,
    start_from: Annotated[
        str | None, typer.Option("--from", metavar="RUN", help="Fine-tune: start from the weights of RUN or RUN:EPOCH.")
    ] = None,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Resume with another configuration or dataset.")
    ] = False,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write files for TensorBoard, also for a finished run.")
    ] = False,
    minutes: Annotated[
        float | None, typer.Option(help="Choose epochs, and without --config the model, for X minutes.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate time, memory and disk space, and write nothing.")
    ] = False,
) -> None:
    """Train a model, or resume a run.

    Without --config, nmt chooses a recipe for the dataset: model size, dropout, batches, learning rate and epochs. The
    recipe is printed in two lines, and stored as recipe.yaml in the run.

    The same command resumes a run that was interrupted. --set training.epochs=N makes a finished run longer, unless its
    learning rate falls until the last epoch, as in recipes. Ctrl-C saves after the current step and stops.

    With --set training.micro_batches=K, up to K machines share a step (TF_CONFIG or srun). The number of machines does
    not change the result.

    Examples:
        nmt train
        nmt train --minutes 30
        nmt train --config base.yaml
        nmt train --config base.yaml --run wide --set model.d_ff=2048
        nmt train --run base --set training.epochs=30
        nmt train --run notices --dataset notices --from letters
    """  # fmt: skip
    from nmt.recipes.resolve import Request, resolve

    overrides = [*(overrides or []), *([f"training.start_from={start_from}"] if start_from else [])]
    overrides += ["training.tensorboard=true"] if tensorboard else []
    request = Request(config, run, dataset, overrides, minutes, allow_changes)
    warn = partial(typer.echo, err=True)
    resolved = resolve(request, typer.echo, warn)
    say: Say = _show if resolved.is_chief else lambda _: None  # only the chief writes to the terminal
    for line in [*resolved.chosen, *resolved.notes]:
        say(line)
    with resolved.trainer(warn) as trainer:
        if trainer.is_finished():
            if resolved.is_chief:
                say(endings.already_finished_message(trainer))
            if not dry_run and trainer.config.training.tensorboard:
                trainer.train()  # this only records the run for TensorBoard
                say(f"Recorded for TensorBoard. To watch: {VIEWER}")
        else:
            _train(trainer, say, dry_run=dry_run)


def _show(line: str | Message) -> None:
    typer.echo(on_command_line([line]))


def _train(trainer: "Trainer", say: Say, *, dry_run: bool) -> None:
    from nmt.cluster.group import HostLostError
    from nmt.storage.disk import DiskError
    from nmt.training.console import Console
    from nmt.training.estimate import estimate, foreseen_shortage
    from nmt.training.interrupts import GracefulShutdown, StopRequested

    for line in endings.start_lines(trainer):
        say(line)
    settings, is_chief = trainer.config.training, trainer.group.is_chief
    console = Console(settings.epochs)
    notice = "Stopping after this step; the state is saved. A second Ctrl-C stops at once, without saving."
    with GracefulShutdown(notice) as shutdown, contextlib.closing(console):
        try:
            if not trainer.is_trained():
                if shortage := foreseen_shortage(trainer):
                    say(shortage)  # before the first batch, in which the system may kill the process
                say(estimate(trainer, shutdown.check).text)
            if dry_run:
                say("A dry run: nothing was written.")
                return
            if not trainer.plan.resumes:
                say(f"New run {trainer.run.name} in {trainer.run.folder}, on dataset {trainer.plan.dataset}")
            if settings.tensorboard:
                say(f"To watch: {VIEWER}")
            trainer.train([console] if is_chief else [], shutdown.check)
        except StopRequested:
            console.close()
            if is_chief:
                typer.echo(endings.stopped_message(trainer), err=True)
            raise typer.Exit(SIGNAL + (shutdown.requested or signal.SIGINT)) from None
        except HostLostError as error:
            raise NmtError(*error.parts, f". {endings.host_lost_remedy(trainer)}") from None
        except DiskError as error:
            raise DiskError(*error.parts, f" {endings.disk_error_remedy(trainer)}") from error
    if is_chief:  # other hosts need no folder of the run
        say(endings.finished_message(trainer))
