"""Base classes of typed, immutable records: sections of a configuration, and files on disk."""

from typing import Any, ClassVar, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, PrivateAttr, model_validator


class Record(BaseModel):
    """Immutable record with strict types and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class DocumentedRecord(Record):
    """Record whose fields have the docstrings below them as descriptions.

    Pydantic searches the source of all loaded modules for these docstrings. With TensorFlow loaded the search is slow,
    so records of files on disk derive from ``Record``.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)


class Retired(NamedTuple):
    """A key of older versions that is no longer there."""

    followed: Any
    """Value whose behaviour is that of today."""
    now: str
    """What happens whatever the value, in words."""
    matters: bool = True
    """Whether another value gave other weights."""
    becomes: str = ""
    """Key of today that is true if its name is among the values of the older key."""


class Section(DocumentedRecord):
    """Section of the configuration: documented fields, older names of keys, keys that are no longer there."""

    renamed: ClassVar[dict[str, str]] = {}
    """Older names of keys, which are still read, and the names of today."""
    renamed_values: ClassVar[dict[str, dict[Any, Any]]] = {}
    """Per key, older values, which are still read, and the values of today."""
    retired: ClassVar[dict[str, Retired]] = {}
    """Keys that are no longer there, which are passed over."""
    _not_followed: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def not_followed(self) -> dict[str, str]:
        """Retired keys that asked for another behaviour than that of today, in words; they are not written again."""
        return self._not_followed

    @classmethod
    def of_today(cls, values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return values as read by the keys of today, and what they ask for that is no longer there, in words.

        Raises:
            ValueError: for a key that is there by two names.
        """
        values, not_followed = dict(values), {}
        for old, new in cls.renamed.items():
            if old in values:
                if new in values:
                    raise ValueError(f"{new} is set twice, once by its older name {old}. Leave out {old}")
                values[new] = values.pop(old)
        for key, names in cls.renamed_values.items():
            if isinstance(values.get(key), str):
                values[key] = names.get(values[key], values[key])
        for key in [key for key in cls.retired if key in values]:
            value, retired = values.pop(key), cls.retired[key]
            if isinstance(value, list) and retired.becomes in value:
                values.setdefault(retired.becomes, True)
                value = [name for name in value if name != retired.becomes]
            if value != retired.followed:
                not_followed[key] = f"{value!r}, a setting of older versions. {retired.now}"
        return values, not_followed

    @model_validator(mode="wrap")
    @classmethod
    def _read_older(cls, values: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(values, dict):
            return validate(values)
        values, not_followed = cls.of_today(values)
        section = validate(values)
        section._not_followed = not_followed
        return section
