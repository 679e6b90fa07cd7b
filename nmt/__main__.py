"""The command line as ``python -m nmt``."""

from nmt.cli.app import main

if __name__ == "__main__":
    main()
