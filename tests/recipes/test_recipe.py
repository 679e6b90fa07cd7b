"""Recipes of prepared datasets: their file gives the same configuration, and their reasons name its values."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import DATASETS, MakeRun

from nmt.config.loading import load_config
from nmt.data.dataset import Dataset, open_dataset
from nmt.recipes.recipe import Facts, Recipe, compose


def recipe_for(dataset: Dataset, overrides: Sequence[str] = ()) -> Recipe:
    return compose(Facts.of(dataset), overrides)


SETTINGS: dict[str, list[str]] = {
    "none": [],
    "of chosen keys": ["model.d_model=96", "training.epochs=7", "training.schedule=cosine"],
    "of other keys": ["training.trackers=[tensorboard]", "decoding.beam_size=4", "model.norm_placement=pre"],
    "by older names": ["training.accumulate=3", "model.initialisation=glorot", "training.batch_type=sentences"],
}


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_file_reads_back_as_the_configuration(
    dataset: str, settings: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(prepared)
    recipe = recipe_for(open_dataset(dataset), overrides=SETTINGS[settings])
    path = tmp_path / "recipe.yaml"
    path.write_text(recipe.yaml, encoding="utf-8")
    assert load_config(path) == recipe.config
    assert recipe.config.data.dataset == dataset
    assert all(len(line) <= 120 for line in recipe.yaml.splitlines())
    assert load_config(path, SETTINGS[settings]) == recipe.config  # what was set once more changes nothing


def test_facts_describe_the_dataset(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(prepared)
    for name in DATASETS:
        dataset = open_dataset(name)
        train, validation = dataset.split("train"), dataset.split("validation")
        facts = Facts.of(dataset)
        assert (facts.pairs, facts.validation_pairs) == (len(train), len(validation))
        assert facts.target_tokens == train.target.lengths.sum()
        assert facts.source_tokens == train.source.lengths.sum()
        assert abs(facts.target_length - sorted(train.target.lengths)[len(train) // 2]) <= 1
        assert facts.is_joint == DATASETS[name].get("joint_vocabulary", DATASETS[name]["tokenizer"] == "subword")
        old = dataset.manifest.model_copy(update={"splits": {
            name: split.model_copy(update={"percentiles": {}}) for name, split in dataset.manifest.splits.items()
        }})  # fmt: skip
        mean = facts.target_tokens / facts.pairs
        assert abs(Facts.of(dataclasses.replace(dataset, manifest=old)).target_length - mean) <= 0.5


def test_the_reasons_have_the_numbers_in_force(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(prepared)
    changed = recipe_for(open_dataset("subword"), overrides=["model.dropout=0.05", "training.epochs=9"])
    model, training = changed.config.model, changed.config.training
    text = "\n".join(changed.lines)
    numbers = ["96", f"{training.batch_size}", f"{training.peak_learning_rate:g}"]
    assert all(number in text for number in [*numbers, model.description, "9 epochs", "0.05"])
    assert text.endswith("Set by you: model.dropout, training.epochs.")


def test_fine_tuning_takes_the_model_of_the_run(make_run: MakeRun) -> None:
    run = make_run("subword", norm_placement="pre")
    dataset = open_dataset("subword")
    tuned: Recipe = recipe_for(dataset, overrides=[f"training.start_from={run.name}:best"])
    fresh = recipe_for(dataset)
    assert tuned.config.model == run.config().model != fresh.config.model
    assert tuned.config.training.epochs < fresh.config.training.epochs
    assert (tuned.config.training.optimizer, fresh.config.training.optimizer) == ("adam", "muon")
    assert tuned.config.training.peak_learning_rate < fresh.config.training.peak_learning_rate  # type: ignore[operator]
