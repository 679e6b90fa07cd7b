"""Ctrl-C and standard output that takes nothing, in processes of their own: one line, nothing lost, no traceback."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ENVIRONMENT, write_tsv

from nmt.cli.app import app
from nmt.cli.interruption import KEPT, message

COMMAND = [sys.executable, "-m", "nmt"]


def start(arguments: list[str], cwd: Path, **streams: object) -> "subprocess.Popen[str]":
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.Popen(  # type: ignore[call-overload]
        [*COMMAND, *arguments], cwd=cwd, text=True, env={**os.environ, **ENVIRONMENT}, **options
    )


def temporary(folder: Path) -> list[Path]:
    return [path for prefix in (".writing-", ".replaced-") for path in folder.rglob(f"{prefix}*")]


@pytest.mark.parametrize("command", [
    "translate", "tokens --run base", "evaluate --run base", "report --run base",
    "synthesize mono.txt --name bt --export none", "export --to ctranslate2 --output exported", "average --last 2",
    "train --config base.yaml --run new", "plot attention im", "prepare many.tsv", "bench --generated",
])  # fmt: skip
@pytest.mark.parametrize("seconds", [0.35, pytest.param(2.5, marks=pytest.mark.slow)])
def test_one_line_says_what_was_interrupted(command: str, seconds: float, project: Path) -> None:
    """While the program starts, and while it works."""
    write_tsv(project / "many.tsv", ((f"im {number} tired", f"ich bin {number} mude") for number in range(300_000)))
    (project / "mono.txt").write_text("im one two three\n" * 100_000)
    process = start(command.split(), project)
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    if process.wait(60) == 0:
        pytest.skip("it had ended already")
    assert process.stderr
    said = process.stderr.read()
    if process.returncode == -signal.SIGINT and not said.strip():
        pytest.skip("Python itself had not begun")
    assert process.returncode == 130, said
    assert "Traceback" not in said
    if "Saved at step" not in said and "Stopped before" not in said:
        [line] = [line for line in said.splitlines() if "interrupted" in line]
        assert line in (f"nmt: {message(command.split())}", f"nmt: {message([])[:22]} before it began. Nothing was "
                        "changed. Give the same command again.")  # fmt: skip
    assert not temporary(project)


def test_lines_that_were_translated_before_ctrl_c_have_arrived(project: Path) -> None:
    process = start(["translate"], project)
    assert process.stdin and process.stdout and process.stderr
    process.stdin.write("im one two three\n")
    process.stdin.flush()
    assert process.stdout.readline().startswith("ich")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert process.stderr.read() == f"nmt: {message(['translate'])}\n"


def test_each_command_that_keeps_something_is_one() -> None:
    names = [command.name or command.callback.__name__ for command in app.registered_commands if command.callback]
    assert not KEPT.keys() - set(names)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", [
    "--help", "--version", "translate --help", "plot --help", "info", "runs", "runs --json", "samples",
    "tokens --run base im", "translate im", "plot losses", "prepare english-german-both.pkl",
])  # fmt: skip
def test_full_standard_output_is_one_message(
    command: str, unbuffered: str, trained_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with Path("/dev/full").open("w") as full:
        process = start(command.split(), trained_project, stdout=full, stdin=subprocess.DEVNULL)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 2, said
    assert [line for line in said.splitlines() if line.startswith("nmt: Standard output cannot be written: No space")]
    assert "Traceback" not in said and "Exception ignored" not in said


@pytest.mark.parametrize("command", ["--help", "info", "tokens --run base im", "translate im"])
def test_a_reader_that_has_enough_ends_the_command_quietly(command: str, trained_project: Path) -> None:
    end, written = os.pipe()
    os.close(end)
    process = start(command.split(), trained_project, stdout=written, stdin=subprocess.DEVNULL)
    os.close(written)
    _, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (128 + signal.SIGPIPE, "")
