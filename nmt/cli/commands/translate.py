"""``nmt translate``: translations, alignments and scores, one line each."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.options import EpochOption, RunOption, check_decoding, decoding_options
from nmt.config.decoding import BEAM, GREEDY, SAMPLING
from nmt.errors import DataError, NmtError

if TYPE_CHECKING:
    from nmt.decoding.translation import Translation


@decoding_options(GREEDY, BEAM, SAMPLING)
def translate(
    sentences: Annotated[
        list[str] | None, typer.Argument(metavar="SENTENCE", help="Sentences. Default: standard input, by line.")
    ] = None,
    run: RunOption = None,
    epoch: EpochOption = None,
    export: Annotated[str | None, typer.Option(help="Export to CTranslate2: its name in the run, or a folder.")] = None,
    input_: Annotated[Path | None, typer.Option("--input", "-i", help="Text file, one sentence a line.")] = None,
    n_best: Annotated[
        int | None, typer.Option(min=1, help="Print N translations of each, as lines of number, score, text.")
    ] = None,
    alignment: Annotated[
        bool, typer.Option("--alignment", help="Add pairs i-j: target word j attends most to source word i.")
    ] = False,
    score: Annotated[
        bool, typer.Option("--score", help="Read lines of source TAB translation; print log-probabilities.")
    ] = False,
    sample: Annotated[bool, typer.Option("--sample", help="Draw words by their probabilities.")] = False,
    prefix: Annotated[str, typer.Option(help="Text that every translation begins with.")] = "",
    **decoding: Any,
) -> None:
    """Translate sentences, one translation a line; warnings are on standard error.

    Examples:
        nmt translate "im thirsty"
        nmt translate --run letters --input letters.en > letters.out
        nmt translate --sample --temperature 0.8 --seed 7 "im thirsty"
    """
    from nmt.api import load
    from nmt.storage.text import as_cell

    check_decoding(decoding, sample=sample, score=score, n_best=n_best, prefix=prefix, alignment=alignment)
    texts, names = read_sentences(sentences, input_)
    pairs = [_pair(text, name) for text, name in zip(texts, names, strict=True)] if score else []
    translator = load(run, epoch, decoding=decoding, export=export)
    if score:
        for value in translator.score([source for source, _ in pairs], [target for _, target in pairs], names=names):
            typer.echo(f"{value:.4f}")
        return
    if n_best is not None:
        found = translator.translate_n_best(texts, n_best, prefix=prefix, names=names)
    else:
        details = translator.translate_details(texts, prefix=prefix, sample=sample, names=names, scored=False)
        found = [[translation] for translation in details]
    numbered = [(number, each) for number, translations in enumerate(found) for each in translations]
    rows = [[as_cell(each.text)] for _, each in numbered]
    if n_best is not None:
        rows = [[f"{number + 1}", f"{each.score:.4f}", as_cell(each.text)] for number, each in numbered]
    if alignment:
        attention = translator.attention([texts[number] for number, _ in numbered], [each for _, each in numbered])
        for row, weights in zip(rows, attention, strict=True):
            row.append(" ".join(f"{i}-{j}" for i, j in weights.alignment()))
    for row in rows:
        typer.echo("\t".join(row))
    warn([translations[0] for translations in found], names)


def read_sentences(sentences: list[str] | None, path: Path | None = None) -> tuple[list[str], list[str]]:
    """Return the sentences of the command line, of --input or of standard input, and the name of each in messages.

    Raises:
        NmtError: if sentences come from two places, or a file cannot be read.
    """
    from nmt.storage.text import read_lines, text_lines

    if sentences and path:
        raise NmtError("Sentences come as arguments or from --input; received both. Leave one of them out.")
    if sentences:
        return sentences, [repr(sentence[:60]) for sentence in sentences]
    if path is None and sys.stdin.isatty():
        typer.echo("Type sentences, one a line; end with Ctrl-D.", err=True)
    texts = read_lines(path) if path else text_lines(sys.stdin.buffer.read(), "standard input")
    return texts, [f"{path or 'standard input'}, line {number}" for number in range(1, len(texts) + 1)]


def _pair(line: str, name: str) -> tuple[str, str]:
    source, *targets = line.split("\t")
    if len(targets) != 1:
        raise DataError(
            f"{name} has {len(targets)} TABs. With --score a line is a sentence, a TAB and its translation. Two files "
            "can be joined with: paste SOURCES TRANSLATIONS"
        )
    return source, targets[0]


def warn(translations: "list[Translation]", names: list[str]) -> None:
    """Report unknown words and translations that were cut off, on standard error."""
    for translation, name in zip(translations, names, strict=True):
        if translation.unknown:
            typer.echo(f"nmt: {name}: unknown to the model: {', '.join(translation.unknown)}", err=True)
        if not translation.finished:
            typer.echo(f"nmt: {name}: the translation reached its longest allowed length and stops there", err=True)
