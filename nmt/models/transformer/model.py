"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017).

Shapes: B batch, S source length, T target length, D model, H heads, d head size, V vocabulary, K beams, M columns of
a cache, N real tokens or live beams.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from nmt.config.schema import TransformerConfig
from nmt.models.base import AttentionWeights, Blocks, Seq2SeqModel, StepOutput
from nmt.models.layers.attention import KeysValues, causal_mask, padding_mask
from nmt.models.layers.basic import (
    Dropout,
    LearnedPositions,
    Linear,
    NoPositions,
    SinusoidalPositions,
    SinusoidalTokenEmbedding,
    TokenEmbedding,
    WordDropout,
    make_weights,
    small_values,
)
from nmt.models.layers.ops import Projection, sizes
from nmt.models.layers.unpadding import BeamLayout, TokenLayout, Unpadding
from nmt.models.transformer.blocks import DecoderLayer, EncoderLayer, TransformerState, make_norm
from nmt.runtime import keras, tf


class TransformerEncoderOutput(NamedTuple):
    """Keys and values of the encoder's output, for each decoder layer; all beams of a sentence share them."""

    layers: tuple[KeysValues, ...]
    """Keys and values [B, H, S, d] for each decoder layer."""
    mask: tf.Tensor
    """True at real tokens: bool [B, 1, 1, S]."""


class _Decoded(NamedTuple):
    """Result of the decoder layers."""

    states: tf.Tensor
    """[B, T, D], or with a layout [N, D]."""
    layers: tuple[KeysValues, ...]
    """Keys and values of each layer, those of the new positions included."""
    self_attention: tuple[tf.Tensor, ...]
    """Self-attention weights of each layer: [B, H, T, T]; with a cache, [B, H, T, M]."""
    cross_attention: tuple[tf.Tensor, ...]
    """Cross-attention weights of each layer: [B, H, T, S]."""


class Transformer(Seq2SeqModel):
    """Encoder and decoder stacks with their embeddings and the output layer."""

    config: TransformerConfig

    def __init__(
        self, config: TransformerConfig, source_vocabulary: int, target_vocabulary: int, **kwargs: Any
    ) -> None:
        """Take the model section and the number of ids of each side."""
        super().__init__(**kwargs)
        self.config = config

        def embedding(vocabulary: int, name: str) -> keras.layers.Layer:
            scaled, base = config.scale_embeddings, config.position_base
            if config.word_embedding == "sinusoidal":
                return SinusoidalTokenEmbedding(config.d_model, scaled=scaled, base=base, name=name)
            biased = config.output_bias and name != "source_embedding"
            return TokenEmbedding(vocabulary, config.d_model, scaled=scaled, biased=biased, name=name)

        self._make_embeddings(source_vocabulary, target_vocabulary, embedding)
        self.source_positions = _positions(config, "source_positions")
        self.target_positions = _positions(config, "target_positions")
        self.source_word_dropout = WordDropout(config.word_dropout, "source_words")
        self.target_word_dropout = WordDropout(config.word_dropout, "target_words")
        self.source_dropout = Dropout(config.dropout, "source_embedding")
        self.target_dropout = Dropout(config.dropout, "target_embedding")
        self.encoder_layers = [EncoderLayer(config, number) for number in range(1, config.encoder_layers + 1)]
        self.decoder_layers = [DecoderLayer(config, number) for number in range(1, config.decoder_layers + 1)]
        pre = config.norm_placement == "pre"
        self.encoder_norm = make_norm(config, "encoder_norm") if pre and config.encoder_norm else None
        self.decoder_norm = make_norm(config, "decoder_norm") if pre else None
        tied = config.tie_embeddings != "none"
        self.output_layer = None if tied else Linear(target_vocabulary, name="output_layer")

    def make_weights(self, *, fresh: bool = True) -> None:
        """Make all weights, see ``Seq2SeqModel``."""
        config = self.config
        kind = {"small": small_values}.get(config.initializer) if fresh else keras.initializers.Zeros

        def initialize(layer: Any) -> None:
            if kind is not None:
                layer.kernel_initializer = kind()

        words = [self.source_embedding, self.target_embedding, self.source_positions, self.target_positions]
        with keras.name_scope(self.name):
            for layer in (*words, *self.encoder_layers, *self.decoder_layers):
                make_weights(layer, config.d_model, initialize)
            if fresh and config.cross_attention_initializer == "copying":
                for decoder_layer in self.decoder_layers:
                    decoder_layer.cross_attention.add_copying()
            for layer in (self.encoder_norm, self.decoder_norm, self.output_layer):
                if layer is not None:
                    make_weights(layer, config.d_model, initialize)
        self.built = True

    def hidden_blocks(self, variable: keras.Variable) -> Blocks | None:
        """Return the blocks of a hidden matrix: a head has its own in the matrices of attention."""
        match variable.path.split("/")[-2:]:
            case ["query" | "key" | "value", "kernel"]:
                return Blocks(across=self.config.heads)
            case ["output", "kernel"]:
                return Blocks(down=self.config.heads)
            case _:
                return super().hidden_blocks(variable)

    def encode(
        self, source: tf.Tensor, *, remove_padding: bool = True, dropout_seed: tf.Tensor | None = None
    ) -> TransformerEncoderOutput:
        """Read source ids, int32 [B, S]; see ``Seq2SeqModel``."""
        return self._encode(source, remove_padding=remove_padding, dropout_seed=dropout_seed)[0]

    def _encode(
        self, source: tf.Tensor, *, remove_padding: bool = True, dropout_seed: tf.Tensor | None = None
    ) -> tuple[TransformerEncoderOutput, list[tf.Tensor]]:
        """Return what ``encode`` returns, and the self-attention weights of each layer, [B, H, S, S]."""
        mask = padding_mask(source)
        layout = Unpadding.of(source) if remove_padding else None
        source = self.source_word_dropout(source, dropout_seed)
        x = self._embed(self.source_embedding, self.source_positions, source, layout)
        x = self.source_dropout(x, dropout_seed)
        attention = []
        for layer in self.encoder_layers:
            x, weights = layer(x, mask, layout=layout, dropout_seed=dropout_seed)
            attention.append(weights)
        if self.encoder_norm is not None:
            x = self.encoder_norm(x)
        layers = tuple(layer.cross_attention.keys_values(x, layout) for layer in self.decoder_layers)
        return TransformerEncoderOutput(layers, mask), attention

    def decode_states(
        self,
        target: tf.Tensor,
        encoded: TransformerEncoderOutput,
        *,
        unpadding: Unpadding | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Read target ids, int32 [B, T]; see ``Seq2SeqModel``."""
        return self._decode(target, encoded, layout=unpadding, dropout_seed=dropout_seed).states

    def initial_state(self, encoded: TransformerEncoderOutput, beams: int) -> TransformerState:
        """Return an empty cache for K beams of each sentence."""
        batch = sizes(encoded.mask)[0]
        heads, size = self.config.heads, self.config.size_per_head
        empty = tf.zeros([batch, heads, 0, size], self.compute_dtype)
        layers = tuple(KeysValues(empty, empty) for _ in self.decoder_layers)
        visible = tf.zeros([batch, beams, 0], tf.bool)
        return TransformerState(layers, visible, tf.constant(0, tf.int32))

    def step(
        self,
        tokens: tf.Tensor,
        encoded: TransformerEncoderOutput,
        state: TransformerState,
        *,
        attention: bool = False,
    ) -> StepOutput:
        """Read a token of each beam, int32 [B, K]; attention is the mean over the heads of the last layer."""
        visible = state.next_visible()
        decoded = self._decode(tokens, encoded, state, visible, layout=BeamLayout.of(tokens, state.length))
        logits = self.output_projection().logits(decoded.states)
        weights = tf.reduce_mean(tf.cast(decoded.cross_attention[-1], tf.float32), axis=1) if attention else None
        return StepOutput(logits, weights, TransformerState(decoded.layers, visible, state.length + 1))

    def attention_weights(self, source: tf.Tensor, target: tf.Tensor) -> AttentionWeights:
        """Return the weights of all three kinds of attention; see ``Seq2SeqModel``."""
        encoded, encoder = self._encode(source)
        decoded = self._decode(target, encoded)
        return AttentionWeights(*map(_by_layer, (encoder, decoded.self_attention, decoded.cross_attention)))

    def output_projection(self) -> Projection:
        """Return the output layer; with tied embeddings it is the target embedding's matrix."""
        return (self.output_layer or self.target_embedding).projection()

    def _decode(
        self,
        tokens: tf.Tensor,
        encoded: TransformerEncoderOutput,
        state: TransformerState | None = None,
        visible: tf.Tensor | None = None,
        *,
        layout: TokenLayout | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> _Decoded:
        """Run the decoder layers on whole targets, int32 [B, T], or with a state on a token of each beam, [B, K]."""
        if state is None or visible is None:
            length = sizes(tokens)[1]
            mask = causal_mask(length)
        else:
            mask = visible[:, tf.newaxis]
        tokens = self.target_word_dropout(tokens, dropout_seed)
        x = self._embed(self.target_embedding, self.target_positions, tokens, layout)
        x = self.target_dropout(x, dropout_seed)
        found = []
        for number, layer in enumerate(self.decoder_layers):
            cache = None if state is None else state.layers[number]
            x, *of_layer = layer(x, encoded.layers[number], encoded.mask, mask, cache, layout, dropout_seed)
            found.append(of_layer)
        if self.decoder_norm is not None:
            x = self.decoder_norm(x)
        return _Decoded(x, *zip(*found, strict=True))

    @staticmethod
    def _embed(
        embedding: keras.layers.Layer, positions: keras.layers.Layer, ids: tf.Tensor, layout: TokenLayout | None
    ) -> tf.Tensor:
        """Ids [B, L] -> [B, L, D], or with a layout [N, D]."""
        if layout is not None:
            return positions(embedding(layout.flatten(ids)), layout.positions)
        return positions(embedding(ids), tf.range(sizes(ids)[1]))


def _by_layer(weights: Sequence[tf.Tensor]) -> tf.Tensor:
    """Attention weights [B, H, T, S] of each layer -> float32 [layers, H, B, T, S]."""
    return tf.stack([tf.transpose(tf.cast(part, tf.float32), [1, 0, 2, 3]) for part in weights])


def _positions(config: TransformerConfig, name: str) -> keras.layers.Layer:
    if config.positions == "learned":
        return LearnedPositions(config.max_positions, config.d_model, name=name)
    if config.positions == "rotary":
        return NoPositions(name=name)
    return SinusoidalPositions(config.position_base, name=name)
