"""Loss and accuracy against NumPy, as sums that add up over batches and know nothing of padding."""

from nmt import runtime  # noqa: F401 - first: it starts TensorFlow without its chatter

# isort: split
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.losses import accuracy, cross_entropy

VOCABULARY = 7
SIZES = st.integers(1, 5)
Measure = Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]


def example(seed: int, batch: int = 4, length: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return logits [B, T, V] and targets [B, T] with padding at the end of rows."""
    random = np.random.default_rng(seed)
    logits = 3 * random.standard_normal((batch, length, VOCABULARY)).astype(np.float32)
    lengths = random.integers(0, length + 1, (batch, 1))
    targets = random.integers(1, VOCABULARY, (batch, length)) * (np.arange(length) < lengths)
    return logits, targets.astype(np.int32)


def numbers(result: tuple[tf.Tensor, tf.Tensor]) -> list[float]:
    """Return a pair of float32 scalars as numbers."""
    assert [one.dtype for one in result] == [tf.float32, tf.float32]
    return [float(one) for one in result]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), SIZES, SIZES)
def test_cross_entropy_equals_numpy(seed: int, batch: int, length: int) -> None:
    logits, targets = example(seed, batch, length)
    exponentials = np.exp(logits.astype(np.float64))
    probabilities = exponentials / exponentials.sum(axis=-1, keepdims=True)
    expected = -sum(np.log(probabilities[at][targets[at]]) for at in np.ndindex(targets.shape) if targets[at])
    loss, count = numbers(cross_entropy(tf.constant(logits), tf.constant(targets)))
    assert loss == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert count == np.count_nonzero(targets)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), SIZES, SIZES)
def test_accuracy_equals_numpy(seed: int, batch: int, length: int) -> None:
    logits, targets = example(seed, batch, length)
    right = sum(np.argmax(logits[at]) == targets[at] for at in np.ndindex(targets.shape) if targets[at])
    assert numbers(accuracy(tf.constant(logits), tf.constant(targets))) == [right, np.count_nonzero(targets)]


def test_equal_logits_cost_the_log_of_the_vocabulary_a_token() -> None:
    targets = tf.constant([[4, 2, 0], [1, 0, 0]])
    assert numbers(cross_entropy(tf.zeros([2, 3, VOCABULARY]), targets)) == pytest.approx([3 * np.log(VOCABULARY), 3])


def test_accuracy_counts_hits_outside_of_padding() -> None:
    targets = tf.constant([[4, 2, 3, 0, 0]])
    predicted = [4, 5, 3, 0, 4]  # right, wrong, right, and two at padding: one that looks right and one that does not
    assert numbers(accuracy(tf.one_hot([predicted], VOCABULARY), targets)) == [2, 3]


@pytest.mark.parametrize("measure", [cross_entropy, accuracy])
def test_sums_over_the_parts_of_a_batch_add_up_to_those_of_the_whole(measure: Measure) -> None:
    logits, targets = (tf.constant(part) for part in example(1, batch=9))
    whole = numbers(measure(logits, targets))
    for sizes in ([4, 5], [1, 7, 1], [3, 3, 3]):
        parts = zip(tf.split(logits, sizes), tf.split(targets, sizes), strict=True)
        np.testing.assert_allclose(np.sum([numbers(measure(*part)) for part in parts], axis=0), whole, rtol=1e-6)


@pytest.mark.parametrize("measure", [cross_entropy, accuracy])
def test_logits_at_padding_do_not_matter(measure: Measure) -> None:
    logits, targets = example(2)
    before = numbers(measure(tf.constant(logits), tf.constant(targets)))
    assert np.count_nonzero(targets) not in (0, targets.size)
    logits[targets == 0] = 1e4 * np.arange(VOCABULARY)[::-1]
    assert numbers(measure(tf.constant(logits), tf.constant(targets))) == before


def test_padding_has_no_gradient_and_a_token_that_of_softmax() -> None:
    logits, targets = (tf.constant(part) for part in example(3))
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss, _ = cross_entropy(logits, targets)
    expected = tf.nn.softmax(logits) - tf.one_hot(targets, VOCABULARY)
    expected *= tf.cast(targets != 0, tf.float32)[..., tf.newaxis]
    np.testing.assert_allclose(tape.gradient(loss, logits), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("magnitude", [1e4, 1e30])
def test_huge_logits_give_a_finite_loss_and_gradient(magnitude: float) -> None:
    logits = tf.constant(magnitude * np.eye(VOCABULARY, dtype=np.float32)[None, :3])
    targets = tf.constant([[3, 1, 0]])  # wrong by the whole magnitude, right, padding
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss, count = cross_entropy(logits, targets)
    assert numbers((loss, count)) == pytest.approx([magnitude, 2])
    assert np.isfinite(tape.gradient(loss, logits)).all()


@pytest.mark.parametrize("measure", [cross_entropy, accuracy])
def test_padding_alone_counts_nothing(measure: Measure) -> None:
    logits, _ = example(4)
    assert numbers(measure(tf.constant(logits), tf.zeros(logits.shape[:2], tf.int32))) == [0, 0]


@pytest.mark.parametrize("measure", [cross_entropy, accuracy])
def test_packed_tokens_give_the_sums_of_their_rows(measure: Measure) -> None:
    logits, targets = example(5)
    rows = numbers(measure(tf.constant(logits), tf.constant(targets)))
    packed = numbers(measure(tf.constant(logits[targets != 0]), tf.constant(targets[targets != 0])))
    assert packed == pytest.approx(rows, rel=1e-6)


def test_loss_of_bfloat16_logits_is_summed_in_float32() -> None:
    logits, targets = tf.zeros([60, 10, VOCABULARY], tf.bfloat16), tf.ones([60, 10], tf.int32)
    assert numbers(cross_entropy(logits, targets)) == pytest.approx([600 * np.log(VOCABULARY), 600], rel=1e-5)
