"""Muon: an optimizer for matrices whose steps have singular values that are all nearly 1."""

from collections.abc import Iterable, Sequence

from nmt.config.training import TrainingConfig
from nmt.models.layers.layer import Blocks
from nmt.runtime import tf
from nmt.storage.arrays import Arrays
from nmt.training.optimization.optimizer import Adam, Checkpointed

POLYNOMIALS = ((7.711, -22.1138, 16.2487), (3.2153, -2.4112, 0.5013), (2.2183, -1.594, 0.4107))
"""(a, b, c) of polynomials x -> a x + b x^3 + c x^5, applied in turn. They map singular values from [0.02, 1] to
[0.9, 1.1]. Each polynomial minimizes the largest distance to 1 on the range of the previous polynomial (Amsel et al.
2025, "The Polar Express")."""
MOMENTUM = 0.95
"""Decay of the mean of gradients."""
ADAM_DEVIATION = 0.2
"""Root mean square of the elements of a step, in learning rates. Adam's steps have a similar value, so Muon and Adam
can share a learning rate (Liu et al. 2025, "Muon is Scalable for LLM Training", section 2.2)."""


class Muon(Checkpointed):
    """Muon for the matrices of hidden layers, Adam for all other weights (Jordan et al. 2024).

    A step subtracts from a matrix [M, N] the semi-orthogonal matrix nearest to the mean of its gradients, times the
    learning rate and 0.2 sqrt(max(M, N)). So a step changes all directions equally, even those with small gradients. A
    matrix that consists of blocks is updated block by block: small blocks take less arithmetic, and attention heads are
    separate maps. Embeddings, the output layer, biases and norms are updated by Adam.
    """

    def __init__(
        self, variables: Iterable[tf.Variable], blocks: Sequence[Blocks | None], config: TrainingConfig, dtype: str
    ) -> None:
        """Start with means of zero.

        Args:
            variables: all trained variables.
            blocks: for each variable the blocks that Muon updates; None: Adam updates the variable.
            config: the training section, for weight decay and Adam's settings.
            dtype: dtype of the matrix products, such as "bfloat16".
        """
        super().__init__(name="muon")
        self.variables_trained = list(variables)
        self.is_hidden, self.dtype = [matrix_blocks is not None for matrix_blocks in blocks], dtype
        self.weight_decay = config.weight_decay
        self.matrices = self._select(self.variables_trained, hidden=True)
        self.blocks = [matrix_blocks for matrix_blocks in blocks if matrix_blocks is not None]
        self.adam = Adam(self._select(self.variables_trained, hidden=False), config)
        self.means = [tf.Variable(tf.zeros_like(matrix), trainable=False) for matrix in self.matrices]

    def _select(self, values: Iterable, *, hidden: bool) -> list:
        """Return the values of hidden matrices, or of all other variables; ``values`` has one for each variable."""
        return [value for value, is_hidden in zip(values, self.is_hidden, strict=True) if is_hidden == hidden]

    @property
    def steps(self) -> tf.Variable:
        """Number of steps taken: int64 scalar."""
        return self.adam.steps

    def apply(self, gradients: Iterable[tf.Tensor], learning_rate: tf.Tensor) -> None:
        """Take one step; ``learning_rate`` is a float32 scalar."""
        gradients = list(gradients)
        directions = self._directions(self._select(gradients, hidden=True))
        self.adam.apply(self._select(gradients, hidden=False), learning_rate)
        share = learning_rate * self.weight_decay
        for matrix, direction in zip(self.matrices, directions, strict=True):
            step = learning_rate * direction
            matrix.assign_sub(step + share * matrix if self.weight_decay else step)

    def _directions(self, gradients: list[tf.Tensor]) -> list[tf.Tensor]:
        """Update the means of the gradients, and return the step of each matrix in learning rates: float32 [M, N]."""
        directions: list[tf.Tensor] = [None] * len(gradients)
        alike: dict[tuple[tuple[int, int], Blocks], list[int]] = {}
        for number, matrix in enumerate(self.matrices):
            alike.setdefault((tuple(matrix.shape), self.blocks[number]), []).append(number)
        for (_, blocks), numbers in alike.items():  # one batched product is faster than a product for each matrix
            momenta = []
            for number in numbers:
                share = (1 - MOMENTUM) * gradients[number]
                mean = self.means[number].assign(MOMENTUM * self.means[number] + share)
                momenta.append(MOMENTUM * mean + share)  # Nesterov's momentum
            orthogonal = self._orthogonal_blocks(tf.stack(momenta), blocks)
            for number, direction in zip(numbers, tf.unstack(orthogonal), strict=True):
                directions[number] = direction
        return directions

    def _orthogonal_blocks(self, matrices: tf.Tensor, blocks: Blocks) -> tf.Tensor:
        """Return the directions of matrices [K, M, N], block by block. The elements have a root mean square of 0.2."""
        count, rows, columns = matrices.shape
        m, n = rows // blocks.down, columns // blocks.across
        short, long = min(m, n), max(m, n)
        # The shorter axis of a block comes first.
        order = [0, 1, 3, 2, 4] if m <= n else [0, 1, 3, 4, 2]
        split = tf.transpose(tf.reshape(matrices, [count, blocks.down, m, blocks.across, n]), order)
        orthogonal = self.nearest_orthogonal(tf.reshape(split, [-1, short, long])) * (ADAM_DEVIATION * long**0.5)
        joined = tf.reshape(orthogonal, [count, blocks.down, blocks.across, short, long])
        return tf.reshape(tf.transpose(joined, [order.index(axis) for axis in range(5)]), [count, rows, columns])

    def nearest_orthogonal(self, matrices: tf.Tensor) -> tf.Tensor:
        """Return about U V' for matrices U S V', [K, M, N] with M <= N: float32 of the same shape.

        Singular values below 0.02 of the Frobenius norm become less than 0.9.
        """
        norm = tf.sqrt(tf.reduce_sum(tf.square(matrices), axis=[1, 2], keepdims=True))
        x = tf.cast(tf.math.divide_no_nan(matrices, norm), self.dtype)
        # A polynomial maps X to p(X X') X, whose Gram matrix is p(X X') X X' p(X X'). So only two products involve X;
        # all others are products of [M, M] matrices.
        gram = tf.matmul(x, x, transpose_b=True)
        identity = tf.eye(matrices.shape[1], dtype=x.dtype)
        polynomial = factor = _polynomial(POLYNOMIALS[0], identity, gram)
        for coefficients in POLYNOMIALS[1:]:
            gram = tf.matmul(polynomial, tf.matmul(gram, polynomial))
            polynomial = _polynomial(coefficients, identity, gram)
            factor = tf.matmul(polynomial, factor)
        return tf.cast(tf.matmul(factor, x), tf.float32)

    def named(self) -> dict[str, tf.Variable]:
        """Return Adam's variables, and the mean gradient of each matrix by its position."""
        return self.adam.named() | {f"momentum_{number}": mean for number, mean in enumerate(self.means)}

    def restore(self, arrays: Arrays) -> None:
        """Restore arrays that ``state`` returned; KeyError or ValueError for another model or optimizer."""
        stored = sum(name.startswith("momentum_") for name in arrays)
        if stored != len(self.means):
            raise ValueError(f"the state has means of {stored} matrices, the model has {len(self.means)}")
        self.adam.restore(arrays)
        super().restore(arrays)


def _polynomial(coefficients: tuple[float, float, float], identity: tf.Tensor, gram: tf.Tensor) -> tf.Tensor:
    """Return a + b G + c G^2 of symmetric matrices G, [K, M, M]."""
    a, b, c = coefficients
    return a * identity + b * gram + c * tf.matmul(gram, gram)
