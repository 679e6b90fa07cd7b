"""Ensemble: several models with the same vocabularies that predict the mean of their probabilities.

Shapes: B batch, S source length, T target length, K beams, V target vocabulary, N live beams.
"""

import math
from types import SimpleNamespace
from typing import Any

from nmt.models.base import StepOutput, TeacherForced
from nmt.runtime import tf


class States(tuple[Any, ...]):
    """The ``DecoderState`` of every model of an ensemble."""

    def reorder(self, parents: tf.Tensor) -> "States":
        """See ``nmt.models.base.DecoderState``."""
        return States(state.reorder(parents) for state in self)

    def select(self, rows: tf.Tensor) -> "States":
        """See ``nmt.models.base.DecoderState``."""
        return States(state.select(rows) for state in self)


def mean_log_probabilities(logits: list[tf.Tensor]) -> tf.Tensor:
    """Return the log of the mean of the models' probabilities, float32 [..., V], from their logits [..., V]."""
    log_probabilities = tf.stack([tf.nn.log_softmax(tf.cast(part, tf.float32)) for part in logits])
    return tf.reduce_logsumexp(log_probabilities, axis=0) - math.log(len(logits))


class Ensemble:
    """Several models behind the part of the ``Seq2SeqModel`` interface that engines use.

    The models tokenize source sentences in the same way. Attention comes from the first model.
    """

    def __init__(self, models: list[Any]) -> None:
        """Take the models."""
        self.models, self.compute_dtype = models, models[0].compute_dtype
        self.cross_attention, self.attention_weights = models[0].cross_attention, models[0].attention_weights

    def encode(self, source: tf.Tensor) -> tuple[Any, ...]:
        """Return the encoder output of each model for source, int32 [B, S]."""
        return tuple(model.encode(source) for model in self.models)

    def initial_state(self, encoded: tuple[Any, ...], beams: int) -> States:
        """Return the state before the first token, with K beams for each sentence."""
        return States(model.initial_state(part, beams) for model, part in zip(self.models, encoded, strict=True))

    def step(self, tokens: tf.Tensor, encoded: Any, state: States, *, attention: bool = False) -> StepOutput:
        """Read one token of each beam, int32 [B, K], and predict the next: log-probabilities [N, V] as logits."""
        parts = enumerate(zip(self.models, encoded, state, strict=True))
        outputs = [model.step(tokens, *part, attention=attention and not number) for number, (model, *part) in parts]
        logits = mean_log_probabilities([output.logits for output in outputs])
        return StepOutput(logits, outputs[0].attention, States(output.state for output in outputs))

    def teacher_forcing(self, source: tf.Tensor, target: tf.Tensor, *, remove_padding: bool = True) -> TeacherForced:
        """Return log-probabilities [B, T, V] instead of states, and the targets; see ``Seq2SeqModel``."""
        forced = [model.teacher_forcing(source, target, remove_padding=remove_padding) for model in self.models]
        pairs = zip(self.models, forced, strict=True)
        logits = [model.output_projection().logits(output.states) for model, output in pairs]
        return TeacherForced(mean_log_probabilities(logits), forced[0].targets)

    def output_projection(self) -> Any:
        """Return a projection that passes on the log-probabilities of ``teacher_forcing``."""
        return SimpleNamespace(logits=tf.identity)
