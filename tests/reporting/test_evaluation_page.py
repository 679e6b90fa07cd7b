"""Evaluation reports show every sentence literally, on a page and in the terminal."""

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_runs import Page
from report_runs import evaluation as made_evaluation
from rich.console import Console

from nmt.evaluation.evaluate import evaluate
from nmt.evaluation.result import Evaluation, EvaluationRecord, print_evaluation
from nmt.evaluation.test_set import TrainingOverlap
from nmt.reporting.page import evaluation_page

pytestmark = pytest.mark.usefixtures("folder")
NASTY = ["a | b <script>alert(1)</script> & `c` \\| *d* _e_ [f](g)", "", "\u2028x\u00a0y"]


def small_evaluation(*, known: list[int]) -> Evaluation:
    """Return the evaluation of two files of translations; some sentences are in a training split."""
    for name, lines in {"a|b": NASTY, "c": NASTY, "base": NASTY, "their|s<b>": ["x", "y", "z"]}.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    overlap = TrainingOverlap(checked={"d": len(known)}, unchecked=[], numbers=known)
    settings: dict[str, Any] = {"metrics": ["bleu", "ter"], "resamples": 50, "examples": 2}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nmt.evaluation.evaluate.compare_with_training", lambda *_: overlap)
        return evaluate(hypotheses=["base", "their|s<b>"], source="a|b", references=["c"], **settings)


def terminal_report(record: EvaluationRecord, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    print_evaluation(record, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


def rows_of(page: str) -> list[list[str]]:
    """Return the cell texts of all rows."""
    rows = []
    for row in re.findall("<tr[ >].*?</tr>", page, re.DOTALL):
        cells = re.findall("<t[hd][^>]*>.*?</t[hd]>", row, re.DOTALL)
        rows.append(["".join(Page(cell).texts) for cell in cells])
    return rows


def test_the_page_shows_every_text_as_it_is_and_fetches_nothing() -> None:
    evaluation = small_evaluation(known=[1])
    html = evaluation_page(evaluation)
    page = Page(html)
    assert not page.open
    assert not {tag for tag, _ in page.elements} & {"script", "b", "img"}
    assert not [attributes for _, attributes in page.elements if "src" in attributes]
    assert {str(attributes["href"])[0] for _, attributes in page.elements if "href" in attributes} == {"#", "d"}
    assert "prefers-color-scheme: dark" in html
    chrf = f"{evaluation.chrf['their|s<b>'][0]:.1f}"
    assert ["1†", *[NASTY[0]] * 3, "100.0", "x", chrf] in rows_of(html)
    assert "WARNING: 1 of 3 source sentences (33.3%)" in page.text
    cells = [attributes for tag, attributes in page.elements if tag == "td" and "dir" in attributes]
    assert cells == [{"dir": "auto"}] * 12
    html = evaluation_page(replace(evaluation, languages=("en", "fa")))
    cells = [attributes for tag, attributes in Page(html).elements if tag == "td" and "dir" in attributes]
    assert cells == [{"lang": "en", "dir": "ltr"}, *[{"lang": "fa", "dir": "rtl"}] * 3] * 3
    assert "nrefs:1|bs:50|seed:12345" in page.text


def test_the_table_fits_the_terminal() -> None:
    record = small_evaluation(known=[1]).record
    lines = terminal_report(record, 80).split("\n")
    assert all(len(line) <= 80 for line in lines if "nrefs" not in line)
    assert ["BLEU", "↑", "TER", "↓"] in [line.split() for line in lines]


def test_scores_by_length_are_a_table_in_every_report() -> None:
    without = small_evaluation(known=[1])
    by_length = made_evaluation("base", "their|s<b>").by_length
    evaluation = replace(without, record=without.record.model_copy(update={"by_length": by_length}))
    rows = [["", "", "1-4", "5-8"], ["sentences", "", "100", "100"]]
    rows += [["BLEU ↑", "base", "41.0 (41.1 ± 1.5)", "45.0 (45.1 ± 1.5)"]]
    rows += [["BLEU ↑", "their|s<b>", "42.0 (42.1 ± 1.5)", "46.0 (46.1 ± 1.5)"]]
    shown = [line.split() for line in terminal_report(evaluation.record, 80).split("\n")]
    assert all(" ".join(row).split() in shown for row in rows)
    assert [row for row in rows_of(evaluation_page(evaluation)) if row in rows] == rows
    for text in (terminal_report(without.record, 80), evaluation_page(without)):
        assert "source length" not in text


def test_the_stress_test_is_a_figure_and_a_table_in_every_report() -> None:
    without, rows = small_evaluation(known=[1]), made_evaluation("their|s<b>").stress
    evaluation = replace(without, record=without.record.model_copy(update={"stress": rows}))
    cells = [["plain", "100", "40.0", "100.0", "", "0", "0"], ["url", "100", "20.0", "50.0", "75.0", "3", "1"]]
    html = evaluation_page(evaluation)
    assert [row for row in rows_of(html) if row in cells] == cells
    [figure] = re.findall("<svg.*?</svg>", html, re.DOTALL)
    assert {"plain", "url", "100", "50"} <= {text.strip() for text in Page(figure).texts}
    assert ["url", "7", "12.5", "a dogein Hundeine Katze"] in rows_of(re.sub(r"</?p[^>]*>|\n", "", html))
    shown = [line.split() for line in terminal_report(evaluation.record, 80).split("\n")]
    assert all([cell for cell in row if cell] in shown for row in cells)
    assert ["url", "7", "12.5", "source", "a", "dog"] in shown
    for text in (terminal_report(without.record, 80), evaluation_page(without)):
        assert "Stress test" not in text


def test_a_set_that_was_all_trained_on_has_no_other_scores() -> None:
    evaluation = small_evaluation(known=[1, 2, 3])
    for text in (terminal_report(evaluation.record, 160), evaluation_page(evaluation)):
        assert "Nothing is left to score without them." in " ".join(text.split())
        assert "not trained on" not in text
