"""Typed, immutable records: files on disk, and sections of a configuration, which read the keys of older versions."""

import json
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, PrivateAttr, model_validator


class Renamed(NamedTuple):
    """A key of older versions that has another name today."""

    key: str
    """Name of today."""
    values: dict[Any, Any] | None = None
    """Values of today by the older ones that are renamed (a list as a tuple); the key keeps its name with any other.
    None: every value stays as it is."""


class Retired(NamedTuple):
    """A key of older versions that is no longer there."""

    followed: Any
    """Value whose behaviour is that of today."""
    now: str
    """What happens whatever the value, in words."""
    matters: bool = True
    """Whether another value gave other weights."""


# Both tables are by section and older key, whatever the architecture of a model.
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
    "data": {"shard_tokens": Retired(2**28, "A side of a split is one file", matters=False)},
    "training": {
        "sort_by_length": Retired(False, "Batches of sentences mix lengths; those of batch_type: tokens do not"),
        "reduction": Retired("exact", "Gradients are added in an order that no number of hosts changes", matters=False),
        "xla": Retired(False, "The step is not compiled: XLA draws other dropout, and takes long for each shape"),
        "pad_to_longest": Retired(False, "A batch is padded to its own longest sentence"),
        "decay_steps": Retired(None, "The learning rate falls until the last epoch"),
        "muon_momentum": Retired(0.95, "It is 0.95"),
        "trackers": Retired([], "nmt records for TensorBoard alone, by training.tensorboard", matters=False),
    },
}


def renamed(section: str, key: str, value: Any) -> tuple[str, Any]:
    """Return a key and its value by the names of today."""
    today = RENAMED[section].get(key) if section in RENAMED else None
    if today is None or today.values is None:
        return today.key if today else key, value
    written = tuple(value) if isinstance(value, list) else value
    found = [new for old, new in today.values.items() if old == written]
    return (today.key, found[0]) if found else (key, value)


class Record(BaseModel):
    """Immutable record with strict types and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class DocumentedRecord(Record):
    """Record whose fields have the docstrings below them as descriptions.

    Pydantic searches the source of all loaded modules for these docstrings. With TensorFlow loaded the search is slow,
    so records of files on disk derive from ``Record``.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)


Contradiction = tuple[bool, str, str]
"""Rule about keys of a section: whether it is broken, the keys with spaces between them, and in words the rule and the
remedy, without the full stop at the end."""


class Section(DocumentedRecord):
    """Section of the configuration: documented fields. Reads the keys of older versions, by the tables above."""

    section: ClassVar[str] = ""
    """Name of the section."""
    _not_followed: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def not_followed(self) -> dict[str, str]:
        """Retired keys that asked for another behaviour than that of today, in words; they are not written again."""
        return self._not_followed

    def contradictions(self) -> list[Contradiction]:
        """Return the rules about several keys; the first broken one is told."""
        return []

    @model_validator(mode="after")
    def _check(self) -> Self:
        for is_broken, keys, rule in self.contradictions():
            if is_broken:
                *said, last = (f"{key} is {_as_yaml(getattr(self, key))}" for key in keys.split())
                raise ValueError(f"{' and '.join(filter(None, [', '.join(said), last]))}. {rule}")
        return self

    @model_validator(mode="wrap")
    @classmethod
    def _read_older(cls, values: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(values, dict):
            return validate(values)
        today: dict[str, Any] = {}
        not_followed: dict[str, str] = {}
        for key, value in (renamed(cls.section, *item) for item in values.items()):
            retired = RETIRED[cls.section].get(key) if cls.section in RETIRED else None
            if retired is None:
                if key in today:
                    raise ValueError(f"{key} is set twice, by its older name too. Leave out one of the two")
                today[key] = value
            elif value != retired.followed:
                not_followed[key] = f"{value!r}, a setting of older versions. {retired.now}"
        section = validate(today)
        section._not_followed = not_followed
        return section


def _as_yaml(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else json.dumps(value, default=dict).strip('"')
