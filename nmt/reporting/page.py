"""Pages of HTML that fetch nothing: of runs, and of an evaluation. Every inserted text is escaped.

A page is light or dark as the reader's system is, fits a telephone, and has no script.
"""

import base64
import functools
import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nmt.errors import NmtError
from nmt.evaluation import text as words
from nmt.evaluation.result import Evaluation, EvaluationRecord
from nmt.reporting import tables
from nmt.reporting.attention import AttentionReport
from nmt.reporting.charts import curve_figures, length_figures
from nmt.reporting.facts import Fact, RunFacts, duration
from nmt.reporting.samples import sample_histories
from nmt.reporting.verdict import verdict
from nmt.version import version

GENERATOR = "nmt report"
"""Value of the meta element by which a page is known as a report."""


class ScoreReport(NamedTuple):
    """Results of evaluations, and what could not be scored."""

    records: list[EvaluationRecord]
    """Results; runs with the same test split share one."""
    problems: list[str]
    """Runs without scores, each with the reason in words."""


class SentenceRow(NamedTuple):
    """A sentence in the table of all translations."""

    number: str
    """Line number, from 1, and a dagger if the sentence is in a training split."""
    texts: list[str]
    """Source, if known, and R references."""
    translations: list[tuple[str, float]]
    """Translation by each system, and its chrF."""


def check_page(path: Path) -> None:
    """Refuse a file whose name is not that of a page.

    Raises:
        NmtError: for another suffix than .html.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise NmtError(f"The report cannot be written to {str(path)!r}: it is a page of HTML. Give a name in .html")


def run_page(
    runs: Sequence[RunFacts], scores: ScoreReport, attention: AttentionReport, machine: dict[str, str]
) -> str:
    """Return the page of a run, or of several compared.

    Args:
        runs: the runs.
        scores: their scores.
        attention: their attention.
        machine: versions and processor of this machine, empty where nothing was computed.
    """
    manifests = {facts.manifest.model_dump_json(): facts.manifest for facts in runs}
    return _render(
        "run.html",
        title=", ".join(facts.name for facts in runs),
        runs=runs,
        verdict=verdict(runs, scores.records),
        scores=scores,
        charts=list(curve_figures([facts.run for facts in runs])),
        samples=sample_histories(runs),
        attention=attention,
        differences=tables.differences([facts.config for facts in runs]),
        manifests=list(manifests.values()),
        machines=[list(_machine(facts)) for facts in runs],
        machine=machine,
    )


def _machine(facts: RunFacts) -> Iterator[Fact]:
    tokens, seconds = (sum(getattr(epoch, key) for epoch in facts.epochs) for key in ("target_tokens", "seconds"))
    speed = f", {tokens / seconds:,.0f} target tokens/s" if seconds else ""
    yield Fact("training steps", f"{duration(seconds)} for {tokens:,} target tokens{speed}")
    for name, value in facts.environment.items():
        yield Fact(name, value)


def evaluation_page(evaluation: Evaluation) -> str:
    """Return the page of an evaluation: scores, settings, and every translation."""
    record, texts = evaluation.record, evaluation.texts
    count = len(texts.references)
    references = ["reference"] if count == 1 else [f"reference {number}" for number in range(1, count + 1)]
    return _render(
        "evaluation.html",
        title="Evaluation of " + ", ".join(system.name for system in record.systems),
        record=record,
        columns=[*([] if texts.sources is None else ["source"]), *references],
        sentences=list(_sentence_rows(evaluation)),
    )


def _sentence_rows(evaluation: Evaluation) -> Iterator[SentenceRow]:
    texts, trained_on = evaluation.texts, set(evaluation.record.overlap.numbers)
    lines = [*([] if texts.sources is None else [texts.sources]), *texts.references]
    for index in range(evaluation.record.test_set.sentences):
        translations = [(of_system[index], texts.chrf[name][index]) for name, of_system in texts.translations.items()]
        dagger = "†" if index + 1 in trained_on else ""
        yield SentenceRow(f"{index + 1}{dagger}", [of_text[index] for of_text in lines], translations)


def _render(template: str, **content: Any) -> str:
    style = (Path(__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
    # The source expression that allows an inline element of this text alone (CSP 3, section 2.3.1).
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return html_environment().get_template(template).render(
        generator=GENERATOR,
        nmt=version(),
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'",
        style=Markup(style),  # a file of the package
        written=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        **content,
    )  # fmt: skip


@functools.cache
def html_environment() -> Environment:
    """Return the environment of the templates, with the words and tables that they show."""
    environment = Environment(
        loader=PackageLoader("nmt.reporting"),
        autoescape=True,
        undefined=StrictUndefined,  # a misspelled name is an error, not an empty cell
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"words": words, "tables": tables, "length_figures": length_figures}
    return environment
