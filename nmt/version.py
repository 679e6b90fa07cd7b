"""The version of the installed package."""

UNKNOWN = "unknown"


def version() -> str:
    """Return the version of nmt, or "unknown" in a checkout that is not installed."""
    from importlib import metadata  # noqa: PLC0415 - takes 20 ms, which other commands need not wait

    try:
        return metadata.version("nmt")
    except metadata.PackageNotFoundError:
        return UNKNOWN
