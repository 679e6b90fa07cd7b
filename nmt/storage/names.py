"""Names of runs, datasets and files: which names are valid, suggestions of similar names, search for a file."""

import difflib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from nmt.errors import NmtError, NotFoundError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MAX_COMPARED = 200  # characters; the time of a comparison grows with the square of the length


def check_name(name: str, kind: str) -> str:
    """Return ``name`` if it can name a folder on every system.

    Raises:
        NmtError: if the name could lead out of its parent folder, or needs quotes in a shell.
    """
    if NAME.fullmatch(name) is None:
        raise NmtError(
            f"{name[:200]!r} cannot be the name of a {kind}. A name starts with a letter or digit and holds only "
            "letters, digits and . _ - (at most 100 characters). Choose another name."
        )
    return name


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" for the known word most similar to ``word``, or "" if none is similar."""
    if len(word) > MAX_COMPARED:
        return ""
    candidates = [candidate for candidate in known if len(candidate) <= MAX_COMPARED]
    similar = difflib.get_close_matches(word, candidates, n=1, cutoff=0.6)
    return f" (did you mean {similar[0]!r}?)" if similar else ""


def find_file(name: str, folders: Iterable[Path], role: str, suffixes: tuple[str, ...] = ("",)) -> Path:
    """Return the file ``name``. If there is none, a bare name is looked for in ``folders``.

    Args:
        name: path or bare file name. A leading ~ is expanded.
        folders: folders to search, in order.
        role: role of the file in messages, such as "configuration".
        suffixes: suffixes of the file names that an error may suggest.

    Raises:
        NotFoundError: if the file is in none of these folders; lists the paths that were tried.
    """
    try:
        path = Path(name).expanduser()
    except RuntimeError:  # ~name of an unknown user
        path = Path(name)
    candidates = [path]
    if path.name == name:
        candidates += [folder / name for folder in folders]
    for candidate in candidates:
        if os.path.isfile(candidate):  # noqa: PTH113 - Path.is_file raises for a name too long
            return candidate
    searched = ", ".join(map(str, candidates))
    files = (file for candidate in candidates if candidate.parent.is_dir() for file in candidate.parent.iterdir())
    existing = {file.name for file in files if file.name.endswith(suffixes)}
    raise NotFoundError(
        f"There is no {role} {name!r}{did_you_mean(path.name, sorted(existing))}; looked for: {searched}. Check the "
        "name, or give the full path."
    )
