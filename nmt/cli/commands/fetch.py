"""``nmt fetch``: download of public corpora."""

from typing import Annotated

import typer


def fetch(
    name: Annotated[str, typer.Argument(help="Name of a corpus, such as english-german-both.", metavar="NAME")],
) -> None:
    """Download a public corpus into data/.

    The file appears in data/ after its SHA-256 has been checked.

    Examples:
        nmt fetch english-german-both
        nmt prepare english-german-both.pkl
    """
    from nmt.data.dataset import DATASETS
    from nmt.data.sources import public

    file = public.public_file(name)
    path = public.fetch(file, DATASETS)
    typer.echo(f"{path}: {file.credit}.\nIts SHA-256 is as published: {file.sha256}.", err=True)
    typer.echo(path)
