"""Optional packages: what belongs to an extra of nmt, and a message where it is missing."""

import importlib.util

from nmt.errors import NotFoundError


def require(extra: str, *modules: str) -> None:
    """Check that the packages of an extra are installed, without importing them.

    Args:
        extra: name of the extra in pyproject.toml, such as "serve".
        modules: top-level modules that it installs.

    Raises:
        NotFoundError: if a module is missing.
    """
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise NotFoundError(
            f"The Python package {missing[0]} is not installed. It belongs to the extra {extra!r} of nmt. Install it: "
            f"pip install 'nmt[{extra}]'"
        )
