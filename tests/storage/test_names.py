"""Names of files and runs: where they are looked for, and what is suggested instead."""

import functools
from pathlib import Path

import pytest

from nmt.config.loading import find_config
from nmt.errors import NotFoundError
from nmt.storage.names import find_file


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "configs").mkdir()
    (tmp_path / "sutskever.log").touch()
    (tmp_path / "sutskewer.yml").touch()
    (tmp_path / "configs" / "luong.yaml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("name", "suggested"), [
    ("sutskever.yaml", "sutskewer.yml"), ("loung.yaml", "luong.yaml"), ("bas.yaml", "base.yaml"),
    ("sutskever.lgo", "sutskever.log"),
])  # fmt: skip
def test_a_missing_file_is_taken_for_one_of_its_kind_nearby(folder: Path, name: str, suggested: str) -> None:
    find = find_config if name.endswith("yaml") else functools.partial(find_file, folders=[], what="file")
    with pytest.raises(NotFoundError, match=rf"\(did you mean '{suggested}'\?\)"):
        find(name)
    (folder / "sutskewer.yml").unlink()
    with pytest.raises(NotFoundError) as refused:
        find_config("sutskever.yaml")
    assert "sutskever.log" not in str(refused.value)
