"""Composition of a recipe: chosen settings, checked as a configuration, explained, and written as a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nmt.config.loading import config_of, read_overrides
from nmt.config.model import ModelConfig
from nmt.config.schema import Config
from nmt.recipes.choice import Choice, Setting, choose
from nmt.recipes.explanation import explain, value_in
from nmt.recipes.facts import Facts
from nmt.recipes.sizes import Size
from nmt.recipes.yaml_text import nested, recipe_text
from nmt.runs.directory import find_run

ORIGIN = "The recipe"
"""Name of a recipe in messages about overrides."""


@dataclass(frozen=True)
class Recipe:
    """A configuration that was chosen for a dataset."""

    facts: Facts
    choice: Choice
    settings: dict[str, dict[str, Any]]
    """Sections of keys, as ``yaml`` holds them. Keys that are missing have their defaults."""
    config: Config
    """The configuration, checked; ``load_config`` of ``yaml`` gives the same."""
    reasons: list[str]
    """What was chosen and why, a line each."""
    yaml: str
    """The recipe as a file, with a comment for each key."""
    overrides: tuple[str, ...] = ()
    """Settings ``section.key=value`` of the user, which are in all of the above."""


def compose(
    facts: Facts, overrides: Sequence[str] = (), *, size: Size | None = None, epochs: int | None = None,
    budget: Sequence[str] = (),
) -> Recipe:  # fmt: skip
    """Return the recipe for the facts of a dataset.

    Args:
        facts: facts of the dataset.
        overrides: settings ``section.key=value``.
        size: row of the table; None: that of the number of training pairs.
        epochs: number of epochs; None: that of the row.
        budget: lines about a budget of time, among the reasons.

    Raises:
        ConfigError: for an override that breaks the schema.
        NotFoundError: if the run that ``training.start_from`` names does not exist.
    """
    given = read_overrides([*overrides])
    choice = choose(facts, given, size=size, epochs=epochs, start=_start(given))
    config = config_of(nested(choice.settings), ORIGIN, [*overrides])
    settings = [*_in_force(choice.settings, config, given)]
    reasons = explain(facts, choice, config, given, budget)
    return Recipe(facts, choice, nested(settings), config, reasons, recipe_text(settings, reasons), tuple(overrides))


def with_epochs(config: Config, epochs: int) -> Config:
    """Return a configuration with another number of epochs."""
    return config.model_copy(update={"training": config.training.model_copy(update={"epochs": epochs})})


def _start(given: dict[str, Any]) -> ModelConfig | None:
    name = given.get("training.start_from")
    return find_run(name.partition(":")[0]).config().model if isinstance(name, str) else None


def _in_force(settings: Sequence[Setting], config: Config, given: dict[str, Any]) -> list[Setting]:
    """Return the settings with the values that the user has set, those of a section together."""
    set_by_user = "set on the command line"
    changed = [
        Setting(setting.key, value_in(config, setting.key), set_by_user) if setting.key in given else setting
        for setting in settings
    ]
    known = {setting.key for setting in settings}
    added = [Setting(key, value_in(config, key), set_by_user) for key in given if key not in known]
    sections = list(dict.fromkeys(setting.key.partition(".")[0] for setting in [*changed, *added]))
    return sorted([*changed, *added], key=lambda setting: sections.index(setting.key.partition(".")[0]))
