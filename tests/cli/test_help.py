"""Help pages: complete, with examples that work, readable at 80 columns."""

import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from nmt.cli.app import COMMANDS, app

PROGRAM: Any = get_command(app)
NAMES = PROGRAM.list_commands(None)
FIGURES = [f"plot {name}" for name in PROGRAM.commands["plot"].commands]
PAGES = ["", *NAMES, *FIGURES]
ESCAPE = "\x1b["


def page(command: str, columns: int, monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    for name, value in {"COLUMNS": str(columns), "NO_COLOR": "1", **environment}.items():
        monkeypatch.setenv(name, value)
    context = PROGRAM.make_context("nmt", [], resilient_parsing=True)
    for word in command.split():
        context = context.command.commands[word].make_context(word, [], parent=context, resilient_parsing=True)
    return str(context.get_help())


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """Return the command that a command line names, and its arguments."""
    command = PROGRAM
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        command, words = command.commands[words[0]], words[1:]
    return command, words


def examples(command: str, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the words of each example that calls nmt."""
    _, _, below = page(command, 100, monkeypatch).partition("\nExamples:\n")
    lines = [line.strip().partition("   ")[0].partition(" > ")[0] for line in below.splitlines()]
    calls = [call for line in lines for call in line.split(" | ") if call.startswith("nmt ")]
    return [shlex.split(call)[1:] for call in calls]


@pytest.mark.parametrize("command", PAGES)
def test_every_page_has_an_example_of_its_command(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = command.split()
    assert any(words[: len(parts)] == parts for words in examples(command, monkeypatch))


@pytest.mark.parametrize("command", PAGES)
def test_examples_are_commands_that_can_be_typed(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in examples(command, monkeypatch):
        named, arguments = command_of(words)
        if "--help" not in arguments:
            named.make_context(named.name, arguments)  # refuses an option that does not exist


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("command", PAGES)
def test_no_line_is_wider_than_the_terminal(command: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text, _, below = page(command, columns, monkeypatch).partition("\nExamples:\n")
    assert max(len(line) for line in text.splitlines()) <= columns
    assert max(len(line) for line in below.splitlines()) <= 80


@pytest.mark.parametrize("command", [*NAMES, *FIGURES])
def test_every_parameter_stands_on_the_page_with_its_default(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(page(command, 80, monkeypatch).split())
    for parameter in command_of(command.split())[0].params:
        assert parameter.help and parameter.help[-1] == "." and " ".join(parameter.help.split()) in text
        assert getattr(parameter, "is_flag", False) or len(parameter.metavar) <= 13, parameter.name
        assert parameter.param_type_name == "argument" or parameter.opts[0] in text
        if parameter.default not in (None, False, ""):
            assert f"[default: {parameter.default}]" in text


def test_commands_are_in_the_order_of_use(monkeypatch: pytest.MonkeyPatch) -> None:
    assert NAMES[:4] == ["prepare", "train", "plot", "translate"]
    text = page("", 80, monkeypatch)
    headings = [line.rstrip(":") for line in text.splitlines() if line.endswith(":")]
    assert headings == [*COMMANDS, "Options", "Examples"]
    assert re.findall(r"^  ([a-z]+)  ", text, re.M) == [*NAMES, "nmt"][: len(NAMES)]


@pytest.mark.parametrize(("environment", "styled"), [
    ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": "", "TERM": "dumb"}, False),
])  # fmt: skip
def test_a_terminal_gets_styles_unless_it_refuses_them(
    environment: dict[str, str], styled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in {"COLUMNS": "80", **environment}.items():
        monkeypatch.setenv(name, value)
    reader, writer = pty.openpty()
    subprocess.run([sys.executable, "-m", "nmt", "plot", "losses", "--help"], stdout=writer, stderr=writer, check=True)
    os.close(writer)
    shown = b""
    try:
        while part := os.read(reader, 2**16):
            shown += part
    except OSError:  # the end of a terminal
        pass
    os.close(reader)
    assert b"--output, -o FILE" in shown
    assert (ESCAPE.encode() in shown) == styled


def test_a_pipe_gets_plain_text_and_no_arguments_get_the_first_page(tmp_path: Path) -> None:
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "", "TERM": "xterm"}
    pages = [
        subprocess.run(
            [sys.executable, "-m", "nmt", *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True,
            check=False,
        )
        for arguments in ([], ["--help"], ["-h"])
    ]  # fmt: skip
    assert [page.returncode for page in pages] == [2, 0, 0]
    assert pages[0].stdout == pages[1].stdout == pages[2].stdout
    assert ESCAPE not in pages[0].stdout
    assert not pages[0].stderr
