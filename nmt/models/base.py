"""The model contract: all that training and search use of an architecture.

Training calls ``teacher_forcing`` and ``output_projection``. Search calls ``encode`` once a batch of sentences, then
``initial_state``, then ``step`` once a token. All K beams of a sentence share the encoder's output. The decoder's own
state goes in and comes out of each step, is never changed in place, and fits ``tf.while_loop``.

Models and layers are Keras layers, because Keras finds the layers in a layer, names their variables by path, and keeps
variables and arithmetic in the types of a dtype policy. They are no more of Keras than that. There is no ``fit``:
``nmt.training`` has its own loop. There is no ``.keras`` file: ``nmt.runs.weights`` saves the weights by path. Layers
do not build at the first call: ``nmt.models.layers.layer`` makes all weights at once. And ``training=True`` is refused,
because a dropout layer keeps no state and draws from the seed that its caller passes.

An architecture also has a section of the configuration (``nmt.config.schema``), which says without TensorFlow whether
the encoder reads bos, and how long the sentences may be.

Shapes: B batch, S source length, T target length, K beams, D width of decoder states, V target vocabulary, N real
target tokens or live beams.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self

from nmt.config.schema import ModelConfig
from nmt.models.layers.layer import NO_TRAINING_FLAG, Layer
from nmt.models.layers.ops import Projection
from nmt.models.layers.unpadding import Unpadding
from nmt.runtime import keras, tf


class DecoderState(Protocol):
    """State of the decoder for K target prefixes of B sentences: any structure of tensors with these methods."""

    def reorder(self, parents: tf.Tensor) -> Self:
        """Return the state whose beam k of sentence b continues beam ``parents[b, k]``: int32 [B, K]."""

    def select(self, rows: tf.Tensor) -> Self:
        """Return the state of the sentences with the numbers ``rows``: int32 [B']."""


class StepOutput(NamedTuple):
    """Result of a decoder step."""

    logits: tf.Tensor
    """Logits of the next token of the N beams of ``BeamLayout.of(tokens)``: [N, V]."""
    attention: tf.Tensor | None
    """Attention to the source, the mean over the heads: float32 [B, K, S]; None without attention, or if not asked."""
    state: Any
    """New ``DecoderState``."""


class TeacherForced(NamedTuple):
    """Decoder states with the tokens to predict from them."""

    states: tf.Tensor
    """Decoder states: [N, D]; with padding kept, [B, T, D]."""
    targets: tf.Tensor
    """Token to predict from each state: int32 [N]; with padding kept, [B, T], padding 0."""


class AttentionWeights(NamedTuple):
    """Attention of a model on B sentences and their translations, by layer and head; None: the model has none.

    Weights are float32 and sum to 1 over the last axis. Keys at padding have weight 0. The weights of queries at
    padding have no meaning.
    """

    encoder: tf.Tensor | None
    """Self-attention of the encoder: [layers, heads, B, S, S]."""
    decoder: tf.Tensor | None
    """Self-attention of the decoder, 0 above the diagonal: [layers, heads, B, T, T]."""
    cross: tf.Tensor | None
    """Attention of the decoder to the source: [layers, heads, B, T, S]."""


class Seq2SeqModel(keras.Model, abc.ABC):
    """Base class of architectures: an encoder, a decoder, an output layer."""

    config: ModelConfig
    source_embedding: Any
    """Layer with the vectors of source words as ``matrix`` [source vocabulary, embedding width], in models whose
    configuration has ``trains_embeddings``."""
    target_embedding: Any
    """Layer with the vectors of target words: the layer of the source words, if both sides share a matrix."""

    def _make_embeddings(
        self, source_vocabulary: int, target_vocabulary: int, make: Callable[[int, str], Layer]
    ) -> None:
        """Set the embeddings of both sides, one layer if they share a matrix.

        Args:
            source_vocabulary: number of ids of the source side.
            target_vocabulary: number of ids of the target side.
            make: function from a number of ids and a name to an embedding.
        """
        if self.config.shares_embeddings:
            self.source_embedding = self.target_embedding = make(source_vocabulary, "embedding")
        else:
            self.source_embedding = make(source_vocabulary, "source_embedding")
            self.target_embedding = make(target_vocabulary, "target_embedding")

    @abc.abstractmethod
    def encode(self, source: tf.Tensor, *, remove_padding: bool = True, dropout_seed: tf.Tensor | None = None) -> Any:
        """Encode source sentences: return the decoder's input, any structure of tensors [B, ...].

        Args:
            source: int32 [B, S], padding 0.
            remove_padding: whether to skip the arithmetic on padding. The output is the same.
            dropout_seed: seed of dropout in training, which ``Dropout`` takes; None: no dropout.
        """

    @abc.abstractmethod
    def decode_states(
        self,
        target: tf.Tensor,
        encoded: Any,
        *,
        unpadding: Unpadding | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Read whole targets. Each position sees itself and the positions before it.

        Args:
            target: int32 [B, T], from bos on.
            encoded: output of ``encode``.
            unpadding: layout that removes padding from the positions to predict from; None: padding is kept.
            dropout_seed: seed of dropout in training, which ``Dropout`` takes; None: no dropout.

        Returns:
            Decoder states [B, T, D], or [N, D] with padding removal.
        """

    @abc.abstractmethod
    def output_projection(self) -> Projection:
        """Return the output layer, from decoder states to logits."""

    @abc.abstractmethod
    def initial_state(self, encoded: Any, beams: int) -> DecoderState:
        """Return the state of K beams of each sentence before the first token."""

    @abc.abstractmethod
    def step(self, tokens: tf.Tensor, encoded: Any, state: Any, *, attention: bool = False) -> StepOutput:
        """Read one token of each beam and predict the next.

        Args:
            tokens: int32 [B, K]; padding at beams that have ended, which need not be computed.
            encoded: output of ``encode``.
            state: state after the earlier tokens.
            attention: whether the output has the attention weights.
        """

    def attention_weights(self, source: tf.Tensor, target: tf.Tensor) -> AttentionWeights:
        """Return all attention weights. Architectures with attention override this method.

        Args:
            source: int32 [B, S].
            target: int32 [B, T], from bos on.
        """
        return AttentionWeights(None, None, None)

    def cross_attention(self, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor | None:
        """Return ``cross`` of ``attention_weights``."""
        return self.attention_weights(source, target).cross

    def teacher_forcing(
        self,
        source: tf.Tensor,
        target: tf.Tensor,
        *,
        remove_padding: bool = True,
        dropout_seed: tf.Tensor | None = None,
    ) -> TeacherForced:
        """Compute the decoder states that predict the target tokens. The decoder reads the target shifted by one.

        Args:
            source: int32 [B, S].
            target: int32 [B, T + 1], from bos to eos.
            remove_padding: whether to compute only the N real positions.
            dropout_seed: int64 [2] for dropout in training; None: no dropout.
        """
        shifted, targets = target[:, :-1], target[:, 1:]
        encoded = self.encode(source, remove_padding=remove_padding, dropout_seed=dropout_seed)
        unpadding = Unpadding.of(targets) if remove_padding else None
        states = self.decode_states(shifted, encoded, unpadding=unpadding, dropout_seed=dropout_seed)
        return TeacherForced(states, targets if unpadding is None else unpadding.flatten(targets))

    def call(self, source: tf.Tensor, target: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Return logits [B, T, V] for source [B, S] and target prefixes [B, T], both int32, without dropout.

        Raises:
            TypeError: for ``training=True``.
        """
        if training:
            raise TypeError(NO_TRAINING_FLAG)
        return self.output_projection().logits(self.decode_states(target, self.encode(source)))
