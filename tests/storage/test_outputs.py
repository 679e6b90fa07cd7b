"""Output files that a user names are written, and never overwrite a file that existed before or appears meanwhile."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import ConflictError, unusable_file_message
from nmt.plotting import style
from nmt.reporting.page import output_page
from nmt.storage.atomic import atomic_file
from nmt.storage.outputs import OutputFile, refuse_inputs


def without_links(self: Path, target: Path) -> None:
    """Behave like a file system without hard links."""
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


LINKS = pytest.mark.parametrize("has_links", [True, False], ids=["links", "no links"])


@pytest.fixture
def path(folder: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool) -> Path:
    if not has_links:
        monkeypatch.setattr(Path, "hardlink_to", without_links)
    return Path("out.html")


@LINKS
def test_a_new_file_is_written(path: Path) -> None:
    OutputFile(path).write(b"new")
    assert path.read_bytes() == b"new" and path.stat().st_nlink == 1
    assert list(Path().iterdir()) == [Path("out.html")]


@LINKS
@pytest.mark.parametrize("kind", ["file", "link to nothing", "folder", "special"])
def test_what_exists_is_refused_before_the_work(path: Path, kind: str) -> None:
    if kind == "file":
        path.write_bytes(b"mine")
    elif kind == "folder":
        path.mkdir()
    elif kind == "special":
        path = Path("/dev/null")
    else:
        path.symlink_to("elsewhere")
    before = path.lstat()
    with pytest.raises(ConflictError, match=r"exists already\. It is never overwritten"):
        OutputFile(path)
    assert path.lstat() == before


@LINKS
@pytest.mark.parametrize("moment", ["in the work", "while it is written"])
@pytest.mark.parametrize("kind", ["file", "link to nothing"])
def test_what_another_process_writes_meanwhile_stays(path: Path, moment: str, kind: str) -> None:
    output = OutputFile(path)
    other = (lambda: path.write_bytes(b"theirs")) if kind == "file" else (lambda: path.symlink_to("elsewhere"))
    if moment == "in the work":
        other()
    with (
        pytest.raises(ConflictError, match="was changed by another process meanwhile"),
        output.temporary_file() as temporary,
    ):
        temporary.write_bytes(b"ours")
        if moment == "while it is written":
            other()
    assert path.is_symlink() if kind == "link to nothing" else path.read_bytes() == b"theirs"
    assert list(Path().iterdir()) == [Path("out.html")]


@LINKS
def test_a_file_to_be_overwritten_is_replaced_unless_it_changes_meanwhile(path: Path) -> None:
    path.write_bytes(b"old")
    OutputFile(path, overwrite=True).write(b"new")
    assert path.read_bytes() == b"new"
    output = OutputFile(path, overwrite=True)
    path.unlink()
    path.write_bytes(b"theirs")
    os.utime(path, (0, 0))
    with pytest.raises(ConflictError, match="meanwhile"):
        output.write(b"newer")
    assert path.read_bytes() == b"theirs"


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("name", ["in.txt", "./in.txt", "sub/../in.txt", "link.txt", "folder"])
def test_an_input_is_no_output_however_it_is_named(folder: Path, name: str, overwrite: bool) -> None:
    for parent in ("sub", "folder"):
        Path(parent).mkdir()
    for file in ("in.txt", "folder/in.txt"):
        Path(file).write_text("mine")
    Path("link.txt").symlink_to("in.txt")
    inputs = [Path("other.txt"), folder / "in.txt", Path("folder/in.txt")]
    with pytest.raises(ConflictError, match="A command never replaces its own input"):
        OutputFile(Path(name), inputs=inputs, overwrite=overwrite)
    refuse_inputs(Path("new"), inputs)


@pytest.mark.parametrize("suffix", style.METADATA)
def test_a_figure_replaces_a_figure_alone(folder: Path, suffix: str) -> None:
    path = Path(f"a{suffix}")
    for _ in range(2):
        style.save(style.empty_figure(), style.output_figure(path))
    path.write_bytes(b"my own picture")
    with pytest.raises(ConflictError, match=r"exists and is not a figure of nmt\. A figure replaces only an earlier"):
        style.output_figure(path)
    assert path.read_bytes() == b"my own picture"


def test_a_page_replaces_a_page_alone(folder: Path, monkeypatch: Any) -> None:
    Path("a.html").write_text('<html><head>\n<meta name="generator" content="nmt report, nmt 0.1">')
    output_page(Path("a.html"))
    Path("b.html").write_text("<html>my own")
    with pytest.raises(ConflictError, match="not a report of nmt"):
        output_page(Path("b.html"))


@pytest.mark.parametrize("name", ["data/a.txt", "data/deep/a.txt"])
def test_a_file_where_a_folder_has_to_be_is_named(folder: Path, name: str) -> None:
    Path("data").write_text("mine")
    with (
        pytest.raises(ConflictError, match=f"{name} cannot be used: data is a file, and has to be a folder. Move it"),
        atomic_file(Path(name)),
    ):
        pytest.fail("the block must not be entered")
    with pytest.raises(OSError, match="a directory") as refused:
        Path(name).write_text("new")
    assert unusable_file_message(refused.value).startswith(f"{name} cannot be used: data is a file")
    assert Path("data").read_text() == "mine"
