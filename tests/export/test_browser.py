"""The page of an export to Bergamot, in Chromium with the engine in WebAssembly, with and without its server.

``NMT_BERGAMOT`` names the folder ``node_modules`` with the package @browsermt/bergamot-translator.
"""

import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import nmt, small_pairs
from selenium.webdriver.common.by import By
from test_bergamot import learned

ENGINE = os.environ.get("NMT_BERGAMOT")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not ENGINE, reason="needs NMT_BERGAMOT, a folder with @browsermt/bergamot-translator"),
]
__all__ = ["learned"]
TYPE = """
const [text] = arguments;
document.getElementById("target").textContent = "";
const source = document.getElementById("source");
source.value = text;
source.dispatchEvent(new Event("input"));
"""


@pytest.fixture
def page(learned: Path) -> Iterator[ThreadingHTTPServer]:
    """A server of the page."""
    (learned / "node_modules").symlink_to(str(ENGINE))
    nmt("export", "--run", "student", "--to", "bergamot", "--demo", "--output", "with-demo", cwd=learned)
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(learned / "with-demo" / "demo"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def wait_for(driver: Any, found: Callable[[], str | None]) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if value := found():
            return value
        time.sleep(0.05)
    status = driver.find_element(By.ID, "status").text
    raise AssertionError(f"Nothing came in a minute: {status} {driver.get_log('browser')}")


def test_the_page_translates_as_fxtranslate_does_also_without_its_server(
    learned: Path, page: ThreadingHTTPServer, driver: Any
) -> None:
    address = f"http://127.0.0.1:{page.server_port}/"
    sources = [source for source, _ in small_pairs(20)]
    (learned / "few.txt").write_text("".join(f"{source}\n" for source in sources))
    export = ["translate", "--export", "./with-demo", "--ordinary-text", "none", "--input", "few.txt"]
    expected = nmt(*export, cwd=learned).stdout.splitlines()

    def translated() -> list[str]:
        body = driver.find_element(By.TAG_NAME, "body")
        wait_for(driver, lambda: body.get_attribute("data-offline"))
        translations = []
        for source in sources:
            driver.execute_script(TYPE, source)
            translations.append(wait_for(driver, lambda: str(driver.find_element(By.ID, "target").text)))
        return translations

    driver.get(address)
    assert translated() == expected
    assert driver.find_element(By.ID, "source-language").text == "English"
    page.shutdown()
    page.server_close()
    driver.get(address)
    assert translated() == expected
    assert {address.startswith(f"http://127.0.0.1:{page.server_port}") for address in driver.requested()} == {True}
