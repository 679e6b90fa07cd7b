"""Adam, weight decay and averages against Keras and TensorFlow, and the restoring of their state."""

import numpy as np
import pytest

from nmt.config.training import TrainingConfig
from nmt.runtime import keras, tf
from nmt.training.optimization.optimizer import Adam, MovingAverage

IDS = tf.constant([[0, 3, 3], [5, 0, 1]])  # row 3 twice in a sentence, rows 2 and 4 never


class Problem:
    """A small regression through an embedding, a kernel and a bias."""

    def __init__(self, seed: int = 1) -> None:
        random = np.random.default_rng(seed)
        self.table, self.kernel, self.bias = self.variables = [
            tf.Variable(random.standard_normal(shape), dtype=tf.float32) for shape in ((6, 4), (4, 3), (3,))
        ]
        self.targets = tf.constant(random.standard_normal((2, 3, 3)), tf.float32)

    def gradients(self) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            predicted = tf.matmul(tf.gather(self.table, IDS), self.kernel) + self.bias
            loss = tf.reduce_sum((predicted - self.targets) ** 2)
        return tape.gradient(loss, self.variables)

    def values(self) -> list[np.ndarray]:
        return [variable.numpy() for variable in self.variables]


def rate(step: int) -> float:
    """Return a learning rate that differs at every step."""
    return 0.05 / (1 + step % 5)


def train(problem: Problem, adam: Adam, steps: range) -> None:
    for step in steps:
        adam.apply(problem.gradients(), tf.constant(rate(step)))


def take_keras_step(optimizer: keras.optimizers.Optimizer, problem: Problem, step: int) -> None:
    """Take a step with dense gradients: of an embedding, Keras squares the slices and not the sums of its rows."""
    optimizer.learning_rate = rate(step)
    dense = [tf.convert_to_tensor(gradient) for gradient in problem.gradients()]
    optimizer.apply_gradients(zip(dense, problem.variables, strict=True))


SETTINGS = [TrainingConfig(), TrainingConfig(adam_beta_1=0.8, adam_beta_2=0.999, adam_epsilon=0.1)]


@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("config", SETTINGS, ids=["default", "large epsilon"])
def test_adam_equals_that_of_keras_with_decay_of_matrices_only(config: TrainingConfig, decay: float) -> None:
    ours, theirs = Problem(), Problem()
    assert isinstance(ours.gradients()[0], tf.IndexedSlices)
    adam = Adam(ours.variables, config.model_copy(update={"weight_decay": decay}))
    keras_adam = keras.optimizers.AdamW(
        weight_decay=decay, beta_1=config.adam_beta_1, beta_2=config.adam_beta_2, epsilon=config.adam_epsilon
    )
    keras_adam.exclude_from_weight_decay(var_list=[theirs.bias])
    for step in range(20):
        train(ours, adam, range(step, step + 1))
        take_keras_step(keras_adam, theirs, step)
        for own, expected in zip(ours.values(), theirs.values(), strict=True):
            np.testing.assert_allclose(own, expected, rtol=1e-5, atol=1e-5)
    assert adam.steps.numpy() == 20
    untouched = 2  # a row of the embedding that no gradient reaches decays too
    decayed = np.prod([1 - decay * rate(step) for step in range(20)]) * Problem().values()[0][untouched]
    np.testing.assert_allclose(ours.values()[0][untouched], decayed, rtol=1e-5)


@pytest.mark.parametrize("decay", [0.5, 0.999])
def test_the_moving_average_equals_that_of_tensorflow(decay: float) -> None:
    problem = Problem()
    adam, ours = Adam(problem.variables, SETTINGS[0]), MovingAverage(problem.variables, decay)
    steps = tf.Variable(0)
    theirs = tf.train.ExponentialMovingAverage(decay, num_updates=steps)
    theirs.apply(problem.variables)  # starts from the first weights, as ours
    for step in range(1, 31):
        train(problem, adam, range(step, step + 1))
        ours.update(adam.steps)
        steps.assign(step)
        theirs.apply(problem.variables)
        for average, variable in zip(ours.averages, problem.variables, strict=True):
            np.testing.assert_allclose(average, theirs.average(variable), rtol=1e-5, atol=1e-6)
            assert not np.allclose(average, variable, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "own"), [({"square_1": np.zeros((5, 3))}, 3), ({"steps": None}, 3), ({"mean_2": None}, 3), ({}, 2)]
)
def test_restore_refuses_a_state_with_other_shapes_or_a_hole_or_of_another_model(changes: dict, own: int) -> None:
    problem = Problem()
    changed = Adam(problem.variables, SETTINGS[0]).state() | changes
    state = {name: array for name, array in changed.items() if array is not None}
    with pytest.raises((ValueError, KeyError)):
        Adam(problem.variables[:own], SETTINGS[0]).restore(state)
