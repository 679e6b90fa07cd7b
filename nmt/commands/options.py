"""Options that several commands take."""

from typing import Annotated

import typer

ConfigOption = Annotated[
    str, typer.Option("--config", "-c", help="YAML file: as said, else in configs/, else one that comes with nmt.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a key: section.key=value. Can be repeated.", metavar="KEY=VALUE"),
]
