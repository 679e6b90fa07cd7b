"""Recipes and configurations are fitted into a time budget by a measured speed."""

from pathlib import Path

import pytest
from test_choice import facts, steps, weights

from nmt.config.schema import Config
from nmt.data.dataset import Dataset
from nmt.errors import ConfigError
from nmt.recipes import budget
from nmt.recipes.budget import Speed, fit
from nmt.recipes.recipe import Recipe, compose
from nmt.recipes.sizes import ENOUGH_STEPS, LEAST_EPOCHS, OVERTIME, SIZES, most_epochs


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Config]:
    """Let a step take a second for 100 million weight-tokens; returns the configurations that were measured."""
    configs = []

    def measure(config: Config, dataset: Dataset) -> Speed:
        configs.append(config)
        recipe = compose(facts(MEASURED.pairs))
        model = config.model
        cost = model.d_model * (model.encoder_layers + model.decoder_layers)  # type: ignore[attr-defined]
        per_epoch = steps(recipe) // recipe.config.training.epochs
        return Speed(cost * config.training.batch_size / 1e7, per_epoch, 2.0)

    monkeypatch.setattr(budget, "measure_speed", measure)
    return configs


def fit_recipe(whole: Recipe, dataset: Dataset, minutes: float) -> Recipe:
    recipe, epochs, line = fit(whole.config, whole, dataset, minutes)
    assert recipe and recipe.config.training.epochs == epochs
    assert recipe.lines[-1] == line and line.startswith("Budget: ")
    return recipe


MEASURED = facts()
NO_DATASET: Dataset = Dataset(Path("data/corpus"), None)  # type: ignore[arg-type]


def test_a_recipe_ends_within_its_minutes(measured: list[Config]) -> None:
    whole = compose(MEASURED)
    for minutes in (8, 15, 30, 60, 120, 1_000):
        measured.clear()
        recipe = fit_recipe(whole, NO_DATASET, minutes)
        speed = budget.measure_speed(recipe.config, NO_DATASET)
        epochs = recipe.config.training.epochs
        assert epochs * speed.epoch_seconds <= 60 * minutes + OVERTIME * speed.epoch_seconds
        most = most_epochs(whole.size)
        assert epochs == most or (epochs + 1) * speed.epoch_seconds > 60 * minutes
        assert f"  epochs: {epochs}\n" in recipe.yaml
        assert weights(recipe) <= weights(whole)


def test_a_smaller_model_is_taken_where_few_epochs_fit(measured: list[Config]) -> None:
    whole = compose(MEASURED)
    speed = budget.measure_speed(whole.config, NO_DATASET)
    minutes = (LEAST_EPOCHS - 0.5) * speed.epoch_seconds / 60
    recipe = fit_recipe(whole, NO_DATASET, minutes)
    assert weights(recipe) < weights(whole)
    assert recipe.config.training.epochs >= LEAST_EPOCHS
    assert recipe.config.training.batch_size == whole.config.training.batch_size
    size = whole.size
    own = [f"model.d_model={size.width}", f"model.encoder_layers={size.layers}", f"model.decoder_layers={size.layers}"]
    fixed = fit_recipe(compose(MEASURED, own), NO_DATASET, minutes)
    assert fixed.config.training.epochs < LEAST_EPOCHS
    assert weights(fixed) == weights(whole)


def test_few_epochs_of_many_steps_keep_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    large = compose(facts(5_000_000))
    monkeypatch.setattr(budget, "measure_speed", lambda *_: Speed(0.1, ENOUGH_STEPS, 1.0))
    recipe = fit_recipe(large, NO_DATASET, 10)
    assert recipe.config.training.epochs == 1
    assert recipe.config.model == large.config.model


def test_a_budget_below_an_epoch_of_the_smallest_model_is_refused_and_a_sufficient_one_named(
    measured: list[Config],
) -> None:
    whole = compose(MEASURED)
    with pytest.raises(ConfigError, match=r"^minutes is 0\.01, which has no room for an epoch on dataset 'corpus'"):
        fit_recipe(whole, NO_DATASET, 0.01)
    smallest = measured[-1].model
    assert (smallest.encoder_layers, smallest.d_model) == (SIZES[0].layers, SIZES[0].width)  # type: ignore[attr-defined]
    with pytest.raises(ConfigError) as refused:
        fit(whole.config, None, NO_DATASET, 0.01)
    minutes = float(str(refused.value).split("Give minutes=")[1].split()[0])
    assert fit(whole.config, None, NO_DATASET, minutes)[:2] == (None, 1)
