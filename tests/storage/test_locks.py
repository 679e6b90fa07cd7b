"""Temporary folders of live processes are never removed; temporary folders of killed processes are."""

import errno
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nmt.storage import atomic, file_lock
from nmt.storage.atomic import atomic_file, atomic_folder, remove_abandoned
from nmt.storage.file_lock import holder, locked, try_lock


@pytest.fixture(autouse=True)
def in_folder(folder: Path) -> None:
    """Work in an empty folder."""


def names(folder: str = "data") -> list[str]:
    """Return the names in a folder, including hidden files."""
    return sorted(path.name for path in Path(folder).iterdir())


def test_no_folder_is_cleared_while_it_is_written() -> None:
    """Locks exclude two threads as they exclude two processes."""
    done = threading.Event()

    def clear() -> None:
        while not done.is_set():
            remove_abandoned(Path())

    def write(name: str) -> None:
        for number in range(30):
            with atomic_folder(Path(f"data/{name}"), replace=True) as written:
                (written / "a").touch()
                with atomic_file(written / "sub" / "b") as file:
                    file.write_text(str(number))
            assert Path(f"data/{name}/sub/b").read_text() == str(number)
            with atomic_file(Path("data/file")) as file:
                file.write_text(name)

    with ThreadPoolExecutor(5) as pool:
        clearing = [pool.submit(clear) for _ in range(2)]
        writing = [pool.submit(write, name) for name in "abc"]
        try:
            for future in writing:
                future.result()
        finally:
            done.set()
        for future in clearing:
            future.result()
    assert names() == ["a", "b", "c", "file"]
    assert names("data/a") == ["a", "sub"]


def test_whatever_moment_a_process_is_killed_at_its_files_go_and_what_was_replaced_returns() -> None:
    """A kill leaves only a lock, a partial folder, the old folder under its temporary name, or the new folder too."""
    for name in ("lock-0123", "written-0123", "aside-0123", "new-0123"):
        Path(f".writing-{name}.lock").touch()
    for name in (".writing-written-0123", ".writing-aside-0123", ".replaced-aside-0123", ".replaced-new-0123", "new"):
        Path(name).mkdir()
        Path(name, name.strip(".")).touch()
    Path(".writing-of-an-earlier-version").mkdir()  # which locked the folder itself
    Path("folder").mkdir()
    remove_abandoned(Path())
    assert names(".") == ["aside", "folder", "new"]
    assert (names("aside"), names("new")) == (["replaced-aside-0123"], ["new"])


def test_where_the_file_system_refuses_locks_files_are_written_and_nothing_counts_as_abandoned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(path: Path) -> Any:
        path.touch()
        raise OSError(errno.ENOLCK, "No locks available")

    Path("data/.writing-other-0123").mkdir(parents=True)
    monkeypatch.setattr(atomic, "try_lock", refuse)
    with atomic_folder(Path("data/set")) as written:
        (written / "a").touch()
    remove_abandoned(Path())
    assert {".writing-other-0123", "set"} <= {*names()} and not list(Path("data").glob(".writing-set-*"))


def test_a_run_of_another_user_shows_its_holder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock file that cannot be written is opened for reading."""

    def refuse(path: Path) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied")

    path = Path("lock")
    with locked(path, "The run"), monkeypatch.context() as patch:
        patch.setattr(file_lock, "try_lock", refuse)
        assert str(holder(path)).startswith("process ")
    Path("lock.holder").write_text("process 4711 on atlas")  # as a killed process leaves it
    monkeypatch.setattr(file_lock, "try_lock", refuse)
    assert holder(path) is None


def test_a_lock_file_of_an_earlier_version_does_no_harm() -> None:
    """The lock file of an earlier version contained the name of its holder."""
    path = Path("lock")
    path.write_text("process 4711 on atlas, since 2026-03-01T09:30:00+01:00\n")
    assert holder(path) is None
    with locked(path, "The run"):
        assert str(holder(path)).startswith("process ")
        assert try_lock(path) is None
    assert holder(path) is None
