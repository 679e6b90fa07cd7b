"""TODO."""

import difflib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from nmt.errors import NmtError, NotFoundError

MAX_NEAREST = 200


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def check_name(name: str, kind: str) -> str:
    """Return ``name`` if it can name a folder on every system.

    Raises:
        NmtError: if it could leave its parent folder or needs quoting in a shell.
    """
    if NAME.fullmatch(name) is None:
        raise NmtError(
            f"The name of a {kind} starts with a letter or digit and holds only letters, digits and . _ - "
            f"(at most 100); received {name[:200]!r}. Choose another name."
        )
    return name


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" for the known word closest to ``word``, or an empty string."""
    if len(word) > MAX_NEAREST:  # comparing takes the square of the length
        return ""
    close = difflib.get_close_matches(word, [one for one in known if len(one) <= MAX_NEAREST], n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def find_file(name: str, folders: Iterable[Path], what: str, suffixes: tuple[str, ...] = ("",)) -> Path:
    """Return ``name`` where it was said, else, if it is a bare name, in the first of ``folders`` that holds it.

    ``suffixes``: endings of the file names that an error may suggest.

    Raises:
        NotFoundError: naming every place that was looked in.
    """
    try:
        said = Path(name).expanduser()
    except RuntimeError:  # ~name of nobody
        said = Path(name)
    places = [said]
    if said.name == name:
        places += [folder / name for folder in folders]
    for place in places:
        if os.path.isfile(place):  # noqa: PTH113 - Path.is_file raises for a name too long
            return place
    looked = ", ".join(str(place) for place in places)
    entries = (entry for place in places if place.parent.is_dir() for entry in place.parent.iterdir())
    neighbours = sorted({entry.name for entry in entries if entry.name.endswith(suffixes)})
    raise NotFoundError(
        f"There is no {what} {name!r}{did_you_mean(said.name, neighbours)}; looked for: {looked}. Check the name, or "
        "give the full path."
    )
