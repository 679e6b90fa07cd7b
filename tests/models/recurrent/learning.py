"""A training step for small models, which tests of learning share."""

from collections.abc import Callable

from nmt.config.training import TrainingConfig
from nmt.models.base import Seq2SeqModel
from nmt.runtime import tf
from nmt.training.optimization.losses import cross_entropy
from nmt.training.optimization.optimizer import Adam


def training_step(
    model: Seq2SeqModel, learning_rate: float
) -> Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]:
    """Return a step of Adam from source [B, S] and target [B, T + 1] to loss and accuracy of a token."""
    optimizer = Adam(model.trainable_variables, TrainingConfig())

    @tf.function
    def step(source: tf.Tensor, target: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape:
            forced = model.teacher_forcing(source, target)
            sums = cross_entropy(model.output_projection().logits(forced.states), forced.targets)
            loss = sums.objective / sums.tokens
        optimizer.apply(tape.gradient(loss, model.trainable_variables), tf.constant(learning_rate))
        return loss, sums.correct / sums.tokens

    return step
