"""Test sets of files, and of the test split that runs left out of training."""

from pathlib import Path

import pytest
from conftest import small_pairs, write_pickle

from nmt.config.data import DataConfig
from nmt.data.dataset import dataset_of_run
from nmt.data.prepare import prepare
from nmt.data.sources.text_file import TextFile
from nmt.errors import ConflictError, DataError, NotFoundError
from nmt.evaluation.test_set import read_test_files, read_test_split


def files(folder: Path, **texts: list[str]) -> dict[str, str]:
    """Write each list of lines to a file and return the paths by name."""
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return {name: str(folder / name) for name in texts}


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    paths = files(tmp_path, a=["1", "2"], b=["1", "2", ""], empty=[])
    assert len(read_test_files(paths["a"], [paths["a"]])) == 2
    with pytest.raises(DataError, match=r"a has 2 and .*b has 3 lines"):
        read_test_files(None, [paths["a"], paths["b"]])
    with pytest.raises(DataError, match=r"a has 2 and .*b has 3 lines"):
        read_test_files(None, [paths["a"]]).check_translations(TextFile(tmp_path / "b"), ["1", "2", ""])
    with pytest.raises(DataError, match="empty"):
        read_test_files(None, [paths["empty"]])
    (tmp_path / "latin").write_bytes(b"ok\nh\xe4\n")
    with pytest.raises(DataError, match=r"latin, line 2 .*0xe4"):
        read_test_files(None, [str(tmp_path / "latin")])


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
    with pytest.raises(ConflictError, match="may have been trained on"):
        dataset_of_run("a", different.manifest.model_copy(update={"settings": first.manifest.settings}))
    first.text("test", "source").write_text("changed\n")
    with pytest.raises(DataError, match=r"test\.source\.txt is missing or has changed"):
        read_test_split({"a": first.manifest})
    (first.folder / "manifest.json").unlink()
    with pytest.raises(NotFoundError, match=r"nmt prepare pairs\.pkl --name one.*--source FILE --reference FILE"):
        read_test_split({"a": first.manifest})
