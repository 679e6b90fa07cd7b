"""Recipes as YAML: plain sections, with the reason of each key beside it."""

import itertools
import textwrap
from collections.abc import Sequence
from typing import Any

import yaml

from nmt.config.loading import CURRENT_FORMAT, FORMAT
from nmt.config.yaml_io import Dumper
from nmt.recipes.choice import Setting

COMMENT_COLUMN, COLUMNS = 32, 118


def recipe_text(settings: Sequence[Setting], reasons: Sequence[str]) -> str:
    """Return a configuration file.

    Args:
        settings: keys, those of a section together.
        reasons: lines of the comment at the top.
    """
    head = itertools.chain(*(textwrap.wrap(reason, COLUMNS, subsequent_indent="  ") for reason in reasons))
    lines = [
        *(f"# {line}" for line in head),
        "#",
        "# To change it: nmt train --config PATH-OF-THIS-FILE --run NEW-NAME",
        "# configs/base.yaml explains every key. A key that is missing here has its default.",
        "",
        f"{FORMAT}: {CURRENT_FORMAT}",
    ]
    for section, keys in itertools.groupby(settings, lambda setting: setting.key.partition(".")[0]):
        lines += ["", f"{section}:", *map(_line, keys)]
    return "\n".join(lines) + "\n"


def nested(settings: Sequence[Setting]) -> dict[str, dict[str, Any]]:
    """Return settings as sections of keys, as ``recipe_text`` writes them."""
    sections: dict[str, dict[str, Any]] = {}
    for setting in settings:
        section, _, key = setting.key.partition(".")
        sections.setdefault(section, {})[key] = setting.value
    return sections


def _line(setting: Setting) -> str:
    key = setting.key.partition(".")[2]
    line = f"  {key}: {_scalar(setting.value)}"
    return f"{line:<{COMMENT_COLUMN}} # {setting.why}" if setting.why else line


def _scalar(value: Any) -> str:
    text = yaml.dump(value, Dumper=Dumper, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("\n").removesuffix("\n...")
