"""``nmt report``: numbers of the metrics file in the page, hostile texts, no foreign address, size."""

import json
import re
import sys
from pathlib import Path

import pytest
from report_runs import Page, attention_map, evaluation, made_run, sampled, unpack
from typer.testing import CliRunner

from nmt.cli.app import app
from nmt.errors import ConflictError, NmtError
from nmt.evaluation.result import EvaluationRecord
from nmt.reporting.attention import NO_ATTENTION, AttentionReport
from nmt.reporting.facts import read_facts
from nmt.reporting.page import render
from nmt.reporting.report import default_path, write_report
from nmt.reporting.scores import NO_SCORES, ScoreReport
from nmt.runs.directory import RUNS, Run
from nmt.runs.metrics import EpochMetrics, StepMetrics
from nmt.storage.json_file import write_json

HOSTILE = "<img src=x onerror=alert(1)> & </script><script>alert(2)</script> \"'"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    unpack(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def page_of(*runs: Run, scores: EvaluationRecord | None = None, attention: AttentionReport = NO_ATTENTION) -> Page:
    report = ScoreReport([scores], []) if scores else NO_SCORES
    return Page(render([read_facts(run) for run in runs], report, attention, {}))


def column(page: Page, kind: str, name: str, run: int = 0) -> list[float]:
    [values] = [
        track["y"][name] for track in page.data["tracks"]
        if (track["run"], track["kind"]) == (run, kind) and name in track["y"]
    ]  # fmt: skip
    return list(values)


def test_the_page_has_the_numbers_of_the_metrics_file() -> None:
    runs = [made_run("first"), made_run("second", 2)]
    page = page_of(*runs)
    for number, run in enumerate(runs):
        lines = [json.loads(line) for line in run.metrics_path.read_text().splitlines()]
        steps, epochs = ([line for line in lines if line["kind"] == kind] for kind in ("step", "epoch"))
        for name in ("loss", "accuracy", "learning_rate"):
            assert column(page, "training", name, number) == [line[name] for line in steps]
        for name in ("loss", "accuracy", "bleu", "chrf"):
            assert column(page, "validation", name, number) == [line[f"validation_{name}"] for line in epochs]
    [training] = [track for track in page.data["tracks"] if (track["run"], track["kind"]) == (0, "training")]
    assert training["x"]["step"] == [10, 20, 30, 40, 50, 60]
    assert training["x"]["epoch"] == [0.5, 1, 1.5, 2, 2.5, 3]
    assert training["x"]["tokens"] == [500, 1000, 1500, 2000, 2500, 3000]
    assert training["x"]["minutes"] == pytest.approx([seconds / 60 for seconds in (2.5, 5, 7.5, 10, 12.5, 15)])
    assert training["y"]["tokens_per_second"] == [200.0] * 6


def test_a_run_of_an_earlier_version_has_a_page() -> None:
    run = Run(RUNS / "old")
    page = page_of(run)
    epochs = [record for record in run.metrics() if isinstance(record, EpochMetrics)]
    assert column(page, "validation", "loss") == [record.validation_loss for record in epochs]
    steps = [record for record in run.metrics() if isinstance(record, StepMetrics)]
    assert column(page, "training", "loss") == [record.loss for record in steps]
    assert None not in [value for track in page.data["tracks"] for unit in track["x"].values() for value in unit]


@pytest.mark.parametrize("epochs", [0, 1, 3])
def test_every_page_is_well_formed_and_accessible(epochs: int) -> None:
    run = made_run("first", epochs)
    page = page_of(run, scores=evaluation("first"), attention=AttentionReport([attention_map()], ["no more"]))
    assert not page.open
    assert page.headings[0] == 1 and page.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    for tag, attributes in page.elements:
        if tag == "svg":
            assert attributes.get("aria-hidden") or attributes.get("aria-label")
        assert not {name for name in attributes if name.startswith("on") or name == "style"}
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [str(attributes["href"])[1:] for tag, attributes in page.elements if tag == "a"]
    assert set(targets) <= set(ids)


def test_the_page_names_no_address_and_forbids_all() -> None:
    page = page_of(made_run("first"), scores=evaluation("first"), attention=AttentionReport([attention_map()], []))
    assert set(re.findall(r"\w+://[^\s\"'<>]*", page.html)) <= {"http://www.w3.org/2000/svg"}
    for tag, attributes in page.elements:
        assert "src" not in attributes
        assert str(attributes.get("href", "#")).startswith("#") or attributes["href"] == "data:,"
        assert tag not in ("iframe", "object", "embed", "form", "base")
    [policy] = [value["content"] for tag, value in page.elements if "Content-Security-Policy" in value.values()]
    assert str(policy).startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in str(policy) and "*" not in str(policy)
    assert "url(" not in page.html and "@import" not in page.html


def test_hostile_texts_are_shown_as_text(project: Path) -> None:
    run = made_run("first")
    run.append_metrics(sampled(9, 900, HOSTILE, HOSTILE, HOSTILE))
    manifest = json.loads(run.dataset_path.read_text())
    manifest["dropped"] = {HOSTILE: 3}
    manifest["report"] |= {"places": {HOSTILE: [HOSTILE]}}
    manifest["corpus"]["name"] = HOSTILE
    manifest["settings"]["dataset"] = "safe"
    run.dataset_path.write_text(json.dumps(manifest))
    hostile_folder = project / RUNS / "<img src=x onerror=alert(1)>"  # made by hand: no command makes such a run
    run.folder.rename(hostile_folder)
    maps = AttentionReport([attention_map(source="<b>a</b> </script> &amp;", target="<script> </svg>")], [HOSTILE])
    page = page_of(Run(hostile_folder), scores=evaluation("<i>x</i>"), attention=maps)
    assert not page.open
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"img", "i", "b"}
    assert len([tag for tag, _ in page.elements if tag == "script"]) == 2
    assert page.text.count("<img src=x onerror=alert(1)>") >= 6
    assert page.data["runs"] == ["<img src=x onerror=alert(1)>"]
    assert page.data["maps"][0]["source"] == ["<b>a</b>", "</script>", "&amp;"]


def test_a_long_run_has_a_small_page() -> None:
    run = made_run("first", 2)
    record = run.metrics()[0]
    lines = [record.model_copy(update={"step": step, "epoch": 3}).model_dump_json() for step in range(100, 20_100, 5)]
    with run.metrics_path.open("a") as file:
        file.write("\n".join(lines) + "\n")
    maps = [attention_map(6, 8, " ".join(["word"] * 40), " ".join(["wort"] * 40)) for _ in range(3)]
    page = page_of(run, scores=evaluation("first"), attention=AttentionReport(maps, []))
    assert len(page.html.encode()) < 1_000_000
    steps = next(track["x"]["step"] for track in page.data["tracks"] if track["kind"] == "training")
    assert len(steps) < 1100
    assert steps[-1] == 20_095
    assert "records, one is drawn" in page.text


def test_scores_stand_with_signatures_and_significance() -> None:
    runs = [made_run("first"), made_run("second", better=0.25)]
    page = page_of(*runs, scores=evaluation("first", "second", p_value=0.004))
    for number in ("nrefs:1|case:mixed", "p 0.004*", "(30.1 ± 1.5)", "31.0 ± 1.5", "significant (p = 0.004)"):
        assert number in page.text
    assert "chance (p = 0.200)" in page_of(*runs, scores=evaluation("first", "second", p_value=0.2)).text
    alone = page_of(runs[0], scores=evaluation("first")).text
    assert "30.0%, in epoch 3" in alone and "BLEU 30.0 ± 1.5" in alone
    assert re.search("second .* 55.0% in epoch 3, before first with 30.0% in epoch 3", page_of(*runs).text)


def test_settings_that_differ_are_marked() -> None:
    runs = [made_run("first", batch_size=64, clip_norm=0.5), made_run("second", 2)]
    alone = page_of(runs[0]).html
    changed = re.findall(r'<div class="changed"><dt[^>]*><code>(\w+)</code>.*?>([^<>]+)</code>', alone)
    assert ("clip_norm", "0.5") in changed and "batch_size" not in dict(changed)
    both = page_of(*runs)
    assert re.search(
        r"training.clip_norm</code></th><td><code class=\"value\">0.5</code></td><td><code[^>]*>null", both.html
    )
    assert "training.seed" not in both.text


def test_changes_of_a_sample_and_ancestors_are_shown() -> None:
    html = page_of(made_run("child", 2, start_from="old:2")).html
    assert re.search(r"ein hund läuft <ins>läuft</ins> hier", html)
    assert "from old, weights 2, trained on old" in " ".join(re.sub(r"<[^>]*>", "", html).split())
    assert "no longer in checkpoints/" in page_of(made_run("orphan", 1, start_from="gone:best")).text


# --- the file


def test_the_command_writes_a_page_without_tensorflow(project: Path) -> None:
    loaded = set(sys.modules)
    made_run("first")
    done = CliRunner().invoke(app, ["report", "--run", "first", "--no-scores", "--no-attention"])
    assert done.exit_code == 0
    assert done.stdout == "checkpoints/first/report.html\n"
    assert not {name for name in set(sys.modules) - loaded if name.partition(".")[0] in ("tensorflow", "keras")}
    assert (project / "checkpoints/first/report.html").read_text().endswith("</html>\n")
    assert "Traceback" not in done.output


def test_an_earlier_report_is_replaced_and_nothing_else() -> None:
    run = made_run("first")
    path = default_path([run])
    for _ in range(2):
        write_report([run], path, scored=False, attention=False)
    other = Path("mine.html")
    other.write_text("<html>mine</html>")
    with pytest.raises(ConflictError, match="is no report of nmt"):
        write_report([run], other, scored=False, attention=False)
    assert other.read_text() == "<html>mine</html>"
    write_report([run], other, scored=False, attention=False, overwrite=True)
    assert Page(other.read_text()).data["runs"] == ["first"]
    assert default_path([run, run]).name == "comparison.html"


def test_scores_come_from_a_file() -> None:
    run = made_run("first")
    write_json(Path("scores.json"), evaluation("first").model_dump(mode="json"))
    write_report([run], Path("page.html"), scores_of=Path("scores.json"), attention=False)
    assert "30.0" in Page(Path("page.html").read_text()).text
    write_json(Path("scores.json"), evaluation("third").model_dump(mode="json"))
    with pytest.raises(NmtError, match="scores third; the report is of first"):
        write_report([run], Path("page.html"), scores_of=Path("scores.json"), attention=False)


def test_a_run_that_cannot_be_scored_does_not_stop_the_report(project: Path) -> None:
    (project / "data" / "old" / "test.source.txt").unlink()
    problems: list[str] = []
    write_report([Run(RUNS / "old")], Path("page.html"), attention=False, warn=problems.append)
    page = Page(Path("page.html").read_text())
    assert len(problems) == 1 and "old" in problems[0]
    assert "Not scored: old: " in page.text
