"""How fast this machine multiplies matrices, trains and decodes: the measures behind ``nmt bench``.

Every figure is a median after warming up, so that a moment in which the machine did something else does not count, and
comes with the number of runs it is the median of. The clock of a shared or warm machine drifts, by a factor of two in
bad cases, so what is compared, matrix products and training, is measured in turns.

Shapes: B batch, S source length, T target length, N tokens found.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from nmt import runtime
from nmt.benchmark.profiler import trace
from nmt.config.record import DocumentedRecord
from nmt.config.schema import Config
from nmt.data.batch_plan import pad_rows, plan_epoch
from nmt.data.batching import batch_dataset
from nmt.data.token_arrays import Split
from nmt.decoding.beam import beam
from nmt.decoding.sampling import greedy
from nmt.decoding.search import Task
from nmt.decoding.translator import IDS, Sentences
from nmt.models.transformer.flops import Flops
from nmt.runtime import keras, tf
from nmt.tokenizers.base import PAD
from nmt.training.optimization.accumulators import Totals
from nmt.training.optimization.optimizer import Adam
from nmt.training.optimization.schedules import learning_rate
from nmt.training.optimization.step import TrainStep

WARM_UP = 3
FEWEST_RUNS = 5  # whatever the time allowed
DECODING_RUNS = 3
TRACED_STEPS = 5
TURNS = 5
MATMUL_SHARE = 0.25  # of the time for both
MATMUL_SIZES = (2048, 4096, 8192) if runtime.GPUS else (512, 1024, 2048)

# (source [B, S], target [B, T + 1]) int32: one step of training, done when it returns
TrainingStep = Callable[[tf.Tensor, tf.Tensor], None]
# (source int32 [B, S], most tokens of each translation int32 [B]) -> ids int32 [B, N], without bos, padding 0
Translate = Callable[[np.ndarray, np.ndarray], np.ndarray]


class MatmulSpeed(DocumentedRecord):
    """The rate of one dense matrix product after another, in turns with training."""

    precision: str
    """Of the factors."""
    flops_per_second: float
    """2 n^3 operations of a product of two [n, n] matrices, by its median time."""
    size: int
    """n, of those tried the fastest."""
    runs: int
    """Products the median was taken of."""


class TrainingSpeed(DocumentedRecord):
    """The rate of training steps, each from asking for a batch to the end of its work."""

    precision: str
    """Of the layers."""
    steps: int
    """Steps the medians were taken of."""
    step_seconds: float
    """Median time of a step."""
    step_seconds_quartiles: tuple[float, float]
    """Between which half of the steps lay."""
    target_tokens_per_step: float
    """Mean, eos included and padding not, as in all counts of tokens here."""
    target_tokens_per_second: float
    """Median over the steps."""
    useful_flops_per_second: float
    """Operations that the real tokens need (see ``nmt.models.transformer.flops``) by time, median over the steps."""
    share_of_matmul: float
    """Useful operations by time as a share of the rate of matrix products in the same precision at that time, median
    over the steps."""
    source_padding: float
    """Share of the positions of source batches that are padding."""
    target_padding: float
    """Share of the positions of target batches that are padding."""
    peak_memory_bytes: int | None
    """Most memory that the process has held so far, TensorFlow itself included; null where the system does not say."""
    peak_gpu_memory_bytes: int | None
    """Most memory that TensorFlow has held on the first GPU; null without a GPU."""
    input_wait_seconds: float
    """Mean time of a step spent waiting for its batch."""
    traced_step_seconds: float | None
    """Mean time of a step while it was traced, without the wait for its batch; null on a GPU, as are the next two."""
    seconds_by_phase: dict[str, float] | None
    """What of the traced step forward pass, backward pass and optimizer took."""
    seconds_by_kind: dict[str, float] | None
    """What of it each kind of operation took (see ``nmt.benchmark.profiler``)."""


class DecodingSpeed(DocumentedRecord):
    """The rate of translating sentences, each until its translation is as long as its reference."""

    search: str
    """How a translation was searched for."""
    precision: str
    """Of the layers."""
    sentences: int
    """Sentences translated."""
    runs: int
    """Times that each batch of them was translated."""
    sentences_per_second: float
    """Sentences by the sum of their batches' median times."""
    target_tokens_per_second: float
    """Tokens of the translations, eos included, by the same."""


class Report(DocumentedRecord):
    """All that ``nmt bench`` measured: with ``--json``, a key for each of these fields."""

    version: str
    """Of nmt."""
    tensorflow: str
    """Version of TensorFlow."""
    device: str
    """What computations ran on."""
    configuration: Config
    """All settings, overrides included."""
    data: str
    """What the sentences were."""
    vocabulary: dict[str, int]
    """Ids by side."""
    parameters: int
    """Trained numbers of the model."""
    matmul: list[MatmulSpeed]
    """For each precision."""
    training: TrainingSpeed
    decoding: list[DecodingSpeed]
    """For each search."""


class MatrixProducts:
    """Products of two square matrices in a precision, of the size that is multiplied fastest."""

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
        """Multiply for so long, and return the operations a second."""
        times = _time(self._multiply, seconds)
        self.times += times
        return self._rate(times)

    def _rate(self, times: list[float]) -> float:
        return 2 * self.size**3 / float(np.median(times))

    def speed(self) -> MatmulSpeed:
        """Return the speed over all that was measured at the size chosen."""
        rate = self._rate(self.times)
        return MatmulSpeed(precision=self.precision, flops_per_second=rate, size=self.size, runs=len(self.times))


def _time(run: Callable[[], None], seconds: float) -> list[float]:
    """Run as often as fits in the time, at least ``FEWEST_RUNS`` times; return the seconds of each."""
    times: list[float] = []
    while len(times) < FEWEST_RUNS or sum(times) < seconds:
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return times


def training_step(model: keras.Model, config: Config) -> TrainingStep:
    """Return the step that ``nmt train`` takes, at the first rate of its schedule."""
    optimizer = Adam([variable.value for variable in model.trainable_variables], config.training)
    settings = config.training
    step = TrainStep(model, optimizer, Totals(), settings)
    number = itertools.count()
    rate = tf.constant(learning_rate(1, config.model.d_model, settings, total_steps=settings.warmup_steps), tf.float32)

    def run(source: tf.Tensor, target: tf.Tensor) -> None:
        step.step(source, target, rate, tf.constant([settings.seed, next(number)], tf.int64))
        tf.test.experimental.sync_devices()

    return run


def training_batches(split: Split, config: Config) -> Iterator[tuple[tf.Tensor, tf.Tensor]]:
    """Yield the batches that ``nmt train`` trains on, epoch after epoch."""
    settings = config.training
    for epoch in itertools.count(1):
        plan = plan_epoch(
            split, settings.batch_size, seed=settings.seed, epoch=epoch if settings.reshuffle else 1,
            sort_by_length=settings.sort_by_length, batch_type=settings.batch_type,
        )  # fmt: skip
        yield from batch_dataset(
            split, plan, source_bos=config.model.source_bos, pad_to_longest=settings.pad_to_longest
        )


def measure_training(
    step: TrainingStep,
    batches: Iterable[tuple[tf.Tensor, tf.Tensor]],
    count: Callable[[np.ndarray, np.ndarray], Flops],
    products: list[MatrixProducts],
    *,
    precision: str,
    seconds: float,
) -> TrainingSpeed:
    """Take steps for about ``seconds`` in turns with matrix products, then some more to see where their time goes.

    Args:
        step: takes one step.
        batches: of ids, without end.
        count: the operations for sentences of given lengths, source [B] and target [B].
        products: of all precisions to be measured, that of the model among them.
        precision: that the model computes in.
        seconds: after warming up; the products take ``MATMUL_SHARE`` of them.
    """
    batches = iter(batches)
    for _ in range(WARM_UP):
        step(*next(batches))
    waits, times, tokens, flops, shares = [], list[float](), [], [], []
    positions, padding = np.zeros(2), np.zeros(2)
    for turn in range(1, TURNS + 1):
        rates = {one.precision: one.measure(MATMUL_SHARE * seconds / TURNS / len(products)) for one in products}
        fewest, until = FEWEST_RUNS * turn // TURNS, (1 - MATMUL_SHARE) * seconds * turn / TURNS
        while len(times) < fewest or sum(times) < until:
            began = time.perf_counter()
            source, target = next(batches)
            received = time.perf_counter()
            step(source, target)
            times.append(time.perf_counter() - began)
            waits.append(received - began)
            rows = source.numpy(), target.numpy()[:, 1:]
            source_lengths, target_lengths = (np.count_nonzero(one != PAD, axis=1) for one in rows)
            positions += [one.size for one in rows]
            padding += [np.count_nonzero(one == PAD) for one in rows]
            tokens.append(int(target_lengths.sum()))
            flops.append(count(source_lengths, target_lengths).training)
            shares.append(flops[-1] / times[-1] / rates[precision])
    memory, gpu_memory = runtime.peak_memory(), runtime.peak_gpu_memory()
    traced = None
    if not runtime.GPUS:
        ready = list(itertools.islice(batches, TRACED_STEPS))
        coming = iter(ready)
        traced = trace(lambda: step(*next(coming)), len(ready))
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


def search_with(model: keras.Model, beams: int) -> Translate:
    """Return greedy search with a model, or beam search where there are several beams."""

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)])
    def search(source: tf.Tensor, limits: tf.Tensor) -> tf.Tensor:
        sentences = Sentences(model.encode(source), model.new_cache(tf.shape(source)[0], 0, beams))

        def step(tokens: tf.Tensor, past: Sentences) -> tuple[tf.Tensor, None, Sentences]:
            logits, cache = model.decode(tokens, past.memory, past.cache)
            return logits, None, past._replace(cache=cache)

        task = Task(limits)
        if beams == 1:
            return greedy(step, sentences, task, IDS).tokens[:, 0]
        return beam(step, sentences, task, IDS, beams=beams).tokens[:, 0]

    return lambda source, limits: search(source, limits).numpy()


SEARCHES = {"greedy": 1, "beam 5": 5}
"""By name, the number of beams."""


def measure_decoding(
    search: str, translate: Translate, split: Split, config: Config, *, precision: str, seconds: float
) -> DecodingSpeed:
    """Translate sentences of a split in batches of like length, for about ``seconds``.

    Each sentence may have as many tokens as its reference. The model's weights being untrained, it hardly ever ends a
    sentence itself, so that the lengths are those of real translations.
    """
    size = config.decoding.batch_size
    order = np.random.default_rng(0).permutation(len(split))

    def batch(indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        source = pad_rows(split.source, indices, bos=config.model.source_bos)
        return source, (split.target.lengths[indices] + 1).astype(np.int32)

    def seconds_of(source: np.ndarray, limits: np.ndarray) -> float:
        began = time.perf_counter()
        translate(source, limits)
        return time.perf_counter() - began

    first = batch(order[:size])
    seconds_of(*first)  # builds the graph
    count = max(1, round(seconds / (1 + DECODING_RUNS) / seconds_of(*first)))
    chosen = order[: count * size]
    chosen = chosen[np.argsort(split.source.lengths[chosen], kind="stable")]
    batches = [batch(chosen[start : start + size]) for start in range(0, len(chosen), size)]
    tokens = sum(np.count_nonzero(translate(*one) != PAD) for one in batches)
    times = [[seconds_of(*one) for one in batches] for _ in range(DECODING_RUNS)]
    spent = float(np.median(times, axis=0).sum())
    return DecodingSpeed(
        search=search,
        precision=precision,
        sentences=len(chosen),
        runs=DECODING_RUNS,
        sentences_per_second=len(chosen) / spent,
        target_tokens_per_second=tokens / spent,
    )
