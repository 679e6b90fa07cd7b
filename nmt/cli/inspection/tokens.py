"""``nmt tokens``: pieces and ids of sentences, as a model reads them."""

import json
import shutil
import sys
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from nmt.cli.options import DATA, OUTPUT, JsonOption, RunOption
from nmt.errors import NmtError, NotFoundError, printable

if TYPE_CHECKING:
    from nmt.tokenizers.base import Tokenizer
    from nmt.tokenizers.tokens import Token

SIDES = {"source": ("source",), "target": ("target",), "both": ("source", "target")}
GAP = "  "


def tokens(
    sentences: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences. Default: the lines of standard input.", metavar="[SENTENCE]..."),
    ] = None,
    run: RunOption = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            metavar="NAME",
            help="Take the tokenizers of a dataset in data/, without bos and eos. Default: those of the run, or of the "
            "dataset prepared last if there is no run.",
            rich_help_panel=DATA,
        ),
    ] = None,
    side: Annotated[
        str,
        typer.Option("--side", metavar="SIDE", help="Read sentences as source, target or both.", rich_help_panel=DATA),
    ] = "source",
    input_: Annotated[
        Path | None,
        typer.Option("--input", "-i", metavar="FILE", help="Text file, one sentence a line.", rich_help_panel=OUTPUT),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the tokens of sentences: pieces and ids, as the model reads them.

    A piece shows a space as ▁. Unknown words and the bytes of rare characters are marked. On a terminal ids stand below
    pieces; elsewhere a line has the pieces of a sentence, a TAB and the ids. Sentences longer than the model reads, or
    than training did, are reported on standard error.

    Examples:
        nmt tokens "im thirsty"
        nmt tokens --run base --side target "ich bin durstig"
        nmt tokens --dataset english-german-both --input letters.en
        nmt tokens --json "im thirsty"
    """
    from nmt.cli.commands.translate import read_sentences

    if run is not None and dataset is not None:
        raise NmtError(
            f"Tokenizers come from a run or from a dataset; received --run {run} and --dataset {dataset}. Leave one "
            "of them out."
        )
    sides = _sides(side)
    owner = _find_owner(run, dataset)
    texts, names = read_sentences(sentences, input_)
    rows = [_row(owner, each, text) for text in texts for each in sides]
    if as_json:
        typer.echo(json.dumps({**owner.names, "sentences": [_as_json(row) for row in rows]}, ensure_ascii=False))
    elif sys.stdout.isatty():
        for row in rows:
            _print_aligned(owner, row, shutil.get_terminal_size().columns)
    else:
        for row in rows:
            pieces = " ".join(printable(token.piece) for token in row.tokens)
            typer.echo(f"{pieces}\t{' '.join(str(token.id) for token in row.tokens)}")
    names_of_rows = [
        f"{name} as {row.side}" if len(sides) > 1 else name for name in names for row in rows[: len(sides)]
    ]
    for row, name in zip(rows, names_of_rows, strict=True):
        for warning in _warnings(owner, row):
            typer.echo(f"nmt: {name}: {warning}", err=True)


class _Owner(NamedTuple):
    """Run or dataset whose tokenizers are shown."""

    names: dict[str, str]
    """"run" or "dataset", with its name."""
    tokenizers: "dict[str, Tokenizer]"
    begins: dict[str, bool] | None
    """Whether the model reads bos at the start, by side; None for a dataset, which stores neither bos nor eos."""
    limits: dict[str, int | None]
    """Most tokens of a sentence that the model reads, bos and eos included, by side."""
    longest: int | None
    """Setting data.max_tokens: most tokens of a training sentence, without bos and eos."""


class _Row(NamedTuple):
    """A sentence as tokens of a side."""

    side: str
    text: str
    normalized: str
    unit: str
    tokens: "list[Token]"


def _sides(side: str) -> tuple[str, ...]:
    """Return the sides that a value of --side names.

    Raises:
        NotFoundError: suggests the nearest value.
    """
    from nmt.storage.names import did_you_mean

    if side not in SIDES:
        raise NotFoundError(f"There is no side {side!r}{did_you_mean(side, SIDES)}. Known: {', '.join(SIDES)}.")
    return SIDES[side]


def _find_owner(run: str | None, dataset: str | None) -> _Owner:
    """Return a run or a dataset by name; without names the run trained last, else the dataset prepared last.

    Raises:
        NotFoundError: if there is none.
        DataError: if a file of it is damaged.
    """
    from nmt.data.dataset import find_dataset
    from nmt.data.manifest import SIDES as BOTH
    from nmt.data.manifest import read_manifest
    from nmt.runs.directory import RUNS, find_run
    from nmt.tokenizers.registry import load_tokenizer

    if dataset is not None or (run is None and not any(RUNS.glob("*/config.yaml"))):
        prepared = find_dataset(dataset)
        tokenizers = dict(zip(BOTH, prepared.tokenizers(), strict=True))
        longest = prepared.manifest.settings.max_tokens
        return _Owner(
            {"dataset": prepared.name},
            {str(side): each for side, each in tokenizers.items()},
            None,
            dict.fromkeys(BOTH),
            longest,
        )
    chosen = find_run(run)
    model = chosen.config().model
    return _Owner(
        {"run": chosen.name},
        {side: load_tokenizer(chosen.tokenizer_path(side)) for side in BOTH},
        {"source": model.reads_bos, "target": True},
        {"source": model.limits.source, "target": model.limits.target},
        read_manifest(chosen.dataset_path).settings.max_tokens,
    )


def _row(owner: _Owner, side: str, text: str) -> _Row:
    """Return a sentence as the tokens that the model reads of a side, with bos and eos."""
    from nmt.tokenizers.base import BOS, EOS
    from nmt.tokenizers.tokens import special_token, tokens_of

    tokenizer = owner.tokenizers[side]
    found = tokens_of(tokenizer, text)
    if owner.begins is not None:
        first = [special_token(tokenizer, BOS)] if owner.begins[side] else []
        found = [*first, *found, special_token(tokenizer, EOS)]
    return _Row(side, text, tokenizer.normalize(text), tokenizer.unit, found)


def _warnings(owner: _Owner, row: _Row) -> list[str]:
    """Return what a person should know of a sentence: unknown pieces, and lengths beyond a limit."""
    words = sum(token.kind != "special" for token in row.tokens)
    found = []
    if unknown := [token.piece for token in row.tokens if token.kind == "unknown"]:
        found.append(f"unknown to the tokenizer: {', '.join(unknown)}")
    if not words:
        found.append("no tokens are left after normalization")
    limit = owner.limits[row.side]
    if limit is not None and len(row.tokens) > limit:
        found.append(f"{len(row.tokens)} tokens with <s> and </s>; the model reads at most {limit}")
    if owner.longest is not None and words > owner.longest:
        found.append(f"{words} tokens; training leaves out pairs of more than data.max_tokens={owner.longest}")
    return found


def _as_json(row: _Row) -> dict[str, object]:
    """Return a sentence as values of JSON."""
    return {
        "side": row.side,
        "text": row.text,
        "normalized": row.normalized,
        "unit": row.unit,
        "tokens": [
            {
                "id": token.id,
                "piece": token.piece,
                "kind": token.kind,
                **({} if token.character is None else {"character": token.character}),
            }
            for token in row.tokens
        ],
    }


def _print_aligned(owner: _Owner, row: _Row, width: int) -> None:
    """Print a sentence as blocks of columns: piece, id, and a mark where there is one."""
    typer.echo(f"{row.side}: {printable(row.text)}")
    if row.normalized != row.text:
        typer.echo(f"normalized: {printable(row.normalized)}")
    columns = [(printable(token.piece), str(token.id), _mark(token)) for token in row.tokens]
    while columns:
        widths = [max(map(_width, column)) for column in columns]
        count = 1  # a piece wider than the terminal has a block of its own
        while count < len(columns) and len(GAP) * (count + 1) + sum(widths[: count + 1]) <= width:
            count += 1
        typer.echo()
        for line in range(3):
            cells = [
                column[line] + " " * (wide - _width(column[line]))
                for column, wide in zip(columns[:count], widths, strict=False)
            ]
            if any(map(str.strip, cells)):
                typer.echo((GAP + GAP.join(cells)).rstrip())
        columns = columns[count:]
    [(kind, name)] = owner.names.items()
    typer.echo(f"\n{_summary(row)}; {kind} {name}\n")


def _mark(token: "Token") -> str:
    """Return what is below the id: "unknown", or the character of a byte with the place of the byte in it."""
    if token.character is not None and token.place is not None:
        number, count = token.place
        return f"{printable(token.character)} {number}/{count}"
    return token.kind if token.kind == "unknown" else ""


def _summary(row: _Row) -> str:
    """Return the numbers of tokens in a line."""
    special = [token.piece for token in row.tokens if token.kind == "special"]
    words = len(row.tokens) - len(special)
    total = f", {len(row.tokens)} with {' and '.join(special)}" if special else ""
    counts = {kind: sum(token.kind == kind for token in row.tokens) for kind in ("unknown", "byte")}
    marked = [f"{count} {kind}{'s' if kind == 'byte' and count > 1 else ''}" for kind, count in counts.items() if count]
    unit = row.unit if words != 1 else row.unit.removesuffix("s")
    return f"{words} {unit}{total}{''.join(f'; {part}' for part in marked)}"


def _width(text: str) -> int:
    """Return the number of terminal columns of a text: wide characters have two, combining marks none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
