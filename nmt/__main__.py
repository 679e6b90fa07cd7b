"""The command line as ``nmt`` and as ``python -m nmt``."""

import os
import sys
from typing import NoReturn

INTERRUPTED = 130  # the same as in nmt.cli.usage, which is not loaded yet


def main() -> NoReturn:
    """Run the command line. Ctrl-C while it is loaded also ends in one message."""
    # Figures need no backend of matplotlib. A notebook names its own to all its commands, and nmt may not have it.
    os.environ.pop("MPLBACKEND", None)
    try:
        from nmt.cli.app import main as run  # noqa: PLC0415 - it takes a moment
    except KeyboardInterrupt:
        words = "nmt was interrupted before it began. Nothing was changed. Give the same command again."
        sys.stderr.write(f"nmt: {words}\n")
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
