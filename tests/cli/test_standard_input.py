"""Standard input: lines are translated as they arrive while the pipe stays open; lines that are there form one part."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from conftest import ENVIRONMENT, nmt

from nmt.cli.commands import translate
from nmt.cli.commands.translate import _arriving
from nmt.decoding.translation import SearchOptions
from nmt.runs.directory import Run
from nmt.text.translator import TextOptions, Translator

LINES = ["im one", "im two three"]


@pytest.mark.parametrize("command", [
    "tokens --run base",
    pytest.param("translate --run base --beam 2 --n-best 2", marks=pytest.mark.slow),
])  # fmt: skip
def test_a_line_is_answered_while_the_pipe_is_open(command: str, trained_project: Path) -> None:
    expected = nmt(*command.split(), cwd=trained_project, stdin="\n".join(LINES)).stdout.splitlines()
    process = subprocess.Popen(
        [sys.executable, "-m", "nmt", *command.split()], cwd=trained_project, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip
    assert process.stdin and process.stdout and process.stderr
    found = []
    watch = threading.Timer(120, process.kill)  # where no answer comes
    watch.start()
    for line in LINES:
        process.stdin.write(f"{line}\n".encode())
        process.stdin.flush()
        found += [process.stdout.readline().decode().rstrip("\n") for _ in range(len(expected) // len(LINES))]
    assert found == expected
    out, err = process.communicate(b"f\xfcnf\n")
    watch.cancel()
    assert (process.returncode, out) == (2, b"")
    assert b"standard input, line 3 is not UTF-8: it holds the byte 0xfc" in err


def arriving(blocks: Iterable[bytes | float]) -> list[list[str]]:
    """Write blocks of bytes to a pipe and return the parts in which they are read. A number is a pause in seconds."""
    reading, writing = os.pipe()

    def write() -> None:
        for block in blocks:
            if isinstance(block, bytes):
                os.write(writing, block)
            else:
                time.sleep(block)
        os.close(writing)

    threading.Thread(target=write).start()
    parts = [lines for lines in _arriving(reading, "a pipe") if lines]
    os.close(reading)
    return parts


def test_lines_that_come_without_a_pause_are_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translate, "PAUSE", 5.0)
    lines = [f"sentence {number} größer" for number in range(50_000)]
    content = "".join(f"{line}\n" for line in lines).encode()
    assert arriving(content[start : start + 1000] for start in range(0, len(content), 1000)) == [lines]


def test_a_pause_ends_a_part_at_its_last_whole_line() -> None:
    blocks = [b"\xef\xbb\xbfone\ntwo\r\nth", 0.5, b"r\xc3", 0.5, b"\xbcee\n\nfour"]
    assert arriving(blocks) == [["one", "two"], ["thrüee", "", "four"]]
    assert arriving([]) == []


def test_lines_that_come_without_end_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translate, "PAUSE", 5.0)
    monkeypatch.setattr(translate, "LONGEST_WAIT", 0.2)
    parts = arriving([b"one\n", 0.02] * 30)
    assert 1 < len(parts) < 6 and [line for part in parts for line in part] == ["one"] * 30


def test_what_is_drawn_for_a_sentence_does_not_depend_on_the_parts(trained_project: Path) -> None:
    translator = Translator.open(Run(trained_project / "checkpoints" / "base"))
    texts = ["im one"] * 4
    whole = translator.find(texts, TextOptions(SearchOptions(sampled=True)))
    parts = [
        translator.find(texts[start : start + 2], TextOptions(SearchOptions(sampled=True, first=start)))
        for start in (0, 2)
    ]
    assert [*parts[0], *parts[1]] == whole and len({found[0].text for found in whole}) > 1
