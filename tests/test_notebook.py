"""The notebook ``configs/small-corpora.ipynb`` runs from top to bottom, and no command in it fails."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from conftest import ROOT
from nbclient import NotebookClient

NOTEBOOK = ROOT / "configs" / "small-corpora.ipynb"
ABBREVIATED = {
    "MINUTES = 5": "MINUTES = 0.1",
    "!head -n 3 {words}": "!head -n 600 {words} > few.tsv && mv few.tsv {words} && head -n 3 {words}",
}
PNG = "image/png"


def checked(cell: str) -> str:
    """Return a code cell in which a failing command ends the notebook. IPython goes on after it."""
    return re.sub(r"^( *)!.+$", r"\g<0>\n\1assert _exit_code == 0", cell, flags=re.M)


def outputs(cell: Any, kind: str) -> list[Any]:
    """Return what a cell has shown of a kind: "text" as it was printed, or data of a MIME type."""
    if kind == "text":
        return [output["text"] for output in cell["outputs"] if output["output_type"] == "stream"]
    return [output["data"][kind] for output in cell["outputs"] if kind in output.get("data", {})]


def test_the_notebook_is_stored_without_results() -> None:
    notebook = json.loads(NOTEBOOK.read_text())
    nbformat.validate(notebook)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None, cell["id"]


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / "jupyter"))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the kernel sets its own
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for whole, part in ABBREVIATED.items():
                cell.source = cell.source.replace(whole, part)
            cell.source = checked(cell.source)
    project = tmp_path / "project"
    project.mkdir()
    resources = {"metadata": {"path": str(project)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()

    cells = {cell.id: cell for cell in notebook.cells}
    assert len(outputs(cells["curves"], PNG)) == 2
    evaluation = "".join(outputs(cells["several-translate"], "text"))
    assert re.search(r"^en-de +60 ", evaluation, re.M) and re.search(r"^de-en +60 ", evaluation, re.M)
    for name, file in (("en-de-ctranslate2", "model.bin"), ("en-de-run", "en-de/config.yaml")):
        with zipfile.ZipFile(project / f"{name}.zip") as archive:
            assert file in archive.namelist(), name
