"""The version of the installed package."""

import importlib.metadata


def version() -> str:
    """Return the version of nmt, or "unknown" in a checkout that is not installed."""
    try:
        return importlib.metadata.version("nmt")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
