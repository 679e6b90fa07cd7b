"""Names of files and runs: where they are looked for, and what is suggested instead."""

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


def test_a_missing_configuration_is_not_taken_for_a_neighbour_of_another_kind(folder: Path) -> None:
    (folder / "sutskewer.yml").unlink()
    with pytest.raises(NotFoundError) as refused:
        find_config("sutskever.yaml")
    assert "sutskever.log" not in str(refused.value)


@pytest.mark.parametrize(("name", "suggested"), [
    ("sutskever.yaml", "sutskewer.yml"), ("loung.yaml", "luong.yaml"), ("bas.yaml", "base.yaml"),
])  # fmt: skip
def test_a_missing_configuration_is_taken_for_one_nearby_in_configs_or_of_the_package(
    name: str, suggested: str
) -> None:
    with pytest.raises(NotFoundError, match=rf"\(did you mean '{suggested}'\?\)"):
        find_config(name)


def test_a_missing_corpus_is_taken_for_any_neighbour() -> None:
    with pytest.raises(NotFoundError, match=r"\(did you mean 'sutskever.log'\?\)"):
        find_file("sutskever.lgo", [], "file")
