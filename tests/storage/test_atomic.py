"""Files and folders appear whole or not at all, text keeps its lines, and names cannot lead out of their folder."""

import contextlib
import errno
import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nmt.config.loading import find_config
from nmt.errors import ConflictError, DataError, NmtError, NotFoundError
from nmt.storage.atomic import atomic_file, atomic_folder, remove_abandoned, scratch_folder, write_text
from nmt.storage.json_file import read_json, write_json
from nmt.storage.names import check_name, find_file
from nmt.storage.text import as_cell, text_lines

QUICK = settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
SCALARS = st.none() | st.booleans() | st.integers() | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder by path, including hidden files."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def refuse(*_: Any, **__: Any) -> None:
    """Behave like a system call on a full disk."""
    raise FULL


def refuse_call(number: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ``real``, but fails in call ``number``, counted from 1."""
    calls = iter(range(1, 1000))

    def call(*arguments: Any, **named: Any) -> Any:
        return refuse() if next(calls) == number else real(*arguments, **named)

    return call


# --- atomic_file


@pytest.mark.parametrize("before", [b"old", None])
def test_a_file_appears_whole_and_nothing_lies_beside_it(folder: Path, before: bytes | None) -> None:
    path = folder / "deep" / "epoch-0001.weights.h5"
    if before:
        write_text(path, before.decode())
    with atomic_file(path) as aside:
        aside.write_text("new")
        assert "".join(aside.suffixes) == ".weights.h5"  # by which writers know the format
        assert (path.read_bytes() if path.exists() else None) == before
    assert content(folder) == {"deep/epoch-0001.weights.h5": b"new"}
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("before", [{}, {"a.txt": b"old"}], ids=["absent", "present"])
@pytest.mark.parametrize("failing", ["writing", "full", "fsync", "replace"])
def test_a_failure_while_writing_leaves_everything_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch, before: dict[str, bytes], failing: str
) -> None:
    for name, old in before.items():
        (folder / name).write_bytes(old)
    if failing in {"fsync", "replace"}:
        monkeypatch.setattr(os, failing, refuse)
    expected: type[Exception] = RuntimeError if failing == "writing" else NmtError
    with pytest.raises(expected, match=r"stop|cannot be written: No space"), atomic_file(folder / "a.txt") as aside:
        aside.write_text("half")
        if failing in {"writing", "full"}:
            raise RuntimeError("stop") if failing == "writing" else FULL
    assert content(folder) == before
    assert [entry.name for entry in folder.iterdir()] == list(before)


def test_data_reaches_the_disk_before_the_name_and_the_name_before_the_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    real_sync, real_replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (events.append("sync"), real_sync(descriptor))[1])
    monkeypatch.setattr(os, "replace", lambda *paths: (events.append("rename"), real_replace(*paths))[1])
    write_text(folder / "a.txt", "new")
    assert events == ["sync", "rename", "sync"]


# --- atomic_folder


def test_a_whole_folder_appears_at_the_end_with_the_permissions_of_any_new_folder(folder: Path) -> None:
    path, before = folder / "data" / "set", os.umask(0o027)
    try:
        with atomic_folder(path) as aside:
            (aside / "a").write_text("1")
            (aside / "sub").mkdir()
            (aside / "sub" / "b").write_text("2")
            assert not path.exists()
        assert os.umask(0o027) == 0o027  # left as it was found
    finally:
        os.umask(before)
    assert content(folder) == {"data/set/a": b"1", "data/set/sub/b": b"2"}
    assert [entry.name for entry in path.parent.iterdir()] == ["set"]
    assert path.stat().st_mode & 0o777 == 0o750


def test_an_existing_folder_is_replaced_if_asked_with_none_of_its_old_files(folder: Path) -> None:
    (folder / "set").mkdir()
    (folder / "set" / "old").write_text("old")
    with pytest.raises(ConflictError), atomic_folder(folder / "set"):
        pytest.fail("the block must not be entered")
    with atomic_folder(folder / "set", replace=True) as aside:
        (aside / "new").write_text("new")
        assert content(folder / "set") == {"old": b"old"}
    assert content(folder) == {"set/new": b"new"}
    assert [entry.name for entry in folder.iterdir()] == ["set"]


@pytest.mark.parametrize("rename", [1, 2])
def test_a_disk_that_refuses_to_replace_a_folder_leaves_the_old_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, rename: int
) -> None:
    (folder / "set").mkdir()
    (folder / "set" / "old").write_text("old")
    monkeypatch.setattr(Path, "rename", refuse_call(rename, Path.rename))
    with (
        pytest.raises(NmtError, match="set cannot be written: No space left on device"),
        atomic_folder(folder / "set", replace=True) as aside,
    ):
        (aside / "new").write_text("new")
    assert content(folder) == {"set/old": b"old"}
    assert [entry.name for entry in folder.iterdir()] == ["set"]


def test_what_a_killed_process_left_is_removed_and_what_another_writes_stays(folder: Path) -> None:
    """Two processes write. The killed process was writing both a folder and a file in it."""
    code = (
        "import sys; from pathlib import Path; from nmt.storage.atomic import atomic_file, atomic_folder\n"
        "with atomic_folder(Path('run/exports') / sys.argv[1]) as aside, atomic_file(aside / 'a.txt') as file:\n"
        "    file.write_text('half'); print('writing', flush=True); sys.stdin.read()\n"
    )
    killed, writing = (
        subprocess.Popen([sys.executable, "-c", code, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for name in ("killed", "writing")
    )
    for process in (killed, writing):
        assert process.stdout and process.stdout.readline() == b"writing\n"
    killed.kill()
    killed.communicate()
    remove_abandoned(folder / "run")
    written, lock = sorted(folder.glob("run/exports/.*"))
    assert (written.name[:17], lock.name) == (".writing-writing-", f"{written.name}.lock")
    writing.communicate()
    assert writing.returncode == 0
    assert content(folder) == {"run/exports/writing/a.txt": b"half"}


def test_what_a_killed_process_left_in_the_folder_for_temporary_files_is_removed(folder: Path) -> None:
    code = (
        "import time; from nmt.storage.atomic import scratch_folder\nwith scratch_folder() as f: print(f, flush=True)"
    )
    killed, working = (
        subprocess.Popen([sys.executable, "-c", f"{code}; time.sleep(100)"], stdout=subprocess.PIPE, text=True,
                         env={**os.environ, "TMPDIR": str(folder)})
        for _ in range(2)
    )  # fmt: skip
    left, used = (Path(process.stdout.readline().strip()) for process in (killed, working) if process.stdout)
    killed.kill()
    killed.communicate()
    assert left.is_dir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(folder))
        with scratch_folder() as own:
            assert {path for path in folder.iterdir() if path.is_dir()} == {own, used}
    assert [path for path in folder.iterdir() if path.is_dir()] == [used]
    working.kill()
    working.communicate()


def test_temporary_folders_outlive_no_kill() -> None:
    """Every temporary folder is a scratch folder, or lies in a folder that is removed after a kill."""
    sources = {path: path.read_text() for path in (ROOT / "nmt").rglob("*.py")}
    assert not [path for path, text in sources.items() if re.search(r"TemporaryDirectory\((?!dir=)", text)]
    assert not [path for path, text in sources.items() if "mkdtemp" in text]


# --- JSON and checksums


@QUICK
@given(JSON)
def test_json_is_read_back_as_written(folder: Path, value: Any) -> None:
    write_json(folder / "a.json", value)
    assert read_json(folder / "a.json", "A list") == value
    write_json(folder / "a.json", {"word": "größer"})
    assert (folder / "a.json").read_text(encoding="utf-8") == '{\n  "word": "größer"\n}\n'


@pytest.mark.parametrize("damaged", [b"", b'{"a": 1', b"\xff\xfe", b"\x00" * 20, b"[" * 100_000])
def test_damaged_json_is_named_by_its_role_and_path(folder: Path, damaged: bytes) -> None:
    (folder / "a.json").write_bytes(damaged)
    with pytest.raises(DataError, match=r"a\.json is damaged: .*A tokenizer is JSON"):
        read_json(folder / "a.json", "A tokenizer")


# --- lines


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"one", ["one"]),
        (b"one\n", ["one"]),
        (b"one\n\n", ["one", ""]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\rtwo\n", ["one\rtwo"]),
        (b"\xef\xbb\xbfone\ntwo\n", ["one", "two"]),
        ("a\u2028b\x85c\x0bd\x0ce\x1cf\n".encode(), ["a\u2028b\x85c\x0bd\x0ce\x1cf"]),
    ],
)
def test_lines_end_at_newlines_alone(written: bytes, lines: list[str]) -> None:
    assert text_lines(written, "a.txt") == lines


@QUICK
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\ufeff"))), st.booleans())
def test_lines_are_read_back_as_written(lines: list[str], windows: bool) -> None:
    end = "\r\n" if windows else "\n"
    assert text_lines("".join(line + end for line in lines).encode(), "a.txt") == lines


def test_what_is_no_text_is_refused_with_its_line() -> None:
    for before in (0, 10):
        with pytest.raises(DataError, match=f"a.txt, line {before + 3} is not UTF-8"):
            text_lines("eins\nzwei\ngrößer\n".encode("latin1"), "a.txt", before)


@given(st.lists(st.text() | st.sampled_from(list("\n\r\t\v\f\x1c\x1d\x1e\x85\u2028\u2029"))).map("".join))
def test_a_cell_is_one_line_without_tabs(text: str) -> None:
    cell = as_cell(text)
    assert len(cell.splitlines()) <= 1 and "\t" not in cell
    assert "".join(cell.split()) == "".join(text.split())
    assert as_cell("  ich bin  durstig ") == "  ich bin  durstig "


# --- find_file


def test_a_file_is_taken_where_it_was_said_then_from_the_folders_in_order(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder))
    places = [Path(), Path("first"), Path("second")]
    for place in places:
        place.mkdir(exist_ok=True)
        (place / "a.txt").touch()
    assert find_file("~/a.txt", [], "file") == folder / "a.txt"
    for place in places:
        assert find_file("a.txt", places[1:], "file") == place / "a.txt"
        (place / "a.txt").unlink()
    (folder / "a.txt").mkdir()  # which is no file
    (folder / "second" / "a.txt").touch()
    assert find_file("a.txt", places[1:], "file") == Path("second/a.txt")


def test_a_name_with_a_folder_is_looked_for_there_alone(folder: Path) -> None:
    (folder / "first" / "deep").mkdir(parents=True)
    (folder / "first" / "deep" / "a.txt").touch()
    with pytest.raises(NotFoundError):
        find_file("deep/a.txt", [Path("first")], "file")
    assert find_file("first/deep/a.txt", [], "file") == Path("first/deep/a.txt")
    assert find_file(str(folder / "first/deep/a.txt"), [], "file") == folder / "first/deep/a.txt"


@pytest.mark.parametrize(("name", "suggested"), [
    ("sutskever.yaml", "sutskewer.yml"), ("loung.yaml", "luong.yaml"), ("bas.yaml", "base.yaml"),
    ("sutskever.lgo", "sutskever.log"),
])  # fmt: skip
def test_a_missing_file_is_taken_for_one_of_its_kind_nearby(folder: Path, name: str, suggested: str) -> None:
    (folder / "configs").mkdir()
    for file in ("sutskever.log", "sutskewer.yml", "configs/luong.yaml"):
        (folder / file).touch()
    find = find_config if name.endswith("yaml") else functools.partial(find_file, folders=[], role="file")
    with pytest.raises(NotFoundError, match=rf"\(did you mean '{suggested}'\?\)"):
        find(name)
    (folder / "sutskewer.yml").unlink()
    with pytest.raises(NotFoundError) as refused:
        find_config("sutskever.yaml")
    assert "sutskever.log" not in str(refused.value)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 300, "a\0b", "~no-such-user/a.txt"])
def test_a_name_that_no_file_can_have_is_not_found(name: str) -> None:
    with pytest.raises(NotFoundError, match=r"^There is no file "):
        find_file(name, [Path("data")], "file")


# --- names


@settings(deadline=None)
@given(st.text(st.sampled_from("ab.-_/\\~ \n\0é"), max_size=8))
@example("english-german-both")
@example("v1.2_final")
@example("x" * 100)
@example("x" * 101)
@example("a\n")
def test_whatever_name_is_taken_stands_directly_in_its_folder(name: str) -> None:
    plain = len(name) <= 100 and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) is not None
    with contextlib.nullcontext() if plain else pytest.raises(NmtError):
        assert check_name(name, "run") == name
