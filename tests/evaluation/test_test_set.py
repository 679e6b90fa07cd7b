"""Test sets from test splits of datasets and from files."""

from pathlib import Path

import pytest
from conftest import small_pairs, write_pickle

from nmt.config.data import DataConfig
from nmt.data.prepare import prepare
from nmt.errors import ConflictError
from nmt.evaluation.test_set import read_test_split


def test_runs_are_scored_on_the_test_split_that_they_left_out(folder: Path) -> None:
    corpus = write_pickle(folder / "pairs.pkl", small_pairs())
    first = prepare(corpus, DataConfig(), "one")
    same = prepare(corpus, DataConfig(min_count=2), "again")
    different = prepare(corpus, DataConfig(seed=5), "other")
    test_set = read_test_split({"a": first.manifest, "b": same.manifest})
    assert test_set.sources == first.text("test", "source").read_text().splitlines()
    assert test_set.references == [first.text("test", "target").read_text().splitlines()]
    with pytest.raises(ConflictError, match="test splits of 'b'"):
        read_test_split({"a": first.manifest, "b": different.manifest})
    files = {name: checksum for name, checksum in first.manifest.files.items() if not name.startswith("test.")}
    imported = first.manifest.model_copy(update={"files": files})  # as an imported run has it
    assert read_test_split({"teacher": imported, "b": same.manifest}).sources == test_set.sources
