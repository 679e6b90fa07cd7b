"""Muon: gradient descent on matrices by steps whose singular values are all nearly 1."""

from collections.abc import Iterable, Sequence

from nmt.config.training import TrainingConfig
from nmt.runtime import tf
from nmt.storage.arrays import Arrays, value_of
from nmt.training.optimization.optimizer import Adam

POLYNOMIALS = ((7.711, -22.1138, 16.2487), (3.2153, -2.4112, 0.5013), (2.2183, -1.594, 0.4107))
"""(a, b, c) of x -> a x + b x^3 + c x^5, applied one after another: singular values from 0.02 to 1 become 0.9 to 1.1.
Each has the least largest distance to 1 on what the ones before it leave (Amsel et al. 2025, "The Polar Express")."""
ADAM_DEVIATION = 0.2
"""Root mean square of the elements of a step, in learning rates: about that of Adam's steps (Liu et al. 2025, "Muon is
Scalable for LLM Training", section 2.2), so that both share a learning rate."""


class Muon(tf.Module):
    """Muon for the matrices of hidden layers, Adam for all other weights (Jordan et al. 2024).

    A matrix [M, N] moves against the nearest semi-orthogonal matrix to the mean of its gradients, times the learning
    rate and 0.2 sqrt(max(M, N)). A step thus changes all directions alike, also those whose gradients are small.
    Embeddings, the output layer, biases and norms have Adam's steps.
    """

    def __init__(
        self, variables: Iterable[tf.Variable], is_hidden: Sequence[bool], config: TrainingConfig, dtype: str
    ) -> None:
        """Take the variables to train, and which of them are matrices of hidden layers.

        Args:
            variables: all trained variables.
            is_hidden: whether Muon moves a variable, in the order of the variables.
            config: the training section, for momentum, weight decay and Adam's settings.
            dtype: type of the products, such as "bfloat16".
        """
        super().__init__(name="muon")
        self.variables_trained = list(variables)
        self.is_hidden, self.dtype = list(is_hidden), dtype
        self.momentum, self.weight_decay = config.muon_momentum, config.weight_decay
        self.matrices = self._of(self.variables_trained, hidden=True)
        self.adam = Adam(self._of(self.variables_trained, hidden=False), config)
        self.means = [tf.Variable(tf.zeros_like(matrix), trainable=False) for matrix in self.matrices]

    def _of(self, values: Iterable, *, hidden: bool) -> list:
        return [value for value, is_hidden in zip(values, self.is_hidden, strict=True) if is_hidden == hidden]

    @property
    def steps(self) -> tf.Variable:
        """Number of steps taken: int64 scalar."""
        return self.adam.steps

    def apply(self, gradients: Iterable[tf.Tensor], learning_rate: tf.Tensor) -> None:
        """Take one step; ``learning_rate`` is a float32 scalar."""
        gradients = list(gradients)
        directions = self._directions(self._of(gradients, hidden=True))
        self.adam.apply(self._of(gradients, hidden=False), learning_rate)
        share = learning_rate * self.weight_decay
        for matrix, direction in zip(self.matrices, directions, strict=True):
            step = learning_rate * ADAM_DEVIATION * max(matrix.shape) ** 0.5 * direction
            matrix.assign_sub(step + share * matrix if self.weight_decay else step)

    def _directions(self, gradients: list[tf.Tensor]) -> list[tf.Tensor]:
        """Return the direction of each matrix, float32 [M, N]; updates the means of the gradients."""
        keep = self.momentum
        directions: list[tf.Tensor] = [None] * len(gradients)
        by_shape: dict[tuple[int, int], list[int]] = {}
        for number, matrix in enumerate(self.matrices):
            by_shape.setdefault((min(matrix.shape), max(matrix.shape)), []).append(number)
        for numbers in by_shape.values():  # products of a batch of matrices are faster than of each alone
            wide = []
            for number in numbers:
                mean = self.means[number].assign(keep * self.means[number] + (1 - keep) * gradients[number])
                ahead = keep * mean + (1 - keep) * gradients[number]  # Nesterov's momentum
                wide.append(ahead if ahead.shape[0] <= ahead.shape[1] else tf.transpose(ahead))
            for number, direction in zip(numbers, tf.unstack(self.nearest_orthogonal(tf.stack(wide))), strict=True):
                high = self.matrices[number].shape[0] > self.matrices[number].shape[1]
                directions[number] = tf.transpose(direction) if high else direction
        return directions

    def nearest_orthogonal(self, matrices: tf.Tensor) -> tf.Tensor:
        """Return nearly U V' for matrices U S V', [K, M, N] with M <= N: float32 of that shape.

        Singular values below 0.02 of the Frobenius norm stay smaller than 0.9.
        """
        norm = tf.sqrt(tf.reduce_sum(tf.square(matrices), axis=[1, 2], keepdims=True))
        x = tf.cast(tf.math.divide_no_nan(matrices, norm), self.dtype)
        for a, b, c in POLYNOMIALS:
            gram = tf.matmul(x, x, transpose_b=True)
            x = a * x + tf.matmul(b * gram + c * tf.matmul(gram, gram), x)
        return tf.cast(x, tf.float32)

    def state(self) -> Arrays:
        """Return all that a resumed run needs: Adam's state, and the mean gradient of each matrix by position."""
        return self.adam.state() | {f"momentum_{number}": value_of(mean) for number, mean in enumerate(self.means)}

    def restore(self, arrays: Arrays) -> None:
        """Take back what ``state`` returned.

        Raises:
            KeyError, ValueError: if the arrays are those of another model or optimizer.
        """
        stored = sum(name.startswith("momentum_") for name in arrays)
        if stored != len(self.means):
            raise ValueError(f"the state is of {stored} matrices, the model has {len(self.means)}")
        self.adam.restore(arrays)
        for number, mean in enumerate(self.means):
            mean.assign(arrays[f"momentum_{number}"])
