"""``nmt tokens``: pieces and ids of sentences as the model reads them."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.cli.options import JsonOption, RunOption
from nmt.errors import NmtError, counted, printable

if TYPE_CHECKING:
    from nmt.tokenizers.base import Token, Tokenizer


def tokens(
    sentences: Annotated[
        list[str] | None, typer.Argument(metavar="SENTENCE", help="Sentences. Default: the lines of standard input.")
    ] = None,
    run: RunOption = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            help="Use the tokenizers of a dataset in data/, without bos and eos. Default: tokenizers of the run, or "
            "of the dataset prepared last if there is no run."
        ),
    ] = None,
    side: Annotated[
        Literal["source", "target"], typer.Option(metavar="SIDE", help="Read sentences as source or target.")
    ] = "source",
    as_json: JsonOption = False,
) -> None:
    """Show the pieces and ids of sentences as the model reads them.

    Pieces show spaces as ▁. Unknown words and bytes of rare characters are marked. On a terminal, ids are below pieces;
    otherwise a line has the pieces of a sentence, a TAB and the ids. Sentences beyond the length limits of the model or
    of training are reported on standard error.

    Examples:
        nmt tokens "im thirsty"
        nmt tokens --run base --side target "ich bin durstig"
        nmt tokens --dataset english-german-both < letters.en
        nmt tokens --json "im thirsty"
    """
    from nmt.cli.commands.translate import read_sentences
    from nmt.data.dataset import find_dataset
    from nmt.data.manifest import read_manifest
    from nmt.runs.directory import RUNS, find_run
    from nmt.tokenizers.base import BOS, EOS, SPECIAL_PIECES, Token, tokens_of
    from nmt.tokenizers.registry import load_tokenizer

    if run is not None and dataset is not None:
        raise NmtError(
            f"Tokenizers belong to a run or to a dataset; received --run {run} and --dataset {dataset}. Leave one of "
            "them out."
        )
    limit = None  # largest number of tokens that the model reads, with bos and eos
    before, after = [], []
    if dataset is not None or (run is None and not any(RUNS.glob("*/config.yaml"))):
        prepared = find_dataset(dataset)
        owner, manifest = {"dataset": prepared.name}, prepared.manifest
        tokenizer: Tokenizer = prepared.tokenizers()[side == "target"]
    else:
        chosen = find_run(run)
        owner, manifest, model = {"run": chosen.name}, read_manifest(chosen.dataset_path), chosen.config().model
        tokenizer, limit = load_tokenizer(chosen.tokenizer_path(side)), getattr(model.limits, side)
        before = [Token(BOS, SPECIAL_PIECES[BOS], "special")] if side == "target" or model.reads_bos else []
        after = [Token(EOS, SPECIAL_PIECES[EOS], "special")]
    rows = []
    for texts, names in read_sentences(sentences):
        for text, name in zip(texts, names, strict=True):
            row = [*before, *tokens_of(tokenizer, text), *after]
            if as_json:
                token_rows = [token._asdict() for token in row]
                rows.append({"text": text, "normalized": tokenizer.normalize(text), "tokens": token_rows})
            else:
                _show(row)
            for warning in _warnings(row, len(row) - len(before) - len(after), limit, manifest.settings.max_tokens):
                typer.echo(f"nmt: {name}: {warning}", err=True)
    if as_json:
        typer.echo(json.dumps({**owner, "side": side, "unit": tokenizer.unit, "sentences": rows}, ensure_ascii=False))


def _show(row: "list[Token]") -> None:
    """Print the tokens of a sentence: on a terminal as columns of piece, id and mark, otherwise as a line."""
    if not sys.stdout.isatty():
        typer.echo(f"{' '.join(printable(token.piece) for token in row)}\t{' '.join(str(token.id) for token in row)}")
        return
    from rich.columns import Columns
    from rich.console import Console
    from rich.text import Text

    marks = ["unknown" if token.kind == "unknown" else printable(token.character or "") for token in row]
    cells = [Text(f"{printable(token.piece)}\n{token.id}\n{mark}") for token, mark in zip(row, marks, strict=True)]
    Console(highlight=False).print(Columns(cells, padding=(0, 2)))


def _warnings(row: "list[Token]", words: int, limit: int | None, longest: int | None) -> list[str]:
    """Return warnings about a sentence: unknown pieces, and lengths beyond a limit."""
    warnings = []
    if unknown := [token.piece for token in row if token.kind == "unknown"]:
        warnings.append(f"unknown to the tokenizer: {', '.join(unknown)}")
    if not words:
        warnings.append("no tokens are left after normalization")
    if limit is not None and len(row) > limit:
        warnings.append(f"{counted(len(row), 'token')} with <s> and </s>; the model reads at most {limit}")
    if longest is not None and words > longest:
        warnings.append(f"{counted(words, 'token')}; training leaves out pairs of more than data.max_tokens={longest}")
    return warnings
