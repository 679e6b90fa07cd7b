"""What ``nmt prepare`` recorded about a dataset, as tables."""

from typing import NamedTuple

from nmt.data.manifest import SIDES, Manifest
from nmt.reporting.facts import ABSENT, RunFacts


class Finding(NamedTuple):
    """Pairs that were dropped, or kept although they look wrong."""

    fate: str
    """What became of the pairs."""
    reason: str
    pairs: int
    places: list[str]
    """First places, with their text."""


class DatasetReport(NamedTuple):
    """Content of a manifest in words and tables."""

    runs: list[str]
    """Names of the runs that were trained on the dataset."""
    name: str
    files: list[tuple[str, str, str]]
    """Corpus files: name, split, and size in words."""
    lines: list[tuple[str, str]]
    """Facts with their names."""
    heads: list[str]
    """Headings of the table of splits."""
    rows: list[list[str]]
    findings: list[Finding]


def dataset_reports(runs: list[RunFacts]) -> list[DatasetReport]:
    """Return the reports of the datasets of all runs, each dataset once."""
    groups: dict[str, list[RunFacts]] = {}
    for facts in runs:
        groups.setdefault(facts.manifest.model_dump_json(), []).append(facts)
    return [_report(group) for group in groups.values()]


def _report(group: list[RunFacts]) -> DatasetReport:
    manifest = group[0].manifest
    settings, vocabulary = manifest.settings, manifest.vocabulary
    files = [manifest.corpus, *manifest.more_files]
    kept = sum(split.pairs for split in manifest.splits.values())
    source, target = manifest.languages.values()
    unknown = (source, target) == ("source", "target")
    tokenizers = f"of run {manifest.tokenizer_of}" if manifest.tokenizer_of else "fitted on the training split"
    both = ", one vocabulary for both sides" if settings.joint_vocabulary is True else ""
    lines = [
        ("prepared", manifest.prepared_at[:16].replace("T", " ") + " UTC"),
        ("languages", "unknown" if unknown else f"{source} to {target}"),
        ("pairs", f"{manifest.read:,} read, {sum(manifest.dropped.values()):,} dropped, {kept:,} kept"),
        ("split", f"{settings.split}, seed {settings.seed}"),
        ("tokens", f"{manifest.unit}, normalization {settings.normalization}, tokenizers {tokenizers}"),
        ("vocabulary", f"{vocabulary['source']:,} source and {vocabulary['target']:,} target ids{both}"),
    ]  # fmt: skip
    if manifest.report.sources_translated_often:
        lines.append((
            "several translations",
            f"{manifest.report.sources_translated_often:,} sources, up to {manifest.report.most_translations:,} each",
        ))  # fmt: skip
    heads, rows = _splits(manifest)
    return DatasetReport(
        runs=[facts.name for facts in group],
        name=settings.dataset or "",
        files=[(file.name, file.role, _size(file.bytes)) for file in files],
        lines=lines,
        heads=heads,
        rows=rows,
        findings=_findings(manifest),
    )


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count / 1e3:,.1f} kB"


def _splits(manifest: Manifest) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of the table of splits."""
    splits, unit = list(manifest.splits.values()), manifest.unit
    rows = [["pairs", *(f"{split.pairs:,}" for split in splits)]]
    for side in SIDES:
        rows.append([f"{side} {unit}", *(f"{split.tokens[side]:,}" for split in splits)])
        if all(split.percentiles for split in splits):
            percents = " / ".join(f"{percent}%" for percent in splits[0].percentiles[side])
            values = [" / ".join(map(str, split.percentiles[side].values())) for split in splits]
            rows.append([f"{side} length at {percents}", *values])
        rows.append([f"longest {side}", *(f"{split.longest[side]:,}" for split in splits)])
        shares = [f"{split.unknown[side] / max(1, split.tokens[side]):.2%}" for split in splits]
        rows.append([f"unknown {side} {unit}", *shares])
    rows.append(
        ["pairs whose source is in training", ABSENT, *(f"{split.sources_in_training:,}" for split in splits[1:])]
    )
    return ["", *manifest.splits], rows


def _findings(manifest: Manifest) -> list[Finding]:
    report = manifest.report
    counts = [("dropped", manifest.dropped), ("kept, but suspicious", report.noticed)]
    return [
        Finding(fate, reason, count, report.places.get(reason, []))
        for fate, of_fate in counts
        for reason, count in of_fate.items()
    ]
