"""The page: its content, its template, and the policy that keeps it from fetching anything."""

import base64
import functools
import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment
from markupsafe import Markup

from nmt.evaluation.reports.environment import html_environment
from nmt.evaluation.reports.text import (
    metric_heading,
    overlap_lines,
    p_value_text,
    score_notes,
    set_line,
    settings_lines,
    system_line,
    without_overlap_heading,
)
from nmt.evaluation.result import EvaluationRecord
from nmt.reporting.attention import AttentionMap, AttentionReport
from nmt.reporting.configuration import Setting, differences, settings_by_section
from nmt.reporting.curves import Chart, Curves, curves_of, epoch_rows
from nmt.reporting.dataset import dataset_reports
from nmt.reporting.facts import ABSENT, EN_DASH, METRIC_NAMES, RunFacts
from nmt.reporting.figures import MARKS, Line, heat_map, line_chart
from nmt.reporting.samples import sample_histories
from nmt.reporting.scores import ScoreReport
from nmt.reporting.verdict import duration, value_text, verdict
from nmt.version import version

TEMPLATES = Path(__file__).parent / "templates"
GENERATOR = "nmt report"
"""Value of the meta element by which a page is known as a report."""
_PARTS = {"tensorflow": "TensorFlow", "keras": "Keras"}
MOST_STAGES = 8  # of a sample sentence that are shown at once


class Tile(NamedTuple):
    """Fact in the head of the page."""

    name: str
    value: str
    about: str = ""


def render(
    runs: Sequence[RunFacts],
    scores: ScoreReport,
    attention: AttentionReport,
    machine: dict[str, str],
    now: datetime | None = None,
) -> str:
    """Return the page of a run, or of several compared.

    Args:
        runs: the runs.
        scores: their scores.
        attention: their attention.
        machine: versions and processor of this machine, empty where nothing was computed.
        now: date of the report; None: the current one.
    """
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    curves = curves_of(list(runs))
    numbers = [_styles(record, runs) for record in scores.records]
    content = {
        "title": ", ".join(facts.name for facts in runs),
        "policy": (
            f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        ),
        "generator": GENERATOR,
        "style": Markup(style),  # files of the package
        "script": Markup(script),
        "written": (now or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC"),
        "nmt": version(),
        "runs": runs,
        "styles": len(MARKS),
        "verdict": verdict(runs, scores.records),
        "tiles": _tiles(runs[0]) if len(runs) == 1 else [],
        "comparison": _comparison(runs) if len(runs) > 1 else None,
        "scores": scores,
        "numbers": numbers,
        "length_figures": [
            list(_length_figures(record, styles)) for record, styles in zip(scores.records, numbers, strict=True)
        ],
        "intervals": [_intervals(record) if len(record.systems) > 1 else {} for record in scores.records],
        "charts": [(chart, _static_chart(chart, curves)) for chart in curves.charts],
        "thinned": max((track.every for track in curves.tracks), default=1),
        "epochs": epoch_rows(list(runs)),
        "samples": sample_histories(list(runs)),
        "most_stages": MOST_STAGES,
        "attention": attention,
        "maps": [(found, _static_map(found)) for found in attention.maps],
        "configurations": [_settings(facts) for facts in runs],
        "differences": differences([facts.config for facts in runs]) if len(runs) > 1 else [],
        "datasets": dataset_reports(list(runs)),
        "machines": [_machine(facts) for facts in runs],
        "machine": [Tile(_PARTS.get(key, key), value) for key, value in machine.items() if value],
        "marks": MARKS,
        "data": {
            "marks": MARKS,
            "runs": [facts.name for facts in runs],
            **curves.model_dump(),
            "maps": [found.model_dump(exclude={"sentence", "translation"}) for found in attention.maps],
        },
    }
    return _environment().get_template("report.html").render(content)


@functools.cache
def _environment() -> Environment:
    """Return the environment of the template, with the words that evaluations have elsewhere too."""
    environment = html_environment("nmt.reporting")
    environment.filters |= {
        "duration": duration,
        "metric_heading": metric_heading,
        "p_value_text": p_value_text,
        "system_line": system_line,
        "overlap_lines": overlap_lines,
        "score_notes": score_notes,
        "set_line": set_line,
        "settings_lines": settings_lines,
        "without_overlap_heading": without_overlap_heading,
    }
    return environment


def _hash(text: str) -> str:
    """Return the source expression that allows an inline element of this text alone (CSP 3, section 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _tiles(facts: RunFacts) -> list[Tile]:
    best, by = facts.best, facts.config.training.best_by
    languages = " to ".join(facts.manifest.languages.values())
    planned = facts.config.training.epochs
    done = len(facts.epochs)
    return [
        Tile("Dataset", facts.manifest.settings.dataset or "", languages if languages != "source to target" else ""),
        Tile("Trained", facts.trained_on or "not yet", f"{done} of {planned} epochs"),
        Tile("Architecture", facts.config.model.architecture, _sizes(facts)),
        Tile("Parameters", f"{facts.parameters:,}"),
        Tile("Training time", duration(facts.seconds), f"{facts.records[-1].step:,} steps" if facts.records else ""),
        *(
            [Tile(f"Best validation {METRIC_NAMES[by]}", value_text(best, by), f"loss {best.validation_loss:.3f}")]
            if best
            else []
        ),
    ]


def _sizes(facts: RunFacts) -> str:
    """Return the sizes of a model in words."""
    model = facts.config.model
    return model.description.removeprefix(model.architecture).lstrip(", ")


def _settings(facts: RunFacts) -> tuple[dict[str, list[Setting]], dict[str, list[Setting]]]:
    """Return all settings of a run by section, and those that differ from their default."""
    sections = settings_by_section(facts.config)
    changed = {name: [setting for setting in settings if setting.is_changed] for name, settings in sections.items()}
    return sections, changed


def _comparison(runs: Sequence[RunFacts]) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of the table of runs."""
    heads = ["run", "dataset", "trained", "model", "parameters", "epochs", "time", "best accuracy", "loss"]
    rows = []
    for facts in runs:
        best = facts.best
        rows.append([
            facts.name, facts.manifest.settings.dataset or "", facts.trained_on or "not yet",
            f"{facts.config.model.architecture}, {_sizes(facts)}",
            f"{facts.parameters:,}", f"{len(facts.epochs)} of {facts.config.training.epochs}", duration(facts.seconds),
            value_text(best, "accuracy") if best else ABSENT, value_text(best, "loss") if best else ABSENT,
        ])  # fmt: skip
    return heads, rows


def _machine(facts: RunFacts) -> list[Tile]:
    tokens = sum(record.target_tokens for record in facts.epochs)
    speed = f", {tokens / facts.seconds:,.0f} target tokens/s" if facts.seconds else ""
    return [
        Tile("training steps", f"{duration(facts.seconds)} for {tokens:,} target tokens{speed}"),
        *(Tile(_PARTS.get(key, key), value) for key, value in facts.environment.items()),
    ]


def _static_chart(chart: Chart, curves: Curves) -> Markup:
    lines = []
    for series in chart.series:
        track = curves.tracks[series.track]
        points = [(x, y) for x, y in zip(track.x["step"], track.y[chart.column], strict=True) if x is not None]
        lines.append(Line(series.label, series.style, points, series.thin))
    return line_chart(lines, "steps", f"{chart.title} by step: {', '.join(line.label for line in lines)}")


def _styles(record: EvaluationRecord, runs: Sequence[RunFacts]) -> dict[str, int]:
    """Return the style of each system of an evaluation: that of its run, or one that nothing else has."""
    names, styles = [facts.name for facts in runs], dict[str, int]()
    for system in record.systems:
        of_run = names.index(system.run) if system.run in names else None
        further = max([len(runs) - 1, *styles.values()]) + 1
        styles[system.name] = further if of_run is None or of_run in styles.values() else of_run
    return styles


def _length_figures(record: EvaluationRecord, styles: dict[str, int]) -> Iterator[tuple[str, Markup]]:
    """Yield metric and chart of the scores by source length."""
    buckets = record.by_length
    for metric in buckets[0].scores.signatures if len(buckets) > 1 else ():
        lines = [
            Line(
                system.name, styles[system.name],
                [(float(index), bucket.scores.systems[system.name][metric].score)
                 for index, bucket in enumerate(buckets)],
            )
            for system in record.systems
        ]  # fmt: skip
        names = [bucket.lengths.replace("-", EN_DASH) for bucket in buckets]
        yield metric, line_chart(lines, "words of the source", f"{metric} by source length", names)


class Interval(NamedTuple):
    """Confidence interval as shares of the width of its picture, 0 to 100."""

    low: float
    middle: float
    high: float


def _intervals(record: EvaluationRecord) -> dict[str, dict[str, Interval]]:
    """Return the confidence intervals by metric and system, all of a metric on one scale; none without resampling."""
    found: dict[str, dict[str, Interval]] = {}
    for metric in record.scores.signatures:
        bounds = {
            name: (score.mean - score.ci, score.mean, score.mean + score.ci)
            for name, by_metric in record.scores.systems.items()
            if (score := by_metric[metric]).mean is not None and score.ci is not None
        }
        if not bounds:
            continue
        low, high = min(bound[0] for bound in bounds.values()), max(bound[2] for bound in bounds.values())
        width = (high - low) or 1.0
        found[metric] = {
            name: Interval(*(4 + 92 * (value - low) / width for value in bound)) for name, bound in bounds.items()
        }
    return found


def _static_map(found: AttentionMap) -> Markup:
    label = f"Attention of {' '.join(found.target)} to {' '.join(found.source)}, last layer, mean of the heads"
    return heat_map(found.mean(), found.source, found.target, label)
