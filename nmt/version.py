"""The version of this package."""

from importlib import metadata


def version() -> str:
    """Return the version of nmt, "unknown" where it is not installed."""
    try:
        return metadata.version("nmt")
    except metadata.PackageNotFoundError:  # run from its folder, without being installed
        return "unknown"
