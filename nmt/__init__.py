"""A trainer for neural machine translation on TensorFlow. The Python interface is described in ``nmt.api``."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt.api import load, prepare, train, translate_document
    from nmt.errors import ConfigError, ConflictError, DataError, NmtError, NotFoundError
    from nmt.evaluation.evaluate import evaluate
    from nmt.synthesis.synthesize import synthesize
    from nmt.text.translator import Translator

__all__ = [
    "ConfigError",
    "ConflictError",
    "DataError",
    "NmtError",
    "NotFoundError",
    "Translator",
    "evaluate",
    "load",
    "prepare",
    "synthesize",
    "train",
    "translate_document",
]

# Module of each name. A module is imported when one of its names is first used, so that the command line starts fast.
_MODULES = {
    "ConfigError": "nmt.errors",
    "ConflictError": "nmt.errors",
    "DataError": "nmt.errors",
    "NmtError": "nmt.errors",
    "NotFoundError": "nmt.errors",
    "Translator": "nmt.text.translator",
    "evaluate": "nmt.evaluation.evaluate",
    "load": "nmt.api",
    "prepare": "nmt.api",
    "synthesize": "nmt.synthesis.synthesize",
    "train": "nmt.api",
    "translate_document": "nmt.api",
}


def __getattr__(name: str) -> Any:
    """Return a name of the Python interface."""
    if name == "__version__":
        return importlib.import_module("nmt.version").version()
    if name not in _MODULES:
        raise AttributeError(f"module 'nmt' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__, "__version__"]
