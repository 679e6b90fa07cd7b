"""The best configuration as a file: plain YAML, with a comment on each key that was tuned."""

from nmt.config.schema import Config
from nmt.recipes.choice import Setting
from nmt.recipes.yaml_text import recipe_text
from nmt.storage.atomic import write_text
from nmt.tuning.record import TuningFolder, TuningRecord, Verdict
from nmt.tuning.space import with_changes
from nmt.tuning.table import conclusion, flat

ALWAYS = {"model.architecture", "training.epochs", "training.batch_type", "training.batch_size"}
"""Keys that are written even with their defaults, which depend on each other."""


def best_config(record: TuningRecord, verdict: Verdict) -> Config:
    """Return the configuration to train with: the better candidate, else the base."""
    if not verdict.is_better:
        return record.config
    changes = record.candidates[verdict.candidate].changes
    return with_changes(record.config, {**changes, "training.epochs": verdict.epochs})


def best_text(record: TuningRecord, verdict: Verdict) -> str:
    """Return the file: keys that differ from their defaults, after comments on where they come from."""
    config = best_config(record, verdict)
    values, base = flat(config), flat(record.config)
    defaults = flat(Config(model=type(config.model)()))
    settings = [Setting("data.dataset", record.dataset, "")]
    for key, value in values.items():
        if key.startswith("data.") or (value == defaults[key] and value == base.get(key) and key not in ALWAYS):
            continue
        why = "" if value == base.get(key) else f"the recipe has {base.get(key)}"
        settings.append(Setting(key, value, why))
    heading = f"Tuned from {record.origin} on dataset {record.dataset}, in {record.minutes:g} minutes."
    return recipe_text(settings, [heading, *conclusion(record, verdict)])


def write_best(folder: TuningFolder, record: TuningRecord, verdict: Verdict) -> None:
    """Write the file."""
    write_text(folder.best_path, best_text(record, verdict))
