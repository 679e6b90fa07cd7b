"""The house rules: which room may import which, what stays out of the code, what the README must show."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

# In the order in which data flows. A room imports only from rooms that stand above it, and of these only the named.
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "files": {"errors"},
    "epochs": {"errors"},
    "yaml_file": set(),
    "config": {"yaml_file", "files", "errors"},
    "config_file": {"config", "yaml_file", "files", "errors"},
    "safe_pickle": {"errors"},
    "fetch": {"files", "errors"},
    "metrics": {"config", "errors"},
    "run": {"metrics", "config_file", "config", "files", "errors"},
    "tensor_file": {"errors"},
    "lock": {"errors"},
    "departure": set(),
    "normalisation": set(),
    "text_files": {"files", "errors"},
    "readers": {"text_files", "files", "safe_pickle", "config", "errors"},
    "spool": {"readers", "errors"},
    "corpus": {"spool", "readers", "text_files", "normalisation", "config", "errors"},
    "splitting": {"corpus", "config", "errors"},
    "doctor": {"readers"},
    "vocabulary": set(),
    "word_tokenizer": {"vocabulary", "normalisation", "config", "files"},
    "subword_tokenizer": {"vocabulary", "normalisation", "config", "files", "errors"},
    "tokenizer": {"vocabulary", "word_tokenizer", "subword_tokenizer", "config", "files", "errors"},
    "manifest": {"config", "files", "errors"},
    "encoding": {"manifest", "tokenizer", "spool", "readers", "text_files", "corpus", "config", "errors"},
    "preparation": {
        "manifest", "encoding", "tokenizer", "doctor", "splitting", "spool", "corpus", "run", "config", "errors",
    },
    "dataset": {
        "preparation", "manifest", "encoding", "spool", "tokenizer", "text_files", "corpus", "run", "config", "files",
        "errors",
    },
    "demo_corpus": set(),
    "demo": {"demo_corpus", "dataset", "config_file", "config", "files"},
    "batches": {"dataset", "tokenizer", "config"},
    "runtime": {"config", "errors"},
    "positions": set(),
    "schedule": {"config"},
    "divergence": set(),
    "operations": set(),
    "layers": {"operations", "positions", "tokenizer"},
    "attention": {"layers", "operations", "tokenizer"},
    "blocks": {"attention", "layers"},
    "transformer": {"blocks", "layers", "attention", "operations", "config"},
    "models": {"transformer", "attention", "config", "errors"},
    "losses": {"operations", "tokenizer"},
    "optimizer": {"tensor_file", "config"},
    "steps": {"models", "losses", "optimizer", "divergence", "tensor_file", "config"},
    "weights": {"tensor_file", "metrics", "run", "files", "errors"},
    "checkpoint": {"weights", "tensor_file", "run", "config", "files", "errors"},
    "progress": {"metrics", "epochs"},
    "validation_pass": {"steps", "batches", "dataset", "config"},
    "continuation": {"weights", "run", "schedule", "dataset", "runtime", "config", "files", "errors"},
    "learner": {
        "continuation", "validation_pass", "steps", "optimizer", "schedule", "models", "batches", "dataset",
        "weights", "tensor_file", "runtime", "config",
    },
    "training": {
        "learner", "steps", "batches", "dataset", "checkpoint", "weights", "tensor_file", "progress", "metrics", "run",
        "departure", "runtime", "config", "errors",
    },
    "preflight": {"training", "batches", "dataset", "checkpoint", "weights", "runtime", "errors"},
    "search_loop": set(),
    "search": {"search_loop"},
    "beam_search": {"search_loop"},
    "translation": {
        "tokenizer", "models", "transformer", "search_loop", "search", "beam_search",
        "weights", "metrics", "run", "batches", "dataset", "runtime", "config",
        "errors",
    },
    "validation": {
        "translation", "training", "models", "weights", "tensor_file", "dataset", "metrics", "config", "files",
    },
    "averaging": {
        "validation", "validation_pass", "models", "weights", "tensor_file", "dataset", "metrics", "run", "runtime",
    },
    "evaluation_set": {"dataset", "text_files", "files", "errors"},
    "overlap": {"evaluation_set", "dataset", "manifest", "run", "tokenizer", "config", "errors"},
    "evaluation": {"overlap", "config", "errors"},
    "report": {"evaluation"},
    "report_page": {"report", "evaluation", "errors"},
    "flops": {"config"},
    "op_times": set(),
    "generated": {"dataset", "tokenizer"},
    "benchmark": {
        "steps", "batches", "dataset", "flops", "op_times", "optimizer", "schedule", "search_loop", "search",
        "beam_search", "tokenizer", "translation", "runtime", "config",
    },
    "plots": {"metrics", "run", "epochs", "tensor_file", "positions", "schedule", "config", "files", "errors"},
}  # fmt: skip
COMMANDS = sorted((ROOT / "nmt" / "commands").glob("*.py"))  # like cli.py, they may import every room
SOURCES = sorted((ROOT / "nmt").glob("*.py")) + COMMANDS
WITHOUT_TENSORFLOW = [
    "checkpoint",
    "config",
    "corpus",
    "dataset",
    "demo",
    "evaluation",
    "evaluation_set",
    "fetch",
    "flops",
    "overlap",
    "plots",
    "report_page",
    "run",
    "tokenizer",
    "weights",
]


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "nmt":
            rooms |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nmt."):
            rooms.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("nmt.")}
    return rooms


def test_every_module_has_its_room() -> None:
    assert {path.stem for path in SOURCES if path not in COMMANDS} - {"__init__", "cli"} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_the_plan_allows(room: str) -> None:
    assert imported_rooms(ROOT / "nmt" / f"{room}.py") <= ROOMS[room]


def test_imports_point_one_way() -> None:
    order = list(ROOMS)
    for room, allowed in ROOMS.items():
        for other in allowed:
            assert order.index(other) < order.index(room), f"{room} stands above {other}"


def test_no_module_is_a_junk_drawer() -> None:
    assert not {path.stem for path in SOURCES} & {"util", "utils", "helper", "helpers", "common", "misc"}


def test_rooms_that_do_not_compute_do_not_load_tensorflow() -> None:
    loaded = f"import sys\nfor room in {WITHOUT_TENSORFLOW}: __import__('nmt.' + room)\n"
    code = f"{loaded}assert 'tensorflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_is_pickled_or_unpickled_outside_the_allow_listing_reader() -> None:
    for path in SOURCES:
        names = {
            alias.name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        }
        assert not names & {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}, path.name
        assert "allow_pickle=True" not in path.read_text(), path.name


def test_the_code_has_no_asserts_and_no_inline_defaults() -> None:
    for path in SOURCES:
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(path.read_text()))), path.name
        assert not re.search(r"\.get\([\"'][a-z_]+[\"'], ", path.read_text()), path.name


def test_top_level_holds_what_the_plan_names() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not tracked:
        pytest.skip("not a git checkout")
    top = {name.split("/")[0] for name in tracked}
    planned = {"pyproject.toml", "README.md", "LICENSE", "nmt", "configs", "data", "checkpoints", "tests"}
    assert {name for name in top if not name.startswith(".")} == planned
    assert [name for name in tracked if name.startswith(("data/", "checkpoints/"))] == [
        "checkpoints/README.md",
        "data/README.md",
    ]


# --- the README -------------------------------------------------------------------------------------------------------

README = (ROOT / "README.md").read_text()


def test_the_map_names_every_module() -> None:
    for path in SOURCES:
        if path.stem != "__init__":
            assert re.search(rf"^ *{path.stem}\.py ", README, re.M), path.stem


def test_every_command_of_the_program_stands_in_the_readme() -> None:
    from nmt.cli import app

    for command in app.registered_commands:
        assert re.search(rf"\bnmt {command.callback.__name__}\b", README), command  # type: ignore[union-attr]


def test_every_configuration_opens_with_its_command() -> None:
    for path in (ROOT / "configs").glob("*.yaml"):
        opening = path.read_text().split("\n\n")[0]
        assert f"nmt train --config {path.name}" in opening or "nmt demo" in opening, path.name
