"""``nmt fetch``: download of public corpora."""

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.errors import NmtError

if TYPE_CHECKING:
    from nmt.data.sources.public import PublicFile

SOURCES = """\
nmt fetch english-german-both       10,000 short pairs of the lesson, 29.6 MB
nmt fetch tatoeba en-de             pairs of Tatoeba with English, from manythings.org/anki (CC BY 2.0 FR)
nmt fetch opus:CORPUS en-de         a corpus of OPUS (opus.nlpl.eu), such as opus:Tatoeba or opus:Books/v1
nmt fetch sacrebleu:TEST_SET en-de  a test set of sacrebleu, such as sacrebleu:wmt20
nmt fetch huggingface:NAME en-de    a data set of the Hugging Face Hub, such as huggingface:opus_books
nmt fetch --list en-de              all of a language pair, with sizes"""


def fetch(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Corpus: english-german-both, tatoeba, opus:CORPUS, sacrebleu:SET or huggingface:NAME.", metavar="NAME"
        ),
    ] = None,
    languages: Annotated[
        str | None, typer.Argument(help="Languages of source and target, such as en-de.", metavar="XX-YY")
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="List public corpora; with XX-YY all of this pair, with sizes.")
    ] = False,
    large: Annotated[bool, typer.Option("--large", help="Allow a download of more than 100 MB.")] = False,
) -> None:
    """Download a public corpus into data/, and print the command that prepares it.

    A file appears in data/ when it is whole and its checksum is right. If its source publishes none, nmt records the
    SHA-256 of the first download in NAME.fetched.json and refuses a later file that differs.

    Examples:
        nmt fetch english-german-both
        nmt fetch --list en-de
        nmt fetch opus:Tatoeba en-de
        nmt fetch sacrebleu:wmt20 en-de
        nmt fetch huggingface:opus_books de-en
    """
    from nmt.data.dataset import DATASETS
    from nmt.data.languages import language_pair
    from nmt.data.sources import hugging_face, public, public_corpora

    if show_list:
        pair_text = languages or name
        if pair_text is None:
            typer.echo(SOURCES)
            return
        for line in public_corpora.listed(language_pair(pair_text)):
            typer.echo(line)
        return
    if name is None:
        raise NmtError(f"nmt fetch needs the name of a corpus. Give one of these commands:\n{SOURCES}")
    source, _, corpus = name.partition(":")
    if source not in {"opus", "sacrebleu", "tatoeba", "huggingface"}:
        file = public.public_file(name)
        path = public.fetch(file, DATASETS)
        typer.echo(f"{path}: {file.credit}.\nIts SHA-256 is as published: {file.sha256}.", err=True)
        typer.echo(path)
        return
    if languages is None or (source != "tatoeba" and not corpus):
        form = "tatoeba XX-YY" if source == "tatoeba" else f"{source}:NAME XX-YY"
        raise NmtError(f"nmt fetch {name} names no corpus of a language pair. Give nmt fetch {form}, such as en-de.")
    pair = language_pair(languages)
    if source == "sacrebleu":
        test_set, paths = public_corpora.fetch_test_set(corpus, pair, DATASETS, large=large)
        typer.echo(f"{test_set.credit}.", err=True)
        options = [word for path in paths for word in ("--test", str(path))]
        typer.echo(f"Use it: nmt prepare FILE {shlex.join(options)}", err=True)
        for path in paths:
            typer.echo(path)
        return
    if source == "huggingface":
        _fetch_from_hub(hugging_face.hub_files(corpus, pair, large=large), pair)
        return
    if source == "opus":
        file = public_corpora.opus_file(corpus, pair, large=large)
        path = public.fetch(file, DATASETS)
        arguments = public_corpora.sides_in(path, pair)
    else:
        file = public_corpora.tatoeba_file(pair, large=large)
        path = public.fetch(file, DATASETS)
        arguments = [str(path), "--languages", "-".join(pair)]
        if pair[1] == "en":
            arguments += ["--set", "data.source_column=2", "--set", "data.target_column=1"]
    typer.echo(f"{path}: {file.credit}.", err=True)
    typer.echo(f"Prepare it: nmt prepare {shlex.join(arguments)}", err=True)
    typer.echo(path)


def _fetch_from_hub(files: "list[tuple[str, PublicFile]]", languages: tuple[str, str]) -> None:
    """Download the files of a data set, and print the command that prepares its splits."""
    from nmt.data.dataset import DATASETS
    from nmt.data.sources import public

    by_split: dict[str, list[str]] = {}
    for split, file in files:
        by_split.setdefault(split, []).append(str(public.fetch(file, DATASETS)))
    training = by_split.pop("train", None) or by_split.pop(next(iter(by_split)))
    arguments = [*training, "--languages", ",".join(languages)]
    for split, paths in by_split.items():
        if split in ("validation", "test") and len(paths) == 1:
            arguments += [f"--{split}", *paths]
    typer.echo(f"{files[0][1].credit}.", err=True)
    typer.echo(f"Prepare it: nmt prepare {shlex.join(arguments)}", err=True)
    for paths in [training, *by_split.values()]:
        for path in paths:
            typer.echo(path)
