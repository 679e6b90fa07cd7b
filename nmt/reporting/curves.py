"""Curves of runs as tracks of points, for the charts of the page."""

import math
from typing import Any

from nmt.config.record import Record
from nmt.reporting.facts import ABSENT, Clock, RunFacts
from nmt.runs.metrics import EpochMetrics, tokens_per_second

MOST_POINTS = 1000  # of a track; a chart is about as many pixels wide
UNITS = ("step", "epoch", "tokens", "minutes")
COLUMNS = ("loss", "accuracy", "bleu", "chrf")  # of validations
CHARTS = {
    "loss": ("Loss", "cross-entropy per target token, nats"),
    "accuracy": ("Accuracy", "share of target tokens predicted correctly"),
    "bleu": ("BLEU", "greedy translations of validation sentences"),
    "chrf": ("chrF", "greedy translations of validation sentences"),
    "learning_rate": ("Learning rate", "of the optimizer"),
    "tokens_per_second": ("Throughput", "target tokens per second of training"),
}
"""Title and description of each chart, by column."""


class Track(Record):
    """Points of a run that share their horizontal positions."""

    run: int
    """Index of the run."""
    kind: str
    """What was measured: "training" or "validation"."""
    x: dict[str, list[float | None]]
    """Position of each of N points, by unit; None where it is unknown."""
    y: dict[str, list[float | None]]
    """Value of each of N points, by column."""
    best: int | None = None
    """Index of the best validation; None for training."""
    every: int = 1
    """Of how many records one is a point."""


class Series(Record):
    """A line of a chart."""

    track: int
    """Index of the track."""
    label: str
    style: int
    """Number of colour, dash and marker."""
    thin: bool
    """Whether the line is thin and without markers, as beside another of the same style."""


class Chart(Record):
    """Lines of one column."""

    column: str
    title: str
    about: str
    """What the values are, in words."""
    series: list[Series]


class Curves(Record):
    """Tracks and charts of all runs."""

    tracks: list[Track]
    charts: list[Chart]


def curves_of(runs: list[RunFacts]) -> Curves:
    """Return the tracks of all runs and the charts that have any points."""
    tracks = [track for number, facts in enumerate(runs) for track in tracks_of(number, facts)]
    charts = []
    for column, (title, about) in CHARTS.items():
        with_column = [index for index, track in enumerate(tracks) if column in track.y]
        kinds = {tracks[index].kind for index in with_column}
        series = [
            Series(
                track=index, label=_label(tracks[index], runs, kinds), style=_style(tracks[index], runs, kinds),
                thin=tracks[index].kind == "training" and len(kinds) > 1,
            )
            for index in with_column
        ]  # fmt: skip
        if series:
            charts.append(Chart(column=column, title=title, about=about, series=series))
    return Curves(tracks=tracks, charts=charts)


def _label(track: Track, runs: list[RunFacts], kinds: set[str]) -> str:
    name = runs[track.run].name
    if len(runs) == 1:
        return track.kind
    return f"{name}, {track.kind}" if len(kinds) > 1 else name


def _style(track: Track, runs: list[RunFacts], kinds: set[str]) -> int:
    """Return the style of a run, or of a kind where there is a single run."""
    if len(runs) > 1:
        return track.run
    return int(track.kind == "validation" and len(kinds) > 1)


def tracks_of(number: int, facts: RunFacts) -> list[Track]:
    """Return the tracks of a run: training and validation, each if it has points."""
    clock = Clock(facts)
    tracks = []
    if facts.steps:
        tracks.append(_training_track(number, facts, clock))
    if facts.validations:
        tracks.append(_validation_track(number, facts, clock))
    if facts.epochs and not any("tokens_per_second" in track.y for track in tracks):
        # Step records of earlier versions have no times; those of epochs have.
        speeds = [record.target_tokens / record.seconds if record.seconds else None for record in facts.epochs]
        steps = [record.step for record in facts.epochs]
        tracks.append(_track(number, "training", clock, steps, {"tokens_per_second": speeds}))
    return tracks


def _training_track(number: int, facts: RunFacts, clock: Clock) -> Track:
    records = facts.steps
    columns: dict[str, list[float | None]] = {
        column: [getattr(record, column) for record in records] for column in ("loss", "accuracy", "learning_rate")
    }
    speeds = [tokens_per_second(before, record) for before, record in zip([None, *records], records, strict=False)]
    if any(speed is not None for speed in speeds):
        columns["tokens_per_second"] = speeds
    return _track(number, "training", clock, [record.step for record in records], columns)


def _validation_track(number: int, facts: RunFacts, clock: Clock) -> Track:
    records = facts.validations
    values = {column: [getattr(record, f"validation_{column}") for record in records] for column in COLUMNS}
    columns = {column: row for column, row in values.items() if any(value is not None for value in row)}
    best = next((index for index, record in enumerate(records) if record is facts.best), None)
    return _track(number, "validation", clock, [record.step for record in records], columns, best)


def _track(
    number: int, kind: str, clock: Clock, steps: list[int], columns: dict[str, list[float | None]],
    best: int | None = None,
) -> Track:  # fmt: skip
    """Return a track of at most about ``MOST_POINTS`` points, the first, the last and the best among them."""
    every = math.ceil(len(steps) / MOST_POINTS)
    kept = sorted({*range(0, len(steps), every), len(steps) - 1, *([] if best is None else [best])})
    chosen = [steps[index] for index in kept]
    x: dict[str, list[float | None]] = {unit: clock.at(unit, chosen) for unit in UNITS[1:]}
    return Track(
        run=number,
        kind=kind,
        x={"step": [float(step) for step in chosen], **x},
        y={column: [row[index] for index in kept] for column, row in columns.items()},
        best=None if best is None else kept.index(best),
        every=every,
    )


def epoch_rows(runs: list[RunFacts]) -> tuple[list[str], list[list[Any]]]:
    """Return headings and rows of the table of epochs: what the charts show, as numbers."""
    several = len(runs) > 1
    scored = [column for column in ("bleu", "chrf") if any(_has(facts, column) for facts in runs)]
    heads = [
        *(["run"] if several else []), "epoch", "step", "minutes", "training loss", "validation loss",
        "training accuracy", "validation accuracy", *({"bleu": "BLEU", "chrf": "chrF"}[column] for column in scored),
        "tokens/s",
    ]  # fmt: skip
    rows = [
        [*([facts.name] if several else []), *_epoch_cells(record, facts, scored)]
        for facts in runs
        for record in facts.epochs
    ]
    return heads, rows


def _has(facts: RunFacts, column: str) -> bool:
    return any(getattr(record, f"validation_{column}") is not None for record in facts.epochs)


def _epoch_cells(record: EpochMetrics, facts: RunFacts, scored: list[str]) -> list[str]:
    minutes = sum(epoch.seconds for epoch in facts.epochs if epoch.epoch <= record.epoch) / 60
    scores = [getattr(record, f"validation_{column}") for column in scored]
    return [
        f"{record.epoch}",
        f"{record.step:,}",
        f"{minutes:,.1f}",
        f"{record.train_loss:.3f}",
        f"{record.validation_loss:.3f}",
        f"{record.train_accuracy:.1%}",
        f"{record.validation_accuracy:.1%}",
        *(ABSENT if score is None else f"{score:.1f}" for score in scores),
        f"{record.target_tokens / record.seconds:,.0f}" if record.seconds else ABSENT,
    ]
