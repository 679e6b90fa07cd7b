"""``nmt import``: conversion of a model of transformers or Marian to a run."""

from pathlib import Path
from typing import Annotated

import typer


def import_(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder with the files of the model.")],
    run: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the new run. Default: the name of the folder.")
    ] = None,
    languages: Annotated[str | None, typer.Option(metavar="XX-YY", help="Source and target, such as en-de.")] = None,
    licence: Annotated[str | None, typer.Option(help="Licence. Default: the licence in FOLDER/README.md.")] = None,
    sentences: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Source sentences for the comparison. Default: random pieces.")
    ] = None,
    expected: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="import.json of this model, made on a machine with transformers."),
    ] = None,
    allow_different: Annotated[int, typer.Option(min=0, help="Accept N sentences whose translation differs.")] = 0,
) -> None:
    """Convert a Marian model, such as an OPUS-MT model, to a run.

    FOLDER has the files of transformers (config.json, model.safetensors, vocab.json, source.spm, target.spm) or of
    Marian (*.npz, *vocab*.yml, source.spm, target.spm). If transformers is installed, token ids, logits and
    translations of the run are compared with the original. A run that differs is not written. Code in the folder is not
    executed.

    Examples:
        nmt import opus-mt-en-de --languages en-de
        nmt import opus-mt-en-de --run opus --sentences test.en
    """
    from nmt.data.languages import language_pair
    from nmt.data.sources.text_file import find_text_file, read_lines
    from nmt.importing.importing import import_model

    imported, origin = import_model(
        folder, run or folder.resolve().name, licence=licence, expected=expected, most_different=allow_different,
        languages=language_pair(languages) if languages else None,
        sentences=read_lines(find_text_file(str(sentences), [])) if sentences else (),
    )  # fmt: skip
    if origin.compared_with:
        typer.echo(f"Compared with {origin.compared_with}: {origin.comparison}")
    else:
        typer.echo("Not compared with the original: this needs transformers (pip install 'nmt[huggingface]').")
    typer.echo(f"Licence: {origin.licence or 'not stated'}. Written to {imported.folder}")


import_.__name__ = "import"  # a keyword of Python, which cannot be the name of a function
