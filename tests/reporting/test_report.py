"""``nmt report``: numbers from the metrics file, hostile texts, no external addresses, and the size of the page."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import unpack
from report_runs import Page, attention_map, evaluation, made_run, sampled
from typer.testing import CliRunner

from nmt.cli.app import app
from nmt.plotting.comparison import METRICS
from nmt.reporting.facts import RunFacts, changes
from nmt.reporting.page import run_page
from nmt.reporting.report import default_path, write_report
from nmt.runs.directory import RUNS, Run
from nmt.runs.metrics import EpochMetrics, StepValidation

HOSTILE = "<img src=x onerror=alert(1)> & </script><script>alert(2)</script> \"'"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    unpack(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def page_of(*runs: Run, **parts: Any) -> Page:
    return Page(run_page([RunFacts(run) for run in runs], **parts))


def titles(page: Page) -> list[str]:
    return re.findall(r"<figcaption><h3>([^<]*)</h3></figcaption><svg", page.html)


def test_the_page_has_the_numbers_of_the_metrics_file() -> None:
    runs = [made_run("first"), made_run("second", 2)]
    page = page_of(*runs)
    for run in runs:
        for line in map(json.loads, run.metrics_path.read_text().splitlines()):
            if line["kind"] == "epoch":
                row = f"{run.name} {line['epoch']} {line['step']} 5.0 {line['train_loss']:.3f} "
                row += f"{line['train_accuracy']:.3f} {line['peak_memory']:.2f} "
                row += f"{line['validation_loss']:.3f} {line['validation_accuracy']:.3f} "
                row += f"{line['validation_bleu']:.1f} {line['validation_chrf']:.1f} 200"
                assert row in page.text
    for name, loss, accuracy in (("first", 1.4, 0.3), ("second", 2.1, 0.2)):  # beside the curves: their best values
        assert {f"{name}: {loss:.4g}", f"{name}: {accuracy:.4g}"} <= {text.strip() for text in page.texts}
    known = [metric.heading for name, metric in METRICS.items() if name != "gradient-norm"]  # no step needs it
    assert titles(page) == [f"{heading} by step" for heading in known]


def test_curves_are_by_epoch_unless_a_run_has_one_or_was_validated_within_it() -> None:
    run = made_run("first")
    by_epoch = titles(page_of(run))
    assert by_epoch[:2] == ["Loss of training and validation", "Accuracy of training and validation"]
    assert by_epoch[-1] == "Speed of training"
    fields = {"step": 65, "validation_loss": 1.0, "validation_accuracy": 0.5}
    run.append_metrics(StepValidation(epoch=4, **fields))
    page = page_of(run)
    assert titles(page)[:2] == ["Validation loss by step", "Validation accuracy by step"]
    assert "accuracy, step 65, loss 1.000" in page.text
    assert "Training loss by step" in titles(page_of(made_run("short", 1)))
    assert not titles(page_of(made_run("new", 0)))


def test_a_run_of_an_earlier_version_has_a_page() -> None:
    run = Run(RUNS / "old")
    page = page_of(run)
    for record in run.metrics():
        if isinstance(record, EpochMetrics):
            assert f"old {record.epoch} {record.step:,} " in page.text and f"{record.validation_loss:.3f}" in page.text
    assert "Learning rate" in " ".join(titles(page))


@pytest.mark.parametrize("epochs", [0, 1, 3])
def test_every_page_is_well_formed_and_accessible_and_fetches_nothing(epochs: int) -> None:
    run = made_run("first", epochs)
    page = page_of(run, records=[evaluation("first")], maps=[attention_map()], notes=["no more"])
    assert not page.open
    assert page.headings[0] == 1 and page.headings.count(1) == 1
    assert all(after - before <= 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    targets = list[str]()
    for tag, attributes in page.elements:
        assert tag not in ("iframe", "object", "embed", "form", "base", "script")
        assert tag != "svg" or attributes["aria-label"]
        colors = [attributes.get("fill") or "", attributes.get("stroke") or ""]
        assert not any(color.startswith("#") for color in colors), "a figure is light or dark as the page is"
        assert not {name for name in attributes if name.startswith("on") or name in ("style", "src")}
        targets += [str(value) for name, value in attributes.items() if name.endswith("href")]
    ids = [str(attributes["id"]) for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {target for target in targets if not target.startswith("data:")} <= {f"#{id_}" for id_ in ids}
    assert "://" not in page.html and not re.search(r"url\((?!#)|@import", page.html)
    assert [tag for tag, _ in page.elements].count("style") == 1
    [policy] = [value["content"] for tag, value in page.elements if "Content-Security-Policy" in value.values()]
    assert str(policy).startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in str(policy) and "*" not in str(policy)


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
    page = page_of(
        Run(hostile_folder), made_run("other"), records=[evaluation("<i>x</i>", 'style="x: y" $a$')],
        maps=[attention_map("<b>a</b> </script> &amp;", '<script> </svg> style="x:y" $x$')], notes=[HOSTILE],
        problems=[HOSTILE], machine={"device": HOSTILE},
    )  # fmt: skip
    assert not page.open
    assert not {tag for tag, _ in page.elements} & {"img", "i", "b", "script"}
    assert page.text.count(HOSTILE) >= 9
    assert page.text.count("<img src=x onerror=alert(1)>") >= 15  # in figures as well
    assert {"<b>a</b>", "</script>", "&amp;", "<script>", "</svg>", 'style="x:y"', "$x$", "<i>x</i>"} <= set(page.texts)


@pytest.mark.slow
def test_a_long_run_has_a_small_page() -> None:
    run = made_run("first", 2)
    record = run.metrics()[0]
    lines = [record.model_copy(update={"step": step, "epoch": 3}).model_dump_json() for step in range(100, 20_100, 5)]
    with run.metrics_path.open("a") as file:
        file.write("\n".join(lines) + "\n")
    maps = [attention_map(" ".join(["word"] * 40), " ".join(["wort"] * 40)) for _ in range(3)]
    page = page_of(run, made_run("second"), records=[evaluation("first")], maps=maps)
    assert len(page.html.encode()) < 1_000_000


def test_scores_stand_with_signatures_and_significance() -> None:
    runs = [made_run("first"), made_run("second", better=0.25)]
    page = page_of(*runs, records=[evaluation("first", "second", p_value=0.004)])
    for number in ("nrefs:1|case:mixed", "p 0.004*", "30.0 (30.1 ± 1.5)", "31.0 (31.1 ± 1.5)"):
        assert number in page.text
    assert "p 0.200 " in page_of(*runs, records=[evaluation("first", "second", p_value=0.2)]).text


def test_settings_that_differ_are_shown() -> None:
    runs = [made_run("first", batch_size=64, clip_norm=0.5, precision="float32"), made_run("second", 2)]
    alone = page_of(runs[0]).text.partition("All keys")[0]
    assert "training.clip_norm 0.5 null" in alone and "training.batch_size" not in alone
    assert "training.precision" not in alone  # by default "auto", which every run resolves
    both = page_of(*runs).text
    assert "key first second" in both and "training.clip_norm 0.5 null" in both
    assert "training.seed" not in both and "clip_norm: 0.5" in both  # all keys, as the file has them


def test_changes_of_a_sample_and_ancestors_are_shown() -> None:
    page = page_of(made_run("child", 2, start_from="old:2"))
    assert re.search(r"ein hund läuft <ins>läuft</ins> hier", page.html)
    assert "child , trained on old from weights of old:2, trained on old" in page.text
    assert "no longer in checkpoints/" in page_of(made_run("orphan", 1, start_from="gone:best")).text


@pytest.mark.parametrize(
    ("before", "after", "pieces"),
    [
        ("ein hund da", "ein kater da", ["=ein", "+ kater", "= da"]),
        ("ein hund da", "hund da", ["-ein", "= hund da"]),
        ("hund da", "ein hund da", ["+ein", "= hund da"]),
        ("a b", "a", ["=a", "- b"]),
        ("x", "y z", ["+y z"]),
        ("", "a", ["+a"]),
        ("他有（一个）书。", "他有（两个）书。", ["=他有", "+（两", "=个）书。"]),
        ("彼は iPhone を買う。", "彼は iPad を買った。", ["=彼は", "+ iPad", "= を買", "+った。"]),
        ("ภาษาไทย", "ภาษาไทยน้ำ", ["=ภาษาไทย", "+น้ำ"]),
        ("مرحبا بالعالم", "مرحبا يا عالم", ["=مرحبا", "+ يا عالم"]),
        ("हिन्दी में", "हिन्दी भी", ["=हिन्दी", "+ भी"]),
        ("İzmir ışık", "İzmir ısı", ["=İzmir", "+ ısı"]),
    ],
)  # fmt: skip
def test_changes_are_words_of_any_script(before: str, after: str, pieces: list[str]) -> None:
    signs = {"kept": "=", "added": "+", "removed": "-"}
    found = changes(before, after)
    assert [f"{signs[piece.change]}{piece.text}" for piece in found] == pieces


@pytest.mark.parametrize(
    ("languages", "source", "target"),
    [
        (("en", "ar"), 'lang="en" dir="ltr"', 'lang="ar" dir="rtl"'),
        (("he", "zh-Hans"), 'lang="he" dir="rtl"', 'lang="zh-Hans" dir="ltr"'),
        ((None, None), 'dir="auto"', 'dir="auto"'),
    ],
)
def test_texts_have_the_language_and_direction_of_their_side(
    languages: tuple[str | None, str | None], source: str, target: str
) -> None:
    facts = RunFacts(made_run("first"))
    codes = dict(zip(("source_language", "target_language"), languages, strict=True))
    facts.manifest = facts.manifest.model_copy(update={"settings": facts.manifest.settings.model_copy(update=codes)})
    html = run_page([facts], [evaluation("first")], maps=[attention_map("a dog", "ein hund")])
    assert f'<h3 class="text" {source}>a dog runs</h3>' in html
    assert f'<span class="text" {target}>x</span>' in html
    assert f'<span class="text" {target}>ein hund läuft hier' in html
    assert f'<h3 class="text" {source}>a dog</h3><p class="text" {target}>ein hund</p>' in html
    assert f'<p class="small" {source}>a dog</p><p class="small" {target}><em>ein Hund</em></p><p {target}>eine' in html
    other = RunFacts(made_run("second"))
    assert '<h3 class="text" dir="auto">a dog runs</h3>' in run_page([facts, other])


# --- the file


def test_the_command_writes_a_page_without_tensorflow(project: Path) -> None:
    loaded = set(sys.modules)
    made_run("first")
    done = CliRunner().invoke(app, ["report", "--run", "first", "--no-scores", "--no-attention"])
    assert done.exit_code == 0
    assert done.stdout == "checkpoints/first/report.html\n"
    assert not {name for name in set(sys.modules) - loaded if name.partition(".")[0] in ("tensorflow", "keras")}
    assert (project / "checkpoints/first/report.html").read_text().rstrip().endswith("</html>")


def test_an_earlier_report_is_replaced() -> None:
    run = made_run("first")
    path = default_path([run])
    for _ in range(2):
        write_report([run], path, scored=False, attention=False)
    assert default_path([run, run]).name == "comparison.html"


def test_a_run_that_cannot_be_scored_does_not_stop_the_report(project: Path) -> None:
    (project / "data" / "old" / "test.source.txt").unlink()
    problems: list[str] = []
    write_report([Run(RUNS / "old")], Path("page.html"), attention=False, warn=problems.append)
    page = Page(Path("page.html").read_text())
    assert len(problems) == 1 and "old" in problems[0]
    assert "Not scored: old: " in page.text


def test_no_metric_of_an_epoch_is_headed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    from nmt.reporting import page
    from nmt.runs.metrics import LOSS, Measure

    fields = {"train_loss": LOSS, "validation_loss": LOSS, "peak_memory": Measure("peak memory")}
    monkeypatch.setattr(page, "measures", lambda kind: fields)
    heads = page.epoch_table([]).heads
    assert heads == ["run", "epoch", "step", "seconds", "training loss", "peak memory", "validation loss", "tokens/s"]
