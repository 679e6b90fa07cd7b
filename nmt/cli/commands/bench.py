"""``nmt bench``: speed of matrix products, training and decoding, as a table or as JSON."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.options import DATA, RUN, ConfigOption, DatasetOption, JsonOption, SetOption
from nmt.errors import ConfigError, NmtError

if TYPE_CHECKING:
    import numpy as np

    from nmt.benchmark.measure import BenchmarkReport, DecodingSpeed, MatmulSpeed, TrainingSpeed
    from nmt.benchmark.translation import TranslationSpeed
    from nmt.config.schema import Config
    from nmt.data.token_arrays import Split
    from nmt.models.accounting import Flops

MEASUREMENT = "Measurement"  # help section
GENERATED_PAIRS = 20_000
GENERATED_VOCABULARY = 8000
TRAINING_SHARE = 0.7
"""Share of the measuring time for training and matrix products. Decoding has the remainder."""


def bench(
    config: ConfigOption = "base.yaml",
    overrides: SetOption = None,
    dataset: DatasetOption = None,
    generated: Annotated[
        bool,
        typer.Option(
            "--generated", help="Measure on random token ids with realistic sentence lengths.", rich_help_panel=DATA
        ),
    ] = False,
    vocabulary: Annotated[
        int | None,
        typer.Option(
            "--vocabulary",
            min=5,
            metavar="N",
            help=f"Vocabulary size of each side with --generated. Default: {GENERATED_VOCABULARY}.",
            rich_help_panel=DATA,
        ),
    ] = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            min=0,
            max=86_400,
            metavar="X",
            help="Measuring time in total. Building the model and warming up are not included.",
            rich_help_panel=MEASUREMENT,
        ),
    ] = 40,
    run: Annotated[
        str | None,
        typer.Option(
            "--run",
            metavar="RUN",
            help="Measure translation of the test split of a run instead, with TensorFlow and its exports in turns.",
            rich_help_panel=RUN,
        ),
    ] = None,
    backend: Annotated[
        list[str] | None,
        typer.Option(
            "--backend",
            metavar="NAME",
            help="With --run: tensorflow or ctranslate2. Repeatable. Default: both, where the run has exports.",
            rich_help_panel=RUN,
        ),
    ] = None,
    turns: Annotated[
        int,
        typer.Option(
            "--turns",
            min=1,
            max=1000,
            metavar="N",
            help="Turns of each engine with --run.",
            rich_help_panel=MEASUREMENT,
        ),
    ] = 3,
    as_json: JsonOption = False,
) -> None:
    """Measure matrix products, training and decoding on this machine.

    Reports tokens per second, the share of the matrix product rate that training reaches, and where the time of a step
    goes. Saves nothing. With --run, measures how fast the trained model translates, greedily and with a beam of 5.

    Examples:
        nmt bench --generated
        nmt bench --config base.yaml --dataset english-german-both
        nmt bench --generated --set training.precision=bfloat16 --json
        nmt bench --run base --backend tensorflow --backend ctranslate2
    """
    if run is not None:
        from nmt.benchmark.translation import measure_run

        speeds = measure_run(run, backend or [], turns, lambda step: typer.echo(f"nmt: {step}", err=True))
        typer.echo(json.dumps([speed.model_dump() for speed in speeds], indent=2) if as_json else _translation(speeds))
        return
    if backend:
        raise NmtError(f"--backend {backend[0]} is for translation with --run; received it without. Add --run RUN.")

    from nmt.config.loading import find_config, load_config

    settings = load_config(find_config(config), overrides)
    data, sizes, train, test = _data(settings, dataset, generated=generated, vocabulary=vocabulary)
    report = _measure(settings, data, sizes, train, test, seconds)
    typer.echo(report.model_dump_json(indent=2) if as_json else describe(report))


def _data(
    config: "Config", name: str | None, *, generated: bool, vocabulary: int | None
) -> "tuple[str, dict[str, int], Split, Split]":
    """Return a description of the data, the vocabulary sizes by side, the training split and the test split."""
    from nmt.data.dataset import find_dataset

    if generated and name is not None:
        raise NmtError(
            f"Sentences are generated or those of a dataset; received --generated and --dataset {name}. Leave one of "
            "them out."
        )
    if not generated:
        if vocabulary is not None:
            raise NmtError(
                f"--vocabulary is for generated data; received {vocabulary} without --generated. Add --generated, or "
                "leave it out."
            )
        prepared = find_dataset(name or config.data.dataset)

        from nmt.training.resume import check_lengths

        check_lengths(config.model, prepared.manifest)
        return f"dataset {prepared.name}", prepared.manifest.vocabulary, prepared.split("train"), prepared.split("test")

    from nmt.data.synthetic import LONGEST, generate_split

    size = vocabulary or GENERATED_VOCABULARY
    limit = min((most for most in config.model.limits if most is not None), default=None)
    if limit is not None and limit < LONGEST + 2:
        raise ConfigError(
            f"This model reads at most {limit} tokens. Generated sentences need {LONGEST + 2}: {LONGEST} tokens, bos "
            f"and eos. Set {config.model.settings_for_length(LONGEST + 2)}."
        )
    train, test = (generate_split(GENERATED_PAIRS, size, seed=seed) for seed in (1, 2))
    return "generated ids", {"source": size, "target": size}, train, test


def _measure(
    config: "Config", data: str, vocabulary: dict[str, int], train: "Split", test: "Split", seconds: float
) -> "BenchmarkReport":
    from nmt import runtime
    from nmt.benchmark.measure import (
        SEARCHES,
        BenchmarkReport,
        MatrixProducts,
        endless_batches,
        measure_decoding,
        measure_training,
        training_step,
    )
    from nmt.decoding.tensorflow_engine import ModelSearch
    from nmt.models.build import build_model
    from nmt.models.registry import architecture_of
    from nmt.training.input_pipeline import InputPipeline
    from nmt.training.state import TrainState
    from nmt.version import version

    typer.echo("Measuring matrix products and training ...", err=True)
    state, pipeline = TrainState(config, vocabulary), InputPipeline(config, train)
    products = [MatrixProducts(precision) for precision in dict.fromkeys(["float32", "bfloat16", state.precision])]
    accounting = architecture_of(config.model).accounting

    def count(source: "np.ndarray", target: "np.ndarray") -> "Flops":
        flops = accounting.flops(config.model, source, target, vocabulary["target"])
        return flops.plus(flops) if config.training.r_drop else flops

    training = measure_training(
        training_step(state, pipeline),
        endless_batches(pipeline),
        count,
        products,
        precision=state.precision,
        seconds=TRAINING_SHARE * seconds,
    )
    precision = runtime.resolve_precision(config.decoding.precision)
    model = build_model(config.model, vocabulary["source"], vocabulary["target"], precision, trained=True)
    model.set_weights(state.model.get_weights())
    decoding = []
    for kind, beams in SEARCHES.items():
        typer.echo(f"Measuring {kind} search ...", err=True)
        time = (1 - TRAINING_SHARE) * seconds / len(SEARCHES)
        settings = config.decoding.model_copy(
            update={"beam_size": beams, "length_penalty": 0.0, "coverage_penalty": 0.0}
        )
        search = ModelSearch(model, settings)
        decoding.append(measure_decoding(kind, search, test, config, precision=model.compute_dtype, seconds=time))
    return BenchmarkReport(
        version=version(),
        tensorflow=runtime.tf.__version__,
        device=runtime.device(),
        configuration=config,
        data=data,
        vocabulary=vocabulary,
        parameters=model.count_params(),
        matmul=[product.speed() for product in products],
        training=training,
        decoding=decoding,
    )


def _translation(speeds: "list[TranslationSpeed]") -> str:
    """Return translation speeds as a table for people."""
    lines = [f"Translation of {speeds[0].sentences:,} sentences, median of {speeds[0].runs} turns"]
    for speed in speeds:
        low, high = speed.seconds_range
        label = f"{speed.engine}, {'greedy' if speed.beam_size == 1 else f'beam {speed.beam_size}'}"
        note = f"{low:.2f} to {high:.2f} s, {speed.target_tokens_per_second:,.0f} tokens/s"
        lines.append(f"  {label:<44}{speed.seconds:>8.2f} s   {note}")
    return "\n".join(lines)


def describe(report: "BenchmarkReport") -> str:
    """Return the report as a table for people."""
    parts = [_head(report), _matmul(report.matmul), _training(report.training), _times(report.training)]
    return "\n\n".join("\n".join(lines) for lines in [*parts, *map(_decoding, report.decoding)] if lines)


def _row(label: str, number: str, unit: str, note: str = "") -> str:
    return f"  {label:<32}{number:>9} {unit:<12} {note}".rstrip()


def _head(report: "BenchmarkReport") -> list[str]:
    model, vocabulary = report.configuration.model, report.vocabulary
    return [
        f"nmt {report.version}, TensorFlow {report.tensorflow}, {report.device}",
        f"Model: {model.description}, {report.parameters:,} parameters",
        f"Data: {report.data}, {vocabulary['source']:,} source and {vocabulary['target']:,} target ids",
    ]


def _matmul(speeds: "list[MatmulSpeed]") -> list[str]:
    rows = ["Dense matrix products, in turns with training"]
    for speed in speeds:
        note = f"{speed.size:,} x {speed.size:,} matrices, median of {speed.runs}"
        rows.append(_row(speed.precision, f"{speed.flops_per_second / 1e9:,.0f}", "GFLOP/s", note))
    return rows


def _training(speed: "TrainingSpeed") -> list[str]:
    low, high = (1e3 * seconds for seconds in speed.step_seconds_quartiles)
    rows = [
        f"Training in {speed.precision}, median of {speed.steps} steps",
        _row(
            "target tokens",
            f"{speed.target_tokens_per_second:,.0f}",
            "tokens/s",
            f"{speed.target_tokens_per_step:,.0f} a step",
        ),
        _row("time of a step", f"{1e3 * speed.step_seconds:,.1f}", "ms", f"half of them {low:,.1f} to {high:,.1f} ms"),
        _row("waiting for its batch", f"{1e3 * speed.input_wait_seconds:,.1f}", "ms"),
        _row(
            "useful arithmetic",
            f"{speed.useful_flops_per_second / 1e9:,.1f}",
            "GFLOP/s",
            f"{speed.share_of_matmul:.1%} of the rate of {speed.precision} products at the same time",
        ),
        _row("padding", f"{100 * speed.source_padding:.1f}", "%", "of source positions"),
        _row("", f"{100 * speed.target_padding:.1f}", "%", "of target positions"),
    ]
    if speed.peak_memory_bytes is not None:
        rows.append(_row("peak memory", f"{speed.peak_memory_bytes / 2**20:,.0f}", "MiB", "of the whole process"))
    if speed.peak_gpu_memory_bytes is not None:
        rows.append(_row("peak GPU memory", f"{speed.peak_gpu_memory_bytes / 2**20:,.0f}", "MiB"))
    return rows


def _times(speed: "TrainingSpeed") -> list[str]:
    if speed.traced_step_seconds is None or speed.seconds_by_phase is None or speed.seconds_by_kind is None:
        return []
    whole = speed.traced_step_seconds

    def rows(parts: dict[str, float]) -> list[str]:
        ordered = sorted(parts.items(), key=lambda part: -part[1])
        return [_row(name, f"{1e3 * seconds:,.1f}", "ms", f"{seconds / whole:6.1%}") for name, seconds in ordered]

    return [
        "Where the time of a step goes, from a trace, which slows it a little",
        _row("whole step", f"{1e3 * whole:,.1f}", "ms", f"{1:6.1%}"),
        "by phase",
        *rows(speed.seconds_by_phase),
        "by kind of operation",
        *rows(speed.seconds_by_kind),
    ]


def _decoding(speed: "DecodingSpeed") -> list[str]:
    note = f"{speed.sentences:,} sentences, median of {speed.runs} runs"
    return [
        f"Decoding in {speed.precision}, {speed.search}, untrained weights, as many tokens as the references have",
        _row("sentences", f"{speed.sentences_per_second:,.1f}", "sentences/s", note),
        _row("target tokens", f"{speed.target_tokens_per_second:,.0f}", "tokens/s"),
    ]
