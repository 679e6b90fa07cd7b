"""Preparations of one name at the same time: each is refused or stands whole, and none is lost without a word."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import write_tsv

import nmt
from nmt.data.dataset import open_dataset
from nmt.errors import ConflictError
from nmt.storage.atomic import atomic_folder

MEANWHILE = "was changed by another process meanwhile"


@pytest.fixture(autouse=True)
def corpora(folder: Path) -> None:
    """Two corpora of 1,000 pairs, the fewest that are reported while they are read."""
    sources = [" ".join(letters) for letters in itertools.product("abcdefghij", repeat=3)]
    for name, word in (("first", "ja"), ("second", "nein")):
        write_tsv(f"{name}.tsv", [(source, f"{word} {source}") for source in sources])


def content() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path("data/pairs").iterdir()}


@pytest.mark.parametrize("step", ["reading", "comparing languages"])
@pytest.mark.parametrize("existing", [None, "pairs", "pairs to replace"])
def test_what_was_prepared_meanwhile_stays(step: str, existing: str | None) -> None:
    """Whatever was there at the start, and at whatever step the other preparation ends."""
    overwrite = existing is not None
    if existing == "pairs to replace":
        nmt.prepare("first.tsv", name="pairs", set={"data.seed": 7})
    prepared: dict[str, bytes] = {}

    def meanwhile(current: str, done: int, total: int | None) -> None:
        if current == step and not prepared:
            nmt.prepare("second.tsv", name="pairs", overwrite=overwrite)
            prepared.update(content())

    with pytest.raises(ConflictError, match=f"^data/pairs {MEANWHILE}"):
        nmt.prepare("first.tsv", name="pairs", overwrite=overwrite, progress=meanwhile)
    assert content() == prepared
    assert [path.name for path in Path("data").iterdir()] == ["pairs"]
    assert open_dataset("pairs").manifest.corpus.name == "second.tsv"


def test_a_killed_preparation_is_in_nobody_s_way() -> None:
    nmt.prepare("second.tsv", name="pairs")
    kill = "import os, nmt; nmt.prepare('first.tsv', name='pairs', overwrite=True, progress=lambda *_: os.kill(0, 9))"
    killed = subprocess.run([sys.executable, "-c", kill], check=False, timeout=120, start_new_session=True)
    assert killed.returncode == -signal.SIGKILL
    assert nmt.prepare("first.tsv", name="pairs", overwrite=True).is_new


# --- the last moment: between two renames of a writer, others begin and end theirs


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("starts", [*itertools.combinations(range(5), 2)])
def test_of_writers_of_a_folder_exactly_one_succeeds(
    replace: bool, starts: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """``starts``: before which renames the second and the third writer leave their blocks, whole."""
    target = Path("data/set")
    if replace:
        with atomic_folder(target) as aside:
            (aside / "old").touch()
    writers = {name: contextlib.ExitStack() for name in "abc"}
    for name, writer in writers.items():
        (writer.enter_context(atomic_folder(target, replace=replace)) / name).touch()
    succeeded: list[str] = []
    renames, rename = itertools.count(), Path.rename

    def leave(name: str) -> None:
        if writer := writers.pop(name, None):
            with contextlib.suppress(ConflictError):
                writer.close()
                succeeded.append(name)

    def interrupted(self: Path, to: Path) -> Path:
        number = next(renames)
        for name, start in zip("bc", starts, strict=True):
            if number == start:
                leave(name)
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", interrupted)
    leave("a")
    for name in "bc":  # those that have not left yet
        leave(name)
    assert len(succeeded) == 1
    assert [path.name for path in target.iterdir()] == succeeded
    assert [path.name for path in Path("data").iterdir()] == ["set"]


def test_a_folder_that_was_changed_meanwhile_is_not_replaced() -> None:
    """The time tells it from another one with the same inode, which file systems give away again."""
    target = Path("data/set")
    target.mkdir(parents=True)
    os.utime(target, (0, 0))
    with pytest.raises(ConflictError, match=MEANWHILE), atomic_folder(target, replace=True):
        (target / "new").touch()
    assert [path.name for path in target.iterdir()] == ["new"]


def test_the_next_preparation_removes_what_a_killed_one_has_left() -> None:
    kill = "import os, nmt; nmt.prepare('first.tsv', name='pairs', progress=lambda *_: os.kill(0, 9))"
    subprocess.run([sys.executable, "-c", kill], check=False, timeout=120, start_new_session=True)
    assert list(Path("data").glob(".writing-*"))
    nmt.prepare("second.tsv", name="others")
    assert [path.name for path in Path("data").iterdir()] == ["others"]


def test_a_dataset_that_was_about_to_be_replaced_gets_its_name_back() -> None:
    nmt.prepare("first.tsv", name="pairs")
    Path("data/pairs").rename("data/.replaced-pairs-abcd_123")
    assert not nmt.prepare("first.tsv", name="pairs").is_new
    assert [path.name for path in Path("data").iterdir()] == ["pairs"]


def test_the_processes_of_a_killed_preparation_end() -> None:
    """They share its standard output, which is at its end once all of them are gone."""
    kill = """
import multiprocessing, os, nmt
from nmt.data import encoding
encoding.PARALLEL_PAIRS, encoding.available_processors = 0, lambda: 2

def progress(*_):
    if multiprocessing.active_children():
        print("tokenizing", flush=True)
        os.kill(os.getpid(), 9)

nmt.prepare("first.tsv", name="pairs", progress=progress)
"""
    done = subprocess.run([sys.executable, "-c", kill], check=False, timeout=60, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b"tokenizing\n")
