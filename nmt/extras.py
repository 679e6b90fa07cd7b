"""Optional packages, which the extras of nmt install: check that they are there, with a message if not."""

import importlib.util

from nmt.errors import NotFoundError


def require(extra: str, *modules: str) -> None:
    """Check that the packages of an extra are installed, without importing them.

    Args:
        extra: name of the extra in pyproject.toml, such as "serve".
        modules: top-level modules that the extra installs.

    Raises:
        NotFoundError: if a module is missing.
    """
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise NotFoundError(
            f"The Python package {missing[0]} is not installed. It belongs to the extra {extra!r} of nmt. Install it: "
            f"pip install 'nmt[{extra}]'"
        )
