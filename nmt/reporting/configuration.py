"""Configurations of runs as tables: all keys, those that differ from the defaults, those that differ between runs."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel

from nmt.config.schema import Config
from nmt.reporting.facts import ABSENT

AUTO = "auto"


class Setting(NamedTuple):
    """Key of a configuration."""

    key: str
    value: str
    default: str
    is_changed: bool
    """Whether the value differs from the default; a resolved "auto" does not."""
    about: str
    """What the key means."""


def settings_by_section(config: Config) -> dict[str, list[Setting]]:
    """Return all settings of a configuration by section."""
    sections = {name: getattr(config, name) for name in Config.model_fields}
    return {name: _settings(section) for name, section in sections.items()}


def _settings(section: BaseModel) -> list[Setting]:
    defaults = type(section)()
    return [
        Setting(
            key=key,
            value=as_text(value := getattr(section, key)),
            default=as_text(default := getattr(defaults, key)),
            is_changed=default not in (value, AUTO),
            about=" ".join((field.description or "").replace("``", "").split()),
        )
        for key, field in type(section).model_fields.items()
    ]


def differences(configs: Sequence[Config]) -> list[tuple[str, list[str]]]:
    """Return the keys whose values differ between configurations, with the value in each."""
    flat = [
        {f"{section}.{key}": as_text(value) for section, values in config.model_dump().items()
         for key, value in values.items()}
        for config in configs
    ]  # fmt: skip
    keys = dict.fromkeys(key for values in flat for key in values)
    rows = [(key, [values.get(key, ABSENT) for values in flat]) for key in keys]
    return [(key, values) for key, values in rows if len(set(values)) > 1]


def as_text(value: Any) -> str:
    """Return a value as a configuration file has it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
