"""Every message that a user can get for what they can mend, how they get there, and what it says to the letter.

The table is a transcript. Each paragraph begins in a fresh copy of a project in which english-german-both.pkl was
prepared and base.yaml trained for two epochs, as the README has it. A line that begins with "$" is typed: the last one
is the command that is refused, with exit code 2 and nothing written; those before it do what leads there. A line that
begins with "&" arranges what a test cannot have otherwise: a limit that is lowered, an answer from a server, a lock
held by another process; or it owns to what is left behind. What follows is the message, wrapped and indented.
"""

import ast
import contextlib
import io
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from conftest import nmt as in_a_process
from pydantic import ValidationError

from nmt import cli, corpus, errors, readers, safe_pickle
from nmt import fetch as downloads

TABLE = r"""

"""


# --- reading the table ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """How a user gets to a message, and the message."""

    steps: list[str]
    command: str
    message: str
    leaves: str | None
    """Where something is written nevertheless."""


def read_table(table: str) -> Iterator[Row]:
    """Yield the paragraphs that are not comments."""
    for paragraph in re.split(r"\n{2,}", table.strip()):
        lines = [line for line in paragraph.splitlines() if not line.startswith("#")]
        typed = [line for line in lines if line.startswith(("$ ", "& "))]
        if typed:
            message = re.sub(r"\n +", " ", "\n".join(lines[len(typed) :]))
            steps = [line for line in typed[:-1] if not line.startswith("& leaves ")]
            left = [line.removeprefix("& leaves ") for line in typed if line.startswith("& leaves ")]
            yield Row(steps, typed[-1].removeprefix("$ "), message, left[0] if left else None)


ROWS = list(read_table(TABLE))


# --- getting there ----------------------------------------------------------------------------------------------------

def be_server(patch: pytest.MonkeyPatch, answer: str) -> None:
    """Answer the next request for a corpus; "|" ends a line, and without a status line nothing is said."""
    listening = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"

    def serve() -> None:
        with listening, listening.accept()[0] as connection:
            connection.recv(2**16)
            if answer.startswith("HTTP"):
                head, _, body = answer.partition("||")
                connection.sendall(f"{head.replace('|', chr(13) + chr(10))}\r\n\r\n{body}".encode())

    threading.Thread(target=serve, daemon=True).start()
    patch.setattr(downloads, "CORPORA", {
        name: replace(file, address=f"{address}/{file.name}") for name, file in downloads.CORPORA.items()
    })  # fmt: skip


def hold_lock(patch: pytest.MonkeyPatch, said: str) -> None:
    """Hold a lock as another process would, which has written into it who it is."""
    fcntl = pytest.importorskip("fcntl")
    path, _, holder = said.partition(" ")
    file = Path(path).open("w")  # noqa: SIM115 - closed, and the lock with it, when the patch is undone
    file.write(holder)
    file.flush()
    fcntl.flock(file, fcntl.LOCK_EX)
    patch.setattr(hold_lock, "file", file, raising=False)


def take(step: str, patch: pytest.MonkeyPatch) -> None:
    """Take a step on the way to a message."""
    if step.startswith("& server "):
        be_server(patch, step.removeprefix("& server "))
    elif step.startswith("& lock "):
        hold_lock(patch, step.removeprefix("& lock "))
    elif step.startswith("& "):
        name, value = step[2:].split(" = ")
        patch.setattr(name, eval(value))
    elif step.startswith("$ nmt "):
        assert run(step[2:]).code == 0
    elif step.startswith("$ python -c "):
        exec(shlex.split(step)[3], {})  # as Python would, which takes a while to start
    else:
        subprocess.run(["bash", "-ec", step[2:]], check=True, timeout=30)


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def run(command: str) -> Outcome:
    """Run a command line in this process, where TensorFlow has been loaded already."""
    before, _, after = command.rpartition("| ")
    given = subprocess.run(["bash", "-c", before], capture_output=True, check=True).stdout if before else b""
    stdin = io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as left,
    ):
        patch.setattr(sys, "argv", shlex.split(after))
        patch.setattr(sys, "stdin", stdin)
        cli.main()
    return Outcome(int(left.value.code or 0), out.getvalue(), as_printed(err.getvalue()))


def as_printed(text: str) -> str:
    """Return a message with places of this machine by the names that the table has for them."""
    return re.sub(r"http://127\.0\.0\.1:\d+", "https://example.org", text.replace(str(PACKAGE.parent), "/opt")).rstrip()


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return what stands in a folder by path: the content of each file, and None for another folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if path.name != "lock"  # who holds it writes his name into it, and stays in it if he is refused
    }


# --- where messages are made ------------------------------------------------------------------------------------------

PACKAGE = Path(cli.__file__).parent
Site = tuple[str, int]  # file and line


def kinds() -> set[str]:
    """Names of what becomes a message: errors for the user, and parts of one."""
    found, waiting = {"_RefusedError", "Fault"}, [errors.NmtError]
    while waiting:
        kind = waiting.pop()
        found.add(kind.__name__)
        waiting += kind.__subclasses__()
    return found


def sites() -> dict[Site, str]:
    """Return every place in nmt/ that makes a message, and its source text."""
    found: dict[Site, str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        tree = ast.parse(text)
        made = [node for node in ast.walk(tree) if is_call(node, kinds())]
        for section in ast.walk(tree):
            if isinstance(section, ast.ClassDef) and {ast.unparse(base) for base in section.bases} & SECTIONS:
                made += [node for node in ast.walk(section) if is_call(node, {"ValueError"})]
        for node in made:
            found[str(path.relative_to(PACKAGE)), node.lineno] = ast.get_source_segment(text, node) or ""
    return found


SECTIONS = {"Section", "Documented"}  # what pydantic checks, whose ValueErrors are parts of a message


def is_call(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def note(reached: set[Site], frame: FrameType | None, line: int | None = None) -> None:
    """Note the place in nmt/ that made a message, seen from inside of making it."""
    while frame and not frame.f_code.co_filename.startswith(str(PACKAGE)):
        frame = frame.f_back
    if frame:
        reached.add((str(Path(frame.f_code.co_filename).relative_to(PACKAGE)), line or frame.f_lineno))


def watch(patch: pytest.MonkeyPatch, reached: set[Site]) -> None:
    """Have every place that makes a message noted when it does."""

    def noting(kind: type[Exception]) -> Callable[..., None]:
        original = kind.__init__

        def make(self: Exception, *arguments: Any) -> None:
            note(reached, sys._getframe(1))
            broken = sys.exc_info()[1]
            if isinstance(broken, ValidationError):
                for problem in broken.errors():
                    trace = getattr(problem.get("ctx", {}).get("error"), "__traceback__", None)
                    while trace:
                        note(reached, trace.tb_frame, trace.tb_lineno)
                        trace = trace.tb_next
            original(self, *arguments)

        return make

    for kind in (errors.NmtError, safe_pickle._RefusedError):
        patch.setattr(kind, "__init__", noting(kind))

    def fault(*arguments: str) -> readers.Fault:
        note(reached, sys._getframe(1))
        return corpus.Fault(*arguments)

    patch.setattr(readers, "Fault", fault)


# --- the tests --------------------------------------------------------------------------------------------------------

# What no row can reach, by a file and how its message begins, and why.
OUT_OF_REACH = {
    ("checkpoint.py", "Weights that are averaged"): "only files that are exchanged while a run trains",
    ("config.py", "Check its permissions and its disk"): "a file without the permission to read it; root has it always",
    ("dataset.py", "Subwords are sampled"): "training samples from datasets alone whose manifest says that they can",
    ("encoding.py", "A process that tokenizes"): "the system has to run out of memory",
    ("encoding.py", "The text of a split has a line"): "its checksum is looked at before, so only where both are forged",
    ("safe_pickle.py", "does not fit into memory"): "the memory has to run out",
    ("safe_pickle.py", "is not a regular file"): "only files are looked for, so only one that is exchanged meanwhile",
    ("safe_pickle.py", "There is no file"): "the file was found before, so only one that is removed meanwhile",
    ("safe_pickle.py", "Check its permissions and its disk"): "its checksum was taken before, so only a failing disk",
    ("subword_tokenizer.py", "The pieces of a subword tokenizer"): "only a model that no program writes",
}


def differences(row: Row, project: Path, patch: pytest.MonkeyPatch) -> str:
    """Return in words how a row of the table and what happens differ, "" if they do not."""
    patch.chdir(project)
    for step in row.steps:
        take(step, patch)
    before = contents(project)
    outcome = run(row.command)
    after = contents(project)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    found = []
    if outcome.code != 2:
        found.append(f"exit code {outcome.code}; printed {outcome.out!r}")
    if outcome.err != row.message:
        found.append(f"expected: {row.message}\nreceived: {outcome.err}")
    if outcome.out and not row.command.startswith("nmt train"):  # which tells from the start what it does
        found.append(f"printed {outcome.out!r}")
    if row.leaves is None and changed:
        found.append(f"changed {sorted(changed)}")
    if row.leaves is not None and not (changed and all(path.startswith(row.leaves) for path in changed)):
        found.append(f"changed {sorted(changed)} instead of {row.leaves}")
    return "".join(f"\n{one}" for one in found)


@pytest.mark.slow
def test_the_messages_are_those_of_the_table_and_the_table_has_every_message(
    trained_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One test, so that one process makes all the messages."""
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("MPLBACKEND", "agg")
    reached: set[Site] = set()
    watch(monkeypatch, reached)
    wrong = []
    for number, row in enumerate(ROWS):
        project = Path(shutil.copytree(trained_project, tmp_path / str(number)))
        with pytest.MonkeyPatch.context() as patch:
            if found := differences(row, project, patch):
                wrong.append(f"$ {row.command}{found}")
        shutil.rmtree(project)
    assert not wrong, "\n\n".join(wrong)
    missed = {site: text for site, text in sites().items() if site not in reached}
    known = {
        (file, beginning): [site for site, text in missed.items() if site[0] == file and beginning in text]
        for file, beginning in OUT_OF_REACH
    }
    assert not [key for key, found in known.items() if len(found) != 1], "what is out of reach is one place each"
    assert missed.keys() == {site for found in known.values() for site in found}, "a message without a row"


@pytest.mark.parametrize("command", ["nmt traim", "nmt plot loss", "nmt train --set epochs=1", "nmt prepare ghost.tsv"])
def test_a_process_of_its_own_says_the_same(command: str, trained_project: Path) -> None:
    [row] = [row for row in ROWS if row.command == command]
    assert as_printed(in_a_process(*shlex.split(command)[1:], cwd=trained_project, code=2).stderr) == row.message
