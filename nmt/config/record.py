"""Typed, immutable records for files on disk and sections of a configuration; keys of older versions are read too."""

import json
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, PrivateAttr, model_validator


class Renamed(NamedTuple):
    """New name of a key of older versions, and perhaps of its values."""

    key: str
    """Current name."""
    values: dict[Any, Any] | None = None
    """Current values by older values (a list as a tuple); the key is renamed only if it has one of these. None: the key
    is always renamed, and its value stays."""


class Retired(NamedTuple):
    """A key of older versions that no longer exists."""

    kept_value: Any
    """Value of the key whose behaviour nmt has kept."""
    explanation: str
    """Current behaviour, in words."""
    changes_weights: bool = True
    """Whether training with another value gave other weights."""


# Both tables are by section and older key. They hold for all architectures of a model.
RENAMED: dict[str, dict[str, Renamed]] = {
    "data": {"normalisation": Renamed("normalization")},
    "model": {"initialisation": Renamed("initializer"), "norm": Renamed("norm_placement")},
    "training": {
        "accumulate": Renamed("micro_batches"),
        "accumulation_steps": Renamed("micro_batches"),
        "pack": Renamed("remove_padding"),
        "schedule": Renamed("schedule", {"paper": "noam"}),
        "trackers": Renamed("tensorboard", {("tensorboard",): True}),
    },
}
RETIRED: dict[str, dict[str, Retired]] = {
    "data": {"shard_tokens": Retired(2**28, "A side of a split is one file", changes_weights=False)},
    "training": {
        "sort_by_length": Retired(False, "Batches of sentences mix lengths; batches of tokens do not"),
        "reduction": Retired(
            "exact", "Gradients are added in the same order for any number of hosts", changes_weights=False
        ),
        "xla": Retired(False, "The step is not compiled: XLA draws other dropout, and takes long for each shape"),
        "pad_to_longest": Retired(False, "A batch is padded to its own longest sentence"),
        "decay_steps": Retired(None, "The learning rate falls until the last epoch"),
        "muon_momentum": Retired(0.95, "It is always 0.95"),
        "trackers": Retired([], "nmt records only for TensorBoard, by training.tensorboard", changes_weights=False),
    },
}


def current_key(section: str, key: str, value: Any) -> tuple[str, Any]:
    """Return a key and its value by their current names."""
    current = RENAMED[section].get(key) if section in RENAMED else None
    if current is None:
        return key, value
    if current.values is None:
        return current.key, value
    older_value = tuple(value) if isinstance(value, list) else value
    for older, newer in current.values.items():
        if older == older_value:
            return current.key, newer
    return key, value


class Record(BaseModel):
    """Immutable record with strict types and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class DocumentedRecord(Record):
    """Record whose fields get the docstrings below them as descriptions.

    Pydantic searches the source of all loaded modules for these docstrings, which is slow once TensorFlow is loaded. So
    records of files on disk derive from ``Record``.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)


Contradiction = tuple[bool, str, str]
"""Rule about several keys of a section: whether it is broken; the keys, separated by spaces; rule and remedy in words,
without the final full stop."""


class Section(DocumentedRecord):
    """Section of the configuration. It also reads the keys of older versions, by the tables above."""

    section: ClassVar[str] = ""
    """Name of the section."""
    _not_followed: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def not_followed(self) -> dict[str, str]:
        """Explanations by retired key whose value asks for behaviour that is gone. These keys are not written again."""
        return self._not_followed

    def contradictions(self) -> list[Contradiction]:
        """Return the rules about several keys. Validation reports the first broken rule."""
        return []

    @model_validator(mode="after")
    def _check(self) -> Self:
        for is_broken, keys, rule in self.contradictions():
            if is_broken:
                *others, last = (f"{key} is {_as_yaml(getattr(self, key))}" for key in keys.split())
                received = f"{', '.join(others)} and {last}" if others else last
                raise ValueError(f"{received}. {rule}")
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _read_older_keys(cls, values: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(values, dict):
            return validate(values)
        current: dict[str, Any] = {}
        not_followed: dict[str, str] = {}
        for older_key, older_value in values.items():
            key, value = current_key(cls.section, older_key, older_value)
            retired = RETIRED[cls.section].get(key) if cls.section in RETIRED else None
            if retired is None:
                if key in current:
                    raise ValueError(f"{key} is set twice, also by its older name. Leave out one of the two")
                current[key] = value
            elif value != retired.kept_value:
                not_followed[key] = f"{value!r}, a setting of older versions. {retired.explanation}"
        section = validate(current)
        section._not_followed = not_followed
        return section


def _as_yaml(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else json.dumps(value, default=dict).strip('"')
