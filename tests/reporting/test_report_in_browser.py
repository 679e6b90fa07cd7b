"""The page in headless Chromium, from a file, and with scores and attention that were computed."""

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from report_runs import Page, attention_map, evaluation, made_run, sampled, unpack

from nmt.evaluation.evaluate import evaluate
from nmt.reporting.facts import RunFacts
from nmt.reporting.page import run_page
from nmt.reporting.report import write_report
from nmt.runs.directory import RUNS, Run

selenium = pytest.importorskip("selenium", reason="needs the package selenium, of the extra dev")

from selenium.webdriver import Chrome, ChromeOptions, ChromeService  # noqa: E402 - it may be absent

pytestmark = pytest.mark.slow
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
HOSTILE = "</script><img src=//example.org/x onerror=\"document.title='run'\">"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    program = shutil.which("chromedriver")
    if not browser or not program:
        pytest.skip("needs chromium and chromedriver: apt-get install chromium chromium-driver")
    options = ChromeOptions()
    options.binary_location = browser
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    with Chrome(options=options, service=ChromeService(program)) as driver:
        yield driver


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The comparison of two runs, one with hostile samples, with long names and sentences."""
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


def requested(driver: Chrome) -> list[str]:
    """Addresses that were requested since the last call."""
    events = [json.loads(line["message"])["message"] for line in driver.get_log("performance")]
    return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]


def show(driver: Chrome, page: Path, width: int, scheme: str = "light") -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get(page.as_uri())


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_the_page_requests_nothing_and_fits_every_width(driver: Chrome, page: Path, width: int) -> None:
    requested(driver)
    driver.get_log("browser")
    show(driver, page, width)
    driver.execute_script("for (const details of document.querySelectorAll('details')) details.open = true")
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    outside = driver.execute_script(
        "return [...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll, svg *') &&"
        " e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 120))",
    )
    assert not outside
    assert {address for address in requested(driver) if not address.startswith("data:")} == {page.as_uri()}
    assert not driver.get_log("browser")
    assert driver.title.startswith("first, a-second-run")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_are_light_or_dark_as_the_page_is(driver: Chrome, page: Path, scheme: str) -> None:
    show(driver, page, 1280, scheme)
    # Luminance of the page; the least contrast of a text or curve to it (WCAG 2.2).
    code = """
    const light = (color) => color.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255).map(
        (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4
    ).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const page = light(getComputedStyle(document.querySelector('section')).backgroundColor);
    const contrast = (c) => (Math.max(light(c), page) + 0.05) / (Math.min(light(c), page) + 0.05);
    const texts = [...document.querySelectorAll('svg text')].map((e) => contrast(getComputedStyle(e).fill));
    const lines = [...document.querySelectorAll('.charts path[stroke-width="1.8"]')].map(
        (e) => contrast(getComputedStyle(e).stroke));
    return [page, texts.length, Math.min(...texts), lines.length, Math.min(...lines)];
    """
    luminance, texts, worst_text, lines, worst_line = driver.execute_script(code)
    assert (luminance > 0.9) if scheme == "light" else (luminance < 0.05)
    assert texts > 100 and worst_text >= 4.5
    assert lines > 14 and worst_line >= 3


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
