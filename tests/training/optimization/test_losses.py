"""Loss and accuracy against NumPy: sums that are additive over batches and independent of padding."""

from collections.abc import Callable

import numpy as np
import pytest
from conftest import ROUNDS_BFLOAT16
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt import runtime
from nmt.models.layers.ops import Projection
from nmt.runtime import keras, tf
from nmt.training.optimization.losses import TokenSums, cross_entropy, fused_linear_cross_entropy

VOCABULARY = 7
SIZES = st.integers(1, 5)
Loss = Callable[..., TokenSums]


def by_identity(logits: tf.Tensor, targets: tf.Tensor, label_smoothing: float = 0.0) -> TokenSums:
    """Compute the fused loss with logits as states and the identity as projection."""
    identity = Projection(tf.eye(logits.shape[-1], dtype=logits.dtype), None, transposed=True)
    return fused_linear_cross_entropy(logits, identity, targets, label_smoothing)


LOSSES = pytest.mark.parametrize("loss", [cross_entropy, by_identity])
SMOOTHING = pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])


def example(seed: int, batch: int = 4, length: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return logits [B, T, V] and targets [B, T] with padding at the end of rows."""
    random = np.random.default_rng(seed)
    logits = 3 * random.standard_normal((batch, length, VOCABULARY)).astype(np.float32)
    lengths = random.integers(0, length + 1, (batch, 1))
    targets = random.integers(1, VOCABULARY, (batch, length)) * (np.arange(length) < lengths)
    return logits, targets.astype(np.int32)


def numbers(result: TokenSums) -> list[float]:
    """Return the float32 scalars as numbers."""
    assert {(value.dtype, value.shape.rank) for value in result} == {(tf.float32, 0)}
    return [float(value) for value in result]


def summed(
    loss: Loss, logits: np.ndarray | tf.Tensor, targets: np.ndarray | tf.Tensor, smoothing: float = 0.0
) -> list[float]:
    """Return objective, loss, right and tokens."""
    return numbers(loss(tf.constant(logits), tf.constant(targets), smoothing))


@LOSSES
@SMOOTHING
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), batch=SIZES, length=SIZES)
def test_sums_equal_numpy(loss: Loss, smoothing: float, seed: int, batch: int, length: int) -> None:
    logits, targets = example(seed, batch, length)
    exponentials = np.exp(logits.astype(np.float64))
    costs = -np.log(exponentials / exponentials.sum(axis=-1, keepdims=True))
    places = [at for at in np.ndindex(targets.shape) if targets[at]]
    expected = sum(costs[at][targets[at]] for at in places)
    smoothed = sum((1 - smoothing) * costs[at][targets[at]] + smoothing * costs[at].mean() for at in places)
    objective, cost, right, tokens = summed(loss, logits, targets, smoothing)
    assert cost == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert objective == pytest.approx(smoothed, rel=1e-5, abs=1e-5)
    assert right == sum(np.argmax(logits[at]) == targets[at] for at in places)
    assert tokens == len(places)
    assert summed(loss, logits, 0 * targets, smoothing) == [0, 0, 0, 0]  # padding alone


@LOSSES
@SMOOTHING
def test_the_objective_equals_that_of_keras_and_padding_does_not_matter(loss: Loss, smoothing: float) -> None:
    logits, targets = example(3)
    keras_loss = keras.losses.CategoricalCrossentropy(True, label_smoothing=smoothing, reduction="sum")
    with tf.GradientTape(persistent=True) as tape:
        watched = tf.Variable(logits)
        theirs = 2 * keras_loss(tf.one_hot(targets, VOCABULARY), watched, sample_weight=targets != 0)
        ours = 2 * loss(watched, tf.constant(targets), smoothing).objective
    assert float(ours) == pytest.approx(float(theirs), rel=1e-5)
    np.testing.assert_allclose(tape.gradient(ours, watched), tape.gradient(theirs, watched), rtol=0, atol=1e-6)
    before = summed(loss, logits, targets, smoothing)
    assert np.count_nonzero(targets) not in (0, targets.size)
    logits[targets == 0] = 1e4 * np.arange(VOCABULARY)[::-1]
    assert summed(loss, logits, targets, smoothing) == before


@LOSSES
@pytest.mark.parametrize("magnitude", [1e4, 1e30])
def test_huge_logits_give_a_finite_loss_and_gradient(loss: Loss, magnitude: float) -> None:
    logits = tf.constant(magnitude * np.eye(VOCABULARY, dtype=np.float32)[None, :3])
    targets = tf.constant([[3, 1, 0]])  # wrong by the whole magnitude, right, padding
    with tf.GradientTape() as tape:
        tape.watch(logits)
        sums = loss(logits, targets)
    assert [float(sums.loss), float(sums.tokens)] == pytest.approx([magnitude, 2])
    assert np.isfinite(tape.gradient(sums.objective, logits)).all()


@LOSSES
@pytest.mark.parametrize("dtype", [pytest.param(tf.bfloat16, marks=ROUNDS_BFLOAT16), tf.float16])
def test_sums_of_16_bit_logits_are_computed_in_float32(loss: Loss, dtype: tf.DType) -> None:
    # The probability that the loss starts from is rounded to bfloat16, 8 bits, at random up or down for each token;
    # 3,000 of them added up in bfloat16 would stop growing long before the end.
    random = np.random.default_rng(1)
    logits = tf.cast(3 * random.standard_normal((3000, VOCABULARY)), dtype)
    targets = random.integers(1, VOCABULARY, 3000).astype(np.int32)
    exact, rounded = summed(loss, tf.cast(logits, tf.float32), targets), summed(loss, logits, targets)
    assert rounded[1] / 3000 == pytest.approx(exact[1] / 3000, abs=2e-4)
    assert rounded[2:] == exact[2:]


@st.composite
def problems(draw: st.DrawFn, passes: int) -> tuple[list[tf.Tensor], Projection, tf.Tensor]:
    """Draw the states of each pass, a projection, and targets with padding."""
    seed, batch, length = draw(st.integers(0, 10_000)), draw(SIZES), draw(SIZES)
    transposed, biased, packed = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    random = np.random.default_rng(seed)

    def normal(*shape: int) -> tf.Tensor:
        return tf.constant(random.standard_normal(shape), tf.float32)

    states = [normal(batch, length, 4) for _ in range(passes)]
    matrix = normal(*((VOCABULARY, 4) if transposed else (4, VOCABULARY)))
    targets = tf.constant(example(seed, batch, length)[1])
    if packed:
        states, targets = [tf.reshape(passed, [-1, 4]) for passed in states], tf.reshape(targets, [-1])
    return states, Projection(matrix, normal(VOCABULARY) if biased else None, transposed), targets


def watched_by(tape: tf.GradientTape, states: list[tf.Tensor], projection: Projection) -> list[tf.Tensor]:
    watched = [*states, *(weight for weight in projection[:2] if weight is not None)]
    tape.watch(watched)
    return watched


@settings(max_examples=40, deadline=None)
@given(problem=problems(1), smoothing=st.sampled_from([0.0, 0.1, 0.7]))
def test_a_projection_has_the_sums_and_gradients_of_its_logits(problem: tuple, smoothing: float) -> None:
    (states,), projection, targets = problem
    with tf.GradientTape(persistent=True) as tape:
        watched = watched_by(tape, [states], projection)
        ours = fused_linear_cross_entropy(states, projection, targets, smoothing)
        plain = cross_entropy(projection.logits(states), targets, smoothing)
        objectives = [3 * ours.objective, 3 * plain.objective]
    np.testing.assert_allclose(numbers(ours), numbers(plain), rtol=1e-4, atol=1e-5)
    gradients, expected = (tape.gradient(objective, watched) for objective in objectives)
    for gradient, right in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(gradient, right, rtol=1e-3, atol=1e-4)
    assert tape.gradient(ours.loss, watched) == [None] * len(watched)


@settings(max_examples=30, deadline=None)
@given(problem=problems(2), smoothing=st.sampled_from([0.0, 0.1]), weight=st.sampled_from([0.5, 5.0]))
def test_r_drop_has_the_sums_and_gradients_of_its_equation(problem: tuple, smoothing: float, weight: float) -> None:
    """Half of equation 4 of Liang et al. 2021, from log_softmax, which keeps the smallest probabilities exact."""
    passes, projection, targets = problem
    with tf.GradientTape(persistent=True) as tape:
        watched = watched_by(tape, passes, projection)
        both = tf.concat(passes, axis=0), tf.concat([targets, targets], axis=0)
        ours = fused_linear_cross_entropy(both[0], projection, both[1], smoothing, weight)
        plain = [cross_entropy(projection.logits(states), targets, smoothing) for states in passes]
        p, q = (tf.nn.log_softmax(projection.logits(states)) for states in passes)
        apart = tf.reduce_sum(((tf.exp(p) - tf.exp(q)) * (p - q))[targets != 0])
        expected = (plain[0].objective + plain[1].objective + weight / 2 * apart) / 2
    assert float(ours.objective) == pytest.approx(float(expected), rel=1e-4, abs=1e-5)
    means = [(float(first) + float(second)) / 2 for first, second in zip(*plain, strict=True)]
    assert numbers(ours)[1:] == pytest.approx(means[1:], rel=1e-4, abs=1e-5)
    gradients, expected_gradients = (tape.gradient(objective, watched) for objective in (ours.objective, expected))
    for gradient, right in zip(gradients, expected_gradients, strict=True):
        np.testing.assert_allclose(gradient, right, rtol=1e-3, atol=2e-4)


def test_divergence_in_bfloat16_equals_float32_up_to_rounding() -> None:
    random = np.random.default_rng(3)
    states = random.standard_normal((400, 16))
    states[200:] = states[:200] + 0.3 * random.standard_normal((200, 16))
    matrix, targets = random.standard_normal((16, 50)), np.ones(400, np.int32)
    divergences = {}
    for dtype in (tf.float32, tf.bfloat16):
        projection = Projection(tf.cast(matrix, dtype), None, transposed=False)
        plain, whole = (
            fused_linear_cross_entropy(tf.cast(states, dtype), projection, tf.constant(targets), 0.0, weight)
            for weight in (1e-9, 4.0)
        )
        divergences[dtype] = float(whole.objective - plain.objective) / 200
    assert divergences[tf.float32] > 0.1
    assert divergences[tf.bfloat16] == pytest.approx(divergences[tf.float32], rel=0.02)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("r_drop", [0.0, 1.0])
def test_the_operations_for_gpus_compute_the_same_bits(
    dtype: str, r_drop: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, results = np.random.default_rng(5), []
    states, matrix = (tf.cast(random.normal(size=[count, 8]), dtype) for count in (12, VOCABULARY))
    targets = tf.constant(np.tile(random.integers(0, VOCABULARY, 6), 2), tf.int32)
    for gpus in ([], ["a GPU"]):
        monkeypatch.setattr(runtime, "GPUS", gpus)
        with tf.GradientTape() as tape:
            tape.watch([states, matrix])
            sums = fused_linear_cross_entropy(states, Projection(matrix, None, transposed=True), targets, 0.1, r_drop)
        results.append([*sums, *tape.gradient(sums.objective, [states, matrix])])
    for ours, theirs in zip(*results, strict=True):
        assert tf.cast(ours, tf.float64).numpy().tobytes() == tf.cast(theirs, tf.float64).numpy().tobytes()
