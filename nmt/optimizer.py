"""Adam on TensorFlow's fused kernel: one operation a variable reads and writes it and its two moments in one go."""

from collections.abc import Iterable

import numpy as np
import tensorflow as tf

from nmt.config import TrainingConfig


class Adam(tf.Module):
    """Adam (Kingma and Ba 2015, with the reordered bias correction of the end of their section 2)."""

    def __init__(self, variables: Iterable[tf.Variable], config: TrainingConfig) -> None:
        """Take the variables to train and the training section, for beta_1, beta_2 and epsilon."""
        super().__init__(name="adam")
        self.beta_1, self.beta_2, self.epsilon = config.adam_beta_1, config.adam_beta_2, config.adam_epsilon
        self.variables_trained = list(variables)
        self.steps = tf.Variable(0, dtype=tf.int64, trainable=False, name="steps")
        self.means = [tf.Variable(tf.zeros_like(v), trainable=False) for v in self.variables_trained]
        self.squares = [tf.Variable(tf.zeros_like(v), trainable=False) for v in self.variables_trained]

    def apply(self, gradients: Iterable[tf.Tensor], learning_rate: tf.Tensor) -> None:
        """Take one step; ``learning_rate`` is a float32 scalar."""
        step = tf.cast(self.steps.assign_add(1), tf.float64)
        power_1 = tf.cast(tf.pow(tf.constant(self.beta_1, tf.float64), step), tf.float32)
        power_2 = tf.cast(tf.pow(tf.constant(self.beta_2, tf.float64), step), tf.float32)
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
                grad=tf.convert_to_tensor(gradient),  # an embedding's gradient comes as slices
            )

    def state(self) -> dict[str, np.ndarray]:
        """Return all that a resumed run needs: the step count and both moments of every variable, by position."""
        arrays = {"steps": self.steps.numpy()}
        for number, (mean, square) in enumerate(zip(self.means, self.squares, strict=True)):
            arrays[f"mean_{number}"] = mean.numpy()
            arrays[f"square_{number}"] = square.numpy()
        return arrays

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take back what ``state`` returned.

        Raises:
            KeyError, ValueError: if the arrays are those of another model.
        """
        stored = sum(name.startswith("mean_") for name in arrays)
        if stored != len(self.means):
            raise ValueError(f"the state is of {stored} variables, the model has {len(self.means)}")
        self.steps.assign(arrays["steps"])
        for number, (mean, square) in enumerate(zip(self.means, self.squares, strict=True)):
            mean.assign(arrays[f"mean_{number}"])
            square.assign(arrays[f"square_{number}"])
