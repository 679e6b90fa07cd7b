"""The recipe for a dataset: the configuration that ``nmt train`` chooses by what the dataset is."""

from collections.abc import Sequence

from nmt.data.dataset import Dataset
from nmt.recipes.composition import Recipe, compose
from nmt.recipes.facts import Facts


def recipe_for(dataset: Dataset, minutes: float | None = None, overrides: Sequence[str] = ()) -> Recipe:
    """Return the recipe for a dataset.

    Args:
        dataset: a prepared dataset.
        minutes: time of training that the recipe is fitted into, by the speed of this machine, which is measured then
            (TensorFlow is loaded); None: the number of epochs of the table.
        overrides: settings ``section.key=value``. What depends on them follows them.

    Raises:
        ConfigError: for an override that breaks the schema, or a budget without room for an epoch.
        NotFoundError: if the run that ``training.start_from`` names does not exist.
    """
    recipe = compose(Facts.of(dataset.name, dataset.manifest), overrides)
    if minutes is None:
        return recipe
    from nmt.recipes.budget import fit_recipe  # noqa: PLC0415 - loads TensorFlow

    return fit_recipe(recipe, dataset, minutes)
