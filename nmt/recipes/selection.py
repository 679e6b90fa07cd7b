"""Selection of the run that ``nmt train`` trains: its name and configuration, which may be a recipe."""

from pathlib import Path
from typing import NamedTuple

from nmt.config.loading import find_config, load_config, read_overrides
from nmt.config.schema import Config
from nmt.data.dataset import find_dataset
from nmt.errors import ConfigError
from nmt.recipes.composition import Recipe, with_epochs
from nmt.recipes.recipe import recipe_for
from nmt.runs.directory import find_run, run_exists


class Selection(NamedTuple):
    """A run to train."""

    name: str
    """Name of the run."""
    config: Config
    """Its configuration."""
    dataset: str | None
    """Name of the dataset; None: that of the resumed run, or for a new run the one prepared last."""
    recipe: Recipe | None = None
    """The recipe, if the configuration is one."""
    minutes: float | None = None
    """Time of training that the run is still to be fitted into; None: as long as its configuration says."""
    note: str | None = None
    """What was decided about the length of the run, for the terminal."""

    @property
    def lines(self) -> list[str]:
        """What was chosen and why, for the terminal."""
        if self.recipe is None:
            return [self.note] if self.note else []
        change = (
            f"To change it: --set section.key=VALUE; or edit checkpoints/{self.name}/recipe.yaml, and give it with "
            "--config and a new --run. --minutes M fits it into M minutes."
        )
        return [*self.recipe.reasons, change]

    @property
    def recipe_text(self) -> str | None:
        """The recipe as a file, if the configuration is one."""
        return self.recipe.yaml if self.recipe else None


def select(
    config: str | Path | None = None,
    run: str | None = None,
    dataset: str | None = None,
    overrides: list[str] | None = None,
    *,
    minutes: float | None = None,
) -> Selection:
    """Return the run to train and its configuration.

    With a configuration file the run has its name. An existing run, or else the run with the name of the dataset, goes
    on with the configuration that it was started with. A new run has the recipe for its dataset.

    Args:
        config: configuration file; None: that of an existing run, or a recipe.
        run: name of the run; None: that of the configuration file, or of the dataset.
        dataset: name of the dataset; None: that of the configuration, else the one prepared last.
        overrides: settings ``section.key=value``.
        minutes: time of training that ``fit`` fits a new run into. An existing run keeps its length.

    Raises:
        NotFoundError: if the configuration or the dataset does not exist.
        ConfigError: if the configuration or an override breaks the schema, or contradicts ``minutes``.
    """
    overrides = overrides or []
    if minutes is not None:
        _check_minutes(minutes, overrides)
    selection = _select(config, run, dataset, overrides)
    if minutes is None:
        return selection
    if run_exists(selection.name):
        epochs = find_run(selection.name).config().training.epochs
        note = f"Note: run {selection.name} exists and keeps its {epochs} epochs; --minutes is for new runs."
        return selection._replace(config=with_epochs(selection.config, epochs), note=note)
    return selection._replace(minutes=minutes)


def _select(config: str | Path | None, run: str | None, dataset: str | None, overrides: list[str]) -> Selection:
    if config is not None:
        path = find_config(str(config))
        settings = load_config(path, overrides)
        return Selection(run or path.stem, settings, dataset or settings.data.dataset)
    if run is not None and run_exists(run):
        return _resumed(run, dataset, overrides)
    named = read_overrides(overrides).get("data.dataset")
    found = find_dataset(dataset or (named if isinstance(named, str) else None))
    if run is None and run_exists(found.name):
        return _resumed(found.name, found.name, overrides)
    recipe = recipe_for(found, overrides=overrides)
    return Selection(run or found.name, recipe.config, found.name, recipe)


def _resumed(run: str, dataset: str | None, overrides: list[str]) -> Selection:
    return Selection(run, load_config(find_run(run).config_path, overrides), dataset)


def _check_minutes(minutes: float, overrides: list[str]) -> None:
    if not 0 < minutes < float("inf"):
        raise ConfigError(f"--minutes is {minutes:g}. It is the time of training, more than 0. Change the value.")
    if "training.epochs" in read_overrides(overrides):
        raise ConfigError(
            f"--minutes {minutes:g} chooses the number of epochs; received it with --set training.epochs. Leave out "
            "one of the two."
        )


def fit(selection: Selection) -> Selection:
    """Return the selection with a length, and if it is a recipe perhaps a smaller model, that fits into its minutes.

    Raises:
        ConfigError: if not an epoch fits.
    """
    if selection.minutes is None:
        return selection

    from nmt.recipes.budget import fit_config, fit_recipe  # noqa: PLC0415 - loads TensorFlow

    dataset = find_dataset(selection.dataset)
    if selection.recipe:
        recipe = fit_recipe(selection.recipe, dataset, selection.minutes)
        return selection._replace(config=recipe.config, recipe=recipe, minutes=None)
    config, note = fit_config(selection.config, dataset, selection.minutes)
    return selection._replace(config=config, note=note, minutes=None)
