"""``nmt translate``: translations, alignments and scores, one line each."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.options import (
    BEAM_KEYS,
    OUTPUT,
    SAMPLING,
    SAMPLING_KEYS,
    SEARCH,
    BackendOption,
    BatchSizeOption,
    BeamOption,
    CoveragePenaltyOption,
    EpochOption,
    ExportOption,
    LengthPenaltyOption,
    PrecisionOption,
    RunOption,
    option_name,
    refuse_idle_beam_options,
    translates_with_export,
)
from nmt.errors import DataError, NmtError

if TYPE_CHECKING:
    from nmt.decoding.translation import Translation
    from nmt.decoding.translator import Translator


def translate(
    sentences: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences. Default: the lines of standard input.", metavar="[SENTENCE]..."),
    ] = None,
    run: RunOption = None,
    epoch: EpochOption = None,
    input_: Annotated[
        Path | None,
        typer.Option("--input", "-i", metavar="FILE", help="Text file, one sentence a line.", rich_help_panel=OUTPUT),
    ] = None,
    n_best: Annotated[
        int | None,
        typer.Option(
            "--n-best",
            min=1,
            metavar="N",
            help="Print the N best translations of each sentence as lines of sentence number TAB score TAB "
            "translation. N is at most the beam size.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    alignment: Annotated[
        bool,
        typer.Option(
            "--alignment",
            help="Add a TAB and pairs i-j to each line: target word j attends most to source word i. Both count from "
            "0.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    score: Annotated[
        bool,
        typer.Option(
            "--score",
            help="Read lines of source TAB translation, and print the log-probability of each translation.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    beam: BeamOption = None,
    length_penalty: LengthPenaltyOption = None,
    coverage_penalty: CoveragePenaltyOption = None,
    prefix: Annotated[
        str,
        typer.Option(
            "--prefix", metavar="TEXT", help="Text that every translation begins with.", rich_help_panel=SEARCH
        ),
    ] = "",
    sample: Annotated[
        bool,
        typer.Option("--sample", help="Draw words by their probabilities.", rich_help_panel=SAMPLING),
    ] = False,
    temperature: Annotated[
        float | None,
        typer.Option(
            "--temperature",
            metavar="X",
            help="Divide logits by X. Below 1, likely words become likelier.",
            rich_help_panel=SAMPLING,
        ),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(
            "--top-k", metavar="K", help="Draw from the K likeliest words. 0: from all.", rich_help_panel=SAMPLING
        ),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            "--top-p",
            metavar="P",
            help="Draw from the fewest likeliest words whose probabilities sum to P.",
            rich_help_panel=SAMPLING,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", help="Seed of the random numbers.", rich_help_panel=SAMPLING),
    ] = None,
    batch_size: BatchSizeOption = None,
    precision: PrecisionOption = None,
    backend: BackendOption = None,
    export: ExportOption = None,
) -> None:
    """Translate sentences, one translation a line.

    Standard output has translations alone. Unknown words and translations that were cut off are reported on standard
    error.

    Search and sampling options that are left out have the values of the run's configuration, section decoding.

    Examples:
        nmt translate "im thirsty"
        nmt translate --run letters --input letters.en > letters.out
        nmt translate --beam 5 --n-best 3 "im thirsty"
        nmt translate --sample --temperature 0.8 --seed 7 "im thirsty"
        nmt translate --backend ctranslate2 "im thirsty"
        paste letters.en letters.out | nmt translate --score
    """
    from nmt.api import load
    from nmt.decoding.exported import CTRANSLATE2

    settings: dict[str, Any] = {
        "beam_size": beam, "length_penalty": length_penalty, "coverage_penalty": coverage_penalty,
        "temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed, "batch_size": batch_size,
        "precision": precision,
    }  # fmt: skip
    _refuse_contradictions(settings, sample=sample, score=score, n_best=n_best, prefix=prefix, alignment=alignment)
    texts, names = read_sentences(sentences, input_)
    pairs = [_pair(text, name) for text, name in zip(texts, names, strict=True)] if score else []
    engine = CTRANSLATE2 if translates_with_export(backend, export, precision) else "tensorflow"
    translator = load(run, epoch, decoding=settings, backend=engine, export=export)
    if score:
        for value in translator.score([source for source, _ in pairs], [target for _, target in pairs], names=names):
            typer.echo(f"{value:.4f}")
        return
    if n_best is not None:
        found = translator.translate_n_best(texts, n_best, prefix=prefix, names=names)
    else:
        details = translator.translate_details(texts, prefix=prefix, sample=sample, names=names, scored=False)
        found = [[translation] for translation in details]
    _print(translator, texts, found, numbered=n_best is not None, aligned=alignment)
    warn([translations[0] for translations in found], names)


def _refuse_contradictions(
    settings: dict[str, Any], *, sample: bool, score: bool, n_best: int | None, prefix: str, alignment: bool
) -> None:
    """Refuse options that contradict each other, naming two of them."""
    options = {**settings, "sample": sample, "n_best": n_best, "prefix": prefix, "alignment": alignment}
    received = {key for key, value in options.items() if value not in (None, False, "")}
    received |= {key for key, value in settings.items() if value is not None}  # 0 and 0.0 among them

    def first(keys: tuple[str, ...]) -> str | None:
        return next((option_name(key) for key in keys if key in received), None)

    if score and (conflict := first(("sample", "n_best", "prefix", "alignment", *BEAM_KEYS, *SAMPLING_KEYS))):
        raise NmtError(
            f"--score reads translations and searches for none; received {conflict} too. Leave one of them out."
        )
    if sample and (conflict := first(("n_best", *BEAM_KEYS))):
        raise NmtError(f"Words are drawn or searched for; received --sample and {conflict}. Leave one of them out.")
    if not sample and (conflict := first(SAMPLING_KEYS)):
        raise NmtError(f"{conflict} is for sampling; received it without --sample. Add --sample, or leave it out.")
    refuse_idle_beam_options(settings)


def read_sentences(sentences: list[str] | None, path: Path | None) -> tuple[list[str], list[str]]:
    """Return the sentences of the command line, of --input or of standard input, and the name of each in messages.

    Raises:
        NmtError: if sentences come from two places, or a file cannot be read.
    """
    from nmt.storage.text import read_lines

    if sentences and path:
        raise NmtError("Sentences come as arguments or from --input; received both. Leave one of them out.")
    if sentences:
        return sentences, [repr(sentence[:60]) for sentence in sentences]
    texts = read_lines(path) if path else _standard_input()
    return texts, [f"{path or 'standard input'}, line {number}" for number in range(1, len(texts) + 1)]


def _standard_input() -> list[str]:
    from nmt.storage.text import text_lines

    if sys.stdin.isatty():
        typer.echo("Type sentences, one a line; end with Ctrl-D.", err=True)
    return text_lines(sys.stdin.buffer.read(), "standard input")


def _pair(line: str, name: str) -> tuple[str, str]:
    source, *targets = line.split("\t")
    if len(targets) != 1:
        raise DataError(
            f"{name} has {len(targets)} TABs. With --score a line is a sentence, a TAB and its translation. Two files "
            "can be joined with: paste SOURCES TRANSLATIONS"
        )
    return source, targets[0]


def _print(
    translator: "Translator", texts: list[str], found: "list[list[Translation]]", *, numbered: bool, aligned: bool
) -> None:
    """Print translations as lines, with columns for the sentence number, the score and the alignment."""
    from nmt.storage.text import as_cell

    numbers = [number for number, translations in enumerate(found, start=1) for _ in translations]
    flat = [translation for translations in found for translation in translations]
    rows = [[as_cell(translation.text)] for translation in flat]
    if numbered:
        rows = [
            [f"{number}", f"{translation.score:.4f}", as_cell(translation.text)]
            for number, translation in zip(numbers, flat, strict=True)
        ]
    if aligned:
        attention = translator.attention([texts[number - 1] for number in numbers], flat)
        for row, weights in zip(rows, attention, strict=True):
            row.append(" ".join(f"{i}-{j}" for i, j in weights.alignment()))
    for row in rows:
        typer.echo("\t".join(row))


def warn(translations: "list[Translation]", names: list[str]) -> None:
    """Report unknown words and translations that were cut off, on standard error."""
    for translation, name in zip(translations, names, strict=True):
        if translation.unknown:
            typer.echo(f"nmt: {name}: unknown to the model: {', '.join(translation.unknown)}", err=True)
        if not translation.finished:
            typer.echo(f"nmt: {name}: the translation reached its longest allowed length and stops there", err=True)
