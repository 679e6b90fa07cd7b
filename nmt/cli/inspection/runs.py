"""``nmt runs``: table of all runs and their differences."""

import datetime
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from nmt.cli.options import JsonOption

if TYPE_CHECKING:
    from rich.table import Table

    from nmt.runs.overview import Overview

HEADINGS = ("run", "state", "epochs", "best", "time", "size", "trained")
IN_THE_TABLE = {"data.dataset", "model.architecture", "training.epochs"}
"""Configuration keys that the table always shows."""


def runs(
    sort: Annotated[
        Literal["name", "date", "score"],
        typer.Option(metavar="ORDER", help="name; date: latest first; or score: best first, by dataset and metric."),
    ] = "name",
    as_json: JsonOption = False,
) -> None:
    """List all runs with their progress, scores and differences.

    Each row has the state, epochs, best validation, training time, size on disk and date of a run. The list below has
    dataset, model, and the configuration keys in which the listed runs differ.

    Examples:
        nmt runs
        nmt runs --sort score
        nmt runs --json
    """
    from nmt.runs.directory import find_run
    from nmt.runs.overview import differences, overview, overview_json, run_folders, sort_overviews

    folders = run_folders()
    if not folders:
        find_run(None)  # raises an error with the remedy
    overviews = sort_overviews([overview(run) for run in folders], sort)
    differing = differences({shown.name: shown.config for shown in overviews})
    if as_json:
        rows = [overview_json(shown, differing[shown.name]) for shown in overviews]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False, markup=False)
    for table in run_tables(overviews, differing):
        console.print(table)


def run_tables(overviews: "Sequence[Overview]", differing: Mapping[str, Mapping[str, Any]]) -> "tuple[Table, Table]":
    """Return a table of the runs' states and scores, and a table of their datasets, models and differences."""
    from rich.table import Table

    from nmt.reporting.facts import duration
    from nmt.runs.metrics import Quality, measures

    states, about = (Table(box=None, padding=(0, 2, 0, 0), show_header=header) for header in (True, False))
    for heading in HEADINGS:
        states.add_column(heading, overflow="fold")
    about.add_row("")
    for shown in overviews:
        config, count = shown.config, shown.weights
        weights = "" if count is None else f" of {f'{count / 1e6:.1f} M' if count >= 1e6 else f'{count:,}'} weights"
        states.add_row(
            shown.name, shown.state, f"{'?' if shown.epochs is None else shown.epochs}"
            + (f"/{config.training.epochs}" if config else ""),
            "-" if shown.score is None else measures(Quality)[f"validation_{shown.by}"].text(shown.score),
            "?" if shown.seconds is None else duration(shown.seconds), _bytes(shown.size),
            f"{datetime.datetime.fromtimestamp(shown.trained):%Y-%m-%d}",
        )  # fmt: skip
        model = f"{shown.dataset or 'unknown dataset'}: {config.model.architecture}{weights}" if config else ""
        differing_keys = [
            f"{key}={value if isinstance(value, str) else json.dumps(value)}"
            for key, value in differing[shown.name].items()
            if key not in IN_THE_TABLE
        ]
        about.add_row(shown.name, ", ".join([model or "configuration unreadable", *differing_keys]))
        for problem in shown.problems:
            about.add_row("", f"damaged: {problem}")
    return states, about


def _bytes(size: int) -> str:
    unit, name = next(
        ((unit, name) for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if size >= unit), (1, "B")
    )
    return f"{size / unit:.3g} {name}"
