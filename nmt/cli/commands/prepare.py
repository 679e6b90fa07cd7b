"""``nmt prepare``: preparation of a dataset from files of sentence pairs, and its description."""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.bars import Bar
from nmt.cli.options import ConfigOption, SetOption
from nmt.errors import counted, printable

if TYPE_CHECKING:
    from nmt.data.manifest import Manifest

MANY_REPEATS = 0.1  # share of pairs that repeat earlier ones, from which on the report names the remedy
MOST_LETTERS = 12  # letters of a language that the report names
SPLIT_HELP = "pairs, in one or two files. Default: a share."


def prepare(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="Files with sentence pairs: TSV (.tsv, .txt), CSV, JSON (.jsonl, .json), Parquet, TMX, XLIFF, gettext "
            "(.po) or a pickled array (.pkl). Or two text files, one for each side. Also a folder, or an archive "
            "(pairs.zip/deu.txt). A bare name is also looked for in data/.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Name. Default: data.dataset, else the name of the file."),
    ] = None,
    validation: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]FILE", help=f"Validation {SPLIT_HELP}")
    ] = None,
    test: Annotated[list[str] | None, typer.Option(metavar="[NAME=]FILE", help=f"Test {SPLIT_HELP}")] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=FILES]",
            help="More pairs. A name such as es-gn: of this language pair.",
        ),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Put a tag before each source of this --corpus.")
    ] = None,
    languages: Annotated[
        str | None,
        typer.Option(
            metavar="XX-YY",
            help="Language codes of source and target, such as en-de or en,pt-BR. Default: the codes in file names, "
            "such as train.en.gz, or in a memory (TMX).",
        ),
    ] = None,
    tokenizer_of: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Use the tokenizers of this run, to fine-tune the run."),
    ] = None,
    filters: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Filters of bad pairs, such as numbers,copies; or all."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a different dataset of the same name.")
    ] = False,
    config: ConfigOption = "base.yaml",
    overrides: SetOption = None,
) -> None:
    """Turn sentence pairs into a dataset: clean, split, tokenize.

    The report shows lengths, unknown words, and the pairs that were dropped or look wrong.

    Examples:
        nmt prepare english-german-both.pkl
        nmt prepare letters.en letters.de --name letters
        nmt prepare train.tsv --validation val.tsv --test test.tsv
        nmt prepare pairs.jsonl --set data.source_column=en --languages en-de
        nmt prepare pairs.tsv --corpus bt=synthetic.tsv.gz --tag bt --name both
        nmt prepare --corpus en-fr=fr.tsv --corpus en-is=is.tsv --name two
    """
    from nmt.api import prepare as prepare_dataset

    corpora: dict[str, list[str]] = {}
    for argument in corpus or ():
        corpus_name, _, file_list = argument.partition("=")
        corpora.setdefault(corpus_name, []).extend(file for file in file_list.split(",") if file)
    validation_files, test_files = _by_corpus(validation or ()), _by_corpus(test or ())
    started = time.perf_counter()
    with contextlib.closing(Bar("pairs")) as bar:
        dataset = prepare_dataset(
            files or (), name=name, validation=validation_files, test=test_files, corpora=corpora, tags=tag or (),
            config=config, set=overrides or (), languages=languages, filters=filters or (), tokenizer_of=tokenizer_of,
            overwrite=overwrite, progress=bar.show,
        )  # fmt: skip
    seconds = time.perf_counter() - started
    if tokenizer_of:
        for line in _tokenizer_lines(dataset.manifest, tokenizer_of):
            typer.echo(line)
    typer.echo(describe(dataset.manifest))
    if dataset.is_new:
        rate = dataset.manifest.read / seconds
        typer.echo(f"Written to {dataset.folder} in {seconds:.1f} s ({rate:,.0f} pairs a second)")
    else:
        typer.echo(f"Already prepared with these settings: {dataset.folder}")


def _by_corpus(arguments: Sequence[str]) -> dict[str, list[str]]:
    """Return files by the corpus that they are for: FILE is for the dataset's own, NAME=FILE for a further corpus."""
    from nmt.config.data import ORIGINAL

    files: dict[str, list[str]] = {}
    for argument in arguments:
        name, is_named, file_list = argument.partition("=")
        if is_named and not Path(argument).exists():
            files.setdefault(name, []).extend(file for file in file_list.split(",") if file)
        else:
            files.setdefault(ORIGINAL, []).append(argument)
    return files


def describe(manifest: "Manifest") -> str:
    """Return a description of a dataset for the terminal: counts, and pairs that were dropped or look wrong."""
    from nmt.data.cleaning import REPAIRS
    from nmt.reporting.facts import split_rows

    files = ", ".join(file.name for file in [manifest.corpus, *manifest.more_files])
    settings, report, vocabulary = manifest.settings, manifest.report, manifest.vocabulary
    facts = [f"Recognized: {fact}" for fact in report.facts]
    dropped = "".join(f", {count:,} dropped ({reason})" for reason, count in manifest.dropped.items())
    source, target = manifest.languages.values()
    languages = "" if (source, target) == ("source", "target") else f"; languages {source} to {target}"
    of_both = " for both sides" if settings.joint_vocabulary is True else ""
    taken = f" of run {manifest.tokenizer_of}" if manifest.tokenizer_of else ""
    table = [["", *manifest.splits], *split_rows(manifest)]
    lines = [
        f"{files}: {counted(manifest.read, 'pair')} read{dropped}; split {settings.split}, seed "
        f"{settings.seed}{languages}",
        *facts,
        *("  ".join([f"{label:<33}", *(f"{cell:>13}" for cell in cells)]) for label, *cells in table),
        f"{manifest.unit}, normalization {settings.normalization}; vocabulary{taken}{of_both}: "
        f"{vocabulary['source']:,} source and {vocabulary['target']:,} target ids, of which 4 are pad, unk, bos and eos"
        f"{_size_reason(manifest)}",
    ]
    if manifest.corpora:
        lines.append(f"training pairs by corpus: {shares(manifest.pairs_by_corpus, manifest.settings.tags)}")
    if report.sources_translated_often:
        lines.append(
            f"{counted(report.sources_translated_often, 'source')} with several translations, up to "
            f"{report.most_translations:,} each"
        )
    if report.median_length_ratio and settings.max_length_ratio:
        lines.append(
            f"{report.median_length_ratio:.2f} target characters per source character (median); pairs whose ratio "
            f"differs by a factor above {settings.max_length_ratio:g} are dropped"
        )
    if (names := manifest.names) is not None and names.found:
        treatment = "translations copy them" if names.are_copied else "the model translates them like other words"
        lines.append(
            f"{counted(names.found, 'word')} with a capital in validation sources, but in no training source; "
            f"{names.copied:,} of them unchanged in the target: {treatment}"
        )
    lines += _spelling_lines(manifest)
    findings = {reason: f"Dropped: {count:,} x {reason}" for reason, count in manifest.dropped.items()}
    for reason, count in report.noticed.items():
        checked = f" (of {report.columns_looked_at:,} pairs checked)" if "look" in reason else ""
        findings[reason] = f"Kept, but suspicious: {count:,} x {reason}{checked}"
        if reason == "duplicates":
            findings[reason] += _share_of_repeats(manifest, count)
        if reason in REPAIRS:
            findings[reason] += f" (to repair it: --set data.repair=[{REPAIRS[reason]}])"
    for reason, count in report.normalized.items():
        findings[reason] = f"Changed by normalization {settings.normalization}: {count:,} x {reason}"
    for reason, finding in findings.items():
        lines += [finding, *(f"    {place}" for place in report.places.get(reason, []))]
    return printable("\n".join(lines))


def _spelling_lines(manifest: "Manifest") -> list[str]:
    """Return the letters whose shares in training and validation are very different, a line for each language."""
    by_language: dict[str, list[str]] = {}
    for letter in manifest.report.letters:
        row = f"{letter.letter} {1000 * letter.training:.1f} and {1000 * letter.validation:.1f}"
        by_language.setdefault(letter.language, []).append(row)
    return [
        f"Letters ({language}) whose shares differ most, per 1,000 letters in training and validation: "
        f"{', '.join(rows[:MOST_LETTERS])}{', ...' if len(rows) > MOST_LETTERS else ''}. If these are two spellings, "
        "convert one of them before you prepare the files (configs/SMALL-CORPORA.md)"
        for language, rows in by_language.items()
    ]


def _share_of_repeats(manifest: "Manifest", count: int) -> str:
    """Return the share of pairs that repeat earlier ones in the corpus, and the remedy if they are many."""
    roles = {file.role for file in manifest.more_files}
    pairs = sum(split.pairs for name, split in manifest.splits.items() if name == "train" or name not in roles)
    if count < MANY_REPEATS * pairs:
        return ""
    return f", {count / pairs:.0%} of the pairs (to drop them: --set data.drop_duplicates=true)"


def shares(pairs: Mapping[str, int], tags: Sequence[str] = ()) -> str:
    """Return the number of pairs of each corpus, with its share, in words."""
    total = max(1, sum(pairs.values()))
    return ", ".join(
        f"{name} {count:,} ({count / total:.0%}{f', tag <{name}>' if name in tags else ''})"
        for name, count in pairs.items()
    )


def _size_reason(manifest: "Manifest") -> str:
    """Return why a subword vocabulary has its size; "" if the size was set, or the tokenizers belong to a run."""
    settings = manifest.settings
    if settings.tokenizer != "subword" or settings.vocabulary_size is not None or manifest.tokenizer_of:
        return ""
    pairs = manifest.splits["train"].pairs
    return f"; the size suits {counted(pairs, 'training pair')} (to change it: --set data.vocabulary_size=N)"


def _tokenizer_lines(manifest: "Manifest", run: str) -> Iterator[str]:
    """Yield the settings of a run's tokenizers, and a note if the run translates between other languages."""
    from nmt.data.languages import languages_differ
    from nmt.data.manifest import read_manifest
    from nmt.data.prepare import TOKENIZER_KEYS
    from nmt.runs.directory import find_run

    settings = ", ".join(f"{key} {json.dumps(getattr(manifest.settings, key))}" for key in TOKENIZER_KEYS)
    yield f"The tokenizers are from run {manifest.tokenizer_of}. They were fitted with: {settings}"
    before, now = read_manifest(find_run(run).dataset_path).languages, manifest.languages
    if languages_differ(before, now):
        yield (
            f"Note: this dataset is {' to '.join(now.values())}, but run {run} translates "
            f"{' to '.join(before.values())}. If this is not intended, exchange the files or columns, or correct "
            "--languages."
        )
