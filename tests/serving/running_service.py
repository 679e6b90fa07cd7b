"""Services that run in processes of their own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from conftest import ROOT

FAKE = [sys.executable, str(Path(__file__).with_name("fake_service.py"))]
SERVE = [sys.executable, "-c", "from nmt.cli.app import main; main()", "serve", "--port", "0"]


class RunningService:
    """A service in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process, self.url = process, url
        # The client drops idle connections before the service closes them after five seconds.
        limits = httpx.Limits(keepalive_expiry=2)
        self.client = httpx.Client(base_url=url, timeout=60, trust_env=False, limits=limits)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def post(self, path: str, /, **values: Any) -> httpx.Response:
        """Send a POST request with JSON."""
        return self.client.post(path, json=values)

    def translate(self, q: Any, **values: Any) -> Any:
        """Return the answer to a request for a translation from English to German, which must succeed."""
        answer = self.post("/translate", **{"q": q, "source": "en", "target": "de", **values})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def memory(self) -> int:
        """Return the resident memory in bytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def started(command: list[str], cwd: Path = ROOT) -> Iterator[RunningService]:
    """Start a service and wait until it is ready; in the end stop it by SIGTERM and check that its exit code is 0."""
    path = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    process = subprocess.Popen(
        command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        lines = []
        while not lines or not lines[-1].startswith("Ready at "):
            lines.append(process.stdout.readline())
            assert lines[-1], f"{''.join(lines)}{process.communicate()[1]}"
        yield RunningService(process, lines[-1].removeprefix("Ready at ").strip())
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


@contextlib.contextmanager
def fake_service(**settings: Any) -> Iterator[RunningService]:
    """Start a service with fake models (en-de, fr-de, en-fr) and these settings."""
    with started([*FAKE, json.dumps(settings)]) as running:
        yield running
