"""Speed of this machine: matrix products, training steps, search, and translation with a run and its exports.

The clock of a shared or warm machine drifts, by a factor of two in bad cases. So what is compared is measured in turns,
after a warm-up, and every figure is the median over the turns.
"""

import itertools
import time
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
from nmt.decoding.exported import CTRANSLATE2, find_exports
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
"""Shares of the measuring time."""


class Speed(DocumentedRecord):
    """Speed of something that runs again and again. A rate that it does not have is null."""

    name: str
    """What was measured and its precision, such as "step in float32"; with --run engine and search."""
    seconds: float
    """Time of a run: a product, a step, a batch translated, or with --run all sentences translated."""
    seconds_range: tuple[float, float]
    """Time of a run in the fastest and in the slowest turn."""
    flops_per_second: float | None = None
    """Floating-point operations a second: 2 n^3 of a product of two [n, n] matrices; of a training step those that its
    real tokens need (see ``multiplications`` of the model section), two for each multiplication: it and an addition."""
    sentences_per_second: float | None = None
    """Sentences a second."""
    target_tokens_per_second: float | None = None
    """Target tokens a second, eos included and padding not."""


class BenchmarkReport(DocumentedRecord):
    """All that ``nmt bench`` measures; with ``--json``, a key for each field."""

    version: str
    """Version of nmt."""
    tensorflow: str
    """Version of TensorFlow."""
    device: str
    """Device that computed."""
    configuration: Config
    """Configuration, overrides included."""
    vocabulary: dict[str, int]
    """Number of ids by side."""
    parameters: int
    """Number of weights of the model."""
    matmul: list[Speed]
    """Dense matrix products in each precision."""
    training: Speed
    """Training steps, each from the request for its batches to the end of its work."""
    share_of_matmul: float | None
    """Operations of training a second, as a share of those of products in its precision; null for an architecture that
    counts none."""
    decoding: list[Speed]
    """Searches with weights that are not trained, until each translation is as long as its reference."""


class Work(NamedTuple):
    """Something whose speed is measured."""

    run: Callable[[], Any]
    """Does it once, to the end."""
    counts: Callable[[Any], dict[str, float]]
    """What a run has done, from what it returned, by names of ``Speed`` without "_per_second". It is not timed."""
    seconds: float = 0.0
    """Time for it in a turn; it runs at least once."""


def measure(works: Mapping[str, Work], turns: int, report: Callable[[str], None], warm_up: int = 1) -> list[Speed]:
    """Run works in turns, in each turn each as often as fits into its time, and return their speeds.

    Args:
        works: works by name.
        turns: number of turns.
        report: called with each step.
        warm_up: number of runs of each work before, in which graphs are traced and memory is allocated.
    """
    for name, work in works.items():
        report(f"warming up {name}")
        for _ in range(warm_up):
            work.run()
    rates: dict[str, list[dict[str, float]]] = {name: [] for name in works}
    for turn in range(1, turns + 1):
        report(f"turn {turn} of {turns}")
        for name, work in works.items():
            spent, counts = 0.0, list[dict[str, float]]()
            while not counts or spent < work.seconds:
                began = time.perf_counter()
                result = work.run()
                spent += time.perf_counter() - began
                counts.append({"runs": 1, **work.counts(result)})
            rates[name].append({f"{key}_per_second": sum(each[key] for each in counts) / spent for key in counts[0]})
    speeds = []
    for name, by_turn in rates.items():
        seconds = [1 / each.pop("runs_per_second") for each in by_turn]
        medians = {key: float(np.median([each[key] for each in by_turn])) for key in by_turn[0]}
        whole = float(np.median(seconds))
        speeds.append(Speed(name=name, seconds=whole, seconds_range=(min(seconds), max(seconds)), **medians))
    return speeds


def measure_model(
    config: Config, vocabulary: dict[str, int], train: Split, test: Split, seconds: float, report: Callable[[str], None]
) -> BenchmarkReport:
    """Measure matrix products, training and search with a model that is not trained.

    Args:
        config: configuration of the model, of its training and of its search.
        vocabulary: number of ids by side.
        train: sentence pairs to train on.
        test: sentence pairs to translate.
        seconds: measuring time, without building the model and warming up.
        report: called with each step.
    """
    update, pipeline = build_update(config, vocabulary), InputPipeline(config, train)
    precision = runtime.resolve_precision(config.decoding.precision)
    model = build_model(config.model, vocabulary["source"], vocabulary["target"], precision, trained=True)
    model.set_weights(update.model.get_weights())
    precisions = list(dict.fromkeys(["float32", "bfloat16", update.model.compute_dtype]))
    turn = seconds / TURNS
    works = dict(fastest_product(each, PRODUCTS * turn / len(precisions)) for each in precisions)
    works[f"step in {update.model.compute_dtype}"] = training_work(update, pipeline, vocabulary, TRAINING * turn)
    for kind, beams in BEAMS.items():
        changes = {"beam_size": beams, "length_penalty": 0.0, "coverage_penalty": 0.0}
        chosen = config.model_copy(update={"decoding": config.decoding.model_copy(update=changes)})
        engine = TensorFlowEngine(model, chosen)
        works[f"{kind} in {model.compute_dtype}"] = search_work(engine, test, SEARCH * turn / len(BEAMS))
    speeds = measure(works, TURNS, report, WARM_UP)
    products, training, decoding = speeds[: len(precisions)], speeds[len(precisions)], speeds[len(precisions) + 1 :]
    product = products[precisions.index(update.model.compute_dtype)]
    return BenchmarkReport(
        version=version(), tensorflow=tf.__version__, device=runtime.device(), configuration=config,
        vocabulary=vocabulary, parameters=model.count_params(), matmul=products, training=training,
        share_of_matmul=training.flops_per_second and training.flops_per_second / (product.flops_per_second or 1.0),
        decoding=decoding,
    )  # fmt: skip


def fastest_product(precision: str, seconds: float) -> tuple[str, Work]:
    """Return the product of two square matrices of the size with the highest rate, and its name."""

    def product(size: int) -> Work:
        factors = [tf.cast(tf.random.stateless_normal([size, size], [0, n]), precision) for n in range(2)]

        def run() -> None:
            tf.matmul(*factors)
            tf.test.experimental.sync_devices()

        return Work(run, lambda _: {"flops": 2 * size**3}, seconds)

    works = {f"{size} x {size} product in {precision}": product(size) for size in MATMUL_SIZES}
    speeds = measure({name: work._replace(seconds=0.0) for name, work in works.items()}, TURNS, lambda _: None)
    fastest = max(speeds, key=lambda speed: speed.flops_per_second or 0.0).name
    return fastest, works[fastest]


def training_work(update: Update, pipeline: InputPipeline, vocabulary: dict[str, int], seconds: float) -> Work:
    """Return the training step of ``nmt train``, epoch after epoch.

    It keeps the learning rate of the first step.
    """
    config, rate = pipeline.config, pipeline.learning_rate(1)
    # Backward, each factor of a product has its gradient by a product as large.
    passes = 3 * (2 if config.training.r_drop else 1)
    batches, steps = itertools.chain.from_iterable(map(pipeline.step_batches, itertools.count(1))), itertools.count(1)

    def run() -> list[Batch]:
        step_batches = next(batches)
        update.take(step_batches, rate, next(steps))
        tf.test.experimental.sync_devices()
        return step_batches

    def count(step_batches: list[Batch]) -> dict[str, float]:
        tokens = products = 0
        for source, target in step_batches:
            for row, expected in zip(source.numpy(), target.numpy()[:, 1:], strict=True):
                read, written = (int(np.count_nonzero(side != PAD)) for side in (row, expected))
                tokens += written
                products += config.model.multiplications(read, written, vocabulary["target"])
        return {"target_tokens": tokens, **({"flops": 2 * passes * products} if products else {})}

    return Work(run, count, seconds)


def search_work(engine: TensorFlowEngine, split: Split, seconds: float) -> Work:
    """Return the translation of a batch of like length, of one batch of a split after the other.

    A translation may have as many tokens as its reference. An untrained model hardly ever ends a sentence, so that the
    lengths are those of real translations.
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

    return Work(run, count, seconds)


def measure_run(name: str, turns: int, report: Callable[[str], None]) -> list[Speed]:
    """Translate the test split of a run with TensorFlow in both precisions and with its exports to CTranslate2.

    Args:
        name: name of the run.
        turns: number of times that each engine translates.
        report: called with each step.

    Raises:
        NotFoundError: if run, dataset or weights are missing.
    """
    run = find_run(name)
    dataset = dataset_of_run(run.name, read_manifest(run.dataset_path))
    texts = read_lines(TextFile(dataset.text("test", "source")))
    # By the folder: two exports can have the same number format, with and without a vocabulary map.
    exports = [folder.name for folder in find_exports(run, CTRANSLATE2)]
    engines: dict[str, tuple[str | None, str | None]] = {  # precision, name of the export
        **{f"TensorFlow {each}": (each, None) for each in ("float32", "bfloat16")},
        **{f"CTranslate2 {each.removeprefix(f'{CTRANSLATE2}-')}": (None, each) for each in exports},
    }

    def count(found: list[Translation]) -> dict[str, float]:
        return {"sentences": len(found), "target_tokens": sum(len(translation.ids) for translation in found)}

    works = {}
    for engine, (precision, export) in engines.items():
        for kind, beams in BEAMS.items():
            decoding = {"beam_size": beams, "precision": precision}
            translator = load(run, decoding=decoding, export=export)
            works[f"{engine}, {kind}"] = Work(partial(translator.translate_details, texts, scored=False), count)
    return measure(works, turns, report)
