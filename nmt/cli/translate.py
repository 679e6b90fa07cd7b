"""``nmt translate``: sentences or given pairs in, translations, alignments and scores out, one a line."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.options import (
    BEAM,
    BatchSizeOption,
    BeamOption,
    CoveragePenaltyOption,
    EpochOption,
    LengthPenaltyOption,
    PrecisionOption,
    option_name,
    refuse_idle_beam_options,
)
from nmt.errors import DataError, NmtError

if TYPE_CHECKING:
    from nmt.decoding.translator import Translation, Translator


def translate(
    sentences: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences; without any, lines of standard input.", metavar="[SENTENCE]..."),
    ] = None,
    run: Annotated[str | None, typer.Option("--run", help="A run in checkpoints/; by default the latest.")] = None,
    epoch: EpochOption = None,
    input_: Annotated[Path | None, typer.Option("--input", "-i", help="A text file, a sentence a line.")] = None,
    beam: BeamOption = None,
    length_penalty: LengthPenaltyOption = None,
    coverage_penalty: CoveragePenaltyOption = None,
    n_best: Annotated[
        int | None,
        typer.Option(min=1, help="So many translations of each sentence, as lines of number, score and translation."),
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw words by their probabilities.")] = False,
    temperature: Annotated[float | None, typer.Option(help="Of sampling: logits are divided by it.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Of sampling: draw from so many likeliest words.")] = None,
    top_p: Annotated[
        float | None, typer.Option(help="Of sampling: draw from the fewest likeliest words as probable together.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of sampling.")] = None,
    prefix: Annotated[str, typer.Option(help="What every translation begins with.")] = "",
    score: Annotated[
        bool, typer.Option("--score", help="Lines are source TAB translation: print its log-probability.")
    ] = False,
    alignment: Annotated[
        bool, typer.Option("--alignment", help="Add a column i-j: target word j looked most at source word i, from 0.")
    ] = False,
    batch_size: BatchSizeOption = None,
    precision: PrecisionOption = None,
) -> None:
    """Translate sentences and print the translations alone, one a line.

    With --alignment a TAB and pairs i-j follow. With --n-best a line is the number of its sentence, the score and the
    translation, separated by TABs. With --score a line is the log-probability of a given translation. What is not
    given here is as in the section decoding of the run's configuration.
    """
    from nmt.config.loading import change_decoding
    from nmt.runs.directory import find_run

    figures: dict[str, Any] = {
        "beam_size": beam, "length_penalty": length_penalty, "coverage_penalty": coverage_penalty,
        "temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed, "batch_size": batch_size,
        "precision": precision,
    }  # fmt: skip
    _refuse_contradictions(figures, sample=sample, score=score, n_best=n_best, prefix=prefix, alignment=alignment)
    texts, names = _read(sentences, input_)
    pairs = [_pair(*one) for one in zip(texts, names, strict=True)] if score else []
    chosen = find_run(run)
    decoding = change_decoding(chosen.config().decoding, figures)
    if n_best is not None and n_best > decoding.beam_size:
        raise NmtError(
            f"A beam finds as many translations as it is wide; received --n-best {n_best} with a beam of "
            f"{decoding.beam_size}. Give --beam {n_best} or more."
        )

    from nmt.runs.weights import WeightsFile, choose_epoch

    weights = WeightsFile(chosen, choose_epoch(chosen, epoch))  # they come while TensorFlow starts

    from nmt.decoding.model_search import SearchOptions
    from nmt.decoding.translator import Translator

    translator = Translator.load(chosen, decoding=decoding, weights=weights)
    if score:
        for value in translator.score([source for source, _ in pairs], [target for _, target in pairs], names):
            typer.echo(f"{value:.4f}")
        return
    options = SearchOptions(sampled=sample, n_best=n_best or 1, scored=n_best is not None)
    found = translator.translate_n_best(texts, names, options, prefix)
    _print(translator, texts, found, numbered=n_best is not None, aligned=alignment)
    _warn([several[0] for several in found], names)


SAMPLING = ("temperature", "top_k", "top_p", "seed")


def _refuse_contradictions(
    figures: dict[str, Any], *, sample: bool, score: bool, n_best: int | None, prefix: str, alignment: bool
) -> None:
    given = {name for name, value in figures.items() if value is not None}
    given |= {name for name, value in {"sample": sample, "n_best": n_best, "prefix": prefix}.items() if value}
    given |= {"alignment"} if alignment else set()

    def first(names: tuple[str, ...]) -> str | None:
        return next((option_name(name) for name in names if name in given), None)

    if score and (other := first(("sample", "n_best", "prefix", "alignment", *BEAM, *SAMPLING))):
        raise NmtError(
            f"--score looks at translations that are given and searches for none; received {other} too. Leave one of "
            "them out."
        )
    if sample and (other := first(("n_best", *BEAM))):
        raise NmtError(f"Words are drawn or searched for; received --sample and {other}. Leave one of them out.")
    if not sample and (other := first(SAMPLING)):
        raise NmtError(f"{other} is about sampling; received it without --sample. Add --sample or leave it out.")
    refuse_idle_beam_options(figures)


def _read(sentences: list[str] | None, path: Path | None) -> tuple[list[str], list[str]]:
    """Return the lines of input and what a message calls each of them."""
    from nmt.storage.text import read_lines

    if sentences and path:
        raise NmtError("Sentences come as arguments or from --input, not both. Leave one of them out.")
    if sentences:
        return sentences, [repr(sentence[:60]) for sentence in sentences]
    texts = read_lines(path) if path else _standard_input()
    return texts, [f"{path or 'standard input'}, line {n}" for n in range(1, len(texts) + 1)]


def _standard_input() -> list[str]:
    from nmt.storage.text import text_lines

    if sys.stdin.isatty():
        typer.echo("Type sentences, one a line; end with Ctrl-D.", err=True)
    return text_lines(sys.stdin.buffer.read(), "standard input")


def _pair(line: str, name: str) -> tuple[str, str]:
    source, *targets = line.split("\t")
    if len(targets) != 1:
        raise DataError(
            f"With --score a line is a sentence, a TAB and its translation; {name} has {len(targets)} TABs. "
            "Two files can be joined with: paste SOURCES TRANSLATIONS"
        )
    return source, targets[0]


def _print(
    translator: "Translator", texts: list[str], found: "list[list[Translation]]", *, numbered: bool, aligned: bool
) -> None:
    flat = [(number, one) for number, several in enumerate(found, start=1) for one in several]
    rows = [[f"{number}", f"{one.score:.4f}"] if numbered else [] for number, one in flat]
    for row, (_, one) in zip(rows, flat, strict=True):
        row.append(one.text)
    if aligned:
        attention = translator.attention([texts[number - 1] for number, _ in flat], [one for _, one in flat])
        for row, seen in zip(rows, attention, strict=True):
            row.append(" ".join(f"{i}-{j}" for i, j in seen.alignment()))
    for row in rows:
        typer.echo("\t".join(row))


def _warn(translations: "list[Translation]", names: list[str]) -> None:
    """Say on standard error what a reader of the translations must know."""
    for translation, name in zip(translations, names, strict=True):
        if translation.unknown:
            typer.echo(f"nmt: {name}: unknown to the model: {', '.join(translation.unknown)}", err=True)
        if not translation.finished:
            typer.echo(f"nmt: {name}: the translation reached its longest allowed length and stops there", err=True)
