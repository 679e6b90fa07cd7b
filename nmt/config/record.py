"""Base classes of typed, immutable records: sections of a configuration, and files on disk."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator


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

    @model_validator(mode="before")
    @classmethod
    def _read_older_names(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
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


class DocumentedRecord(Record):
    """Record whose fields have the docstrings below them as descriptions.

    Pydantic searches the source of all loaded modules for these docstrings. With TensorFlow loaded the search is slow,
    so records of files on disk derive from ``Record`` or ``RenamedRecord``.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)


class Section(DocumentedRecord, RenamedRecord):
    """Section of the configuration: documented fields, older names of keys."""
