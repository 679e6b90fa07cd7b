"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017).

Shapes: B batch, S source length, T target length, D model, H heads, d head size, V vocabulary, K beams, M columns of
a cache, N real tokens or live beams.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nmt.config.schema import TransformerConfig
from nmt.models.base import AttentionWeights, Seq2SeqModel, StepOutput
from nmt.models.layers.attention import KeysValues, causal_mask, padding_mask
from nmt.models.layers.basic import (
    Dropout,
    LearnedPositions,
    Linear,
    NoPositions,
    SeededDropout,
    SinusoidalPositions,
    SinusoidalTokenEmbedding,
    TokenEmbedding,
    WordDropout,
    small_values,
)
from nmt.models.layers.layer import Layer, layers_within, parts_of
from nmt.models.layers.ops import Projection, sizes
from nmt.models.layers.unpadding import BeamLayout, TokenLayout, Unpadding
from nmt.models.transformer.blocks import (
    DecoderLayer,
    DecoderLayerOutput,
    EncoderLayer,
    SSRUDecoderLayer,
    SSRUState,
    TransformerState,
    make_norm,
)
from nmt.runtime import tf
from nmt.tokenizers.base import BOS

ENCODER_NEIGHBORS = (-1, 1)
"""Positions, from the query's, that heads of the encoder attend to at first with ``neighbors``."""
DECODER_NEIGHBORS = (-1, -2)
"""The same in the decoder, which sees no later words."""


class TransformerEncoderOutput(NamedTuple):
    """Keys and values of the encoder's output for cross-attention. All beams of a sentence share them."""

    layers: tuple[KeysValues, ...]
    """Keys and values [B, H, S, d] for each decoder layer."""
    mask: tf.Tensor
    """True at real tokens: bool [B, 1, 1, S]."""


class _DecoderOutput(NamedTuple):
    """Result of the decoder."""

    states: tf.Tensor
    """Decoder states: [B, T, D], or with a layout [N, D]."""
    layers: list[DecoderLayerOutput]
    """Results of the decoder layers."""


class Transformer(Seq2SeqModel):
    """The Transformer: embeddings, encoder layers, decoder layers, output layer."""

    config: TransformerConfig

    def __init__(
        self, config: TransformerConfig, source_vocabulary: int, target_vocabulary: int, **kwargs: Any
    ) -> None:
        """Take the model section and the number of ids of each side."""
        super().__init__(**kwargs)
        self.config = config

        def embedding(vocabulary: int, name: str) -> Layer:
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
        decoder_layer = SSRUDecoderLayer if config.decoder == "ssru" else DecoderLayer
        self.decoder_layers = [decoder_layer(config, number) for number in range(1, config.decoder_layers + 1)]
        pre = config.norm_placement == "pre"
        self.encoder_norm = make_norm(config, "encoder_norm") if pre and config.encoder_norm else None
        self.decoder_norm = make_norm(config, "decoder_norm") if pre else None
        self.output_layer: Linear | None = None
        if config.tie_embeddings == "none":
            self.output_layer = Linear(config.d_model, target_vocabulary, blocks=None, name="output_layer")
        self._choose_initial_values()

    def _choose_initial_values(self) -> None:
        """Replace initial values as the configuration says.

        Every initializer draws a seed. The order of the draws is the one of earlier versions, so that a run with the
        same seed starts from the same weights.
        """
        last = (self.encoder_norm, self.decoder_norm, self.output_layer)
        drawing = [
            layer for _, layer in layers_within(self) if not parts_of(layer) and not isinstance(layer, SeededDropout)
        ]
        for layer in drawing:
            if layer not in last:
                self._replace_initializers(layer)
        if self.config.cross_attention_initializer == "copying":
            for decoder_layer in self.decoder_layers:
                decoder_layer.cross_attention.add_copying()
        if self.config.self_attention_initializer == "neighbors":
            for encoder_layer in self.encoder_layers:
                encoder_layer.attention.add_neighbors(ENCODER_NEIGHBORS)
            if self.config.decoder == "attention":
                for decoder_layer in self.decoder_layers:
                    decoder_layer.self_attention.add_neighbors(DECODER_NEIGHBORS)
        for layer in drawing:
            if layer in last:
                self._replace_initializers(layer)

    def _replace_initializers(self, layer: Layer) -> None:
        if self.config.initializer == "small":
            layer.initialize_matrices(small_values())
        if isinstance(layer, LearnedPositions):
            layer.initialize_matrices(small_values())

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

    def initial_state(self, encoded: TransformerEncoderOutput, beams: int) -> TransformerState | SSRUState:
        """Return an empty cache, or SSRU states of zero, for K beams of each sentence."""
        batch = sizes(encoded.mask)[0]
        if self.config.decoder == "ssru":
            zeros = tf.zeros([batch, beams, self.config.d_model], tf.float32)
            return SSRUState((zeros,) * len(self.decoder_layers), tf.constant(0, tf.int32))
        heads, size = self.config.heads, self.config.size_per_head
        empty = tf.zeros([batch, heads, 0, size], self.compute_dtype)
        layers = tuple(KeysValues(empty, empty) for _ in self.decoder_layers)
        visible = tf.zeros([batch, beams, 0], tf.bool)
        return TransformerState(layers, visible, tf.constant(0, tf.int32))

    def step(
        self,
        tokens: tf.Tensor,
        encoded: TransformerEncoderOutput,
        state: TransformerState | SSRUState,
        *,
        attention: bool = False,
    ) -> StepOutput:
        """Read a token of each beam, int32 [B, K]; attention is the mean over the heads of the last layer."""
        visible = state.next_visible() if isinstance(state, TransformerState) else None
        decoded = self._decode(tokens, encoded, state, visible, layout=BeamLayout.of(tokens, state.length))
        logits = self.output_projection().logits(decoded.states)
        weights = None
        if attention:
            weights = tf.reduce_mean(tf.cast(decoded.layers[-1].cross_attention, tf.float32), axis=1)
        memory = tuple(layer.memory for layer in decoded.layers)
        return StepOutput(logits, weights, state.after(memory, visible))

    def attention_weights(self, source: tf.Tensor, target: tf.Tensor) -> AttentionWeights:
        """Return the weights of all kinds of attention that the model has; see ``Seq2SeqModel``."""
        encoded, encoder_weights = self._encode(source)
        layers = self._decode(target, encoded).layers
        return AttentionWeights(
            encoder=_by_layer(encoder_weights),
            decoder=_by_layer([layer.self_attention for layer in layers])
            if self.config.decoder == "attention"
            else None,
            cross=_by_layer([layer.cross_attention for layer in layers]),
        )

    def output_projection(self) -> Projection:
        """Return the output layer; with tied embeddings it is the target embedding's matrix."""
        return (self.output_layer or self.target_embedding).projection()

    def _decode(
        self,
        tokens: tf.Tensor,
        encoded: TransformerEncoderOutput,
        state: TransformerState | SSRUState | None = None,
        visible: tf.Tensor | None = None,
        *,
        layout: TokenLayout | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> _DecoderOutput:
        """Run the decoder layers.

        Args:
            tokens: whole targets, int32 [B, T], or with a state a token of each beam, int32 [B, K].
            encoded: the encoder's output.
            state: state after the earlier tokens.
            visible: columns that each beam attends to, the column of its new token included: bool [B, K, M + K].
            layout: layout of the tokens; None: padded rows.
            dropout_seed: int64 [2], see ``Dropout``; None: no dropout.
        """
        mask = None
        if self.config.decoder == "attention":
            mask = causal_mask(sizes(tokens)[1]) if visible is None else visible[:, tf.newaxis]
        tokens = self.target_word_dropout(tokens, dropout_seed)
        embedding = self.target_embedding if self.config.target_bos else self._embed_without_bos
        x = self._embed(embedding, self.target_positions, tokens, layout)
        x = self.target_dropout(x, dropout_seed)
        outputs = []
        for number, layer in enumerate(self.decoder_layers):
            memory = None if state is None else state.layers[number]
            output = layer(x, encoded.layers[number], encoded.mask, mask, memory, layout, dropout_seed)
            x = output.states
            outputs.append(output)
        if self.decoder_norm is not None:
            x = self.decoder_norm(x)
        return _DecoderOutput(x, outputs)

    def _embed_without_bos(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the target embeddings of ids, with zeros for bos: [...] -> [..., D]."""
        words = self.target_embedding(ids)
        return words * tf.cast(ids != BOS, words.dtype)[..., tf.newaxis]

    @staticmethod
    def _embed(
        embedding: Callable[[tf.Tensor], tf.Tensor], positions: Layer, ids: tf.Tensor, layout: TokenLayout | None
    ) -> tf.Tensor:
        """Return words with their positions, of ids [B, L]: [B, L, D], or with a layout [N, D]."""
        if layout is not None:
            return positions(embedding(layout.flatten(ids)), layout.positions)
        return positions(embedding(ids), tf.range(sizes(ids)[1]))


def _by_layer(weights: Sequence[tf.Tensor]) -> tf.Tensor:
    """Stack the attention weights of the layers, [B, H, T, S] each: float32 [layers, H, B, T, S]."""
    return tf.stack([tf.transpose(tf.cast(part, tf.float32), [1, 0, 2, 3]) for part in weights])


def _positions(config: TransformerConfig, name: str) -> Layer:
    if config.positions == "learned":
        return LearnedPositions(config.max_positions, config.d_model, name=name)
    if config.positions == "rotary":
        return NoPositions(name=name)
    return SinusoidalPositions(config.position_base, name=name)
