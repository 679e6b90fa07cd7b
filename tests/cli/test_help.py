"""Help pages are complete, have examples that work, and can be read at 80 columns."""

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


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function from a command and a number of columns to the command's help page."""

    def read(command: str, columns: int = 80) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        context = PROGRAM.make_context("nmt", [], resilient_parsing=True)
        for word in command.split():
            context = context.command.commands[word].make_context(word, [], parent=context, resilient_parsing=True)
        context.get_help()
        return capsys.readouterr().out

    return read


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """Return the command that a command line names, and its arguments."""
    command = PROGRAM
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        command, words = command.commands[words[0]], words[1:]
    return command, words


@pytest.mark.parametrize("command", PAGES)
def test_every_page_has_examples_of_its_command_that_can_be_typed(command: str, page: Any) -> None:
    _, _, below = page(command, 100).partition("\n Examples:")
    lines = [line.strip().partition("   ")[0] for line in below.splitlines()]
    calls = [re.split(" [<>] ", call)[0] for line in lines for call in line.split(" | ") if call.startswith("nmt ")]
    examples = [shlex.split(call)[1:] for call in calls]
    parts = command.split()
    assert any(words[: len(parts)] == parts for words in examples)
    for words in examples:
        named, arguments = command_of(words)
        if "--help" not in arguments:
            named.make_context(named.name, arguments)  # refuses an option that does not exist


@pytest.mark.parametrize("command", PAGES)
def test_every_parameter_stands_on_the_page_with_its_default(command: str, page: Any) -> None:
    assert all(len(line) <= columns for columns in (60, 80, 120) for line in page(command, columns).splitlines())
    text = page(command, 300)
    for parameter in command_of(command.split())[0].params:
        if parameter.name == "help":
            continue  # it has just been typed
        assert parameter.help and parameter.help[-1] == "." and parameter.help in text
        assert len(parameter.metavar) <= 13, parameter.name
        assert parameter.param_type_name == "argument" or parameter.opts[0] in text
        if parameter.default not in (None, "") and parameter.default is not False:
            assert parameter.help.count(f"Default: {parameter.default}.") == 1 and "[default" not in text


@pytest.mark.parametrize("command", PAGES)
def test_a_page_fits_a_screen(command: str, page: Any) -> None:
    assert len(page(command, 100).splitlines()) <= 40


def test_commands_are_in_the_order_of_use(page: Any) -> None:
    assert NAMES[:4] == ["prepare", "train", "plot", "translate"]
    text = page("")
    assert re.findall(r"^╭─ (.*?) ─+╮$", text, re.M) == ["Options", *COMMANDS]
    assert re.findall(r"^│ ([a-z]+)  ", text, re.M) == NAMES


def test_a_pipe_gets_plain_text_and_no_arguments_get_the_first_page(tmp_path: Path) -> None:
    pages = [
        subprocess.run([sys.executable, "-m", "nmt", *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        for words in ([], ["--help"], ["-h"])
    ]
    assert [page.returncode for page in pages] == [2, 0, 0]
    assert pages[0].stdout.split() == pages[1].stdout.split() == pages[2].stdout.split()
    assert "\x1b[" not in pages[0].stdout
    assert not pages[0].stderr
