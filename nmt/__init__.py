"""A trainer for neural machine translation on TensorFlow. The Python interface is in ``nmt.api``."""

import os
from typing import TYPE_CHECKING, Any

# Keras reads its backend when it is first imported. A setting meant for a user's other work must not take effect here.
os.environ["KERAS_BACKEND"] = "tensorflow"

if TYPE_CHECKING:
    from nmt.api import RunTranslator, load, prepare
    from nmt.errors import ConfigError, ConflictError, DataError, NmtError, NotFoundError

__all__ = [
    "ConfigError",
    "ConflictError",
    "DataError",
    "NmtError",
    "NotFoundError",
    "RunTranslator",
    "load",
    "prepare",
]


def __getattr__(name: str) -> Any:
    """Return a name of the Python interface, whose module is imported when it is first used."""
    if name == "__version__":
        from nmt.version import version

        return version()
    if name not in __all__:
        raise AttributeError(f"module 'nmt' has no attribute {name!r}")
    from nmt import api, errors

    return getattr(errors if hasattr(errors, name) else api, name)


def __dir__() -> list[str]:
    return [*globals(), *__all__, "__version__"]
