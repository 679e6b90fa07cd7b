"""``nmt synthesize`` with a server that fails, killed at random moments: nothing is lost and nothing is asked twice.

Twenty kills instead of the suite's few: ``NMT_KILLS=20 pytest -m slow tests/teachers/test_killed_jobs.py -n 0``
"""

import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from stub_server import ANSWERS, NETWORK, StubServer, stub_server, translation

LINES = [f"Sentence {number} says {{name}} and “{number * 7}”." for number in range(600)]
COMMAND = [sys.executable, "-m", "nmt", "synthesize", "mono.en", "--forward", "--from", "en", "--to", "de"]
KILLS = int(os.environ.get("NMT_KILLS", "5"))


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.chdir(tmp_path)
    Path("mono.en").write_text("".join(f"{line}\n" for line in LINES))
    with stub_server() as server:
        Path("chat.yaml").write_text(
            f"kind: chat\nwhere: {server.address}/v1\nmodel: stub\nsentences: 4\nparallel: 6\ntimeout: 1\n"
            "requests_per_minute: 700\ninput_price: 0.5\noutput_price: 1.5\n"
        )
        yield server


def kept_sentences() -> set[str]:
    """Return the sentences whose answers are in finished blocks and in journals."""
    kept: set[str] = set()
    for part in Path("data/.made.synthesis").glob("part-*"):
        rows = [json.loads(line) for line in part.read_text().splitlines()]
        kept.update(row["source"] for row in rows if "source" in row)
    for journal in Path("data/.made.synthesis").glob("answers-*"):
        for line in journal.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                kept.update(LINES[number] for number in json.loads(line)["lines"])
    return kept


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["chat", "libretranslate"])
def test_a_job_that_is_killed_asks_nothing_twice_and_ends_in_the_same_file(server: StubServer, kind: str) -> None:
    teacher = "chat.yaml" if kind == "chat" else "server.yaml"
    Path("server.yaml").write_text(
        f"kind: libretranslate\nwhere: {server.address}\nsentences: 4\nparallel: 6\ntimeout: 1\n"
        "requests_per_minute: 700\n"
    )
    subprocess.run([*COMMAND, "--teacher", teacher, "--name", "whole"], check=True, capture_output=True)
    whole = gzip.decompress(Path("data/whole.jsonl.gz").read_bytes())
    expected = [{"source": line, "target": translation(line)} for line in LINES]
    assert [json.loads(row) for row in whole.splitlines()] == expected

    server.failures = (*NETWORK, *(ANSWERS if kind == "chat" else ("chatter", "wrong count")))
    dice, kept = random.Random(kind), set[str]()
    command = [*COMMAND, "--teacher", teacher, "--name", "made"]
    for _ in range(KILLS):
        before = server.asked.copy()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            process.wait(dice.uniform(0.8, 1.8))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        assert process.returncode == -9
        assert not [sentence for sentence in kept if server.asked[sentence] > before[sentence]]
        assert kept <= kept_sentences(), "an answer that was on disk is lost"
        kept = kept_sentences()
    assert kept, "no answer came before the last kill"
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "requests:" in done.stderr and ("price:" in done.stderr) == (kind == "chat")
    assert sum(server.failed.values()) > 0
    assert gzip.decompress(Path("data/made.jsonl.gz").read_bytes()) == whole
