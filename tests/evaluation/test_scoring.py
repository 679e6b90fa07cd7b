"""Scores against sacrebleu's own command line; overlap with training against a search by hand; pages that escape."""

import html.parser
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import small_pairs, write_pickle
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.config.schema import Config
from nmt.data.dataset import dataset_of_run
from nmt.data.prepare import prepare
from nmt.data.sources.text_file import TextFile
from nmt.errors import ConflictError, DataError, NmtError, NotFoundError
from nmt.evaluation.overlap import OverlapReport, compare_with_training, find_overlap
from nmt.evaluation.reports.page import check_format, markdown, page
from nmt.evaluation.reports.text import Texts, describe
from nmt.evaluation.scoring import (
    METRICS,
    Evaluation,
    Example,
    Examples,
    SetReport,
    System,
    check_resamples,
    pick_examples,
    score,
    sentence_scores,
)
from nmt.evaluation.test_set import set_of_files, set_of_runs
from nmt.runs.directory import Run, create_run

REFERENCE = ["Der Hund läuft schnell.", "Ich mag keine Äpfel.", "Sie ist heute nicht da.", "Gut gemacht!", "Ja."]
OTHER_REFERENCE = ["Der Hund rennt.", "Äpfel mag ich nicht.", "Heute fehlt sie.", "Sehr gut!", "Doch."]
FIRST = ["Der Hund läuft.", "Ich mag Äpfel nicht.", "Sie ist nicht da.  ", "Gut!", ""]
SECOND = ["Ein Hund geht schnell", "Ich Äpfel.", "Sie ist heute nicht da.", "Gut gemacht!", "Ja."]
MANY = 8


def files(folder: Path, **texts: list[str]) -> dict[str, str]:
    """Write each list of lines to a file and return the paths by name."""
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return {name: str(folder / name) for name in texts}


def sacrebleu(*arguments: str) -> str:
    command = [sys.executable, "-m", "sacrebleu", *arguments, "-m", "bleu", "chrf", "ter", "-w", "4"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


# --- scores


@pytest.mark.parametrize("references", [[REFERENCE], [REFERENCE, OTHER_REFERENCE]])
def test_scores_and_signatures_are_those_of_the_command_sacrebleu(references: list[list[str]], tmp_path: Path) -> None:
    paths = files(tmp_path, hypothesis=FIRST, **{f"r{n}": lines for n, lines in enumerate(references)})
    files_of_references = [paths[f"r{n}"] for n in range(len(references))]
    expected = json.loads(sacrebleu(*files_of_references, "-i", paths["hypothesis"], "-f", "json"))
    found = score({"a": FIRST}, references, ["bleu", "chrf", "ter"], "13a", 0)
    assert found.sentences == 5
    for one in expected:
        assert found.systems["a"][one["name"]].score == pytest.approx(one["score"], abs=5e-5)
        assert found.signatures[one["name"]] == one["signature"]
        assert found.systems["a"][one["name"]].ci is None


def test_intervals_and_p_values_are_those_of_the_command_sacrebleu(tmp_path: Path) -> None:
    paths = files(tmp_path, reference=REFERENCE * MANY, first=FIRST * MANY, second=SECOND * MANY)
    systems = ["-i", paths["first"], paths["second"]]
    table = sacrebleu(paths["reference"], *systems, "--paired-bs", "--paired-bs-n", "200", "-f", "latex")
    expected = re.findall(r"([\d.]+) \(([\d.]+) ± ([\d.]+)\)(?: \(p = ([\d.]+)\))?", table)
    found = score({"a": FIRST * MANY, "b": SECOND * MANY}, [REFERENCE * MANY], ["bleu", "chrf", "ter"], "13a", 200)
    assert "bs:200|seed:12345" in found.signatures["BLEU"]
    assert all(signature in table for signature in found.signatures.values())
    ours = [one for name in ("a", "b") for one in found.systems[name].values()]
    for one, (value, mean, ci, p_value) in zip(ours, expected, strict=True):
        assert [f"{figure:.4f}" for figure in (one.score, one.mean, one.ci)] == [value, mean, ci]
        assert ("" if one.p_value is None else f"{one.p_value:.4f}") == p_value
    assert [one.p_value is None for one in ours] == [True] * 3 + [False] * 3


def test_equal_systems_do_not_differ_and_one_sentence_is_not_tested() -> None:
    same = score({"a": FIRST, "b": FIRST}, [REFERENCE], list(METRICS), "13a", 100)
    assert {one.p_value for one in same.systems["b"].values()} == {1.0}
    alone = score({"a": FIRST[:1], "b": SECOND[:1]}, [REFERENCE[:1]], list(METRICS), "13a", 100)
    assert {(one.ci, one.p_value) for name in "ab" for one in alone.systems[name].values()} == {(None, None)}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12)), min_size=1, max_size=4))
def test_any_text_can_be_scored(rows: list[tuple[str, str, str]]) -> None:
    first, second, references = map(list, zip(*rows, strict=True))
    found = score({"a": first, "b": second}, [references], list(METRICS), "13a", 20)
    for one in (one for by_metric in found.systems.values() for one in by_metric.values()):
        assert one.score >= 0
        assert one.p_value is None or 0 < one.p_value <= 1


def test_bootstrap_that_needs_too_much_memory_is_refused_with_what_fits() -> None:
    check_resamples(1000, 30_000)
    with pytest.raises(NmtError, match=r"--resamples \d+ or fewer") as refused:
        check_resamples(1000, 1_000_000)
    fits = int(re.search(r"--resamples (\d+)", str(refused.value))[1])  # type: ignore[index]
    check_resamples(fits, 1_000_000)
    with pytest.raises(NmtError):
        check_resamples(fits + 1, 1_000_000)


@given(st.lists(st.sampled_from([0.0, 10.0, 50.0, 100.0]), min_size=1, max_size=12), st.integers(0, 7))
def test_examples_are_the_extremes_and_none_is_shown_twice(scores: list[float], count: int) -> None:
    texts = [f"{n}" * (1 + n % 3) for n in range(len(scores))]
    found = pick_examples(texts, texts, [texts], np.array(scores), count)
    worst, best = ([one.number for one in side] for side in (found.worst, found.best))
    assert not set(worst) & set(best)
    assert len(worst) + len(best) == min(2 * count, len(scores))
    rest = [scores[n] for n in range(len(scores)) if n + 1 not in {*worst, *best}]
    assert all(one.chrf <= other for one in found.worst for other in rest)
    assert all(one.chrf >= other for one in found.best for other in rest)
    assert all(texts[one.number - 1] == one.translation == one.source == one.references[0] for one in found.worst)


def test_the_best_reference_of_a_sentence_counts() -> None:
    assert sentence_scores(OTHER_REFERENCE, [REFERENCE, OTHER_REFERENCE]).tolist() == [100.0] * 5


# --- test sets


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    paths = files(tmp_path, a=["1", "2"], b=["1", "2", ""], empty=[])
    assert len(set_of_files(paths["a"], [paths["a"]])) == 2
    with pytest.raises(DataError, match=r"a has 2, .*b has 3"):
        set_of_files(None, [paths["a"], paths["b"]])
    with pytest.raises(DataError, match=r"a has 2, .*b has 3"):
        set_of_files(None, [paths["a"]]).check(TextFile(tmp_path / "b"), ["1", "2", ""])
    with pytest.raises(DataError, match="empty"):
        set_of_files(None, [paths["empty"]])
    (tmp_path / "latin").write_bytes(b"ok\nh\xe4\n")
    with pytest.raises(DataError, match=r"latin, line 2 .*0xe4"):
        set_of_files(None, [str(tmp_path / "latin")])


def test_runs_are_scored_on_the_test_split_that_they_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = write_pickle(tmp_path / "pairs.pkl", small_pairs())
    one, _ = prepare(corpus, DataConfig(), "one")
    again, _ = prepare(corpus, DataConfig(min_count=2), "again")
    other, _ = prepare(corpus, DataConfig(seed=5), "other")
    found = set_of_runs({"a": one.manifest, "b": again.manifest})
    assert found.sources == one.text("test", "source").read_text().splitlines()
    assert found.references == [one.text("test", "target").read_text().splitlines()]
    with pytest.raises(ConflictError, match="test split of 'b'"):
        set_of_runs({"a": one.manifest, "b": other.manifest})
    with pytest.raises(ConflictError, match="may have been trained on"):
        dataset_of_run("a", other.manifest.model_copy(update={"settings": one.manifest.settings}))
    one.text("test", "source").write_text("changed\n")
    with pytest.raises(DataError, match=r"test\.source\.txt is missing or has changed"):
        set_of_runs({"a": one.manifest})
    (one.folder / "manifest.json").unlink()
    with pytest.raises(NotFoundError, match=r"nmt prepare pairs\.pkl --name one.*--source FILE --reference FILE"):
        set_of_runs({"a": one.manifest})


# --- overlap


@pytest.mark.parametrize("tokenizer", ["word", "char", "subword"])
def test_no_source_of_a_split_by_source_was_trained_on_and_those_of_a_random_split_are_found(
    tokenizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nmt.evaluation.overlap.CHUNK", 7)
    pairs = [(source, f"{target} {n}") for source, target in small_pairs(100) for n in ("eins", "zwei", "drei")]
    corpus = write_pickle(tmp_path / "pairs.pkl", pairs)
    for split, expected in (("by_source", 0), ("random", None)):
        config = DataConfig(split=split, tokenizer=tokenizer, vocabulary_size=None)
        dataset, _ = prepare(corpus, config, split)
        sources = dataset.text("test", "source").read_text().splitlines()
        found = find_overlap(sources, dataset)
        train, test = (dataset.split(name).source for name in ("train", "test"))
        by_hand = [any(np.array_equal(one, ids) for ids in map(train.__getitem__, range(len(train))))
                   for one in map(test.__getitem__, range(len(test)))]  # fmt: skip
        assert found.known.tolist() == by_hand
        assert found.known.sum() == dataset.manifest.splits["test"].sources_in_training
        assert found.known.any() == (expected is None)
        assert not found.undecided.any()


def test_what_the_model_cannot_tell_apart_is_said_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rare = [(f"seldom{'abcdefghijklmnopqrstuvwxyz'[n % 26]}{'abcdefghijklmnopqrstuvwxyz'[n // 26]} one", "eins")
            for n in range(60)]  # fmt: skip
    corpus = write_pickle(tmp_path / "pairs.pkl", [*small_pairs(), *rare])
    dataset, _ = prepare(corpus, DataConfig(min_count=2), "rare")
    train = dataset.split("train").source
    tokenizer = dataset.tokenizers()[0]
    known = tokenizer.decode(next(train[n] for n in range(len(train)) if 1 not in train[n]))
    found = find_overlap([known.upper() + "!", "neverseen one", "", "one neverseen never"], dataset)
    assert found.known.tolist() == [True, False, False, False]
    assert found.undecided.tolist() == [False, True, False, False]


def test_what_a_run_started_from_was_trained_on_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def a_run(name: str, pairs: list[tuple[str, str]], start_from: str | None) -> tuple[Run, str]:
        """Return a run, and a source that it was trained on."""
        dataset, _ = prepare(write_pickle(tmp_path / f"{name}.pkl", pairs), DataConfig(min_count=1), f"{name}-data")
        config = Config.model_validate({"training": {"start_from": start_from}})
        held_out = {line for split in ("validation", "test") for line in dataset.text(split, "source").open()}
        seen = next(source for source, _ in pairs if f"{source}\n" not in held_out)
        return create_run(name, config, [dataset.folder / "manifest.json", *dataset.tokenizer_files]), seen

    pairs = small_pairs(200)
    (_, first), (_, second), (run, third) = (
        a_run("one", pairs[:60], None), a_run("two", pairs[60:120], "one:best"), a_run("three", pairs[120:], "two"),
    )  # fmt: skip
    sources = [third, "nobody said this", second, first]
    assert compare_with_training(sources, [run, run]) == OverlapReport(
        checked={"three-data": 1, "two-data": 1, "one-data": 1}, numbers=[1, 3, 4], unchecked=[],
        undecided={"three-data": 0, "two-data": 0, "one-data": 0},
    )  # fmt: skip
    Path("data/two-data/manifest.json").unlink()
    without = compare_with_training(sources, [run])
    assert (list(without.checked), without.numbers) == (["three-data", "one-data"], [1, 4])
    assert (
        len(without.unchecked) == 1
        and "'two-data', which run 'two' was trained on, is not in data/" in without.unchecked[0]
    )
    Path("checkpoints/one").rename("elsewhere")
    a_run("one-again", pairs[:60], None)
    assert (
        "run 'two' started from the weights of a run 'one' that is not in checkpoints/ any more"
        in (compare_with_training(sources, [run, run]).unchecked[1])
    )
    a_run("one", pairs[:60], "three")  # from its own offspring: the one that these started from is gone
    assert "run 'one' started from the weights of a run 'three'" in compare_with_training(sources, [run]).unchecked[1]


# --- pages

NASTY = ["a | b <script>alert(1)</script> & `c` \\| *d* _e_ [f](g)", "", "\u2028x\u00a0y"]


def small_evaluation(*, known: list[int], resamples: int = 50) -> tuple[Evaluation, Texts]:
    translations = {"base": NASTY, "their|s<b>": ["x", "y", "z"]}
    references = [NASTY]
    systems = [System(name="base", run="base", epoch=3), System(name="their|s<b>", hypothesis="their|s<b>")]
    chrf = {name: sentence_scores(lines, references) for name, lines in translations.items()}
    left = [place for place in range(3) if place + 1 not in known]
    without = None
    if known and left:
        rest = {name: [lines[n] for n in left] for name, lines in translations.items()}
        without = score(rest, [[NASTY[n] for n in left]], ["bleu", "ter"], "13a", resamples)
    evaluation = Evaluation(
        nmt="1",
        test_set=SetReport(dataset=None, source="a|b", references=["c"], sentences=3, sha256={}),
        resamples=resamples,
        systems=systems,
        scores=score(translations, references, ["bleu", "ter"], "13a", resamples),
        overlap=OverlapReport(checked={"d": len(known)}, undecided={"d": 0}, unchecked=[], numbers=known),
        without_overlap=without,
        examples={name: pick_examples(lines, NASTY, references, chrf[name], 2) for name, lines in translations.items()},
    )
    return evaluation, Texts(NASTY, references, translations, chrf)


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
    evaluation, texts = small_evaluation(known=[1])
    text = page(evaluation, texts)
    seen = Page()
    seen.feed(text)
    assert not seen.open
    assert not seen.tags & {"script", "b", "link", "img"}
    assert not seen.fetched
    assert "url(" not in text and "@import" not in text
    assert "prefers-color-scheme: dark" in text
    assert ["1†", NASTY[0], NASTY[0], NASTY[0], "100.0", "x", f"{texts.chrf['their|s<b>'][0]:.1f}"] in seen.rows
    assert "WARNING: 1 of 3 source sentences (33.3%)" in text


def test_markdown_keeps_its_columns_whatever_the_text() -> None:
    evaluation, texts = small_evaluation(known=[1])
    tables = [block.split("\n") for block in markdown(evaluation, texts).split("\n\n") if block.startswith("|")]
    assert len(tables) == 7  # scores twice, worst and best of two systems, all
    for rows in tables:
        assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows}) == 1
    assert "<script" not in re.sub(r"\\<", "", "\n".join(map("\n".join, tables)))
    assert "nrefs:1|bs:50|seed:12345" in markdown(evaluation, texts)


@pytest.mark.parametrize("width", [80, 160])
def test_the_table_fits_the_terminal(width: int) -> None:
    evaluation, _ = small_evaluation(known=[1])
    lines = describe(evaluation, width).split("\n")
    assert all(len(line) <= width for line in lines if "nrefs" not in line)
    table = [line for line in lines if line.startswith(("base  ", "their|s<b>  ")) and "±" in line]
    assert len(table) == 4
    assert [len(line) for line in table[::2]] == [len(line) for line in table[1::2]]  # right-aligned


def test_a_set_that_was_all_trained_on_has_no_other_scores() -> None:
    evaluation, texts = small_evaluation(known=[1, 2, 3])
    for text in (describe(evaluation, 160), markdown(evaluation, texts), page(evaluation, texts)):
        assert "Nothing is left to score without them." in " ".join(text.split())
        assert "not trained on" not in text


def test_a_page_says_what_its_p_values_are_of() -> None:
    evaluation, _ = small_evaluation(known=[])
    assert "of the difference from base, two-sided" in describe(evaluation, 160)
    evaluation, _ = small_evaluation(known=[], resamples=0)
    assert "two-sided" not in describe(evaluation, 160)


def test_a_report_is_markdown_or_html() -> None:
    with pytest.raises(NmtError, match=r"\.md or \.html; received '\.pdf'"):
        check_format(".pdf")


def test_examples_need_no_source() -> None:
    found = pick_examples(["a"], None, [["b"]], np.array([0.0]), 1)
    example = Example(number=1, chrf=0.0, source=None, references=["b"], translation="a")
    assert found == Examples(worst=[example], best=[])
