"""Selection of the run that ``nmt train`` trains: its name and configuration, which may be a recipe."""

from pathlib import Path
from typing import NamedTuple

from nmt.config.loading import find_config, load_config, read_overrides
from nmt.config.schema import Config
from nmt.data.dataset import find_dataset
from nmt.errors import ConfigError
from nmt.recipes.recipe import Facts, Recipe, compose, with_epochs
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
        return [*self.recipe.lines, change]

    @property
    def recipe_text(self) -> str | None:
        """The recipe as a file, if the configuration is one."""
        return self.recipe.yaml if self.recipe else None


def select(
    config: str | Path | None = None, run: str | None = None, dataset: str | None = None,
    overrides: list[str] | None = None, *, minutes: float | None = None,
) -> Selection:  # fmt: skip
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
    if minutes is not None and not 0 < minutes < float("inf"):
        raise ConfigError(f"--minutes is {minutes:g}. It is the time of training, more than 0. Change the value.")
    if minutes is not None and "training.epochs" in read_overrides(overrides):
        raise ConfigError(
            f"--minutes {minutes:g} chooses the number of epochs; received it with --set training.epochs. Leave out "
            "one of the two."
        )
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
    if run is None or not run_exists(run):
        named = read_overrides(overrides).get("data.dataset")
        found = find_dataset(dataset or (named if isinstance(named, str) else None))
        if run is not None or not run_exists(found.name):
            recipe = compose(Facts.of(found), overrides)
            return Selection(run or found.name, recipe.config, found.name, recipe)
        run, dataset = found.name, found.name
    return Selection(run, load_config(find_run(run).config_path, overrides), dataset)


def fit(selection: Selection) -> Selection:
    """Return the selection with a length, and if it is a recipe perhaps a smaller model, that fits into its minutes.

    Raises:
        ConfigError: if not an epoch fits.
    """
    if selection.minutes is None:
        return selection

    from nmt.recipes import budget  # noqa: PLC0415 - loads TensorFlow

    dataset = find_dataset(selection.dataset)
    config, recipe, note = budget.fit(selection.config, selection.recipe, dataset, selection.minutes)
    return selection._replace(config=config, recipe=recipe, note=note, minutes=None)
