"""Commands that are stopped by Ctrl-C or cannot write standard output print one line, and lose no file."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import ENVIRONMENT, write_tsv

from nmt.cli.app import app
from nmt.cli.interruption import AGAIN_SECONDS, KEPT, Interrupted, Interruption, message

COMMAND = [sys.executable, "-m", "nmt"]


def start(arguments: list[str], cwd: Path, **streams: object) -> "subprocess.Popen[str]":
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.Popen(  # type: ignore[call-overload]
        [*COMMAND, *arguments], cwd=cwd, text=True, env={**os.environ, **ENVIRONMENT}, **options
    )


def temporary(folder: Path) -> list[Path]:
    return [path for prefix in (".writing-", ".replaced-") for path in folder.rglob(f"{prefix}*")]


SIGNALLING = """
import importlib, os, sys
from nmt.data.sources import public
place, address, *arguments = sys.argv[1:]
public.CORPORA = {"slow": public.PublicFile("slow.pkl", address, "", "0" * 64)}
module, _, name = place.partition(":")
*outer, name = name.split(".")
owner = importlib.import_module(module)
for part in outer:
    owner = getattr(owner, part)
real = getattr(owner, name)
def entered(*arguments, **named):
    os.write(2, b"AT WORK\\n")
    return real(*arguments, **named)
setattr(owner, name, entered)
sys.argv = ["nmt", *arguments]
from nmt.__main__ import main
main()
"""
"""Program that runs a command and prints when it enters a function. The corpus "slow" has the given address."""
ENTERED = "AT WORK\n"
DISCARDED = re.compile(
    r"Traceback \(most recent call last\):\n(?:  .*\n)+SystemError: .* returned a result with an exception set\n"
)
"""What TensorFlow itself prints now and then when it discards an exception, which nmt raises again."""
SEARCH = "nmt.decoding.tensorflow_engine:TensorFlowEngine.search_batch"
WORK = {
    "translate --input mono.txt": SEARCH,
    "tokens --run base": "nmt.tokenizers.registry:load_tokenizer",
    "evaluate --run base": SEARCH,
    "report --run base": SEARCH,
    "synthesize mono.txt --name bt --export none": SEARCH,
    "export --to ctranslate2 --output exported": "nmt.export.ctranslate2:CTranslate2Exporter.translate",
    "average --last 2": "nmt.training.validation:Validator.validate",
    "train --config base.yaml --run new": "nmt.training.optimization.update:Update.take",
    "plot attention im": "nmt.decoding.tensorflow_engine:TensorFlowEngine.attention_maps",
    "prepare many.tsv": "nmt.data.prepare:write_split",
    "bench --generated": "nmt.training.optimization.update:Update.take",
    "fetch slow": "nmt.data.sources.public:_download",
}
"""Function that each command calls at its main work, which then takes a while."""


@pytest.fixture
def silent_server() -> Iterator[str]:
    """Yield the address of a file on a server that accepts requests and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/slow.pkl"


@pytest.mark.parametrize("command", WORK)
@pytest.mark.parametrize("moment", ["start", pytest.param("work", marks=pytest.mark.slow)])
def test_one_line_says_what_was_interrupted(
    command: str, moment: str, project: Path, silent_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command is interrupted while its modules load, and while it works."""
    monkeypatch.setenv("no_proxy", "*")
    write_tsv(project / "many.tsv", ((f"im {number} tired", f"ich bin {number} mude") for number in range(100_000)))
    (project / "mono.txt").write_text("im one two three\n" * 100_000)
    before = {path for path in project.rglob("*") if "checkpoints" not in path.parts}
    place = WORK[command] if moment == "work" else "nmt.cli.app:_run"
    process = subprocess.Popen(
        [sys.executable, "-c", SIGNALLING, place, silent_server, *command.split()], cwd=project, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip
    assert process.stderr
    said = list[str]()
    for line in process.stderr:
        said.append(line)
        if line == ENTERED:
            process.send_signal(signal.SIGINT)
            break
    assert ENTERED in said, said
    said += process.stderr.readlines()
    assert process.wait(60) == 130, said
    assert "Traceback" not in DISCARDED.sub("", "".join(said))
    if not any(line.startswith(("Saved at step", "Stopped before")) for line in said):
        assert [line for line in said if "interrupted" in line] == [f"nmt: {message(command.split())}\n"]
    assert not temporary(project)
    assert {path for path in project.rglob("*") if "checkpoints" not in path.parts} - before <= {
        project / "data" / ".bt.synthesis",
        *(project / "data" / ".bt.synthesis").rglob("*"),
    }


def test_ctrl_c_before_the_program_has_begun_is_one_line(tmp_path: Path) -> None:
    code = "import os; os.kill(os.getpid(), 2)"
    (tmp_path / "typer.py").write_text(code)  # which the command line imports first
    process = start(["info"], tmp_path)
    _, said = process.communicate(timeout=60)
    words = "nmt was interrupted before it began. Nothing was changed. Give the same command again.\n"
    assert (process.returncode, said) == (130, f"nmt: {words}")


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
@pytest.mark.parametrize("unbuffered", ["", pytest.param("1", marks=pytest.mark.slow)])
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


def test_an_interruption_that_a_library_discards_is_raised_again() -> None:
    """TensorFlow discards an exception now and then, and the command would go on to its end as if nothing was asked."""
    interruption = Interruption()
    with pytest.raises(Interrupted), interruption.watch():
        with contextlib.suppress(Interrupted):
            signal.raise_signal(signal.SIGINT)
        with contextlib.suppress(Interrupted):
            time.sleep(60)
            pytest.fail("not raised again")
        time.sleep(60)
        pytest.fail("raised again only once")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_an_interruption_is_not_raised_again_while_partial_files_are_removed() -> None:
    ended = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            time.sleep(3 * AGAIN_SECONDS)
            ended.append("finally")

    with pytest.raises(Interrupted), Interruption().watch():
        try:
            work()
        except BaseException:
            time.sleep(3 * AGAIN_SECONDS)
            ended.append("except")
            raise
    assert ended == ["finally", "except"]
