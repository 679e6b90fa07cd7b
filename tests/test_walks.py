"""The walks of nmt/README.md: the functions that it links are entered in its order."""

import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest
from conftest import ROOT, run_nmt

README = (ROOT / "nmt" / "README.md").read_text()
TRAIN = ["train", "--config", "base.yaml", "--run", "walk", "--set", "training.epochs=1"]


def linked(title: str) -> list[tuple[str, str]]:
    """Return file and name of the functions that a section links, in its order."""
    section = README.split(f"## {title}\n")[1].split("\n## ")[0]
    return [(path, name) for name, path in re.findall(r"\[`([\w.]+)`\]\(([\w/]+\.py)\)", section)]


@pytest.fixture
def entered() -> Iterator[dict[tuple[str, str], int]]:
    """The functions of the package that the test enters, and when first. Graphs are run as Python."""
    from nmt.runtime import tf

    first: dict[tuple[str, str], int] = {}
    package = str(ROOT / "nmt") + "/"

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(package):
            first.setdefault((frame.f_code.co_filename.removeprefix(package), frame.f_code.co_qualname), len(first))

    profilers: list[Callable] = [sys.setprofile, threading.setprofile]
    tf.config.run_functions_eagerly(True)
    for profiler in profilers:
        profiler(note)
    yield first
    for profiler in profilers:
        profiler(None)
    tf.config.run_functions_eagerly(False)


@pytest.mark.parametrize(
    ("title", "arguments"),
    [
        ("The walk of a corpus", ["prepare", "english-german-both.pkl", "--name", "walk"]),
        ("The walk of a plan", TRAIN),
        ("The walk of training", TRAIN),
        ("The walk of a sentence", ["translate", "--run", "base", "--beam", "5", "im thirsty"]),
    ],
)
def test_the_functions_of_a_walk_are_entered_in_its_order(
    title: str,
    arguments: list[str],
    entered: dict[tuple[str, str], int],
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(project)
    run_nmt(*arguments)
    walk = linked(title)
    assert len(walk) > 4
    assert [function for function in walk if function not in entered] == []
    assert walk == sorted(walk, key=entered.__getitem__)


@pytest.mark.parametrize("title", ["The walk of training", "The walk of a sentence"])
def test_a_walk_leads_through_every_module_of_the_transformer(title: str) -> None:
    modules = {
        str(path.relative_to(ROOT / "nmt")) for path in (ROOT / "nmt" / "models" / "transformer").glob("*.py")
        if path.name != "__init__.py"
    }  # fmt: skip
    assert modules
    assert modules - {path for path, _ in linked(title)} == set()
