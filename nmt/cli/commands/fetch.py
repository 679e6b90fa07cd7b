"""``nmt fetch``: download of public corpora."""

from typing import Annotated

import typer


def fetch(
    name: Annotated[str, typer.Argument(help="Name of a corpus, such as english-german-both.", metavar="NAME")],
) -> None:
    """Download a public corpus into data/.

    The file is checked against its SHA-256, and appears in data/ once it is complete.

    Examples:
        nmt fetch english-german-both
        nmt prepare english-german-both.pkl
    """
    from tqdm import tqdm

    from nmt.data.dataset import DATASETS
    from nmt.data.sources import download
    from nmt.data.sources.public import public_file

    file = public_file(name)
    with tqdm(desc=file.name, unit="B", unit_scale=True, disable=None, leave=False) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total or None
            bar.update(done - bar.n)

        path = download.fetch(file, DATASETS, report)
    typer.echo(f"{path}: {file.credit}.\n{download.verification(file, path)}", err=True)
    typer.echo(path)
