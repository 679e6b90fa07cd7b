"""``nmt bench``: speed of matrix products, training and decoding."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.endings import gpu_notes
from nmt.cli.options import ConfigOption, DatasetOption, JsonOption, SetOption
from nmt.errors import ConfigError, NmtError, counted

if TYPE_CHECKING:
    from nmt.benchmark import BenchmarkReport, Speed
    from nmt.quality import QualityRun

GENERATED_PAIRS = 20_000
GENERATED_VOCABULARY = 8000


def bench(
    config: ConfigOption = "base.yaml",
    overrides: SetOption = None,
    dataset: DatasetOption = None,
    generated: Annotated[
        bool, typer.Option("--generated", help="Measure on random ids with realistic lengths.")
    ] = False,
    vocabulary: Annotated[
        int | None,
        typer.Option(min=5, help="Vocabulary size of each side; implies --generated. Default: 8000."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0, max=86_400, help="Measure for X seconds, after building and warming up.")
    ] = 40,
    run: Annotated[
        str | None,
        typer.Option(
            metavar="RUN",
            help="Measure how fast this run translates its test split, with TensorFlow and with its exports.",
        ),
    ] = None,
    quality: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=100, help="Train the configuration with N seeds: minutes and scores."),
    ] = None,
    turns: Annotated[int, typer.Option(min=1, max=1000, help="With --run: measure each engine N times.")] = 3,
    as_json: JsonOption = False,
) -> None:
    """Measure the speed of matrix products, training and decoding on this machine.

    The report has tokens per second, and compares the operations per second of training with matrix products. Nothing
    is saved. With --run, the command measures how fast a trained model translates, greedily and with a beam of 5. With
    --quality, it measures how long training takes by the clock, and how good the translations are.

    Examples:
        nmt bench --generated
        nmt bench --config base.yaml --dataset english-german-both
        nmt bench --generated --set training.precision=bfloat16 --json
        nmt bench --run base --turns 5
        nmt bench --quality 3 --config base.yaml --dataset english-german-both
    """

    def report(step: str) -> None:
        typer.echo(f"nmt: {step}", err=True)

    for note in gpu_notes():
        report(note)
    if run is not None and quality is None:
        from nmt.benchmark import measure_run

        speeds = measure_run(run, turns, report)
        if as_json:
            typer.echo(json.dumps([speed.model_dump(exclude_none=True) for speed in speeds], indent=2))
            return
        typer.echo(f"The test split of run {run}, median of {turns} turns\n\n{table(speeds)}")
        return

    if quality is not None:
        others = {"--run": run, "--generated": generated or None, "--vocabulary": vocabulary}
        if other := next((name for name, value in others.items() if value is not None), None):
            raise NmtError(f"--quality trains on a dataset; received {other} too. Leave one of the two out.")
        from nmt.quality import measure_quality

        runs = measure_quality(config, overrides or [], dataset, quality, report)
        if as_json:
            typer.echo(json.dumps([run.model_dump() for run in runs], indent=2))
        else:
            typer.echo(quality_table(runs))
        return

    from nmt.config.loading import find_config, load_config

    settings = load_config(find_config(config), overrides)
    generated = generated or vocabulary is not None
    if generated and dataset is not None:
        raise NmtError(
            f"Sentences are either generated or taken from a dataset; received --dataset {dataset} with --generated "
            "or --vocabulary. Leave one of them out."
        )
    if generated:
        from nmt.data.token_arrays import LONGEST, generate_split

        most = min((limit for limit in settings.model.limits if limit is not None), default=LONGEST + 2)
        if most < LONGEST + 2:
            raise ConfigError(
                f"This model reads at most {counted(most, 'token')}. Generated sentences need {LONGEST + 2}: {LONGEST} "
                f"tokens, bos and eos. Set {settings.model.settings_for_length(LONGEST + 2)}."
            )
        size = vocabulary or GENERATED_VOCABULARY
        origin, sizes = "generated ids", {"source": size, "target": size}
        train, test = (generate_split(GENERATED_PAIRS, size, seed=seed) for seed in (1, 2))
    else:
        from nmt.data.dataset import find_dataset
        from nmt.training.input_pipeline import check_lengths

        prepared = find_dataset(dataset or settings.data.dataset)
        check_lengths(settings.model, prepared.manifest)
        origin, sizes = f"dataset {prepared.name}", prepared.manifest.vocabulary
        train, test = prepared.split("train"), prepared.split("test")

    from nmt.benchmark import measure_model

    measured = measure_model(settings, sizes, train, test, seconds, report)
    typer.echo(measured.model_dump_json(indent=2, exclude_none=True) if as_json else describe(measured, origin))


def describe(report: "BenchmarkReport", origin: str) -> str:
    """Return a report as text for the terminal. ``origin`` names the data."""
    vocabulary = report.vocabulary
    return "\n".join([
        f"nmt {report.version}, TensorFlow {report.tensorflow}, {report.device}",
        f"Model: {report.configuration.model.description}, {report.parameters:,} parameters, untrained",
        f"Data: {origin}, {vocabulary['source']:,} source and {vocabulary['target']:,} target ids",
        "",
        table([*report.matmul, report.training, *report.decoding]),
        "",
        *([] if report.share_of_matmul is None else [
            f"Training reaches {report.share_of_matmul:.1%} of the rate of matrix products in its precision."
        ]),
        "Times and rates are medians over turns. In each turn all rows of the table were measured once.",
    ])  # fmt: skip


def table(speeds: "list[Speed]") -> str:
    """Return speeds as a table, without empty columns."""
    rows = [["", "time", "range of turns", "GFLOP/s", "target tokens/s", "sentences/s"]]
    for speed in speeds:
        flops = speed.flops_per_second
        seconds_range = " to ".join(map(_time, speed.seconds_range))
        rates = [(flops and flops / 1e9, 0), (speed.target_tokens_per_second, 0), (speed.sentences_per_second, 1)]
        numbers = ["" if rate is None else f"{rate:,.{digits}f}" for rate, digits in rates]
        rows.append([speed.name, _time(speed.seconds), seconds_range, *numbers])
    return _aligned(rows)


def quality_table(runs: "list[QualityRun]") -> str:
    """Return what runs took, and their scores, as a table."""
    rows = [["run", "minutes", "of steps", "steps", "target tokens", *runs[0].scores]]
    for run in runs:
        counts = [f"{run.steps:,.0f}", f"{run.target_tokens:,.0f}"]
        scores = [f"{score:.1f}" for score in run.scores.values()]
        rows.append([run.name, f"{run.minutes:.1f}", f"{run.minutes_of_steps:.1f}", *counts, *scores])
    return _aligned(rows)


def _aligned(rows: list[list[str]]) -> str:
    """Return the rows of a table, with names at the left and numbers at the right of their columns."""
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    names, *number_columns = ([cell.rjust(max(map(len, column))) for cell in column] for column in columns)
    names = [name.strip().ljust(len(name)) for name in names]
    return "\n".join("   ".join(row).rstrip() for row in zip(names, *number_columns, strict=True))


def _time(seconds: float) -> str:
    return f"{seconds:,.2f} s" if seconds >= 1 else f"{1e3 * seconds:,.1f} ms"
