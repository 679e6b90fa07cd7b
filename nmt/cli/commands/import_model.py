"""``nmt import``: a model of transformers or Marian as a run."""

from pathlib import Path
from typing import Annotated

import typer


def import_(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Files of the model.")],
    run: Annotated[str | None, typer.Option(metavar="NAME", help="Its name. Default: that of the folder.")] = None,
    languages: Annotated[str | None, typer.Option(metavar="XX-YY", help="Source and target, such as en-de.")] = None,
    licence: Annotated[str | None, typer.Option(help="Licence. Default: that of README.md in FOLDER.")] = None,
    sentences: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Source sentences to compare on. Default: random pieces.")
    ] = None,
    expected: Annotated[
        Path | None, typer.Option(metavar="FILE", help="import.json of the model, from a machine with transformers.")
    ] = None,
    allow_different: Annotated[int, typer.Option(min=0, help="Accept N sentences with other translations.")] = 0,
) -> None:
    """Make a Marian model, such as those of OPUS-MT, a run.

    FOLDER has the files of transformers (config.json, model.safetensors, vocab.json, source.spm, target.spm) or of
    Marian (*.npz, *vocab*.yml, source.spm, target.spm). Where transformers is installed, the run is compared with the
    original: token ids, logits, translations. A run that differs is not written. No code of the folder is run.

    Examples:
        nmt import opus-mt-en-de --languages en-de
        nmt import opus-mt-en-de --run opus --sentences test.en
    """
    from nmt.data.languages import language_pair
    from nmt.data.sources.text_file import find_text_file, read_lines
    from nmt.importing.importing import import_model

    made, origin = import_model(
        folder, run or folder.resolve().name, licence=licence, expected=expected, most_different=allow_different,
        languages=language_pair(languages) if languages else None,
        sentences=read_lines(find_text_file(str(sentences), [])) if sentences else (),
    )  # fmt: skip
    if origin.compared_with:
        typer.echo(f"Compared with {origin.compared_with}: {origin.comparison}")
    else:
        typer.echo("Not compared with the original, which needs transformers (pip install 'nmt[huggingface]').")
    typer.echo(f"Licence: {origin.licence or 'not stated'}. Written to {made.folder}")


import_.__name__ = "import"  # no function of Python can be defined with it
