"""The training step on a model of three weights: clipping, averages, and skipped steps, which change nothing."""

from typing import Any

import keras
import numpy as np
import pytest

from nmt.config.training import TrainingConfig
from nmt.models.base import TeacherForced
from nmt.models.layers.ops import Projection
from nmt.models.layers.unpadding import Unpadding
from nmt.runtime import tf
from nmt.training.optimization.build import make_update
from nmt.training.optimization.nonfinite import NonFiniteReport, NonFiniteTracker
from nmt.training.optimization.optimizer import Adam

V, NO_NUMBER, NO_SLOPE = 7, 8, 9  # target ids; a source id that makes the loss NaN; one that makes a gradient infinite


class Bigrams:
    """Predicts a token from the previous token. Two source ids make the loss or a gradient non-finite."""

    def __init__(self, compute_dtype: str = "float32") -> None:
        self.compute_dtype = compute_dtype
        self.seeds: list[tf.Tensor] = []
        random = np.random.default_rng(1)
        with keras.name_scope("bigrams"):
            self.matrix = keras.Variable(random.standard_normal((V, V)), dtype="float32", name="matrix")
            self.bias = keras.Variable(random.standard_normal(V), dtype="float32", name="bias")
            self.root = keras.Variable(0.0, dtype="float32", name="root")
        self.trainable_variables = self.weights = [self.matrix, self.bias, self.root]

    def teacher_forcing(
        self, source: tf.Tensor, target: tf.Tensor, *, remove_padding: bool, dropout_seed: tf.Tensor
    ) -> TeacherForced:
        self.seeds.append(dropout_seed)
        unpadding = Unpadding.of(target[:, 1:])
        no_number = tf.where(tf.reduce_any(source == NO_NUMBER), np.nan, 0.0)
        steep = tf.sqrt(tf.where(tf.reduce_any(source == NO_SLOPE), self.root, 1.0))
        states = tf.gather(self.matrix, unpadding.flatten(target[:, :-1])) + no_number + steep * tf.one_hot(4, V)
        return TeacherForced(states, unpadding.flatten(target[:, 1:]))

    def output_projection(self) -> Projection:
        return Projection(tf.eye(V), self.bias.value, transposed=False)


class Lesson:
    """A model and its update."""

    def __init__(self, compute_dtype: str = "float32", **settings: Any) -> None:
        self.model = Bigrams(compute_dtype)
        self.update = make_update(self.model, TrainingConfig(**settings))

    def learn(self, step: int, *source_ids: int) -> "Lesson":
        """Take a step from a batch for each source id. The number of a batch in the run determines its sentences.

        The last step of an epoch may have fewer micro-batches than others.
        """
        first = step * self.update.config.micro_batches
        batches = []
        for number, source_id in enumerate(source_ids, first):
            target = np.random.default_rng(number).integers(4, V, [3, 6])
            batches.append((tf.fill([3, 2], source_id), tf.constant(target, tf.int32)))
        self.update.take(batches, 0.1, step)
        return self

    def everything(self) -> dict[str, np.ndarray]:
        """Return weights, moments, averages and totals."""
        state = self.update.state()
        nonfinite_report = NonFiniteTracker().state()
        arrays = {name: array for name, array in state.optimizer.items() if name not in nonfinite_report}
        return {**state.weights, **arrays, "totals": np.array(state.totals)}


def assert_same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> None:
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


GOOD = 5
ON = {"skip_nonfinite": 5, "ema_decay": 0.9, "weight_decay": 0.1}


@pytest.mark.parametrize("bad", [NO_NUMBER, NO_SLOPE])
@pytest.mark.parametrize("settings", [ON, {"clip_norm": 0.5, "ema_decay": 0.9}], ids=["skip", "clip"])
def test_a_non_finite_step_is_skipped_and_changes_nothing(bad: int, settings: dict) -> None:
    with_bad = Lesson(**settings).learn(1, GOOD).learn(2, bad).learn(3, GOOD).learn(4, bad).learn(5, GOOD)
    without = Lesson(**settings).learn(1, GOOD).learn(3, GOOD).learn(5, GOOD)
    assert_same(with_bad.everything(), without.everything())
    assert with_bad.update.nonfinite.read() == NonFiniteReport(2, 4, 2)
    assert without.update.nonfinite.read() == NonFiniteReport(None, None, 0)


@pytest.mark.parametrize(("bad", "first", "last"), [(NO_NUMBER, 4, 8), (NO_SLOPE, 5, 9)])
def test_a_non_finite_micro_batch_skips_the_whole_step(bad: int, first: int, last: int) -> None:
    """A non-finite loss names its batch. Summed gradients name only the last batch of the step."""
    with_bad, without = Lesson(micro_batches=2, **ON), Lesson(micro_batches=2, **ON)
    for step, source_id in enumerate([GOOD, bad, GOOD, bad], 1):
        with_bad.learn(step, source_id, GOOD)
        if source_id == GOOD:
            without.learn(step, GOOD, GOOD)
    assert_same(with_bad.everything(), without.everything())
    assert with_bad.update.nonfinite.read() == NonFiniteReport(first, last, 2)


def test_without_any_step_the_mean_is_nan() -> None:
    lesson = Lesson(**ON).learn(1, NO_NUMBER)
    assert lesson.update.totals.read() == (0, 0, 0)
    assert np.isnan(lesson.update.totals.read().means).all()


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_by_default_a_non_finite_loss_is_recorded_and_the_step_taken(micro_batches: int) -> None:
    lesson = Lesson(micro_batches=micro_batches).learn(1, GOOD)
    assert lesson.update.nonfinite.read() == NonFiniteReport(None, None, 0)
    lesson.learn(2, NO_NUMBER)
    assert lesson.update.nonfinite.read() == NonFiniteReport(2 * micro_batches, 2 * micro_batches, 0)
    assert np.isnan(lesson.update.totals.read().loss)
    assert np.isnan(lesson.model.matrix).any()
    lesson.learn(3, GOOD)
    assert lesson.update.nonfinite.read() == NonFiniteReport(
        2 * micro_batches, 3 * micro_batches, 0
    )  # the weights are lost


def test_in_float16_overflowing_gradients_halve_the_scale_without_a_record() -> None:
    lesson = Lesson("float16").learn(1, GOOD)
    scale, before = lesson.update.loss_scale, lesson.everything()
    assert scale is not None
    lesson.learn(2, NO_SLOPE)
    assert scale.value.numpy() == scale.FIRST / 2
    after = lesson.everything()
    assert after["totals"][2] == 2 * before["totals"][2]  # its loss counts
    unchanged = before.keys() - {"totals", "loss_scale", "loss_scale_good_steps"}
    assert_same({name: after[name] for name in unchanged}, {name: before[name] for name in unchanged})
    assert lesson.update.nonfinite.read() == NonFiniteReport(None, None, 0)

    before = lesson.everything()
    lesson.learn(3, NO_NUMBER)
    assert_same(lesson.everything(), before)
    assert lesson.update.nonfinite.read() == NonFiniteReport(3, 3, 1)


def test_settings_that_are_off_add_no_operation() -> None:
    def operations(**settings: Any) -> set[str]:
        graph = Lesson(**settings).update._step.get_concrete_function().graph
        return {operation.type for operation in graph.get_operations()}

    extra = {
        "clip_norm": (1.0, {"If", "L2Loss"}),
        "skip_nonfinite": (1, {"If", "L2Loss"}),
        "ema_decay": (0.9, {"ResourceApplyGradientDescent"}),
        "weight_decay": (0.1, {"AssignSubVariableOp"}),
    }
    plain = operations()
    for key, (value, needed) in extra.items():
        assert not needed & plain
        assert needed <= operations(**{key: value}), key


def test_the_passes_of_r_drop_have_seeds_that_no_batch_shares() -> None:
    lesson = Lesson(r_drop=5.0, eager=True).learn(1, GOOD).learn(2, GOOD)
    assert len({tuple(seed.numpy().tolist()) for seed in lesson.model.seeds}) == 4


class Recorder(Adam):
    """Optimizer that stores the gradients instead of applying them."""

    def apply(self, gradients: list[tf.Tensor], learning_rate: tf.Tensor) -> None:
        for mean, gradient in zip(self.means, gradients, strict=True):
            mean.assign(gradient)


def gradients_of(compute_dtype: str = "float32", **settings: Any) -> list[np.ndarray]:
    lesson = Lesson(compute_dtype, **settings)
    recorder = Recorder(lesson.update.optimizer.variables_trained, TrainingConfig(**settings))
    lesson.update.optimizer = recorder
    lesson.learn(0, *[GOOD] * lesson.update.config.micro_batches)
    return [mean.numpy() for mean in recorder.means]


@pytest.mark.slow
@pytest.mark.parametrize("clip_norm", [0.01, 0.3, 1e3])
@pytest.mark.parametrize(("precision", "micro_batches"), [("float32", 1), ("float32", 3), ("float16", 1)])
def test_gradients_are_clipped_by_their_global_norm(clip_norm: float, precision: str, micro_batches: int) -> None:
    plain = gradients_of(precision, micro_batches=micro_batches)
    expected, norm = tf.clip_by_global_norm(plain, clip_norm)
    assert 0.3 < norm < 1e3
    for clipped, gradient in zip(
        gradients_of(precision, micro_batches=micro_batches, clip_norm=clip_norm), expected, strict=True
    ):
        np.testing.assert_allclose(clipped, gradient, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_the_gradient_norm_is_known_if_a_step_needs_it(micro_batches: int) -> None:
    plain = gradients_of(micro_batches=micro_batches)
    lesson = Lesson(micro_batches=micro_batches, clip_norm=0.01)
    assert lesson.update.gradient_norm is None
    norm = lesson.learn(0, *[GOOD] * micro_batches).update.gradient_norm
    assert norm == pytest.approx(float(tf.linalg.global_norm(plain)), rel=1e-5)
    assert lesson.learn(1, NO_SLOPE).update.gradient_norm is None
    assert Lesson().learn(1, GOOD).update.gradient_norm is None


def test_averages_follow_the_weights_in_their_order() -> None:
    lesson = Lesson(ema_decay=0.9)
    first = lesson.update.state().weights
    averages, now = lesson.learn(1, GOOD).update.weights, lesson.update.state().weights
    assert averages.keys() == first.keys()
    for name, average in averages.items():
        assert average.dtype == np.float32
        np.testing.assert_allclose(average, 2 / 11 * first[name] + 9 / 11 * now[name], rtol=1e-5, atol=1e-7)


def test_a_state_that_lacks_an_array_is_not_restored() -> None:
    state = Lesson(**ON).update.state()
    for missing in ("first_bad_batch", "average_0", "average_2"):
        arrays = {name: array for name, array in state.optimizer.items() if name != missing}
        with pytest.raises(KeyError, match=missing):
            Lesson(**ON).update.restore(state._replace(optimizer=arrays))
