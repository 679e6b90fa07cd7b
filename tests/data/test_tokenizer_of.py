"""A corpus prepared with the tokenizers of a run, so that another run begins with its weights."""

from pathlib import Path
from typing import Any

import pytest
from conftest import small_pairs, write_tsv

from nmt.config.data import DataConfig
from nmt.config.schema import Config
from nmt.data.dataset import Dataset
from nmt.data.manifest import SIDES, read_manifest
from nmt.data.prepare import TokenizerSource, prepare
from nmt.errors import ConflictError, DataError
from nmt.runs.directory import Run, create_run

pytestmark = pytest.mark.usefixtures("folder")
LONGER = [(f"{source} again, {number}", f"{target} wieder, {number}") for number, (source, target) in
          enumerate(small_pairs(60))]  # fmt: skip


def a_run(name: str = "first", count: int = 100, **settings: Any) -> tuple[Run, Dataset]:
    """Return an untrained run with a dataset, and the dataset."""
    config = DataConfig.model_validate(settings)
    dataset = prepare(write_tsv(f"{name}.tsv", small_pairs(count)), config, f"{name}-data")
    return create_run(name, Config(), [dataset.folder / "manifest.json", *dataset.tokenizer_files]), dataset


def tokenizers_of(run: Run) -> TokenizerSource:
    """Return the tokenizers of a run as the command line passes them."""
    return TokenizerSource(run.name, run.folder, read_manifest(run.dataset_path).settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"tokenizer": "word", "normalization": "ascii-words", "min_count": 2},
        {"tokenizer": "char", "normalization": "nfkc", "joint_vocabulary": True},
        {"tokenizer": "subword", "vocabulary_size": 320, "subword_model": "bpe"},
    ],
    ids=lambda settings: settings["tokenizer"],
)
def test_text_becomes_the_ids_of_the_run(settings: dict[str, Any]) -> None:
    run, original = a_run(**settings)
    file = write_tsv("other.tsv", LONGER)
    prepared = prepare(file, DataConfig(seed=5), "other", tokenizer_source=tokenizers_of(run))
    for file in original.tokenizer_files:
        assert (prepared.folder / file.name).read_bytes() == file.read_bytes()
    assert [file.name for file in prepared.tokenizer_files] == [file.name for file in original.tokenizer_files]
    manifest = prepared.manifest
    assert manifest.tokenizer_of == "first"
    assert (manifest.vocabulary, manifest.unit) == (original.manifest.vocabulary, original.manifest.unit)
    assert manifest.settings == original.manifest.settings.model_copy(update={"dataset": "other", "seed": 5})
    for name in ("validation", "test"):
        split = prepared.split(name)  # type: ignore[arg-type]
        for side, tokenizer, sequences in zip(SIDES, original.tokenizers(), (split.source, split.target), strict=True):
            lines = prepared.text(name, side).read_text().splitlines()  # type: ignore[arg-type]
            assert [sequences[index].tolist() for index in range(len(sequences))] == [*map(tokenizer.encode, lines)]
            assert manifest.splits[name].unknown[side] == sum(len(tokenizer.unknown(line)) for line in lines)
    has_unknown = manifest.splits["train"].unknown["source"] > 0
    assert has_unknown == (settings["tokenizer"] != "subword")  # which writes what it does not know as bytes


def test_the_same_is_not_prepared_twice_and_other_tokenizers_are_a_conflict() -> None:
    (run, _), (second_run, _) = a_run(tokenizer="word"), a_run("second", 40, tokenizer="word")
    file, config = write_tsv("other.tsv", LONGER), DataConfig(tokenizer="word", normalization="nfkc")
    twin = create_run("twin", Config(), [run.folder / "dataset.json", *run.tokenizer_files])
    for source, is_new in ((run, True), (run, False), (twin, False)):
        assert prepare(file, config, "other", tokenizer_source=tokenizers_of(source)).is_new == is_new
    for source in (tokenizers_of(second_run), None):
        with pytest.raises(ConflictError, match="tokenizers of run 'first' before"):
            prepare(file, config, "other", tokenizer_source=source)
    assert prepare(file, config, "other", overwrite=True).manifest.tokenizer_of is None
    with pytest.raises(ConflictError, match="of run 'first' now"):
        prepare(file, config, "other", tokenizer_source=tokenizers_of(run))


def test_damaged_tokenizers_are_refused_and_nothing_is_written(folder: Path) -> None:
    run, _ = a_run(tokenizer="subword", vocabulary_size=320)
    (run.folder / "tokenizer.target.model").write_bytes(b"damaged")
    with pytest.raises(DataError, match=r"tokenizer\.target\.model has changed"):
        prepare(write_tsv("other.tsv", LONGER), DataConfig(), "other", tokenizer_source=tokenizers_of(run))
    assert [path.name for path in (folder / "data").iterdir()] == ["first-data"]
