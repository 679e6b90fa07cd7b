"""An evaluation as a page to publish, Markdown or HTML: scores, settings, and every translation."""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jinja2 import Environment

from nmt.errors import NmtError
from nmt.evaluation.reports.environment import html_environment, markdown_environment
from nmt.evaluation.reports.text import (
    BY_LENGTH_HEADING,
    EMPTY,
    length_rows,
    metric_heading,
    overlap_lines,
    p_value_text,
    score_notes,
    score_text,
    set_line,
    settings_lines,
    system_line,
    without_overlap_heading,
)
from nmt.evaluation.result import Evaluation, EvaluationTexts


class ExampleRow(NamedTuple):
    """A sentence in a table of the worst or best translations."""

    number: int
    """Line number, from 1."""
    chrf: float
    """Sentence-level chrF, 0 to 100."""
    texts: list[str]
    """Source, if known, and R references."""
    translation: str
    """Translation by the system."""


class SentenceRow(NamedTuple):
    """A sentence in the table of all translations."""

    number: int
    """Line number, from 1."""
    trained_on: bool
    """Whether the sentence is in a training split."""
    texts: list[str]
    """Source, if known, and R references."""
    translations: list[tuple[str, float]]
    """Translation by each system, and its chrF."""


def html_report(evaluation: Evaluation) -> str:
    """Return the report as a page of HTML that fetches nothing, light or dark as the reader's system is."""
    return _render(html_environment(), "report.html", evaluation)


def markdown_report(evaluation: Evaluation) -> str:
    """Return the report in Markdown, with tables as GitHub has them."""
    text = _render(markdown_environment(), "report.md", evaluation)
    return re.sub(r"\n{3,}", "\n\n", text)  # parts of the template that are left out leave blank lines


REPORTS: dict[str, Callable[[Evaluation], str]] = {".md": markdown_report, ".html": html_report}


def check_report_format(suffix: str) -> None:
    """Refuse a suffix that names no format of a report.

    Raises:
        NmtError: naming the suffixes.
    """
    if suffix not in REPORTS:
        raise NmtError(
            f"A report cannot be written as {suffix!r}: its suffix must be {' or '.join(REPORTS)}. Choose one of them."
        )


def render_report(evaluation: Evaluation, suffix: str) -> str:
    """Return the report in the format of a suffix in ``REPORTS``."""
    return REPORTS[suffix](evaluation)


def _render(environment: Environment, template: str, evaluation: Evaluation) -> str:
    environment.filters |= {
        "metric_heading": metric_heading,
        "p_value_text": p_value_text,
        "score_text": score_text,
        "system_line": system_line,
    }
    return environment.get_template(template).render(_content(evaluation))


def _content(evaluation: Evaluation) -> dict[str, Any]:
    """Return the variables of the templates."""
    record, texts = evaluation.record, evaluation.texts
    without = record.without_overlap
    return {
        "title": "Evaluation of " + ", ".join(system.name for system in record.systems),
        "record": record,
        "set_line": set_line(record),
        "score_notes": list(score_notes(record)),
        "overlap_lines": list(overlap_lines(record)),
        "without_overlap_heading": without_overlap_heading(without) if without else "",
        "by_length_heading": BY_LENGTH_HEADING,
        "length_rows": list(length_rows(record.by_length)) if record.by_length else [],
        "columns": _columns(texts),
        "examples": list(_example_tables(evaluation)),
        "sentences": list(_sentence_rows(evaluation)),
        "settings_lines": list(settings_lines(record)),
        "empty": EMPTY,
    }


def _columns(texts: EvaluationTexts) -> list[str]:
    """Return the headings of the columns with source and references."""
    count = len(texts.references)
    references = ["reference"] if count == 1 else [f"reference {number}" for number in range(1, count + 1)]
    return [*([] if texts.sources is None else ["source"]), *references]


def _sentence_texts(texts: EvaluationTexts, index: int) -> list[str]:
    """Return source and references of a sentence, in the order of ``_columns``."""
    source = [] if texts.sources is None else [texts.sources[index]]
    return [*source, *(lines[index] for lines in texts.references)]


def _example_tables(evaluation: Evaluation) -> Iterator[tuple[str, list[ExampleRow]]]:
    """Yield heading and rows of each table of examples that has any."""
    for name, examples in evaluation.record.examples.items():
        for title, chosen in (("Worst", examples.worst), ("Best", examples.best)):
            if chosen:
                rows = [
                    ExampleRow(
                        example.number, example.chrf, _sentence_texts(evaluation.texts, example.number - 1),
                        example.translation,
                    )
                    for example in chosen
                ]  # fmt: skip
                yield f"{title} of {name} by sentence chrF", rows


def _sentence_rows(evaluation: Evaluation) -> Iterator[SentenceRow]:
    texts, trained_on = evaluation.texts, set(evaluation.record.overlap.numbers)
    for index in range(evaluation.record.test_set.sentences):
        translations = [(lines[index], texts.chrf[name][index]) for name, lines in texts.translations.items()]
        yield SentenceRow(index + 1, index + 1 in trained_on, _sentence_texts(texts, index), translations)
