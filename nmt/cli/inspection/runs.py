"""``nmt runs``: table of all runs, and in what they differ."""

import datetime
import json
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.options import JsonOption
from nmt.errors import NmtError, NotFoundError

if TYPE_CHECKING:
    from nmt.runs.overview import Overview

ORDERS = ("name", "date", "score")
HEADINGS = ("run", "state", "epochs", "best", "time", "size", "trained")
INDENT, GAP = "  ", "  "
LONGEST_NAME = 24
"""Columns of a name that has its row beside it; the row of a longer name follows below."""
LONGEST_VALUE = 30
"""Characters of a configuration's value."""
BESIDE_THE_TABLE = {"data.dataset", "model.architecture", "training.epochs"}
"""Keys of the configuration that the table shows anyway."""


def runs(
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="Only the runs on this dataset.")
    ] = None,
    sort: Annotated[
        str,
        typer.Option(
            "--sort",
            metavar="ORDER",
            help="name; date: the latest first; or score: the best first within a dataset and a measure.",
        ),
    ] = "name",
    as_json: JsonOption = False,
) -> None:
    """List all runs: how far they came, how good they are, what differs.

    A run has a row with its state, epochs, best validation, training time, size on disk and date. Below it are dataset,
    model, and the keys of the configuration in which the listed runs differ from each other. Where more than half of
    the runs share a value, it stands below the table.

    Examples:
        nmt runs
        nmt runs --dataset multi30k --sort score
        nmt runs --json
    """
    from nmt.data.manifest import read_manifest
    from nmt.runs.directory import find_run
    from nmt.runs.overview import differences, in_order, json_of, overview, run_folders
    from nmt.storage.names import did_you_mean

    if sort not in ORDERS:
        raise NmtError(f"--sort is {sort!r}{did_you_mean(sort, ORDERS)}. Orders are {', '.join(ORDERS)}.")
    folders = run_folders()
    if not folders:
        find_run(None)  # says what to do
    found = [overview(run, lambda path: read_manifest(path).vocabulary) for run in folders]
    if dataset is not None:
        known = sorted({shown.dataset for shown in found if shown.dataset})
        found = [shown for shown in found if shown.dataset == dataset]
        if not found:
            raise NotFoundError(
                f"No run was trained on a dataset {dataset!r}{did_you_mean(dataset, known)}. Runs are on: "
                f"{', '.join(known)}."
            )
    found = in_order(found, sort)  # type: ignore[arg-type]
    differing = differences({shown.name: shown.config for shown in found})
    if as_json:
        rows = [json_of(shown, differing[shown.name]) for shown in found]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    columns = shutil.get_terminal_size(fallback=(100, 24)).columns
    for line in table(found, differing, max(40, min(columns, 120))):
        typer.echo(line)


def table(found: Sequence["Overview"], differing: Mapping[str, Mapping[str, Any]], columns: int) -> list[str]:
    """Return the lines of the table, each run with a row and indented lines below it.

    Keys of the configuration that most runs share the value of stand at the end, so that a run names its deviations.
    """
    from nmt.runs.overview import usual_values

    rows = [HEADINGS, *((shown.name, *_cells(shown)) for shown in found)]
    names = max(len(row[0]) for row in rows if len(row[0]) <= LONGEST_NAME)
    widths = [names, *(max(len(row[column]) for row in rows) for column in range(1, len(HEADINGS)))]
    short = _short_keys({key for keys in differing.values() for key in keys})
    usual = {key: value for key, value in usual_values(differing).items() if key not in BESIDE_THE_TABLE}
    lines = [_line(HEADINGS, widths)]
    for shown, row in zip(found, rows[1:], strict=True):
        if len(shown.name) > LONGEST_NAME:
            lines.append(shown.name)
        lines.append(_line(row if len(shown.name) <= LONGEST_NAME else ("", *row[1:]), widths))
        below = [
            f"{short[key]}={_value(value)}" for key, value in differing[shown.name].items()
            if key not in BESIDE_THE_TABLE and (key not in usual or usual[key] != value)
        ]  # fmt: skip
        lines += _wrapped([_about(shown), *below], columns)
        lines += [line for problem in shown.problems for line in _wrapped([f"damaged: {problem}"], columns)]
    if usual:
        lines += ["most runs", *_wrapped([f"{short[key]}={_value(usual[key])}" for key in usual], columns)]
    return lines


def _cells(shown: "Overview") -> tuple[str, ...]:
    """Return the cells of a run's row after its name."""
    planned = f"/{shown.config.training.epochs}" if shown.config else ""
    best = "-"
    if shown.best and shown.best.score is not None:
        by, score = shown.best.by, shown.best.score
        best = (
            f"{by} {score:.3f}" if by in {"accuracy", "loss"} else f"{'BLEU' if by == 'bleu' else 'chrF'} {score:.1f}"
        )
    date = datetime.datetime.fromtimestamp(shown.trained)
    epochs = "?" if shown.epochs is None else shown.epochs
    return shown.state, f"{epochs}{planned}", best, _duration(shown.seconds), _bytes(shown.size), f"{date:%Y-%m-%d}"


def _about(shown: "Overview") -> str:
    """Return dataset, architecture and size of a run."""
    if shown.config is None:
        return "configuration unreadable"
    weights = f" of {_count(shown.weights)} weights" if shown.weights is not None else ""
    return f"{shown.dataset or 'unknown dataset'}: {shown.config.model.architecture}{weights}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return GAP.join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()


def _wrapped(parts: Iterable[str], columns: int) -> list[str]:
    """Return parts separated by commas as indented lines, broken between parts where possible."""
    text = ", ".join(part.replace(" ", "\N{NO-BREAK SPACE}") if "=" in part else part for part in parts)
    lines = textwrap.wrap(text, columns, initial_indent=INDENT, subsequent_indent=INDENT, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def _short_keys(keys: Iterable[str]) -> dict[str, str]:
    """Return each key without its section, where no two sections share it."""
    keys = list(keys)
    count = Counter(key.partition(".")[2] for key in keys)
    return {key: name if count[name := key.partition(".")[2]] == 1 else key for key in keys}


def _value(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 6000 else f"{whole / 3600:.1f} h"


def _bytes(size: int) -> str:
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"


def _count(number: int) -> str:
    return f"{number / 1e6:.1f} M" if number >= 1e6 else f"{number:,}"
