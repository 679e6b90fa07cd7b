"""HTML pages of runs and evaluations, without scripts and external resources. All inserted text is escaped.

A page is light or dark as the reader's system, and fits a telephone.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nmt.errors import NmtError
from nmt.evaluation import result as words
from nmt.evaluation.result import Evaluation, EvaluationRecord
from nmt.reporting.charts import curve_figures, length_figures, reliability_figures, stress_figures
from nmt.reporting.facts import RunFacts, duration, sample_histories, split_rows
from nmt.runs.metrics import EpochMetrics, measures
from nmt.runs.overview import differences
from nmt.storage.outputs import OutputFile
from nmt.tokenizers.scripts import direction
from nmt.version import version

GENERATOR = "nmt report"
"""Value of the meta element that identifies a page as a report."""
ABSENT = "\N{EN DASH}"
PARTS_OF_A_RUN = {"train": "training", "validation": "validation"}
"""Part of an epoch in which a metric is measured, by prefix of its field."""


def output_page(path: Path, inputs: Iterable[Path] = ()) -> OutputFile:
    """Return the output file for a page. It may replace an earlier page.

    Raises:
        NmtError: if the suffix is not .html or .htm.
        ConflictError: if the file is one of the inputs, or exists and is not a page of nmt.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise NmtError(
            f"The report cannot be written to {str(path)!r}: it is an HTML page. Give a name that ends in .html"
        )
    return OutputFile(path, inputs=inputs, kind="report", is_earlier=_is_page)


def _is_page(path: Path) -> bool:
    with path.open("rb") as file:
        return f'<meta name="generator" content="{GENERATOR}'.encode() in file.read(4096)


class AttentionMap(NamedTuple):
    """Attention map of a translation to its source: the mean over the heads of the last layer."""

    run: str
    sentence: str
    translation: str
    figure: Markup


def run_page(
    runs: Sequence[RunFacts],
    records: Sequence[EvaluationRecord] = (),
    problems: Sequence[str] = (),
    maps: Sequence[AttentionMap] = (),
    notes: Sequence[str] = (),
    machine: dict[str, str] | None = None,
) -> str:
    """Return the HTML page of a run, or of several compared runs.

    Args:
        runs: the runs.
        records: evaluations of the runs.
        problems: names of runs that could not be scored, with the reasons.
        maps: attention maps of some sentences.
        notes: names of runs without attention maps, with the reasons.
        machine: versions and processor of this machine; None if nothing was computed.
    """
    manifests = {facts.manifest.model_dump_json(): facts.manifest for facts in runs}
    return _render(
        "run.html",
        title=", ".join(facts.name for facts in runs),
        runs=runs,
        records=records,
        problems=problems,
        charts=list(curve_figures([facts.run for facts in runs])),
        confidence=[
            (facts.calibration, [*reliability_figures(facts.name, facts.calibration)])
            for facts in runs
            if facts.calibration
        ],
        samples=sample_histories(runs),
        languages=_common_languages(runs),
        maps=maps,
        notes=notes,
        settings=settings_table(runs),
        epochs=epoch_table(runs),
        datasets=[
            (manifest, Table(["", *manifest.splits], [*split_rows(manifest)])) for manifest in manifests.values()
        ],
        machine=machine or {},
    )


def _common_languages(runs: Sequence[RunFacts]) -> tuple[str, str]:
    """Return the codes of source and target; "source" and "target" if they are unknown, or differ between runs."""
    pairs = {(facts.manifest.languages["source"], facts.manifest.languages["target"]) for facts in runs}
    return pairs.pop() if len(pairs) == 1 else ("source", "target")


def text_attributes(language: str) -> Markup:
    """Return the attributes lang and dir for text in a language; without a known language, the text decides."""
    way = direction(language)
    return Markup('dir="auto"') if way == "auto" else Markup('lang="{}" dir="{}"').format(language, way)


class Table(NamedTuple):
    """A table of text: headings and rows."""

    heads: list[str]
    rows: list[list[str]]


def settings_table(runs: Sequence[RunFacts]) -> Table:
    """Return the configuration keys that differ between runs, or from their defaults for a single run."""
    configs = {facts.name: facts.config for facts in runs}
    if len(runs) == 1:
        config = runs[0].config
        configs = {"value": config, "default": config.model_copy(update={key: type(part)() for key, part in config})}
    columns = differences(configs).values()
    rows = [
        [key, *(_as_in_file(values[key]) if key in values else ABSENT for values in columns)]
        for key in dict.fromkeys(key for values in columns for key in values)
    ]
    if len(runs) == 1:
        rows = [row for row in rows if row[2] != "auto"]  # a resolved "auto" is not a change
    return Table(["key", *configs], rows)


def _as_in_file(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def epoch_table(runs: Sequence[RunFacts]) -> Table:
    """Return the metrics of the runs' epochs, with a column for each metric."""
    by_field = measures(EpochMetrics)
    fields = sorted(by_field, key=lambda field: field.startswith("validation_"))
    heads = []
    for field in fields:
        prefix, _, _ = field.partition("_")
        part = f"{PARTS_OF_A_RUN[prefix]} " if prefix in PARTS_OF_A_RUN else ""
        heads.append(f"{part}{by_field[field].heading}")
    rows = []
    for facts in runs:
        for epoch in facts.epochs:
            values = [(getattr(epoch, field), by_field[field].form) for field in fields]
            values += [(epoch.target_tokens / epoch.seconds if epoch.seconds else None, ",.0f")]
            cells = [ABSENT if value is None else f"{value:{form}}" for value, form in values]
            rows.append([facts.name, f"{epoch.epoch}", f"{epoch.step:,}", f"{epoch.seconds:,.1f}", *cells])
    return Table(["run", "epoch", "step", "seconds", *heads, "tokens/s"], rows)


def evaluation_page(evaluation: Evaluation) -> str:
    """Return the HTML page of an evaluation: scores, settings, and all translations."""
    record = evaluation.record
    title = "Evaluation of " + ", ".join(system.name for system in record.systems)
    trained_on = set(record.overlap.numbers)
    return _render(
        "evaluation.html", title=title, record=record, texts=evaluation, languages=evaluation.languages,
        trained_on=trained_on,
    )  # fmt: skip


def _render(template: str, **content: Any) -> str:
    style = (Path(__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    # The source expression allows only the inline style sheet with this hash (CSP 3, section 2.3.1).
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment = Environment(
        loader=PackageLoader("nmt.reporting"),
        autoescape=True,
        undefined=StrictUndefined,  # a misspelled name is an error, not an empty cell
        trim_blocks=True,
        lstrip_blocks=True,
    )
    figures = {"length_figures": length_figures, "stress_figures": stress_figures}
    environment.globals |= {"words": words, "duration": duration, "written_in": text_attributes, **figures}
    return environment.get_template(template).render(
        generator=GENERATOR,
        nmt=version(),
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'",
        style=Markup(style),  # a file of the package
        written=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        **content,
    )
