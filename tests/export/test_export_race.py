"""Exports of one run at the same time."""

from pathlib import Path

import pytest
from conftest import MakeRun

from nmt.errors import ConflictError
from nmt.export.ctranslate2 import CTranslate2Exporter
from nmt.export.export import export_run


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_export_written_meanwhile_stays(make_run: MakeRun, overwrite: bool) -> None:
    run = make_run("word")
    if overwrite:
        export_run(run, CTranslate2Exporter())
    other: dict[Path, bytes] = {}

    def meanwhile(step: str) -> None:
        if not other:
            exported = export_run(run, CTranslate2Exporter(), overwrite=overwrite, licence="CC BY 4.0")
            other.update({path: path.read_bytes() for path in exported.folder.rglob("*") if path.is_file()})

    with pytest.raises(ConflictError, match="ctranslate2-float32 was changed by another process meanwhile"):
        export_run(run, CTranslate2Exporter(), overwrite=overwrite, report=meanwhile)
    assert {path: path.read_bytes() for path in (run.folder / "exports").rglob("*") if path.is_file()} == other
