"""``nmt prepare``: a dataset from files of sentence pairs, and its description."""

import contextlib
import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.bars import Bar
from nmt.cli.options import ConfigOption, SetOption
from nmt.errors import printable

if TYPE_CHECKING:
    from nmt.data.dataset import Dataset
    from nmt.data.manifest import Manifest


def prepare(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Sentence pairs in one file: TSV (.tsv, .txt), JSON Lines (.jsonl), TMX (.tmx) or a pickled array "
            "(N, 2) of str (.pkl). Or two text files, one for each side. A file may be gzipped (.gz) or in an archive "
            "(pairs.zip/deu.txt). A bare name is also looked for in data/.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the dataset. Default: data.dataset of the configuration, else the name of the file."
        ),
    ] = None,
    validation: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Validation pairs: one file, or the option twice for two sides. Default: a share of the pairs.",
        ),
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Test pairs: one file, or the option twice for two sides. Default: a share of the pairs.",
        ),
    ] = None,
    languages: Annotated[
        str | None,
        typer.Option(
            metavar="XX-YY",
            help="Language codes of source and target, such as en-de or en,pt-BR. Default: those in names of files, "
            "such as train.en.gz, or in a TMX.",
        ),
    ] = None,
    tokenizer_of: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Use the tokenizers of a run, to fine-tune it with nmt train --from RUN."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a different dataset of the same name.")
    ] = False,
    config: ConfigOption = "base.yaml",
    overrides: SetOption = None,
) -> None:
    """Turn sentence pairs into a dataset: clean, split, tokenize.

    Reports lengths, unknown words, and the pairs that were dropped or look wrong, with their lines.

    Examples:
        nmt prepare english-german-both.pkl
        nmt prepare letters.en letters.de --name letters
        nmt prepare train.tsv --validation val.tsv --test test.tsv
        nmt prepare pairs.jsonl --set data.source_column=en
        nmt prepare pairs.tsv --languages en-de
    """
    run_prepare(
        files,
        name=name,
        validation=validation or (),
        test=test or (),
        config=config,
        set=overrides or (),
        languages=languages,
        tokenizer_of=tokenizer_of,
        overwrite=overwrite,
    )


def run_prepare(files: list[str], **options: Any) -> "Dataset":
    """Prepare a corpus with a progress bar on a terminal, and print the description of the dataset.

    Args:
        files: as for ``nmt.api.prepare``.
        options: keyword arguments of ``nmt.api.prepare``.
    """
    from nmt.api import prepare as prepare_dataset

    started = time.perf_counter()
    with contextlib.closing(Bar("pairs")) as bar:
        dataset = prepare_dataset(files, progress=bar.show, **options)
    seconds = time.perf_counter() - started
    if dataset.manifest.tokenizer_of:
        typer.echo(_describe_tokenizers(dataset.manifest))
        if note := _other_languages(dataset.manifest, options["tokenizer_of"]):
            typer.echo(note)
    typer.echo(describe(dataset.manifest))
    if dataset.is_new:
        rate = dataset.manifest.read / seconds
        typer.echo(f"Written to {dataset.folder} in {seconds:.1f} s ({rate:,.0f} pairs a second)")
    else:
        typer.echo(f"Already prepared with these settings: {dataset.folder}")
    return dataset


def describe(manifest: "Manifest") -> str:
    """Return a description of a dataset for people: its counts, and what looks wrong in it."""
    files = ", ".join(file.name for file in [manifest.corpus, *manifest.more_files])
    settings = manifest.settings
    dropped = "".join(f", {count:,} dropped ({reason})" for reason, count in manifest.dropped.items())
    of_both = " for both sides" if settings.joint_vocabulary is True else ""
    taken = f" of run {manifest.tokenizer_of}" if manifest.tokenizer_of else ""
    return printable("\n".join([
        f"{files}: {manifest.read:,} pairs read{dropped}; split {settings.split}, seed {settings.seed}"
        f"{_languages(manifest)}",
        _table(manifest),
        f"{manifest.unit}, normalization {settings.normalization}; vocabulary{taken}{of_both}: "
        f"{manifest.vocabulary['source']:,} source and {manifest.vocabulary['target']:,} target ids, of which 4 are "
        f"pad, unk, bos and eos{_why_size(manifest)}",
        *_findings(manifest),
    ]))  # fmt: skip


def _why_size(manifest: "Manifest") -> str:
    """Return why a subword vocabulary has its size; nothing where it was set, or taken from a run."""
    settings = manifest.settings
    if settings.tokenizer != "subword" or settings.vocabulary_size is not None or manifest.tokenizer_of:
        return ""
    pairs = manifest.splits["train"].pairs
    return f"; the size suits {pairs:,} training pairs (to change it: --set data.vocabulary_size=N)"


def _languages(manifest: "Manifest") -> str:
    """Return "; languages en to de", or nothing where both are unknown."""
    source, target = manifest.languages.values()
    return "" if (source, target) == ("source", "target") else f"; languages {source} to {target}"


def _other_languages(manifest: "Manifest", run: str) -> str | None:
    """Return a note if the run whose tokenizers a dataset has translates between other languages."""
    from nmt.data.languages import differ
    from nmt.data.manifest import read_manifest
    from nmt.runs.directory import find_run

    before, now = read_manifest(find_run(run).dataset_path).languages, manifest.languages
    if not differ(before, now):
        return None
    return (
        f"Note: this dataset is {' to '.join(now.values())}, and run {run} translates {' to '.join(before.values())}. "
        "If that is not intended, exchange the files or columns, or correct --languages."
    )


def _describe_tokenizers(manifest: "Manifest") -> str:
    from nmt.data.prepare import TOKENIZER_KEYS

    in_force = ", ".join(f"{key} {json.dumps(getattr(manifest.settings, key))}" for key in TOKENIZER_KEYS)
    return f"Tokenizers of run {manifest.tokenizer_of}, with the settings that they were fitted with: {in_force}"


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
            per_token = [split.characters[side] / max(1, split.tokens[side]) for split in splits]
            rows.append([f"characters per {side} token", *(f"{characters:.1f}" for characters in per_token)])
    rows.append(["pairs whose source is in training", "-", *(f"{split.sources_in_training:,}" for split in splits[1:])])
    return "\n".join("  ".join([f"{row[0]:<33}", *(f"{cell:>13}" for cell in row[1:])]) for row in rows)


def _share(part: int, whole: int) -> str:
    return f"{part / max(1, whole):.2%}"


def _findings(manifest: "Manifest") -> Iterator[str]:
    report = manifest.report
    if report.sources_translated_often:
        yield (
            f"{report.sources_translated_often:,} sources have several translations, up to "
            f"{report.most_translations:,} each"
        )
    for reason, count in manifest.dropped.items():
        yield from _with_places(f"Dropped: {count:,} x {reason}", report.places.get(reason))
    for reason, count in report.noticed.items():
        checked = f" (of {report.columns_looked_at:,} pairs checked)" if "look" in reason else ""
        yield from _with_places(f"Kept, but suspicious: {count:,} x {reason}{checked}", report.places.get(reason))


def _with_places(headline: str, places: list[str] | None) -> Iterator[str]:
    yield headline
    for place in places or []:
        yield f"    {place}"
