"""The page in headless Chromium, from a file, and with scores and attention that were computed."""

import base64
import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_runs import Page, attention_map, evaluation, made_run, sampled, unpack

from nmt.evaluation.evaluate import evaluate
from nmt.reporting.attention import AttentionReport
from nmt.reporting.facts import read_facts
from nmt.reporting.page import render
from nmt.reporting.report import write_report
from nmt.reporting.scores import ScoreReport
from nmt.runs.directory import RUNS, Run

selenium = pytest.importorskip("selenium", reason="needs the package selenium, of the extra dev")

from selenium.webdriver import Chrome, ChromeOptions, ChromeService  # noqa: E402 - it may be absent
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

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
        facts = [read_facts(run) for run in runs]
        scores = ScoreReport([evaluation(*(run.name for run in runs))], [HOSTILE])
        maps = [attention_map(source=" ".join(["word"] * 40)), attention_map(1, 1, HOSTILE)]
        html = render(facts, scores, AttentionReport(maps, []), {"device": HOSTILE})
    path = folder / "page.html"
    path.write_text(html, encoding="utf-8")
    return path


def requested(driver: Chrome) -> list[str]:
    """Addresses that were requested since the last call."""
    events = [json.loads(line["message"])["message"] for line in driver.get_log("performance")]
    return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]


def resize(driver: Chrome, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    still = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": still})


def run(driver: Chrome, code: str, *arguments: object) -> Any:
    return driver.execute_script(code, *arguments)


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_the_page_requests_nothing_and_fits_every_width(driver: Chrome, page: Path, width: int) -> None:
    resize(driver, width)
    requested(driver)
    driver.get_log("browser")
    driver.get(page.as_uri())
    for details in driver.find_elements("css selector", "details"):
        run(driver, "arguments[0].open = true", details)
    assert run(driver, "return document.documentElement.scrollWidth") <= width
    outside = run(
        driver,
        "return [...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll, svg, .hidden') &&"
        " e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.outerHTML.slice(0, 120))",
    )
    assert not outside
    assert {address for address in requested(driver) if not address.startswith("data:")} == {page.as_uri()}
    assert not driver.get_log("browser")
    assert driver.title.startswith("first, a-second-run")


def test_charts_show_values_and_hide_lines(driver: Chrome, page: Path) -> None:
    resize(driver, 1280)
    driver.get(page.as_uri())
    plot = driver.find_element("css selector", "[data-chart='0'] .plot")
    tip = plot.find_element("css selector", ".tip")
    assert not tip.is_displayed()
    ActionChains(driver).move_to_element(plot).perform()
    assert tip.is_displayed() and "first, training" in tip.text
    plot.send_keys(Keys.HOME)
    spoken = plot.get_attribute("aria-valuetext")
    assert spoken.startswith("step 10, first, training 4.100")
    assert plot.get_attribute("role") == "slider"
    plot.send_keys(Keys.ARROW_RIGHT)
    assert plot.get_attribute("aria-valuetext").startswith("step 20, first, training 4.050, first, validation 4.200")
    plot.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()

    lines = "return document.querySelectorAll(\"[data-chart='0'] .plot > svg > .line\").length"
    assert run(driver, lines) == 4
    button = driver.find_element("css selector", "[data-chart='0'] .legend button")
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert run(driver, lines) == 3
    button.click()
    for unit in ("epoch", "tokens", "minutes"):
        run(driver, "document.querySelector(arguments[0]).click()", f"#units [value={unit}]")
        assert run(driver, lines) == 4
    plot.send_keys(Keys.END)
    assert plot.get_attribute("aria-valuetext").startswith("minute 0.4")
    assert run(driver, "return document.querySelectorAll('.plot > svg').length") == len(
        driver.find_elements("css selector", ".plot")
    )


def test_maps_of_attention_show_the_weights_of_a_head(driver: Chrome, page: Path) -> None:
    resize(driver, 1280)
    driver.get(page.as_uri())
    figure = driver.find_element("css selector", "[data-map='0']")
    found = Page(page.read_text()).data["maps"][0]
    weights = list(base64.b64decode(found["weights"]))
    layer, head = figure.find_elements("css selector", "select")
    layer.send_keys("1 of 2")
    head.send_keys("2 of 2")
    scroll = figure.find_element("css selector", ".scroll")
    run(driver, "arguments[0].focus()", scroll)
    for key in (Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_RIGHT):
        scroll.send_keys(key)
    columns = len(found["source"])
    weight = weights[(1 * 2 + 1) * columns + 1] / 255  # layer 1, head 2, second row and column
    assert figure.find_element("css selector", ".readout").text == f"hund \N{RIGHTWARDS ARROW} word: {weight:.2f}"
    assert not driver.find_elements("css selector", "[data-map='1'] select")


def test_without_a_script_the_charts_are_there(driver: Chrome, page: Path) -> None:
    resize(driver, 360)
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get(page.as_uri())
        assert len(driver.find_elements("css selector", "[data-chart] .plot > svg[role=img] .line")) > 4
        assert not driver.find_element("css selector", "#units").is_displayed()
        assert driver.find_elements("css selector", "[data-map] .cells path")
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_scores_and_attention_are_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(tmp_path)
    monkeypatch.chdir(tmp_path)
    write_report([Run(RUNS / "old")], Path("page.html"), sentences=["im thirsty"])
    page = Page(Path("page.html").read_text())
    record = evaluate(["old"]).record
    for score in record.scores.systems["old"].values():
        assert f"{score.score:.1f} ({score.mean:.1f} ± {score.ci:.1f})" in page.text
    assert all(signature in page.text for signature in record.scores.signatures.values())
    [found] = page.data["maps"]
    assert len(found["source"]) > 1 and found["layers"] == 1
    assert "TensorFlow" in page.text
