"""Architecture: which part of the package imports which, what stays out of the code, what the READMEs must show."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

# Parts of the package in the order in which data flows: a part imports only from those named, which are above it.
PARTS: dict[str, str] = {
    "errors": "",
    "message": "errors",
    "extras": "errors",
    "storage": "errors message",
    "config": "errors message storage",
    "interface": "errors",
    "gpu": "",
    "runtime": "config gpu",
    "cluster": "errors storage runtime",
    "tokenizers": "errors storage config",
    "models": "errors storage config runtime tokenizers",
    "data": "errors message extras storage config tokenizers",
    "runs": "errors message storage config models data",
    "decoding": "errors message extras storage config interface runtime tokenizers models runs data",
    "text": "errors message config interface tokenizers runs data decoding",
    "documents": "errors storage tokenizers decoding text",
    "evaluation": "errors message storage config interface tokenizers models runs data decoding text",
    "training": "errors message storage config runtime cluster tokenizers models runs data",
    "recipes": "errors message extras config gpu runtime cluster runs data evaluation training",
    "plotting": "errors message storage config tokenizers models runs evaluation training",
    "export": "errors message extras storage config runtime tokenizers models runs data decoding evaluation",
    "importing": "errors message extras storage config runtime tokenizers models runs data decoding export",
    "reporting": "errors storage runtime tokenizers runs data text evaluation training plotting",
    "api": "errors message storage config interface runs data decoding text documents training recipes",
    "teachers": "errors message extras storage config runs data decoding text evaluation export importing",
    "synthesis": "errors message storage config interface data teachers",
    "quality": "errors message storage config runs",
    "benchmark": "config runtime tokenizers models runs data decoding training api",
    "serving": "errors message config tokenizers runs data decoding text documents",
    "cli": "errors message extras storage config gpu runtime cluster tokenizers models runs data decoding text "
    "documents evaluation training recipes plotting export importing reporting api synthesis quality benchmark "
    "serving",
}
PACKAGE = ROOT / "nmt"
NODES = {path: list(ast.walk(ast.parse(path.read_text()))) for path in sorted(PACKAGE.rglob("*.py"))}
# Packages and modules that may load TensorFlow as they are imported.
WITH_TENSORFLOW = (
    "runtime",
    "cluster.group",
    "cluster.hosts",
    "models",
    "decoding.beam",
    "decoding.ensemble",
    "decoding.tensorflow_engine",
    "decoding.search",
    "evaluation.validation_decoder",
    "training",
    "recipes.budget",
    "benchmark",
    "export.export",
    "export.saved_model",
    "export.verification",
    "importing",
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
MOST_MODULES, MOST_LINES = 15, 500


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def imports_of(path: Path) -> set[str]:
    """Return the modules of the package that a file imports, as "training.trainer"."""
    found = set()
    for node in NODES[path]:
        if isinstance(node, ast.ImportFrom) and node.module == "nmt":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nmt."):
            module = str(node.module).removeprefix("nmt.")
            inside = {f"{module}.{alias.name}" for alias in node.names}
            found |= (inside & MODULES) or {module}
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("nmt.") for alias in node.names if alias.name.startswith("nmt.")}
    return found


MODULES = {module_of(path) for path in NODES}
IMPORTS = {module_of(path): imports_of(path) for path in NODES}


def test_imports_between_parts_are_the_planned_ones() -> None:
    edges: dict[str, set[str]] = {part: set() for part in PARTS}
    for module, imported in IMPORTS.items():
        part = module.partition(".")[0]
        if part in PARTS:
            edges[part] |= {one.partition(".")[0] for one in imported} - {part, "version"}
    assert edges == {part: set(allowed.split()) for part, allowed in PARTS.items()}


def test_imports_between_parts_point_one_way() -> None:
    order = list(PARTS)
    upward = [
        (part, other) for part, allowed in PARTS.items() for other in allowed.split()
        if order.index(other) >= order.index(part)
    ]  # fmt: skip
    assert not upward


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {module: imported & MODULES - {module} for module, imported in IMPORTS.items()}
    while leaves := [module for module, imported in graph.items() if not imported]:
        graph = {module: imported.difference(leaves) for module, imported in graph.items() if imported}
    assert not graph


def test_a_folder_imports_nothing_by_itself() -> None:
    for path in NODES:
        if path.name == "__init__.py" and path.parent != PACKAGE:
            body = ast.parse(path.read_text()).body
            assert len(body) == 1 and isinstance(body[0], ast.Expr), f"{path} holds more than its docstring"


def test_nothing_outside_the_models_imports_an_architecture() -> None:
    for module, imported in IMPORTS.items():
        if not module.startswith("models."):
            assert not {one for one in imported if one.startswith("models.transformer")}, module


def test_folders_and_modules_stay_small() -> None:
    crowded = [
        folder for folder in {path.parent for path in NODES}
        if len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) > MOST_MODULES
    ]  # fmt: skip
    assert not crowded
    long = {str(path.relative_to(PACKAGE)) for path in NODES if len(path.read_text().splitlines()) > MOST_LINES}
    assert not long


def test_no_module_is_a_junk_drawer() -> None:
    assert not {path.stem for path in NODES} & {"util", "utils", "helper", "helpers", "common", "misc"}


def test_modules_load_tensorflow_and_templates_only_where_they_are_used() -> None:
    light = [
        module for module in sorted(MODULES)
        if not module.startswith("__") and not any(f"{module}.".startswith(f"{name}.") for name in WITH_TENSORFLOW)
    ]  # fmt: skip
    without_report = ["evaluation.evaluate", "cli.commands.evaluate"]
    code = "\n".join(
        f"for module in {modules}: __import__('nmt.' + module)\nassert {absent!r} not in sys.modules, {absent!r}"
        for modules, absent in ((without_report, "jinja2"), (light, "tensorflow"))
    )
    subprocess.run([sys.executable, "-c", f"import sys\n{code}"], check=True)


def test_nothing_is_pickled_or_unpickled_outside_the_allow_listing_reader() -> None:
    for path, nodes in NODES.items():
        imported = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {name for node in imported for name in (getattr(node, "module", ""), *(a.name for a in node.names))}
        assert not names & {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}, path.name
        assert "allow_pickle=True" not in path.read_text(), path.name


def test_the_code_has_no_asserts_and_no_inline_defaults() -> None:
    for path, nodes in NODES.items():
        assert not any(isinstance(node, ast.Assert) for node in nodes), path.name
        assert not re.search(r"\.get\([\"'][a-z_]+[\"'], ", path.read_text()), path.name


def test_options_are_spelled_by_the_command_line_alone() -> None:
    """Other messages name arguments and settings as data (``nmt.message``); a whole command is the same everywhere."""
    spelled = []
    for path, nodes in NODES.items():
        if "cli" in path.parts or path.name in ("message.py", "charts.py"):  # charts.py has names of colours in CSS
            continue
        docstrings = {ast.get_docstring(node, clean=False) for node in nodes if isinstance(node, DOCUMENTED)}
        for node in nodes:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                docstrings.add(node.value.value)
        strings = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        for text in strings:
            without_commands = re.sub(r"\b(nmt|pip|docker|curl) [^\n]*", "", text)
            if text not in docstrings and re.search(r"(?<![\w-])--[a-z]", without_commands):
                spelled.append(f"{path.relative_to(PACKAGE)}: {text[:80]}")
    assert not spelled


def test_top_level_holds_what_the_plan_names() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not tracked:
        pytest.skip("not a git checkout")
    top = {name.split("/")[0] for name in tracked}
    planned = {"pyproject.toml", "README.md", "LICENSE", "nmt", "configs", "data", "checkpoints", "tests"}
    assert {name for name in top if not name.startswith(".")} == planned
    within = [name for name in tracked if name.startswith(("data/", "checkpoints/"))]
    assert within == ["checkpoints/README.md", "data/README.md"]


# --- the README -------------------------------------------------------------------------------------------------------

README = (ROOT / "README.md").read_text()


def test_the_map_names_the_modules_of_each_folder_and_no_others_in_the_order_of_imports() -> None:
    modules: dict[str, set[str]] = {}
    for path in NODES:
        if path.name != "__init__.py":
            modules.setdefault(f"{path.parent.relative_to(PACKAGE)}/".replace("./", "nmt/"), set()).add(path.stem)
    text = (PACKAGE / "README.md").read_text().split("```text\n")[1].split("```")[0]
    mapped = {}
    for line in re.sub(r"\n +", " ", text).splitlines():
        folder, _, names = re.sub(r" \(.*?\)", "", line).partition(" ")
        mapped[folder] = set(names.partition(": ")[2].split(", "))
    assert mapped == modules, "correct the map of nmt/README.md"
    order = [folder[:-1] for folder in mapped if folder[:-1] in PARTS]
    assert order == [part for part in PARTS if part in order]


def test_every_module_begins_with_a_line_that_says_what_it_holds() -> None:
    openings = {path: (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0] for path in NODES}
    assert [str(path) for path, line in openings.items() if len(line) < 20 or line[-1] not in ".:"] == []


def test_every_command_of_the_program_stands_in_the_readme() -> None:
    from nmt.cli.app import app

    names = [command.callback.__name__ for command in app.registered_commands]  # type: ignore[union-attr]
    for name in [*names, *(group.typer_instance.info.name for group in app.registered_groups)]:  # type: ignore[union-attr]
        assert re.search(rf"\bnmt {name}\b", README), name


def test_every_configuration_opens_with_its_command() -> None:
    for path in (ROOT / "configs").glob("*.yaml"):
        opening = path.read_text().split("\n\n")[0]
        assert f"nmt train --config {path.name}" in opening or "nmt demo" in opening, path.name
