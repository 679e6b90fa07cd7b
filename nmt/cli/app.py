"""The command line: the list of commands, and the conversion of errors to messages and exit codes.

Importing this module loads neither TensorFlow nor NumPy. Each command imports what it needs when it runs.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer

from nmt.cli.commands.average import average
from nmt.cli.commands.bench import bench
from nmt.cli.commands.demo import demo
from nmt.cli.commands.evaluate import evaluate
from nmt.cli.commands.export import export
from nmt.cli.commands.fetch import fetch
from nmt.cli.commands.import_model import import_
from nmt.cli.commands.prepare import prepare
from nmt.cli.commands.serve import serve
from nmt.cli.commands.synthesize import synthesize
from nmt.cli.commands.train import train
from nmt.cli.commands.translate import translate
from nmt.cli.inspection.info import info
from nmt.cli.inspection.report import report
from nmt.cli.inspection.runs import runs
from nmt.cli.inspection.samples import samples
from nmt.cli.inspection.tokens import tokens
from nmt.cli.interruption import Interruption
from nmt.cli.interruption import message as interruption_message
from nmt.cli.plot.app import plot
from nmt.cli.streams import OutputError, RedirectedOutput, Terminal
from nmt.cli.usage import BAD_INPUT, INTERRUPTED, READER_GONE, HelpCommand, HelpGroup, UsageError, usage_message
from nmt.errors import NmtError, unusable_file_message

# Help sections of the first page, with their commands in the order of use.
COMMANDS: dict[str, list[Callable[..., Any] | typer.Typer]] = {
    "The four commands": [prepare, train, plot, translate],
    "Quality and use": [evaluate, report, samples, average, synthesize, export, import_, serve],
    "Runs, machine and corpora": [runs, info, tokens, bench, fetch, demo],
}
OUT_OF_MEMORY = "Memory ran out. It must hold the model and a batch. Make them smaller, or end other programs."


class Program(HelpGroup):
    """The program: its commands and groups of commands in the order of use."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        commands = [command for section in COMMANDS.values() for command in section]
        return [
            str(command.info.name if isinstance(command, typer.Typer) else command.__name__) for command in commands
        ]


app = typer.Typer(
    cls=Program,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Train a model on sentence pairs, and translate. Datasets are in data/, runs in checkpoints/.

    Examples:
        nmt prepare english-german-both.pkl
        nmt train --config base.yaml
        nmt plot losses
        nmt translate "im thirsty"
        nmt demo                   all of this on a bundled corpus, in minutes
    """,
)
for _section, _commands in COMMANDS.items():
    for _command in _commands:
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, rich_help_panel=_section)
        else:
            _first_sentence = (_command.__doc__ or "").partition(". ")[0].partition(".\n")[0]
            app.command(cls=HelpCommand, rich_help_panel=_section, short_help=f"{_first_sentence}.")(_command)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from nmt.version import version

        typer.echo(f"nmt {version()}")
        raise typer.Exit


@app.callback()
def options(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Define the options that stand before a command."""


def main() -> NoReturn:
    """Run the command line. Bad input ends with one message and exit code 2, Ctrl-C with one message and exit code 130.

    Control characters are shown as escapes on a terminal. A file or a pipe gets the text unchanged.
    """
    standard_output: Any = sys.stdout
    if standard_output.isatty():
        out: Any = Terminal(standard_output)
    else:
        standard_output.reconfigure(encoding="utf-8", errors=standard_output.errors)  # like files and standard input
        out = RedirectedOutput(standard_output)
    err: Any = Terminal(sys.stderr)
    interruption = Interruption()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            with interruption.watch():
                code, message = _run()
        except BaseException:
            if not interruption.requested:
                raise
            code, message = INTERRUPTED, interruption_message(sys.argv[1:])
        if message:
            with contextlib.suppress(OSError):  # standard error may be closed or full, too
                typer.echo(f"nmt: {message}", err=True)
    if interruption.requested and threading.active_count() > 1:
        os._exit(code)  # sys.exit would wait for threads that are still working
    sys.exit(code)


def _run() -> tuple[int, str]:  # noqa: PLR0911 - a return for each kind of error
    """Run the command. Return the exit code and the error message, "" if there is none."""
    try:
        code = app(prog_name="nmt", standalone_mode=False) or 0
        sys.stdout.flush()
        return code, ""
    except UsageError as error:
        is_help = len(sys.argv) == 1  # typer has printed the help page
        return BAD_INPUT, "" if is_help else usage_message(error)
    except NmtError as error:
        return BAD_INPUT, error.on_command_line()
    except OutputError as error:
        if error.reader_has_gone:  # for example head, which stops after some lines
            return READER_GONE, ""
        return BAD_INPUT, (
            f"Standard output cannot be written: {error}. The output so far and complete files stay. Free some space, "
            "or choose another file, then repeat the command."
        )
    except OSError as error:
        if error.filename is None:
            raise
        return BAD_INPUT, unusable_file_message(error)
    except Exception as error:
        if type(error).__name__ != "ResourceExhaustedError":  # TensorFlow's class; comparing names loads no TensorFlow
            raise
        return BAD_INPUT, OUT_OF_MEMORY
