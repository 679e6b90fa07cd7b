"""Benchmark of this machine: matrix products, training steps, search, and translation with a run and its exports.

The clock speed of a shared or warm machine drifts, in bad cases by a factor of two. So all workloads are measured in
turns after a warm-up, and every figure is the median over the turns.
"""

import itertools
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nmt import runtime
from nmt.api import load
from nmt.config.record import DocumentedRecord
from nmt.config.schema import Config
from nmt.data.batch_plan import length_batches, pad_rows
from nmt.data.dataset import dataset_of_run
from nmt.data.manifest import read_manifest
from nmt.data.sources.text_file import TextFile, read_lines
from nmt.data.token_arrays import Split
from nmt.decoding.exported import BERGAMOT, PROGRAMS, find_exports
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.decoding.translation import Translation
from nmt.models.build import build_model
from nmt.runs.directory import find_run
from nmt.runtime import tf
from nmt.tokenizers.base import PAD
from nmt.training.input_pipeline import InputPipeline
from nmt.training.optimization.build import build_update
from nmt.training.optimization.update import Batch, Update
from nmt.version import version

TURNS = 5
WARM_UP = 3
MATMUL_SIZES = (2048, 4096, 8192) if runtime.GPUS else (512, 1024, 2048)
BEAMS = {"greedy": 1, "beam 5": 5}
TRAINING, PRODUCTS, SEARCH = 0.5, 0.2, 0.3
"""Shares of the measuring time for training steps, matrix products and searches."""


class Speed(DocumentedRecord):
    """Speed of a workload. A rate that does not apply to the workload is null."""

    name: str
    """Workload and precision, such as "step in float32"; with --run, engine and search."""
    seconds: float
    """Seconds for a product, a step or a translated batch; with --run, for all sentences."""
    seconds_range: tuple[float, float]
    """Seconds in the fastest and in the slowest turn."""
    flops_per_second: float | None = None
    """Floating-point operations per second. A product of two [n, n] matrices takes 2 n^3 operations. A training step
    takes two for each multiplication for its tokens, without padding (see ``multiplications`` of the model section)."""
    sentences_per_second: float | None = None
    """Sentences per second."""
    target_tokens_per_second: float | None = None
    """Target tokens per second, counting eos but no padding."""


class BenchmarkReport(DocumentedRecord):
    """Results of ``nmt bench``. ``--json`` prints a key for each field."""

    version: str
    """Version of nmt."""
    tensorflow: str
    """Version of TensorFlow."""
    device: str
    """Device that was measured."""
    configuration: Config
    """Configuration including overrides."""
    vocabulary: dict[str, int]
    """Number of ids by side."""
    parameters: int
    """Number of weights of the model."""
    matmul: list[Speed]
    """Dense matrix products in each precision."""
    training: Speed
    """Training steps, timed from the request for a batch to the end of the step."""
    share_of_matmul: float | None
    """Operations per second of training, relative to matrix products in the same precision; null for an architecture
    that does not count its operations."""
    decoding: list[Speed]
    """Searches with untrained weights. Each translation becomes as long as its reference."""


class Workload(NamedTuple):
    """Computation whose speed is measured."""

    run: Callable[[], Any]
    """Function that runs the computation once and waits for its end."""
    counts: Callable[[Any], dict[str, float]]
    """Function that counts the work of a run from its result, by fields of ``Speed`` without "_per_second"; not
    timed."""
    seconds: float = 0.0
    """Time for the workload in a turn, in seconds. It runs at least once."""


def measure(
    workloads: Mapping[str, Workload], turns: int, report: Callable[[str], None], warm_up: int = 1
) -> list[Speed]:
    """Run workloads in turns and return their speeds.

    Args:
        workloads: workloads by name. In a turn, each workload runs as often as fits into its time.
        turns: number of turns.
        report: function that is called with each step of the measurement.
        warm_up: number of runs of each workload before the turns, in which TensorFlow traces graphs and allocates
            memory.
    """
    for name, workload in workloads.items():
        report(f"warming up {name}")
        for _ in range(warm_up):
            workload.run()
    rates: dict[str, list[dict[str, float]]] = {name: [] for name in workloads}
    for turn in range(1, turns + 1):
        report(f"turn {turn} of {turns}")
        for name, workload in workloads.items():
            rates[name].append(_rates(workload))
    speeds = []
    for name, turn_rates in rates.items():
        seconds = [1 / turn.pop("runs_per_second") for turn in turn_rates]
        medians = {key: float(np.median([turn[key] for turn in turn_rates])) for key in turn_rates[0]}
        seconds_range = min(seconds), max(seconds)
        speeds.append(Speed(name=name, seconds=float(np.median(seconds)), seconds_range=seconds_range, **medians))
    return speeds


def _rates(workload: Workload) -> dict[str, float]:
    """Run a workload for its time, and return the counts of its work per second."""
    seconds, counts = 0.0, Counter[str]()
    while not counts or seconds < workload.seconds:
        started = time.perf_counter()
        result = workload.run()
        seconds += time.perf_counter() - started
        counts.update({"runs": 1, **workload.counts(result)})
    return {f"{key}_per_second": count / seconds for key, count in counts.items()}


def measure_model(
    config: Config, vocabulary: dict[str, int], train: Split, test: Split, seconds: float, report: Callable[[str], None]
) -> BenchmarkReport:
    """Measure matrix products, training and search with an untrained model.

    Args:
        config: configuration of the model, its training and its search.
        vocabulary: number of ids by side.
        train: sentence pairs to train on.
        test: sentence pairs to translate.
        seconds: measuring time, without building the model and warming up.
        report: function that is called with each step of the measurement.
    """
    update, pipeline = build_update(config, vocabulary), InputPipeline(config, train)
    precision = runtime.resolve_precision(config.decoding.precision)
    model = build_model(config.model, vocabulary["source"], vocabulary["target"], precision, trained=True)
    model.set_weights(update.model.get_weights())
    precisions = list(dict.fromkeys(["float32", "bfloat16", update.model.compute_dtype]))
    turn = seconds / TURNS
    workloads = dict(fastest_product(dtype, PRODUCTS * turn / len(precisions)) for dtype in precisions)
    workloads[f"step in {update.model.compute_dtype}"] = training_workload(
        update, pipeline, vocabulary, TRAINING * turn
    )
    for kind, beams in BEAMS.items():
        changes = {"beam_size": beams, "mbr_candidates": 0, "length_penalty": 0.0, "coverage_penalty": 0.0}
        chosen = config.model_copy(update={"decoding": config.decoding.model_copy(update=changes)})
        engine = TensorFlowEngine(model, chosen)
        workloads[f"{kind} in {model.compute_dtype}"] = search_workload(engine, test, SEARCH * turn / len(BEAMS))
    speeds = measure(workloads, TURNS, report, WARM_UP)
    products, training, decoding = speeds[: len(precisions)], speeds[len(precisions)], speeds[len(precisions) + 1 :]
    product = products[precisions.index(update.model.compute_dtype)]
    return BenchmarkReport(
        version=version(), tensorflow=tf.__version__, device=runtime.device(), configuration=config,
        vocabulary=vocabulary, parameters=model.count_params(), matmul=products, training=training,
        share_of_matmul=training.flops_per_second and training.flops_per_second / (product.flops_per_second or 1.0),
        decoding=decoding,
    )  # fmt: skip


def fastest_product(precision: str, seconds: float) -> tuple[str, Workload]:
    """Return the name and workload of a product of two square matrices, in the size with the highest rate."""

    def product(size: int) -> Workload:
        factors = [tf.cast(tf.random.stateless_normal([size, size], [0, n]), precision) for n in range(2)]

        def run() -> None:
            tf.matmul(*factors)
            tf.test.experimental.sync_devices()

        return Workload(run, lambda _: {"flops": 2 * size**3}, seconds)

    workloads = {f"{size} x {size} product in {precision}": product(size) for size in MATMUL_SIZES}
    single_runs = {name: workload._replace(seconds=0.0) for name, workload in workloads.items()}
    speeds = measure(single_runs, TURNS, lambda _: None)
    fastest = max(speeds, key=lambda speed: speed.flops_per_second or 0.0).name
    return fastest, workloads[fastest]


def training_workload(update: Update, pipeline: InputPipeline, vocabulary: dict[str, int], seconds: float) -> Workload:
    """Return the training step of ``nmt train`` as a workload. It runs epoch after epoch at the first learning rate."""
    config, rate = pipeline.config, pipeline.learning_rate(1)
    # In the backward pass, the gradient of each factor of a product is a product of the same size.
    passes = 3 * (2 if config.training.r_drop else 1)
    epochs, steps = itertools.count(1), itertools.count(1)
    batches = itertools.chain.from_iterable(map(pipeline.step_batches, epochs))

    def run() -> list[Batch]:
        step_batches = next(batches)
        update.take(step_batches, rate, next(steps))
        tf.test.experimental.sync_devices()
        return step_batches

    def count(step_batches: list[Batch]) -> dict[str, float]:
        tokens = products = 0
        for source, target in step_batches:
            source_lengths = np.count_nonzero(source.numpy() != PAD, axis=1).tolist()
            target_lengths = np.count_nonzero(target.numpy()[:, 1:] != PAD, axis=1).tolist()
            tokens += sum(target_lengths)
            for source_length, target_length in zip(source_lengths, target_lengths, strict=True):
                products += config.model.multiplications(source_length, target_length, vocabulary["target"])
        return {"target_tokens": tokens, **({"flops": 2 * passes * products} if products else {})}

    return Workload(run, count, seconds)


def search_workload(engine: TensorFlowEngine, split: Split, seconds: float) -> Workload:
    """Return the translation of a split, batch by batch, as a workload. A batch has sentences of similar length.

    A translation may have as many tokens as its reference. An untrained model hardly ever ends a sentence, so the
    lengths are realistic.
    """
    config = engine.config
    plan = length_batches((split.source.lengths + 1).tolist(), config.decoding.batch_size)
    order = itertools.cycle([np.array(plan[place]) for place in np.random.default_rng(0).permutation(len(plan))])

    def run() -> np.ndarray:
        indices = next(order)
        source = pad_rows(split.source, indices, bos=config.model.reads_bos)
        return engine.search_batch(source, (split.target.lengths[indices] + 1).astype(np.int32)).tokens.numpy()

    def count(tokens: np.ndarray) -> dict[str, float]:
        return {"sentences": len(tokens), "target_tokens": int(np.count_nonzero(tokens != PAD))}

    return Workload(run, count, seconds)


class _Contender(NamedTuple):
    """A way to translate with a run."""

    name: str
    precision: str | None
    """Precision of TensorFlow; None for an export."""
    export: str | None
    """Name of an export of the run; None for TensorFlow."""
    beams: dict[str, int]
    """Number of beams of each search, by its name."""


def measure_run(name: str, turns: int, report: Callable[[str], None]) -> list[Speed]:
    """Translate the test split of a run with TensorFlow in both precisions, and with its exports.

    Args:
        name: name of the run. One of several language pairs translates the first pair of its dataset.
        turns: number of times that each engine translates.
        report: function that is called with each step of the measurement.

    Raises:
        NotFoundError: if run, dataset or weights are missing.
    """
    run = find_run(name)
    dataset = dataset_of_run(run.name, read_manifest(run.dataset_path))
    direction, rows = dataset.manifest.rows("test")[0]
    texts = read_lines(TextFile(dataset.text("test", "source")))[rows.start : rows.stop]
    chosen = {"source_language": direction.source, "target_language": direction.target} if direction.tag else {}
    contenders = [
        _Contender(f"TensorFlow {precision}", precision, None, BEAMS) for precision in ("float32", "bfloat16")
    ]
    for to, program in PROGRAMS.items():
        beams = {"greedy": 1} if to == BERGAMOT else BEAMS
        for folder in find_exports(run, to):
            # Two exports may have the same number format, with and without a vocabulary map.
            suffix = folder.name.removeprefix(to).replace("-", " ", 1)
            contenders.append(_Contender(f"{program}{suffix}", None, folder.name, beams))

    def count(translations: list[Translation]) -> dict[str, float]:
        tokens = sum(len(translation.ids) for translation in translations)
        return {"sentences": len(translations), "target_tokens": tokens}

    workloads = {}
    for contender in contenders:
        for kind, size in contender.beams.items():
            decoding = {"beam_size": size, "precision": contender.precision, **chosen}
            translator = load(run, decoding=decoding, export=contender.export)
            translate = partial(translator.translate_details, texts, scored=False)
            workloads[f"{contender.name}, {kind}"] = Workload(translate, count)
    return measure(workloads, turns, report)
