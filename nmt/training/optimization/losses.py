"""Cross-entropy and accuracy over target tokens, as sums and counts, which stay exact over uneven batches.

Shapes: B batch, T target length, D model, V vocabulary, N tokens.
"""

from collections.abc import Callable
from typing import NamedTuple

from nmt import runtime
from nmt.models.layers.ops import Projection, column_sums, transposed_product
from nmt.runtime import tf
from nmt.tokenizers.base import PAD


class TokenSums(NamedTuple):
    """Sums over the real tokens of a batch: float32 scalars."""

    objective: tf.Tensor
    """Training objective: the loss, with label smoothing and R-Drop if they are on. The only field with a gradient."""
    loss: tf.Tensor
    """Cross-entropy in nats: -log softmax(logits)[target]."""
    correct: tf.Tensor
    """Number of target tokens that have the largest logit."""
    tokens: tf.Tensor
    """Number of tokens."""


def cross_entropy(logits: tf.Tensor, targets: tf.Tensor, label_smoothing: float = 0.0) -> TokenSums:
    """Return the cross-entropy of logits against the target tokens by the plain formula.

    With label smoothing e (Szegedy et al. 2016) the objective is the cross-entropy against a distribution that has
    1 - e at the target and e spread evenly over all V words.

    Args:
        logits: [B, T, V] or [N, V]. The arithmetic is float32.
        targets: int32 [B, T] or [N], padding 0.
        label_smoothing: e, 0 or more and below 1.
    """
    logits, targets = tf.reshape(logits, [-1, logits.shape[-1]]), tf.reshape(targets, [-1])
    log_probabilities = tf.nn.log_softmax(tf.cast(logits, tf.float32))
    losses = -tf.gather(log_probabilities, targets, batch_dims=1)
    objective = losses
    if label_smoothing:
        objective = (1 - label_smoothing) * losses - label_smoothing * tf.reduce_mean(log_probabilities, axis=-1)
    correct = tf.equal(tf.argmax(logits, axis=-1, output_type=tf.int32), targets)
    return TokenSums(*_counted_sums(targets, objective, tf.stop_gradient(losses), correct))


def fused_linear_cross_entropy(
    states: tf.Tensor, projection: Projection, targets: tf.Tensor, label_smoothing: float = 0.0, r_drop: float = 0.0
) -> TokenSums:
    """Return ``cross_entropy`` of an output layer's logits. Layer and loss share one gradient, written by hand.

    It keeps two [N, V] matrices, logits and softmax p. For a token, with label smoothing e,
    d loss / d logits = p - (1 - e) onehot(target) - e / V. The last term is equal for all V words, and the weight of a
    token is equal along its row. So both are applied to the smaller matrices on either side of the product.

    With R-Drop (Liang et al. 2021) of weight a, the states of two passes over the same tokens are concatenated. Their
    predictions are p and q. The objective of a token is half of their equation 4: the mean of both cross-entropies plus
    a / 4 (KL(p || q) + KL(q || p)). The other sums are means of both passes.

    Args:
        states: [B, T, D], or [N, D] of the real tokens; with R-Drop [2 B, T, D] or [2 N, D].
        projection: output layer to V logits, in the dtype of the states.
        targets: int32 [B, T] or [N], padding 0; with R-Drop [2 B, T] or [2 N].
        label_smoothing: e, 0 or more and below 1.
        r_drop: a, 0 or more; 0: a single pass.
    """
    states, targets = tf.reshape(states, [-1, states.shape[-1]]), tf.reshape(targets, [-1])
    counted = tf.cast(tf.not_equal(targets, PAD), tf.float32)
    smoothing, transposed, dtype = label_smoothing, projection.transposed, states.dtype
    vocabulary = projection.matrix.shape[0 if transposed else 1]

    def at(matrix: tf.Tensor, columns: tf.Tensor) -> tf.Tensor:
        return tf.cast(tf.gather(matrix, columns, batch_dims=1), tf.float32)

    @tf.custom_gradient
    def sums(states: tf.Tensor, matrix: tf.Tensor, *bias: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., list]]:
        logits = Projection(matrix, bias[0] if bias else None, transposed).logits(states)
        softmax = tf.nn.softmax(logits, name="loss_softmax")
        best = _largest(softmax)
        # The log-sum-exp follows from the largest term of the softmax, since the target's term may underflow.
        log_sum = at(logits, best) - tf.math.log(at(softmax, best))
        losses = log_sum - at(logits, targets)
        objective = losses
        if smoothing:
            ones = tf.ones([vocabulary, 1], dtype)
            column = tf.matmul(matrix, ones, transpose_a=transposed) / vocabulary  # mean column [D, 1]
            mean_logits = tf.cast(tf.matmul(states, column)[:, 0], tf.float32)
            mean_logits += tf.reduce_mean(tf.cast(bias[0], tf.float32)) if bias else 0
            objective = (1 - smoothing) * losses + smoothing * (log_sum - mean_logits)
        divergence = SymmetricDivergence.of(logits, log_sum, softmax) if r_drop else None
        if divergence:
            objective += r_drop / 4 * divergence.values()

        def gradient(upstream: tf.Tensor, *_: tf.Tensor) -> list[tf.Tensor]:
            difference = _add_at(softmax, targets, smoothing - 1)
            if divergence:  # each pass has a quarter of both divergences, so their sum has a half
                difference += divergence.gradient() * tf.cast(r_drop / 2, dtype)
            weights = tf.cast(upstream * counted, dtype)[:, tf.newaxis]
            weighted = states * weights
            d_states = tf.matmul(difference, matrix, transpose_b=not transposed)
            if transposed:
                d_matrix = transposed_product(difference, weighted)
            else:
                d_matrix = transposed_product(weighted, difference)
            d_bias = [tf.matmul(weights, difference, transpose_a=True)[0]] if bias else []
            if smoothing:
                d_states -= smoothing * column[:, 0]
                uniform = column_sums(weighted) * tf.cast(smoothing / vocabulary, dtype)
                d_matrix -= uniform if transposed else uniform[:, tf.newaxis]
                d_bias = [part - tf.reduce_sum(weights) * tf.cast(smoothing / vocabulary, dtype) for part in d_bias]
            return [d_states * weights, d_matrix, *d_bias]

        return _counted_sums(targets, objective, losses, tf.equal(best, targets)), gradient

    bias = [] if projection.bias is None else [projection.bias]
    objective, *counts = sums(states, projection.matrix, *bias)
    token_sums = TokenSums(objective, *map(tf.stop_gradient, counts))
    return TokenSums(*(value / 2 for value in token_sums)) if r_drop else token_sums


def _counted_sums(targets: tf.Tensor, *values: tf.Tensor) -> list[tf.Tensor]:
    """Return the sum of each of ``values`` [N] over the real targets, and the number of these: float32 scalars."""
    counted = tf.cast(tf.not_equal(targets, PAD), tf.float32)
    return [*(tf.reduce_sum(tf.cast(value, tf.float32) * counted) for value in values), tf.reduce_sum(counted)]


def _add_at(softmax: tf.Tensor, columns: tf.Tensor, value: float) -> tf.Tensor:
    """Return a softmax [N, V] with ``value`` added in one column of each row; ``columns`` is int32 [N]."""
    if runtime.GPUS:  # they have no scatter of 16-bit numbers
        return softmax + tf.one_hot(columns, tf.shape(softmax)[1], tf.cast(value, softmax.dtype), dtype=softmax.dtype)
    rows = tf.stack([tf.range(tf.size(columns)), columns], axis=1)
    return tf.tensor_scatter_nd_add(softmax, rows, tf.fill([tf.size(columns)], tf.cast(value, softmax.dtype)))


def _largest(softmax: tf.Tensor) -> tf.Tensor:
    """Return the column of the largest value in each row of [N, V]: int32 [N]."""
    if softmax.dtype.size == 2 and not runtime.GPUS:
        # The values are positive, so their bits have the same order as integers, which CPUs compare faster.
        softmax = tf.bitcast(softmax, tf.int16)
    return tf.cast(tf.argmax(softmax, axis=-1), tf.int32)


class SymmetricDivergence(NamedTuple):
    """KL(p || q) + KL(q || p) of the predictions p and q of each token.

    With r = log p - log q it is sum((p - q) r). Its gradient with respect to the logits of p is
    p (r - sum(p r)) + p - q. For the logits of q, p and q exchange their roles.
    """

    softmax: tf.Tensor
    """p of N tokens, then q of the same tokens: [2 N, V]."""
    ratio: tf.Tensor
    """r in the dtype of the softmax: [N, V]."""

    @classmethod
    def of(cls, logits: tf.Tensor, log_sum: tf.Tensor, softmax: tf.Tensor) -> "SymmetricDivergence":
        """Return the divergence of logits [2 N, V], given their log-sum-exp, float32 [2 N], and their softmax."""
        (first, second), (first_sum, second_sum) = tf.split(logits, 2), tf.split(log_sum, 2)
        return cls(softmax, first - second - tf.cast(first_sum - second_sum, logits.dtype)[:, tf.newaxis])

    def values(self) -> tf.Tensor:
        """Return the divergence of each token, for both passes: float32 [2 N]."""
        first, second = self._means()
        return tf.tile(tf.cast(first - second, tf.float32)[:, 0], [2])

    def gradient(self) -> tf.Tensor:
        """Return the gradient of the divergence with respect to the logits: [2 N, V]."""
        p, q = tf.split(self.softmax, 2)
        first, second = self._means()
        change = p - q
        return tf.concat([p * (self.ratio - first) + change, q * (second - self.ratio) - change], axis=0)

    def _means(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Return sum(p r) and sum(q r), added up in float32: [N, 1]."""
        p, q = tf.split(self.softmax, 2)
        ones = tf.ones([tf.shape(self.ratio)[1], 1], self.ratio.dtype)
        return tf.matmul(p * self.ratio, ones), tf.matmul(q * self.ratio, ones)
