"""Tables of the page: epochs, configuration, dataset."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from nmt.config.schema import Config
from nmt.data.manifest import SIDES, Manifest
from nmt.reporting.facts import Fact, RunFacts

ABSENT = "\N{EN DASH}"


class Table(NamedTuple):
    """Headings and rows of text."""

    heads: list[str]
    rows: list[list[str]]


class Setting(NamedTuple):
    """Key of a configuration."""

    key: str
    value: str
    default: str
    is_changed: bool
    """Whether the value differs from the default; a resolved "auto" does not."""
    about: str
    """What the key means."""


def settings_of(section: BaseModel) -> list[Setting]:
    """Return the settings of a section of a configuration."""
    defaults = type(section)()
    return [
        Setting(
            key, _as_text(value := getattr(section, key)), _as_text(default := getattr(defaults, key)),
            default not in (value, "auto"), " ".join((field.description or "").replace("``", "").split()),
        )
        for key, field in type(section).model_fields.items()
    ]  # fmt: skip


def differences(configs: Sequence[Config]) -> list[list[str]]:
    """Return each key whose values differ between configurations, followed by the value in each."""
    flat = [
        {f"{section}.{key}": _as_text(value) for section, values in config.model_dump().items()
         for key, value in values.items()}
        for config in configs
    ]  # fmt: skip
    rows = {key: [values[key] if key in values else ABSENT for values in flat] for of_run in flat for key in of_run}
    return [[key, *values] for key, values in rows.items() if len(set(values)) > 1]


def _as_text(value: Any) -> str:
    """Return a value as a configuration file has it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def epoch_table(runs: Sequence[RunFacts]) -> Table:
    """Return the metrics of the epochs of all runs."""
    rows = []
    for facts in runs:
        seconds = 0.0
        for epoch in facts.epochs:
            seconds += epoch.seconds
            rows.append([
                facts.name, f"{epoch.epoch}", f"{epoch.step:,}", f"{seconds / 60:,.1f}",
                f"{epoch.train_loss:.3f}", f"{epoch.validation_loss:.3f}",
                f"{epoch.train_accuracy:.1%}", f"{epoch.validation_accuracy:.1%}",
                *(ABSENT if score is None else f"{score:.1f}" for score in (epoch.validation_bleu, epoch.validation_chrf)),
                f"{epoch.target_tokens / epoch.seconds:,.0f}" if epoch.seconds else ABSENT,
            ])  # fmt: skip
    heads = [
        "run", "epoch", "step", "minutes", "training loss", "validation loss", "training accuracy",
        "validation accuracy", "BLEU", "chrF", "tokens/s",
    ]  # fmt: skip
    return Table(heads, rows)


def dataset_facts(manifest: Manifest) -> list[Fact]:
    """Return what was read to prepare a dataset, and with which settings."""
    settings, vocabulary, report = manifest.settings, manifest.vocabulary, manifest.report
    kept = sum(split.pairs for split in manifest.splits.values())
    languages = " to ".join(manifest.languages.values())
    tokenizers = f"of run {manifest.tokenizer_of}" if manifest.tokenizer_of else "fitted on the training split"
    both = ", one vocabulary for both sides" if settings.joint_vocabulary is True else ""
    several = f"{report.sources_translated_often:,} sources have up to {report.most_translations:,} translations each"
    return [
        *(Fact("file", file.name, f"{file.role}, {file.bytes / 1e6:,.2f} MB")
          for file in (manifest.corpus, *manifest.more_files)),
        Fact("prepared", manifest.prepared_at[:16].replace("T", " ") + " UTC"),
        Fact("languages", "unknown" if languages == "source to target" else languages),
        Fact("pairs", f"{manifest.read:,} read, {sum(manifest.dropped.values()):,} dropped, {kept:,} kept",
             several if report.sources_translated_often else ""),
        Fact("split", f"{settings.split}, seed {settings.seed}"),
        Fact("tokens", f"{manifest.unit}, normalization {settings.normalization}, tokenizers {tokenizers}"),
        Fact("vocabulary", f"{vocabulary['source']:,} source and {vocabulary['target']:,} target ids{both}"),
    ]  # fmt: skip


def split_table(manifest: Manifest) -> Table:
    """Return the statistics of the splits of a dataset, a column for each."""
    splits, unit = list(manifest.splits.values()), manifest.unit
    rows = [["pairs", *(f"{split.pairs:,}" for split in splits)]]
    for side in SIDES:
        rows.append([f"{side} {unit}", *(f"{split.tokens[side]:,}" for split in splits)])
        if all(split.percentiles for split in splits):
            percents = " / ".join(f"{percent}%" for percent in splits[0].percentiles[side])
            values = [" / ".join(map(str, split.percentiles[side].values())) for split in splits]
            rows.append([f"{side} length at {percents}", *values])
        rows.append([f"longest {side}", *(f"{split.longest[side]:,}" for split in splits)])
        shares = [f"{split.unknown[side] / max(1, split.tokens[side]):.2%}" for split in splits]
        rows.append([f"unknown {side} {unit}", *shares])
    return Table(
        ["", *manifest.splits],
        [*rows, ["source is in training", ABSENT, *(f"{split.sources_in_training:,}" for split in splits[1:])]],
    )
