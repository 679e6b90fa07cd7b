"""Base classes of typed, immutable records: sections of a configuration, and files on disk."""

from typing import Any, ClassVar, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, PrivateAttr, model_validator


class Record(BaseModel):
    """Immutable record with strict types and without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class RenamedRecord(Record):
    """Record that also reads the names of older versions.

    From JSON text it is slower than ``Record`` and refuses tuples: validate parsed values instead.
    """

    renamed: ClassVar[dict[str, str]] = {}
    """Older names of keys, which are still read, and the names of today."""
    renamed_values: ClassVar[dict[str, dict[Any, Any]]] = {}
    """Per key, older values, which are still read, and the values of today."""

    @classmethod
    def with_names_of_today(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return values as read, by the names of today.

        Raises:
            ValueError: for a key that is there by two names.
        """
        values = dict(values)
        for old, new in cls.renamed.items():
            if old in values:
                if new in values:
                    raise ValueError(f"{new} is set twice, once by its older name {old}. Leave out {old}")
                values[new] = values.pop(old)
        for key, names in cls.renamed_values.items():
            if isinstance(values.get(key), str) and values[key] in names:
                values[key] = names[values[key]]
        return values

    @model_validator(mode="before")
    @classmethod
    def _read_older_names(cls, values: Any) -> Any:
        return cls.with_names_of_today(values) if isinstance(values, dict) else values


class DocumentedRecord(Record):
    """Record whose fields have the docstrings below them as descriptions.

    Pydantic searches the source of all loaded modules for these docstrings. With TensorFlow loaded the search is slow,
    so records of files on disk derive from ``Record`` or ``RenamedRecord``.
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


class Section(DocumentedRecord, RenamedRecord):
    """Section of the configuration: documented fields, older names of keys, keys that are no longer there."""

    retired: ClassVar[dict[str, Retired]] = {}
    """Keys that are no longer there, which are passed over."""
    _not_followed: dict[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def not_followed(self) -> dict[str, str]:
        """Retired keys that asked for another behaviour than that of today, in words; they are not written again."""
        return {key: f"{value!r}, a setting of older versions. {self.retired[key].now}"
                for key, value in self._not_followed.items()}  # fmt: skip

    @classmethod
    def without_retired(cls, values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return values without retired keys, and those of the retired keys that are not followed."""
        values, not_followed = dict(values), {}
        for key, old in cls.retired.items():
            if key not in values:
                continue
            value = values.pop(key)
            if old.becomes and isinstance(value, list) and old.becomes in value:
                values.setdefault(old.becomes, True)
                value = [name for name in value if name != old.becomes]
            if value != old.followed:
                not_followed[key] = value
        return values, not_followed

    @model_validator(mode="wrap")
    @classmethod
    def _pass_over_retired(cls, values: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(values, dict) or not cls.retired:
            return validate(values)
        values, not_followed = cls.without_retired(values)
        section = validate(values)
        section._not_followed = not_followed
        return section
