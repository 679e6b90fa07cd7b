"""Reports of an evaluation: every sentence is shown as it is, in HTML, in Markdown and in the terminal."""

import html
import html.parser
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markdown_it import MarkdownIt

from nmt.evaluation.by_length import LengthBucket
from nmt.evaluation.overlap import TrainingOverlap
from nmt.evaluation.reports.environment import html_environment, markdown_environment
from nmt.evaluation.reports.page import html_report, markdown_report
from nmt.evaluation.reports.text import terminal_report
from nmt.evaluation.result import (
    Evaluation,
    EvaluationRecord,
    EvaluationSetRecord,
    EvaluationTexts,
    System,
    pick_examples,
)
from nmt.evaluation.scoring import score_subset, score_systems, sentence_scores

NASTY = ["a | b <script>alert(1)</script> & `c` \\| *d* _e_ [f](g)", "", "\u2028x\u00a0y"]


def small_evaluation(*, known: list[int]) -> Evaluation:
    translations = {"base": NASTY, "their|s<b>": ["x", "y", "z"]}
    references = [NASTY]
    systems = [System(name="base", run="base", epoch=3), System(name="their|s<b>", hypothesis="their|s<b>")]
    chrf = {name: sentence_scores(lines, references) for name, lines in translations.items()}
    unseen = [index for index in range(3) if index + 1 not in known]
    without = None
    if known and unseen:
        unseen_translations = {name: [lines[n] for n in unseen] for name, lines in translations.items()}
        without = score_systems(unseen_translations, [[NASTY[n] for n in unseen]], ["bleu", "ter"], "13a", 50)
    record = EvaluationRecord(
        nmt="1",
        test_set=EvaluationSetRecord(dataset=None, source="a|b", references=["c"], sentences=3, sha256={}),
        resamples=50,
        systems=systems,
        scores=score_systems(translations, references, ["bleu", "ter"], "13a", 50),
        overlap=TrainingOverlap(checked={"d": len(known)}, undecided={"d": 0}, unchecked=[], numbers=known),
        without_overlap=without,
        examples={name: pick_examples(lines, NASTY, references, chrf[name], 2) for name, lines in translations.items()},
    )
    return Evaluation(record, EvaluationTexts(NASTY, references, translations, chrf))


class Page(html.parser.HTMLParser):
    """Collects what a browser would show and fetch, and checks that elements are nested."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.fetched: list[str] = []
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.fetched += [str(value) for name, value in attrs if name in {"src", "href"} and str(value)[0] != "#"]
        if tag not in {"meta", "br"}:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def test_the_page_shows_every_text_as_it_is_and_fetches_nothing() -> None:
    evaluation = small_evaluation(known=[1])
    text = html_report(evaluation)
    seen = Page()
    seen.feed(text)
    assert not seen.open
    assert not seen.tags & {"script", "b", "link", "img"}
    assert not seen.fetched
    assert "url(" not in text and "@import" not in text
    assert "prefers-color-scheme: dark" in text
    assert ["1†", *[NASTY[0]] * 3, "100.0", "x", f"{evaluation.texts.chrf['their|s<b>'][0]:.1f}"] in seen.rows
    assert "WARNING: 1 of 3 source sentences (33.3%)" in text


def test_markdown_keeps_its_columns_whatever_the_text() -> None:
    evaluation = small_evaluation(known=[1])
    tables = [block.split("\n") for block in markdown_report(evaluation).split("\n\n") if block.startswith("|")]
    assert len(tables) == 7  # scores twice, worst and best of two systems, all
    for rows in tables:
        assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows}) == 1
    assert "<script" not in re.sub(r"\\<", "", "\n".join(map("\n".join, tables)))
    assert "nrefs:1|bs:50|seed:12345" in markdown_report(evaluation)


def test_the_table_fits_the_terminal() -> None:
    record = small_evaluation(known=[1]).record
    assert all(len(line) <= 80 for line in terminal_report(record, 80).split("\n") if "nrefs" not in line)


def with_lengths(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation with scores by source length: two buckets, of one and of two sentences."""
    texts = evaluation.texts
    buckets = [
        LengthBucket(
            shortest=shortest, longest=longest,
            scores=score_subset(chosen, texts.translations, texts.references, ["bleu", "chrf"], "13a", 0),
        )
        for shortest, longest, chosen in ((1, 1, [2]), (2, 12, [0, 1]))
    ]  # fmt: skip
    return Evaluation(evaluation.record.model_copy(update={"by_length": buckets}), texts)


def test_scores_by_length_are_a_table_in_every_report() -> None:
    without = small_evaluation(known=[1])
    evaluation = with_lengths(without)
    first, second = (bucket.scores.systems for bucket in evaluation.record.by_length)
    rows = [["", "", "1", "2-12"], ["sentences", "", "1", "2"]]
    rows += [
        [heading, system, f"{first[system][metric].score:.1f}", f"{second[system][metric].score:.1f}"]
        for heading, metric in (("BLEU ↑", "BLEU"), ("chrF2 ↑", "chrF2")) for system in ("base", "their|s<b>")
    ]  # fmt: skip
    shown = [line.split() for line in terminal_report(evaluation.record, 80).split("\n")]
    assert all(" ".join(row).split() in shown for row in rows)
    seen = Page()
    seen.feed(html_report(evaluation))
    assert not seen.open
    assert [row for row in seen.rows if row in rows] == rows
    tables = [block for block in markdown_report(evaluation).split("\n\n") if block.startswith("|")]
    [table] = [table for table in tables if "sentences" in table]
    shown = MarkdownIt("commonmark").enable("table").render(table)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in shown.split("</tr>")]
    assert [[html.unescape(cell) for cell in row] for row in cells if row] == rows
    for text in (terminal_report(without.record, 80), html_report(without), markdown_report(without)):
        assert "source length" not in text


def test_a_set_that_was_all_trained_on_has_no_other_scores() -> None:
    evaluation = small_evaluation(known=[1, 2, 3])
    for text in (terminal_report(evaluation.record, 160), markdown_report(evaluation), html_report(evaluation)):
        assert "Nothing is left to score without them." in " ".join(text.split())
        assert "not trained on" not in text


# --- environments

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]) | st.sampled_from("\n*_`[]()<>|~#-+.1&;!\\"))


@given(TEXTS)
def test_no_markdown_of_an_inserted_text_takes_effect(text: str) -> None:
    template = markdown_environment().from_string("- {{ text }}\n- x\n\n| a | b |\n|---|---|\n| {{ text }} | y |\n")
    shown = MarkdownIt("commonmark").enable("table").render(template.render(text=text))
    literal = html.escape(" ".join(text.split())).replace("&#x27;", "'")
    assert f"<li>{literal}</li>\n<li>x</li>" in shown
    assert f"<td>{literal}</td>\n<td>y</td>" in shown


def test_markup_takes_effect_only_where_a_template_says_so_and_a_misspelled_name_is_an_error() -> None:
    template = markdown_environment().from_string("{{ text }} {{ text | markup }}")
    assert template.render(text="*a*") == r"\*a\* *a*"
    assert html_environment().from_string("{{ text }}").render(text="<b>") == "&lt;b&gt;"
    with pytest.raises(UndefinedError):
        html_environment().from_string("{{ titel }}").render(title="x")
