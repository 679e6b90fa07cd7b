"""Test sets: the split that runs left out of training, files."""

from pathlib import Path

import pytest
from conftest import small_pairs, write_pickle

from nmt.config.data import DataConfig
from nmt.data.prepare import prepare
from nmt.errors import ConflictError, DataError
from nmt.evaluation.test_set import read_test_files, read_test_split


def test_runs_are_scored_on_the_test_split_that_they_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = write_pickle(tmp_path / "pairs.pkl", small_pairs())
    first = prepare(corpus, DataConfig(), "one")
    same = prepare(corpus, DataConfig(min_count=2), "again")
    different = prepare(corpus, DataConfig(seed=5), "other")
    found = read_test_split({"a": first.manifest, "b": same.manifest})
    assert found.sources == first.text("test", "source").read_text().splitlines()
    assert found.references == [first.text("test", "target").read_text().splitlines()]
    with pytest.raises(ConflictError, match="test split of 'b'"):
        read_test_split({"a": first.manifest, "b": different.manifest})


def test_references_with_different_numbers_of_lines_are_refused(tmp_path: Path) -> None:
    for name, text in (("a", "1\n2\n"), ("b", "1\n2\n\n")):
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=r"a has 2 and .*b has 3 lines"):
        read_test_files(None, [str(tmp_path / "a"), str(tmp_path / "b")])
