"""The report in headless Chromium, opened from a file, and with computed scores and attention maps."""

import contextlib
from pathlib import Path

import pytest
from chromium import Chromium
from conftest import unpack
from report_runs import Page, attention_map, evaluation, made_run, sampled

from nmt.evaluation.evaluate import evaluate
from nmt.reporting.facts import RunFacts
from nmt.reporting.page import run_page
from nmt.reporting.report import write_report
from nmt.runs.directory import RUNS, Run

pytestmark = pytest.mark.slow
HOSTILE = "</script><img src=//example.org/x onerror=\"document.title='run'\">"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The comparison of two runs with long names and sentences; one has hostile samples."""
    folder = tmp_path_factory.mktemp("report")
    unpack(folder)
    with contextlib.chdir(folder):
        runs = [made_run("first"), made_run("a-second-run-with-a-name-that-is-quite-long-for-a-telephone", 5, 0.05)]
        runs[1].append_metrics(sampled(6, 200, HOSTILE, f"{'long' * 30} {HOSTILE}"))
        maps = [attention_map(" ".join(["word"] * 40)), attention_map(HOSTILE)]
        records = [evaluation(*(run.name for run in runs))]
        html = run_page([RunFacts(run) for run in runs], records, [HOSTILE], maps, [], {"device": HOSTILE})
    path = folder / "page.html"
    path.write_text(html, encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_the_page_requests_nothing_and_fits_every_width(driver: Chromium, page: Path, width: int) -> None:
    driver.requested()
    driver.get_log("browser")
    driver.emulate(width)
    driver.get(page.as_uri())
    driver.execute_script("for (const details of document.querySelectorAll('details')) details.open = true")
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert not driver.outside(".scroll, svg *")
    assert driver.requested() == {page.as_uri()}
    assert not driver.get_log("browser")
    assert driver.title.startswith("first, a-second-run")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_are_light_or_dark_as_the_page_is(driver: Chromium, page: Path, scheme: str) -> None:
    driver.emulate(1280, scheme)
    driver.get(page.as_uri())
    luminance = driver.luminance("section")
    assert (luminance > 0.9) if scheme == "light" else (luminance < 0.05)
    texts = driver.contrasts("document.querySelectorAll('svg text')", "getComputedStyle(e).fill")
    assert len(texts) > 100 and not [text for text in texts if text[1] < 4.5]
    curves = "document.querySelectorAll('.charts path[stroke-width=\"1.8\"]')"
    lines = driver.contrasts(curves, "getComputedStyle(e).stroke")
    assert len(lines) > 14 and not [line for line in lines if line[1] < 3]


def test_scores_and_attention_are_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(tmp_path)
    monkeypatch.chdir(tmp_path)
    write_report([Run(RUNS / "old")], Path("page.html"), sentences=["im thirsty"])
    page = Page(Path("page.html").read_text())
    record = evaluate(["old"]).record
    for score in record.scores.systems["old"].values():
        assert f"{score.score:.1f} ({score.mean:.1f} ± {score.ci:.1f})" in page.text
    assert all(signature in page.text for signature in record.scores.signatures.values())
    assert {"im", "thirsty", "attention weight"} <= set(page.texts)
    assert "tensorflow" in page.text
