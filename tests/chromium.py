"""Headless Chromium for the tests of pages; without it they are skipped."""

import json
import shutil
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
COLORS = """
const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const luminance = (colors) => {  // of colors painted over each other
  for (const color of colors) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); }
  const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
  return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
};
const backgrounds = (e) => (e ? [...backgrounds(e.parentElement), getComputedStyle(e).backgroundColor] : []);
const contrast = (e, ink) => {  // of WCAG 2.2
  const [a, b] = [luminance(backgrounds(e)), luminance([...backgrounds(e), ink])];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
};
"""


class Chromium(Chrome):
    """Browser that logs the messages and the requests of a page."""

    def __init__(self, folder: Path) -> None:
        """Start with the profile in an empty folder."""
        browser = shutil.which("chromium") or shutil.which("chromium-browser")
        program = shutil.which("chromedriver")
        if not browser or not program:
            pytest.skip("needs chromium and chromedriver: apt-get install chromium chromium-driver")
        options = ChromeOptions()
        options.binary_location = browser
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        for flag in (*FLAGS, f"--user-data-dir={folder}"):
            options.add_argument(flag)
        super().__init__(options, ChromeService(program))

    def emulate(self, width: int, scheme: str = "light") -> None:
        """Emulate a window of a width, a color scheme, and the wish that nothing moves."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        values = [{"name": name, "value": value} for name, value in features.items()]
        self.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": values})

    def requested(self) -> set[str]:
        """Return the addresses that pages requested since the last call."""
        events = [json.loads(line["message"])["message"] for line in self.get_log("performance")]
        sent = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return {address for address in sent if not address.startswith(("data:", "chrome:"))}

    def outside(self, scrolled: str) -> list[str]:
        """Return the elements that end beyond the window, but those in scrolled ones (a selector)."""
        return self.execute_script(
            "return [...document.querySelectorAll('main *')].filter((e) => !e.closest(arguments[0]) &&"
            " e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)"
            ".map((e) => e.outerHTML.slice(0, 120))", scrolled,
        )  # fmt: skip

    def contrasts(self, elements: str, ink: str) -> list[tuple[str, float]]:
        """Return each of some elements (JavaScript) with the contrast of its ink (JavaScript of e) to its ground."""
        code = f"return [...{elements}].map((e) => [e.outerHTML.slice(0, 120), contrast(e, {ink})])"
        return [(name, ratio) for name, ratio in self.execute_script(COLORS + code)]

    def luminance(self, selector: str) -> float:
        """Return the luminance of the ground of an element, from 0 (black) to 1."""
        code = "return luminance(backgrounds(document.querySelector(arguments[0])))"
        return self.execute_script(COLORS + code, selector)
