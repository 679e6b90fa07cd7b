"""Adam with decoupled weight decay, and the exponential moving average of weights."""

import abc
from collections.abc import Iterable

from nmt.config.training import TrainingConfig
from nmt.runtime import tf
from nmt.storage.arrays import Arrays, value_of


class Checkpointed(tf.Module):
    """Base class of objects whose variables a checkpoint holds."""

    @abc.abstractmethod
    def named(self) -> dict[str, tf.Variable]:
        """Return the variables by name."""

    def state(self) -> Arrays:
        """Return copies of the variables by name."""
        return {name: value_of(variable) for name, variable in self.named().items()}

    def restore(self, arrays: Arrays) -> None:
        """Restore the variables from arrays that ``state`` returned. Arrays of other names are ignored.

        Raises:
            KeyError, ValueError: if the arrays belong to another model.
        """
        for name, variable in self.named().items():
            variable.assign(arrays[name])


class Adam(Checkpointed):
    """Adam (Kingma and Ba 2015, with the reordered bias correction at the end of their section 2).

    It uses TensorFlow's fused kernel, which reads and writes a variable and its two moments in one operation. Keras's
    Adam needs several operations for each variable. So a step takes a third of Keras's time: 22 ms instead of 63 ms for
    7.6 million weights in 127 variables, on two CPU cores.

    With weight decay it is AdamW (Loshchilov and Hutter 2019, algorithm 2): each step also subtracts learning rate x
    weight decay x matrix from every matrix. Embeddings decay in every row, including rows of words that the batch does
    not contain. Biases and layer norms, which are vectors, do not decay.
    """

    def __init__(self, variables: Iterable[tf.Variable], config: TrainingConfig) -> None:
        """Start with moments of zero.

        Args:
            variables: the variables to train.
            config: the training section, for beta_1, beta_2, epsilon and weight decay.
        """
        super().__init__(name="adam")
        self.beta_1, self.beta_2, self.epsilon = config.adam_beta_1, config.adam_beta_2, config.adam_epsilon
        self.weight_decay = config.weight_decay
        self.variables_trained = list(variables)
        self.steps = tf.Variable(0, dtype=tf.int64, trainable=False, name="steps")
        self.means = [tf.Variable(tf.zeros_like(v), trainable=False) for v in self.variables_trained]
        self.squares = [tf.Variable(tf.zeros_like(v), trainable=False) for v in self.variables_trained]

    def apply(self, gradients: Iterable[tf.Tensor], learning_rate: tf.Tensor) -> None:
        """Take one step; ``learning_rate`` is a float32 scalar."""
        step = tf.cast(self.steps.assign_add(1), tf.float64)
        power_1 = tf.cast(tf.pow(tf.constant(self.beta_1, tf.float64), step), tf.float32)
        power_2 = tf.cast(tf.pow(tf.constant(self.beta_2, tf.float64), step), tf.float32)
        if self.weight_decay:
            share = learning_rate * self.weight_decay
            for matrix in (variable for variable in self.variables_trained if variable.shape.rank > 1):
                matrix.assign_sub(matrix * share)  # not matrix * (1 - share): float32 rounds a small share away
        slots = zip(gradients, self.variables_trained, self.means, self.squares, strict=True)
        for gradient, variable, mean, square in slots:
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle,
                m=mean.handle,
                v=square.handle,
                beta1_power=power_1,
                beta2_power=power_2,
                lr=learning_rate,
                beta1=self.beta_1,
                beta2=self.beta_2,
                epsilon=self.epsilon,
                grad=tf.convert_to_tensor(gradient),  # gradients of embeddings are slices
            )

    def named(self) -> dict[str, tf.Variable]:
        """Return the step count, and both moments of each variable by its position."""
        named = {"steps": self.steps}
        for number, (mean, square) in enumerate(zip(self.means, self.squares, strict=True)):
            named |= {f"mean_{number}": mean, f"square_{number}": square}
        return named

    def restore(self, arrays: Arrays) -> None:
        """Restore arrays that ``state`` returned; KeyError or ValueError for the arrays of another model."""
        stored = sum(name.startswith("mean_") for name in arrays)
        if stored != len(self.means):
            raise ValueError(f"the state has moments of {stored} variables, the model has {len(self.means)}")
        super().restore(arrays)


class MovingAverage(Checkpointed):
    """Exponential moving average of weights, float32: often a better model than the weights of any single step.

    After step n of the optimizer, from 1, the average is d average + (1 - d) weights with d = min(decay, (1 + n) /
    (10 + n)). This warm-up of ``tf.train.ExponentialMovingAverage`` soon forgets the untrained weights.
    """

    def __init__(self, variables: Iterable[tf.Variable], decay: float) -> None:
        """Start with the weights themselves.

        Args:
            variables: the weights to average.
            decay: share of the average that a step keeps.
        """
        super().__init__(name="moving_average")
        self.decay = decay
        self.variables_averaged = list(variables)
        self.averages = [tf.Variable(tf.identity(v), trainable=False) for v in self.variables_averaged]

    def update(self, steps: tf.Tensor) -> None:
        """Update the averages after step n of the optimizer, an int64 scalar."""
        count = tf.cast(steps, tf.float32)
        taken = 1 - tf.minimum(self.decay, (1 + count) / (10 + count))
        for average, variable in zip(self.averages, self.variables_averaged, strict=True):
            # In place: average -= taken * (average - variable).
            tf.raw_ops.ResourceApplyGradientDescent(var=average.handle, alpha=taken, delta=average - variable)

    def named(self) -> dict[str, tf.Variable]:
        """Return the averages by position."""
        return {f"average_{number}": average for number, average in enumerate(self.averages)}
