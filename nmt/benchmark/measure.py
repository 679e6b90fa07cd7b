"""Speed of this machine: dense matrix products, training steps and decoding.

Every figure is a median after warm-up, with the number of runs that it is the median of. The clock of a shared or warm
machine drifts, by a factor of two in bad cases, so matrix products and training are measured in turns.

Shapes: B batch, S source length, T target length.
"""

import itertools
import time
from collections.abc import Callable, Iterator

import numpy as np

from nmt import runtime
from nmt.benchmark.profiler import trace
from nmt.config.record import DocumentedRecord
from nmt.config.schema import Config
from nmt.data.batch_plan import length_batches, pad_rows
from nmt.data.token_arrays import Split
from nmt.decoding.tensorflow_engine import ModelSearch
from nmt.models.accounting import Flops
from nmt.runtime import tf
from nmt.tokenizers.base import PAD
from nmt.training.input_pipeline import Batch, InputPipeline
from nmt.training.state import TrainState

WARM_UP = 3
FEWEST_RUNS = 5  # whatever the time allowed
DECODING_RUNS = 3
TRACED_STEPS = 5
TURNS = 5
MATMUL_SHARE = 0.25  # of the time for both
MATMUL_SIZES = (2048, 4096, 8192) if runtime.GPUS else (512, 1024, 2048)

TrainingStep = Callable[[list[Batch]], None]
"""Takes a training step from its batches; done when it returns."""


class MatmulSpeed(DocumentedRecord):
    """Rate of dense matrix products, measured in turns with training."""

    precision: str
    """Precision of the factors."""
    flops_per_second: float
    """Floating-point operations a second: 2 n^3 of a product of two [n, n] matrices, by its median time."""
    size: int
    """Size n of the fastest matrices tried."""
    runs: int
    """Number of products."""


class TrainingSpeed(DocumentedRecord):
    """Rate of training steps, each from the request for its batches to the end of its work."""

    precision: str
    """Compute precision of the layers."""
    steps: int
    """Number of steps."""
    step_seconds: float
    """Median time of a step."""
    step_seconds_quartiles: tuple[float, float]
    """Quartiles of the time of a step."""
    target_tokens_per_step: float
    """Mean number of target tokens of a step, eos included and padding not, as in all counts of tokens here."""
    target_tokens_per_second: float
    """Median of the target tokens a second over the steps."""
    useful_flops_per_second: float
    """Operations that the real tokens need (see ``nmt.models.accounting``) by time, median over the steps."""
    share_of_matmul: float
    """Rate of useful operations as a share of the rate of matrix products in that precision at that time: median over
    the steps."""
    source_padding: float
    """Share of the positions of source batches that are padding."""
    target_padding: float
    """Share of the positions of target batches that are padding."""
    peak_memory_bytes: int | None
    """Peak memory of the process so far, TensorFlow included; null where the system does not say."""
    peak_gpu_memory_bytes: int | None
    """Peak memory of TensorFlow on the first GPU; null without a GPU."""
    input_wait_seconds: float
    """Mean time of a step spent waiting for its batches."""
    traced_step_seconds: float | None
    """Mean time of a traced step, without the wait for its batches; null, as are the next two, on a GPU and where the
    trace cannot be read."""
    seconds_by_phase: dict[str, float] | None
    """Seconds of the traced step by forward pass, backward pass and optimizer."""
    seconds_by_kind: dict[str, float] | None
    """Seconds of the traced step by kind of operation (see ``nmt.benchmark.profiler``)."""


class DecodingSpeed(DocumentedRecord):
    """Rate of translating sentences, each until its translation is as long as its reference."""

    search: str
    """Kind of search."""
    precision: str
    """Compute precision of the layers."""
    sentences: int
    """Number of sentences."""
    runs: int
    """Number of times that each batch was translated."""
    sentences_per_second: float
    """Sentences a second, by the sum of the median times of their batches."""
    target_tokens_per_second: float
    """Tokens of the translations a second, eos included, by the same sum."""


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
    data: str
    """Origin of the sentences."""
    vocabulary: dict[str, int]
    """Number of ids by side."""
    parameters: int
    """Number of weights of the model."""
    matmul: list[MatmulSpeed]
    """Matrix products, for each precision."""
    training: TrainingSpeed
    decoding: list[DecodingSpeed]
    """Decoding, for each kind of search."""


class MatrixProducts:
    """Products of two square matrices in a precision, of the size with the highest rate."""

    def __init__(self, precision: str) -> None:
        """Find that size."""
        self.precision = precision
        rates = []
        for size in MATMUL_SIZES:
            self._resize(size)
            rates.append(self.measure(0))
        self._resize(MATMUL_SIZES[int(np.argmax(rates))])

    def _resize(self, size: int) -> None:
        self.size, self.times = size, list[float]()
        self._factors = [tf.cast(tf.random.normal([size, size]), self.precision) for _ in range(2)]
        self._multiply()

    def _multiply(self) -> None:
        tf.matmul(*self._factors)
        tf.test.experimental.sync_devices()

    def measure(self, seconds: float) -> float:
        """Multiply for N seconds, and return the operations a second."""
        times = _time(self._multiply, seconds)
        self.times += times
        return self._rate(times)

    def _rate(self, times: list[float]) -> float:
        return 2 * self.size**3 / float(np.median(times))

    def speed(self) -> MatmulSpeed:
        """Return the speed over all products of the chosen size."""
        rate = self._rate(self.times)
        return MatmulSpeed(precision=self.precision, flops_per_second=rate, size=self.size, runs=len(self.times))


def _time(run: Callable[[], None], seconds: float) -> list[float]:
    """Run as often as fits in the time, at least ``FEWEST_RUNS`` times; return the seconds of each run."""
    times: list[float] = []
    while len(times) < FEWEST_RUNS or sum(times) < seconds:
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return times


def training_step(state: TrainState, pipeline: InputPipeline) -> TrainingStep:
    """Return the training step of ``nmt train``, with a wait for its end.

    It keeps the rate of the first step: the weights stay untrained, as measures of decoding need them.
    """
    rate = pipeline.learning_rate(1)

    def run(batches: list[Batch]) -> None:
        state.step(batches, rate)
        tf.test.experimental.sync_devices()

    return run


def endless_batches(pipeline: InputPipeline) -> Iterator[list[Batch]]:
    """Yield the batches of each step, epoch after epoch."""
    for epoch in itertools.count(1):
        yield from pipeline.step_batches(epoch)


def measure_training(
    step: TrainingStep,
    batches: Iterator[list[Batch]],
    count: Callable[[np.ndarray, np.ndarray], Flops],
    products: list[MatrixProducts],
    *,
    precision: str,
    seconds: float,
) -> TrainingSpeed:
    """Take steps for about ``seconds`` in turns with matrix products, then trace some more.

    Args:
        step: takes a step.
        batches: batches of each step, without end.
        count: counts the operations for sentences of given lengths, source [B] and target [B].
        products: matrix products of all precisions to measure, the model's among them.
        precision: compute precision of the model.
        seconds: time after warm-up; the products take ``MATMUL_SHARE`` of it.
    """
    for _ in range(WARM_UP):
        step(next(batches))
    waits, times, tokens, flops, shares = [], list[float](), [], [], []
    positions, padding = np.zeros(2), np.zeros(2)
    for turn in range(1, TURNS + 1):
        share = MATMUL_SHARE * seconds / TURNS / len(products)
        rates = {product.precision: product.measure(share) for product in products}
        fewest, until = FEWEST_RUNS * turn // TURNS, (1 - MATMUL_SHARE) * seconds * turn / TURNS
        while len(times) < fewest or sum(times) < until:
            began = time.perf_counter()
            step_batches = next(batches)
            received = time.perf_counter()
            step(step_batches)
            times.append(time.perf_counter() - began)
            waits.append(received - began)
            tokens.append(0)
            flops.append(0)
            for source, target in step_batches:
                rows = source.numpy(), target.numpy()[:, 1:]
                source_lengths, target_lengths = (np.count_nonzero(side != PAD, axis=1) for side in rows)
                positions += [side.size for side in rows]
                padding += [np.count_nonzero(side == PAD) for side in rows]
                tokens[-1] += int(target_lengths.sum())
                flops[-1] += count(source_lengths, target_lengths).training
            shares.append(flops[-1] / times[-1] / rates[precision])
    memory, gpu_memory = runtime.peak_memory(), runtime.peak_gpu_memory()
    traced = None
    if not runtime.GPUS:
        ready = itertools.cycle(list(itertools.islice(batches, TRACED_STEPS)))
        traced = trace(lambda: step(next(ready)), TRACED_STEPS)
    low, middle, high = np.percentile(times, [25, 50, 75]).tolist()
    return TrainingSpeed(
        precision=precision,
        steps=len(times),
        step_seconds=middle,
        step_seconds_quartiles=(low, high),
        target_tokens_per_step=float(np.mean(tokens)),
        target_tokens_per_second=float(np.median(np.divide(tokens, times))),
        useful_flops_per_second=float(np.median(np.divide(flops, times))),
        share_of_matmul=float(np.median(shares)),
        source_padding=float(padding[0] / positions[0]),
        target_padding=float(padding[1] / positions[1]),
        peak_memory_bytes=memory,
        peak_gpu_memory_bytes=gpu_memory,
        input_wait_seconds=float(np.mean(waits)),
        traced_step_seconds=traced.step if traced else None,
        seconds_by_phase=traced.by_phase if traced else None,
        seconds_by_kind=traced.by_kind if traced else None,
    )


SEARCHES = {"greedy": 1, "beam 5": 5}
"""Number of beams of each kind of search."""


def measure_decoding(
    kind: str, search: ModelSearch, split: Split, config: Config, *, precision: str, seconds: float
) -> DecodingSpeed:
    """Translate sentences of a split in batches of like length, for about ``seconds``.

    A translation may have as many tokens as its reference. An untrained model hardly ever ends a sentence, so that the
    lengths are those of real translations.
    """
    size = config.decoding.batch_size
    order = np.random.default_rng(0).permutation(len(split))

    def batch(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        source = pad_rows(split.source, indices, bos=config.model.reads_bos)
        return source, (split.target.lengths[indices] + 1).astype(np.int32)

    def translate(source: np.ndarray, max_lengths: np.ndarray) -> np.ndarray:
        return search.find(source, max_lengths).tokens.numpy()

    def seconds_of(source: np.ndarray, max_lengths: np.ndarray) -> float:
        began = time.perf_counter()
        translate(source, max_lengths)
        return time.perf_counter() - began

    first = batch(order[:size])
    seconds_of(*first)  # compiles the search
    count = max(1, round(seconds / (1 + DECODING_RUNS) / seconds_of(*first)))
    chosen = order[: count * size]
    batches = [batch(chosen[places]) for places in length_batches((split.source.lengths[chosen] + 1).tolist(), size)]
    tokens = sum(np.count_nonzero(translate(*rows) != PAD) for rows in batches)
    times = [[seconds_of(*rows) for rows in batches] for _ in range(DECODING_RUNS)]
    spent = float(np.median(times, axis=0).sum())
    return DecodingSpeed(
        search=kind,
        precision=precision,
        sentences=len(chosen),
        runs=DECODING_RUNS,
        sentences_per_second=len(chosen) / spent,
        target_tokens_per_second=tokens / spent,
    )
