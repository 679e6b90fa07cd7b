"""Shortage of memory in a step: its batch is computed in parts, with the same result but for rounding."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import Config
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS
from nmt.training.input_pipeline import Batch
from nmt.training.optimization.batch_limit import UNLIMITED, BatchLimit, Bounds, ShortageError, batch_shape, updating
from nmt.training.state import TrainState

MODELS: dict[str, dict[str, Any]] = {
    "transformer": {
        "encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 32, "heads": 2, "dropout": 0.3,
        "attention_dropout": 0.2, "feed_forward_dropout": 0.2, "word_dropout": 0.2,
    },
    "recurrent": {"architecture": "recurrent", "width": 16, "dropout": 0.3, "word_dropout": 0.2},
}  # fmt: skip
VOCABULARY = {"source": 40, "target": 40}


def random_batch(seed: int, rows: int = 6, source: int = 7, target: int = 5) -> Batch:
    """Return sentences of random words and lengths, padded."""
    random = np.random.default_rng(seed)
    sides = []
    for width in (source, target):
        ids = random.integers(4, 40, [rows, width + 1]).astype(np.int32)
        ids[:, 0] = BOS
        for row, end in enumerate(random.integers(2, width + 1, rows)):
            ids[row, end], ids[row, end + 1 :] = EOS, 0
        sides.append(tf.constant(ids))
    return sides[0], sides[1]


def new_state(model: dict[str, Any], **settings: Any) -> TrainState:
    training = {"precision": "float32", "adam_epsilon": 1e-3, "ema_decay": 0.9, "weight_decay": 0.1, **settings}
    return TrainState(Config.model_validate({"model": model, "training": training}), VOCABULARY)


def short_of_memory(function: Callable[..., None], tokens: int) -> Callable[..., None]:
    """Return a function that runs out of memory on batches of more tokens."""

    def run(source: tf.Tensor, target: tf.Tensor, *rest: Any) -> None:
        rows, width = batch_shape((source, target))
        if rows * width > tokens:
            raise tf.errors.ResourceExhaustedError(None, None, "no memory for a tensor")
        function(source, target, *rest)

    return run


def arrays_of(state: TrainState) -> dict[str, np.ndarray]:
    limits = {"largest_batch", "largest_validation_batch"}
    found = {name: array for name, array in state.train_step.state().items() if name not in limits}
    return {**state.weights, **found, "totals": np.array(state.totals.read())}


@pytest.mark.parametrize(
    ("model", "micro_batches", "eager", "r_drop"),
    [
        ("transformer", 1, True, 0.0),
        pytest.param("recurrent", 3, True, 0.0, marks=pytest.mark.slow),
        pytest.param("transformer", 3, False, 5.0, marks=pytest.mark.slow),
        pytest.param("recurrent", 1, False, 5.0, marks=pytest.mark.slow),
    ],
)
def test_a_step_in_parts_is_the_whole_step_but_for_rounding(
    model: str, micro_batches: int, eager: bool, r_drop: float
) -> None:
    """Dropout of all kinds is on: the parts drop what the whole batch drops."""
    whole, short = (new_state(MODELS[model], micro_batches=micro_batches, eager=eager, r_drop=r_drop) for _ in "12")
    name = "step" if micro_batches == 1 else "_traced_add"
    setattr(short.train_step, name, short_of_memory(getattr(short.train_step, name), 36))
    for step in range(3):
        batches = [random_batch(10 * step + number) for number in range(micro_batches)]
        whole.step(batches, 1e-3)
        short.step(batches, 1e-3)
    assert whole.train_step.limit.tokens == UNLIMITED
    assert short.train_step.limit.tokens == 6 * (8 + 5) - 1
    expected, found = arrays_of(whole), arrays_of(short)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=2e-5, atol=2e-6, err_msg=name)


def test_a_shortage_on_the_way_changes_nothing() -> None:
    """An operation of the backward pass fails within the traced step: no variable is assigned before it."""
    state = new_state({**MODELS["transformer"], "dropout": 0.0})
    before = arrays_of(state)

    def run_out(gradient: np.ndarray) -> np.ndarray:
        raise MemoryError  # which TensorFlow makes a ResourceExhaustedError

    def gradients(*arguments: Any, **settings: Any) -> Any:
        (first, *others), sums = plain(*arguments, **settings)
        failed = tf.ensure_shape(tf.numpy_function(run_out, [first], tf.float32), first.shape)
        return [failed, *others], sums

    plain = state.train_step._gradients
    state.train_step._gradients = gradients  # type: ignore[method-assign]
    step = tf.function(state.train_step._step)
    with pytest.raises(tf.errors.ResourceExhaustedError):
        step(*random_batch(2), tf.constant(0.1), tf.constant([1, 2], tf.int64))
    for name, array in arrays_of(state).items():
        np.testing.assert_array_equal(array, before[name], err_msg=name)


@given(rows=st.integers(1, 200), width=st.integers(1, 60), limit=st.integers(1, 12_000))
def test_parts_cover_a_batch_and_keep_within_the_limit(rows: int, width: int, limit: int) -> None:
    batch = tf.zeros([rows, width], tf.int32), tf.zeros([rows, 2], tf.int32)
    bounds = BatchLimit().bounds(batch, limit)
    assert [row for first, end in bounds for row in range(first, end)] == list(range(rows))
    sizes = [end - first for first, end in bounds]
    assert max(sizes) * (width + 1) <= limit or max(sizes) == 1
    assert len(bounds) == 1 or -(-rows // (len(bounds) // 2)) * (width + 1) > limit  # half as many are too few


def test_parts_become_single_sentences_and_no_less() -> None:
    limit, tried = BatchLimit(), list[int]()

    def fail(bounds: Bounds | None = None) -> None:
        tried.append(len(bounds) if bounds else 1)
        raise tf.errors.ResourceExhaustedError(None, None, "no memory for a tensor")

    with pytest.raises(ShortageError, match="a single sentence pair of 13 tokens"):
        limit.compute(random_batch(1), fail, fail, lambda: True)
    assert tried == [1, 2, 4, 6]
    assert limit.tokens == limit.found == UNLIMITED


def test_a_shortage_in_the_update_is_no_matter_of_parts() -> None:
    def fail(bounds: Bounds | None = None) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, "no memory for a tensor")

    with pytest.raises(ShortageError, match="while the weights were updated"):
        BatchLimit().compute(random_batch(1), fail, fail, lambda: False)
    with pytest.raises(ShortageError, match="while the weights were updated"), updating():
        raise MemoryError


REAL = """
import resource, sys
import numpy as np
from nmt.config.schema import Config
from nmt.runtime import tf
from nmt.training.optimization.batch_limit import UNLIMITED
from nmt.training.state import TrainState

def batch(rows):
    return tuple(tf.constant(random.integers(4, 100, [rows, 20 + extra]), tf.int32) for extra in (0, 1))

random = np.random.default_rng(0)
small, large = batch(4), batch(80)
model = dict(encoder_layers=1, decoder_layers=1, d_model=32, d_ff=64, heads=2)
config = Config.model_validate({"model": model, "training": {"precision": "float32"}})
state = TrainState(config, {"source": 100, "target": 20_000})
limit = state.train_step.limit
for tokens in (1, UNLIMITED):  # trace both ways: a graph takes memory too
    limit.tokens = limit.found = tokens
    state.step([small], 1e-3)
[line] = [line for line in open("/proc/self/status") if line.startswith("VmSize")]
resource.setrlimit(resource.RLIMIT_AS, (int(line.split()[1]) * 1024 + int(sys.argv[1]) * 2**20,) * 2)
for _ in range(2):
    state.step([large], 1e-3)
print(limit.tokens < UNLIMITED, int(state.totals.read().tokens))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the size of the process from /proc")
def test_a_real_shortage_is_survived() -> None:
    """With a limit of the address space; what a process needs besides tensors differs, so several are tried."""
    outputs = []
    for megabytes in (300, 270, 340, 240):
        done = subprocess.run(
            [sys.executable, "-c", REAL, str(megabytes)], capture_output=True, text=True, timeout=120, check=False
        )
        outputs.append(done.stdout + done.stderr[-500:])
        if done.stdout.startswith("True"):
            assert done.stdout.split() == ["True", str(2 * 80 * 20 + 2 * 4 * 20)]
            return
    pytest.fail("\n".join(outputs))
