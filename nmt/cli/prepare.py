"""The command that turns files of sentence pairs into a dataset, and what it says about them."""

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import ConfigOption, SetOption
from nmt.errors import ConflictError, NmtError, printable

if TYPE_CHECKING:
    from nmt.config.data import DataConfig
    from nmt.data.cleaning import Sources
    from nmt.data.dataset import Dataset
    from nmt.data.manifest import Manifest
    from nmt.data.prepare import TokenizerSource
    from nmt.data.sources.text_file import TextFile

APART = "Pairs for {} alone, instead of a share of the others: one file, or the option twice for two sides."


def prepare(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE [FILE]",
            help="Sentence pairs: TSV, JSON Lines (.jsonl), TMX (.tmx), a pickled array (N, 2) of str (.pkl), or two "
            "text files with a side each; each may be gzipped (.gz) or a member of an archive (pairs.zip/deu.txt). "
            "Also looked for in data/.",
        ),
    ],
    validation: Annotated[list[str] | None, typer.Option(help=APART.format("validation"), metavar="FILE")] = None,
    test: Annotated[list[str] | None, typer.Option(help=APART.format("the test"), metavar="FILE")] = None,
    config: ConfigOption = "base.yaml",
    name: Annotated[
        str | None, typer.Option(help="Name of the dataset; by default the config's, else the file's.")
    ] = None,
    overrides: SetOption = None,
    tokenizer_of: Annotated[
        str | None,
        typer.Option(
            "--tokenizer-of", help="Take the tokenizers of a run, to train on from its weights.", metavar="RUN"
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a different dataset of that name.")] = False,
) -> None:
    """Turn sentence pairs into a dataset: clean, split, tokenize, and say what was found."""
    from nmt.config.loading import find_config, load_config
    from nmt.data.cleaning import Sources

    settings = load_config(find_config(config), overrides).data
    sources = Sources(_find(files, "FILE"), _find(validation or [], "--validation"), _find(test or [], "--test"))
    tokenizer_run = _tokenizer_source(tokenizer_of, settings, overrides or []) if tokenizer_of else None
    name = name or settings.dataset or sources.corpus[0].stem
    run_prepare(sources, settings, name, overwrite=overwrite, tokenizer_source=tokenizer_run)


def _tokenizer_source(name: str, settings: "DataConfig", overrides: list[str]) -> "TokenizerSource":
    """Return the tokenizers of a run, and print the settings that they fix."""
    from nmt.data.manifest import read_manifest
    from nmt.data.prepare import TOKENIZER_KEYS, TokenizerSource
    from nmt.runs.directory import find_run

    run = find_run(name)
    fitted = read_manifest(run.dataset_path).settings
    overridden = {override.partition("=")[0].strip().removeprefix("data.") for override in overrides}
    for key in TOKENIZER_KEYS:
        received, required = getattr(settings, key), getattr(fitted, key)
        if key in overridden and received not in ("auto", required):
            raise ConflictError(
                f"--set data.{key} is {received!r}, but data.{key} of run {name!r} is {required!r}. With "
                f"--tokenizer-of, text is tokenized as in the run. Leave out --set data.{key}, or leave out "
                "--tokenizer-of to fit new tokenizers."
            )
    in_force = (f"{key} {json.dumps(getattr(fitted, key))}" for key in TOKENIZER_KEYS)
    typer.echo(f"Tokenizers of run {name}, whatever the configuration says: {', '.join(in_force)}")
    return TokenizerSource(name, run.folder, fitted)


def _find(names: list[str], what: str) -> "list[TextFile]":
    from nmt.data.dataset import DATASETS
    from nmt.data.sources.text_file import find_text_file

    if len(names) > 2:
        raise NmtError(
            f"A corpus is one file of pairs, or two files with a side each; {what} was given {len(names)}: "
            f"{', '.join(names)}. Join those of a side first, for example with cat."
        )
    return [find_text_file(name, [DATASETS]) for name in names]


def run_prepare(
    sources: "Sources",
    settings: "DataConfig",
    name: str,
    *,
    overwrite: bool = False,
    tokenizer_source: "TokenizerSource | None" = None,
) -> "Dataset":
    """Prepare a corpus with a bar on a terminal, and print what it is."""
    from nmt.data.prepare import prepare as prepare_dataset

    started = time.perf_counter()
    with _progress() as report:
        dataset, made = prepare_dataset(
            sources, settings, name, overwrite=overwrite, report=report, tokenizer_source=tokenizer_source
        )
    seconds = time.perf_counter() - started
    typer.echo(describe(dataset.manifest))
    if made:
        rate = dataset.manifest.read / seconds
        typer.echo(f"Written to {dataset.folder} in {seconds:.1f} s ({rate:,.0f} pairs a second)")
    else:
        typer.echo(f"Already prepared with these settings: {dataset.folder}")
    return dataset


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar a step on a terminal, silence elsewhere."""
    from tqdm import tqdm

    bar: tqdm | None = None
    doing = ""

    def report(what: str, done: int, total: int | None) -> None:
        nonlocal bar, doing
        if bar is None or what != doing:
            if bar is not None:
                bar.close()
            doing = what
            bar = tqdm(desc=what, total=total, unit=" pairs", disable=None, leave=False, file=sys.stderr)
        bar.update(done - bar.n)

    try:
        yield report
    finally:
        if bar is not None:
            bar.close()


def describe(manifest: "Manifest") -> str:
    """Return what a person should know of a dataset: its counts, and what is odd in it."""
    files = ", ".join(file.name for file in [manifest.corpus, *manifest.more_files])
    settings = manifest.settings
    dropped = "".join(f", {count:,} dropped ({reason})" for reason, count in manifest.dropped.items())
    of_both = " for both sides" if settings.joint_vocabulary is True else ""
    taken = f" of run {manifest.tokenizer_of}" if manifest.tokenizer_of else ""
    return printable("\n".join([
        f"{files}: {manifest.read:,} pairs read{dropped}; split {settings.split}, seed {settings.seed}",
        _table(manifest),
        f"{manifest.unit}, normalization {settings.normalization}; vocabulary{taken}{of_both}: "
        f"{manifest.vocabulary['source']:,} source and {manifest.vocabulary['target']:,} target ids, of which 4 are "
        "pad, unk, bos and eos",
        *_findings(manifest),
    ]))  # fmt: skip


def _table(manifest: "Manifest") -> str:
    splits, unit = list(manifest.splits.values()), manifest.unit
    rows = [["", *manifest.splits], ["pairs", *(f"{split.pairs:,}" for split in splits)]]
    for side in ("source", "target"):
        rows.append([f"{side} {unit}", *(f"{split.tokens[side]:,}" for split in splits)])
        if all(split.percentiles for split in splits):
            percents = "/".join(splits[0].percentiles[side])
            rows.append(
                [
                    f"{side} length, {percents}%",
                    *("/".join(map(str, split.percentiles[side].values())) for split in splits),
                ]
            )
        rows.append([f"longest {side}", *(f"{split.longest[side]} {unit}" for split in splits)])
        rows.append(
            [f"unknown {side} {unit}", *(f"{_share(split.unknown[side], split.tokens[side])}" for split in splits)]
        )
        if all(split.characters for split in splits):
            per_token = (split.characters[side] / max(1, split.tokens[side]) for split in splits)
            rows.append([f"characters per {side} token", *(f"{one:.1f}" for one in per_token)])
    rows.append(["pairs whose source is in training", "-", *(f"{split.sources_in_training:,}" for split in splits[1:])])
    return "\n".join("  ".join([f"{row[0]:<33}", *(f"{cell:>13}" for cell in row[1:])]) for row in rows)


def _share(part: int, whole: int) -> str:
    return f"{part / max(1, whole):.2%}"


def _findings(manifest: "Manifest") -> Iterator[str]:
    report = manifest.report
    if report.sources_translated_often:
        yield (
            f"{report.sources_translated_often:,} sources have several translations, one of them "
            f"{report.most_translations:,}"
        )
    for reason, count in manifest.dropped.items():
        yield from _with_places(f"Dropped: {count:,} x {reason}", report.places.get(reason))
    for reason, count in report.noticed.items():
        looked_at = f" (of {report.columns_looked_at:,} looked at)" if "look" in reason else ""
        yield from _with_places(f"Kept, but look: {count:,} x {reason}{looked_at}", report.places.get(reason))


def _with_places(headline: str, places: list[str] | None) -> Iterator[str]:
    yield headline
    for place in places or []:
        yield f"    {place}"
