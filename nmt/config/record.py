"""Records: typed, immutable parts of a configuration or of a file on disk."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator


class Record(BaseModel):
    """An immutable record, strict about types and keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class DocumentedRecord(Record):
    """A section of the configuration: its fields carry the docstrings below them as descriptions.

    Pydantic looks these up in the source of all loaded modules, which takes a while once TensorFlow is loaded, so
    records of files on disk do without.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    renamed: ClassVar[dict[str, str]] = {}
    """Keys of older versions, which are still read, and what they are called now."""
    renamed_values: ClassVar[dict[str, dict[Any, Any]]] = {}
    """By key, values of older versions and what they are called now."""

    @model_validator(mode="before")
    @classmethod
    def _read_older_names(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        values = dict(values)
        for old, new in cls.renamed.items():
            if old in values:
                if new in values:
                    raise ValueError(f"{old} is the older name of {new}; received both. Leave out {old}")
                values[new] = values.pop(old)
        for key, names in cls.renamed_values.items():
            if isinstance(values.get(key), str) and values[key] in names:
                values[key] = names[values[key]]
        return values
