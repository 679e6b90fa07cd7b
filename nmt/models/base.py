"""The model contract: what training and search use of an architecture, and nothing besides.

Training calls ``teacher_forcing`` and ``output_projection``. Search calls ``encode`` once a batch of sentences, then
``initial_state``, then ``step`` once a token. What the encoder computes is shared by all K beams of a sentence; the
decoder's own state goes in and comes out of each step, never changed in place, and fits ``tf.while_loop``.

An architecture also has a section of the configuration (``nmt.config.schema``), which knows without TensorFlow what it
reads (bos, lengths).

Shapes: B batch, S source length, T target length, K beams, D width of decoder states, V target vocabulary, N real
target tokens or live beams.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self

from nmt.config.schema import ModelConfig
from nmt.models.layers.ops import Projection
from nmt.models.layers.unpadding import Unpadding
from nmt.runtime import keras, tf


class DecoderState(Protocol):
    """What the decoder keeps of K target prefixes of B sentences: any structure of tensors with these methods."""

    def reorder(self, parents: tf.Tensor) -> Self:
        """Return the state whose beam k of sentence b continues beam ``parents[b, k]``: int32 [B, K]."""

    def select(self, rows: tf.Tensor) -> Self:
        """Return the state of the sentences ``rows``, int32 [B'], alone."""


class StepOutput(NamedTuple):
    """Result of a decoder step."""

    logits: tf.Tensor
    """Logits of the next token of the N beams of ``BeamLayout.of(tokens)``: [N, V]."""
    attention: tf.Tensor | None
    """Attention to the source, averaged to one head: float32 [B, K, S]; None if not asked for or not there."""
    state: Any
    """New ``DecoderState``."""


class Blocks(NamedTuple):
    """Division of a matrix [M, N] into blocks [M / down, N / across]."""

    down: int = 1
    """Number of blocks along the rows M."""
    across: int = 1
    """Number of blocks along the columns N."""


class TeacherForced(NamedTuple):
    """Decoder states with the tokens to predict from them."""

    states: tf.Tensor
    """[N, D]; with padding kept, [B, T, D]."""
    targets: tf.Tensor
    """Token to predict from each state: int32 [N]; with padding kept, [B, T], padding 0."""


class AttentionWeights(NamedTuple):
    """Attention of a model on B sentences and their translations, by layer and head; None: the model has none.

    Weights are float32 and sum to 1 over the last axis. Those of queries at padding have no meaning; the weight of a
    key at padding is 0.
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
    """Layer with the vectors of source words as ``matrix`` [source vocabulary, embedding width]. Models whose
    configuration says ``trains_embeddings`` have it."""
    target_embedding: Any
    """The same for target words: the same layer, if both sides share a matrix."""

    def _make_embeddings(
        self, source_vocabulary: int, target_vocabulary: int, make: Callable[[int, str], keras.layers.Layer]
    ) -> None:
        """Set the embeddings of both sides, made from a number of ids and a name; one layer if they share a matrix."""
        if self.config.shares_embeddings:
            self.source_embedding = self.target_embedding = make(source_vocabulary, "embedding")
        else:
            self.source_embedding = make(source_vocabulary, "source_embedding")
            self.target_embedding = make(target_vocabulary, "target_embedding")

    @abc.abstractmethod
    def make_weights(self, *, fresh: bool = True) -> None:
        """Make all weights: initial values, or zeros if weights are to be loaded.

        Each has a name of its own: make them inside ``keras.name_scope(self.name)`` and those of the layers.
        """

    @abc.abstractmethod
    def encode(self, source: tf.Tensor, *, remove_padding: bool = True, dropout_seed: tf.Tensor | None = None) -> Any:
        """Read source sentences: return what the decoder reads of them, any structure of tensors [B, ...].

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
        """Read whole targets, each position seeing those before it.

        Args:
            target: int32 [B, T], from bos on.
            encoded: what ``encode`` returned.
            unpadding: padding removal of the positions to predict from; None: keep padding.
            dropout_seed: seed of dropout in training, which ``Dropout`` takes; None: no dropout.

        Returns:
            Decoder states [B, T, D], or [N, D] with padding removal.
        """

    @abc.abstractmethod
    def output_projection(self) -> Projection:
        """Return the output layer, from decoder states to logits."""

    def hidden_blocks(self, variable: keras.Variable) -> Blocks | None:
        """Return the blocks of a matrix from hidden states to hidden states, each of which is a map of its own.

        None for a vector, an embedding or the output layer.
        """
        outer = any(part.endswith(("embedding", "positions", "output_layer")) for part in variable.path.split("/"))
        return None if outer or len(variable.shape) != 2 else Blocks()

    @abc.abstractmethod
    def initial_state(self, encoded: Any, beams: int) -> DecoderState:
        """Return the state before the first token, of K beams of each sentence."""

    @abc.abstractmethod
    def step(self, tokens: tf.Tensor, encoded: Any, state: Any, *, attention: bool = False) -> StepOutput:
        """Read one token of each beam and predict the next.

        Args:
            tokens: int32 [B, K]; padding at beams that have ended, of which nothing need be computed.
            encoded: what ``encode`` returned.
            state: the state of the steps before.
            attention: whether the output holds attention.
        """

    def attention_weights(self, source: tf.Tensor, target: tf.Tensor) -> AttentionWeights:
        """Return all attention weights; architectures with attention have this method.

        Args:
            source: int32 [B, S].
            target: int32 [B, T], from bos on.
        """
        return AttentionWeights(None, None, None)

    def cross_attention(self, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor | None:
        """Return the ``cross`` of ``attention_weights``."""
        return self.attention_weights(source, target).cross

    def teacher_forcing(
        self,
        source: tf.Tensor,
        target: tf.Tensor,
        *,
        remove_padding: bool = True,
        dropout_seed: tf.Tensor | None = None,
    ) -> TeacherForced:
        """Compute the states to predict each target token from: the decoder reads the target shifted by one.

        Args:
            source: int32 [B, S].
            target: int32 [B, T + 1], from bos to eos.
            remove_padding: whether to compute the N real positions alone.
            dropout_seed: int64 [2] for dropout in training; None: no dropout.
        """
        shifted, targets = target[:, :-1], target[:, 1:]
        encoded = self.encode(source, remove_padding=remove_padding, dropout_seed=dropout_seed)
        unpadding = Unpadding.of(targets) if remove_padding else None
        states = self.decode_states(shifted, encoded, unpadding=unpadding, dropout_seed=dropout_seed)
        return TeacherForced(states, targets if unpadding is None else unpadding.flatten(targets))

    def call(self, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        """Return logits [B, T, V] for source [B, S] and target prefixes [B, T], int32 both, without dropout."""
        return self.output_projection().logits(self.decode_states(target, self.encode(source)))
