"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), behind the contract every architecture keeps.

``encode(source) -> memory`` and ``decode(tokens, memory, cache=None) -> logits`` (and the new cache when one is given).
One body serves training, where the whole target is decoded at once, and search, where it grows token by token.

Shapes: B batch, S source length, T target length, D model, H heads, d head size, V vocabulary, K beams,
M target tokens for which a cache has room.
"""

import contextlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from nmt.config.model import ModelConfig
from nmt.models.layers.attention import KeysValues, MultiHeadAttention, look_ahead_mask, padding_mask
from nmt.models.layers.basic import (
    Dropout,
    FeedForward,
    LayerNormalization,
    LearnedPositions,
    Linear,
    Residual,
    SinusoidalPositions,
    SinusoidalTokenEmbedding,
    TokenEmbedding,
    WordDropout,
    small_values,
)
from nmt.models.layers.ops import Projection, sizes
from nmt.models.layers.unpadding import Grid, Packing
from nmt.models.transformer.blocks import DecoderLayer, EncoderLayer
from nmt.runtime import keras, tf


class Memory(NamedTuple):
    """All that the decoder reads of a source sentence; every beam of a sentence shares it."""

    layers: tuple[KeysValues, ...]
    """For each decoder layer the keys and values [B, H, S, d] of the encoder's output."""
    mask: tf.Tensor
    """Where the source is not padding: bool [B, 1, 1, S]."""

    def keep(self, sentences: tf.Tensor) -> "Memory":
        """Return the memory of these sentences, int32 [B'], alone."""
        return tf.nest.map_structure(lambda part: tf.gather(part, sentences), self)


class Cache(NamedTuple):
    """What the decoder keeps of the K targets so far of each sentence. Passed in and out, never changed in place.

    All beams write to one row, and each knows which of its columns are its own past. So when search goes on from
    other beams, no keys and values move.
    """

    layers: tuple[KeysValues, ...]
    """For each decoder layer the keys and values [B, H, M * K, d]: token t of beam k in column t * K + k."""
    past: tf.Tensor
    """Which columns each beam goes on from: bool [B, K, M * K]."""
    length: tf.Tensor
    """Number of tokens written for each beam: int32 scalar."""

    def reorder(self, parents: tf.Tensor) -> "Cache":
        """Let beam k of sentence b go on from what was its beam ``parents[b, k]``: int32 [B, K]."""
        return self._replace(past=tf.gather(self.past, parents, batch_dims=1))

    def keep(self, sentences: tf.Tensor, room: tf.Tensor | int) -> "Cache":
        """Return the cache of these sentences, int32 [B'], alone, M raised to ``room``."""
        _, beams, columns = sizes(self.past)
        new = room * beams - columns

        def kept(part: tf.Tensor) -> tf.Tensor:
            return tf.pad(tf.gather(part, sentences), [[0, 0], [0, 0], [0, new], [0, 0]])

        layers = tuple(KeysValues(kept(layer.keys), kept(layer.values)) for layer in self.layers)
        return Cache(layers, tf.pad(tf.gather(self.past, sentences), [[0, 0], [0, 0], [0, new]]), self.length)

    def next_past(self) -> tf.Tensor:
        """Return ``past`` with the column that each beam writes next."""
        _, beams, columns = sizes(self.past)
        own = self.length * beams + tf.range(beams)
        return self.past | tf.equal(tf.range(columns), own[:, tf.newaxis])


class Transformer(keras.Model):
    """Encoder and decoder stacks with their embeddings and the output layer."""

    def __init__(self, config: ModelConfig, source_vocabulary: int, target_vocabulary: int, **kwargs: Any) -> None:
        """Take the model section and the number of ids on each side.

        Raises:
            ValueError: if the source embedding is to be tied and the vocabularies differ in size.
        """
        super().__init__(**kwargs)
        self.config = config
        self.source_embedding, self.target_embedding = _embeddings(config, source_vocabulary, target_vocabulary)
        self.source_positions = _positions(config, "source_positions")
        self.target_positions = _positions(config, "target_positions")
        self.source_word_dropout = WordDropout(config.word_dropout, "source_words")
        self.target_word_dropout = WordDropout(config.word_dropout, "target_words")
        self.source_dropout = Dropout(config.dropout, "source_embedding")
        self.target_dropout = Dropout(config.dropout, "target_embedding")
        self.encoder_layers = [_encoder_layer(config, n) for n in range(1, config.encoder_layers + 1)]
        self.decoder_layers = [_decoder_layer(config, n) for n in range(1, config.decoder_layers + 1)]
        if config.norm == "pre":
            self.encoder_norm = _norm(config, "encoder_norm")
            self.decoder_norm = _norm(config, "decoder_norm")
        if config.tie_embeddings == "none":
            self.output_layer = Linear(target_vocabulary, name="output_layer")

    def make_weights(self, *, fresh: bool = True) -> None:
        """Make all weights: fresh from the global seed, or zeros that are faster made, to be loaded into.

        Keras would do so at the first call, after tracing every layer for shapes that are known here: it takes seconds.
        """
        d_model, joined = self.config.d_model, self.config.heads * self.config.size_per_head

        def make(width: int, scopes: tuple[keras.layers.Layer, ...], *layers: keras.layers.Layer) -> None:
            with contextlib.ExitStack() as stack:
                for scope in scopes:
                    stack.enter_context(keras.name_scope(scope.name))
                for layer in layers:
                    if layer.built:  # one layer that serves twice
                        continue
                    if not fresh:
                        layer.kernel_initializer = keras.initializers.Zeros()
                    elif self.config.initializer == "small":
                        layer.kernel_initializer = small_values()
                    layer.build((None, width))
            for scope in scopes[1:]:
                scope.built = True

        make(d_model, (self,), self.source_embedding, self.target_embedding)
        make(d_model, (self,), self.source_positions, self.target_positions)
        layers: list[Any] = [*self.encoder_layers, *self.decoder_layers]
        for layer in layers:
            for attention in layer.attentions:
                make(d_model, (self, layer, attention), attention.query, attention.key, attention.value)
                make(joined, (self, layer, attention), attention.output_projection)
            make(d_model, (self, layer, layer.feed_forward), layer.feed_forward.inner)
            make(self.config.d_ff, (self, layer, layer.feed_forward), layer.feed_forward.outer)
            for frame in layer.frames:
                make(d_model, (self, layer, frame), frame.norm)
        if self.config.norm == "pre":
            make(d_model, (self,), self.encoder_norm, self.decoder_norm)
        if self.config.tie_embeddings == "none":
            make(d_model, (self,), self.output_layer)
        self.built = True

    def encode(self, source: tf.Tensor, packed: bool = True, dropout_seed: tf.Tensor | None = None) -> Memory:
        """Read source ids, int32 [B, S], padding 0; computing something for padding too unless ``packed``.

        Training gives a seed, int64 [2], from which dropout draws.
        """
        mask = padding_mask(source)
        packing = Packing.of(source) if packed else None
        source = self.source_word_dropout(source, dropout_seed)
        x = self._embed(self.source_embedding, self.source_positions, source, packing)
        x = self.source_dropout(x, dropout_seed)
        for layer in self.encoder_layers:
            x = layer(x, mask, packing=packing, dropout_seed=dropout_seed)
        if self.config.norm == "pre":
            x = self.encoder_norm(x)
        return Memory(tuple(layer.cross_attention.keys_values(x, packing) for layer in self.decoder_layers), mask)

    def decode(self, tokens: tf.Tensor, memory: Memory, cache: Cache | None = None, **training: Any) -> Any:
        """Predict the token after each of ``tokens``.

        Without a cache they are the targets from bos on, int32 [B, T]; with one they are the next token of each of K
        beams, int32 [B, K]. Training gives the packing of the positions where there is something to predict, and only
        these are computed, and the seed of dropout: ``packing`` and ``dropout_seed`` of ``decode_states``.

        Returns:
            Logits [B, T, V], or [N, V] with a packing; with a cache, the pair of logits [B, K, V] and the new cache.
        """
        logits, cache, _ = self.decode_with_attention(tokens, memory, cache, **training)
        return logits if cache is None else (logits, cache)

    def decode_with_attention(
        self, tokens: tf.Tensor, memory: Memory, cache: Cache | None = None, **training: Any
    ) -> tuple[tf.Tensor, Any, tuple[tf.Tensor, ...]]:
        """Do what ``decode`` does, and return the cross-attention of each decoder layer too.

        Returns:
            Logits; the new cache, if one is given; for each layer the weights [B, H, T, S], T being K with a cache.
        """
        states, cache, attention = self.decode_states(tokens, memory, cache, **training)
        logits = self.projection().logits(states)
        return logits if cache is None else tf.reshape(logits, [*sizes(tokens), logits.shape[-1]]), cache, attention

    def projection(self) -> Projection:
        """Return what turns states into logits."""
        return (self.target_embedding if self.config.tie_embeddings != "none" else self.output_layer).projection()

    def decode_states(
        self,
        tokens: tf.Tensor,
        memory: Memory,
        cache: Cache | None = None,
        packing: Packing | Grid | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> tuple[tf.Tensor, Any, tuple[tf.Tensor, ...]]:
        """Do what ``decode_with_attention`` does up to the logits.

        Args:
            tokens: int32 [B, T], or [B, K] with a cache.
            memory: what ``encode`` returned.
            cache: of the steps of search before.
            packing: in training, of the positions where there is something to predict.
            dropout_seed: int64 [2] from which dropout draws, in training.

        Returns:
            States, [B, T, D], with a packing [N, D], with a cache [B * K, D]; the other two as there.
        """
        if cache is None:
            length = sizes(tokens)[1]
            index, mask = 0, look_ahead_mask(length, length)
        else:
            packing, past = Grid(tokens, cache.length), cache.next_past()
            index, mask = cache.length * sizes(tokens)[1], past[:, tf.newaxis]
        tokens = self.target_word_dropout(tokens, dropout_seed)
        x = self._embed(self.target_embedding, self.target_positions, tokens, packing)
        x = self.target_dropout(x, dropout_seed)
        written, attention = [], []
        for number, layer in enumerate(self.decoder_layers):
            x, keys_values, weights = layer(
                x,
                memory.layers[number],
                memory.mask,
                mask,
                cache=None if cache is None else cache.layers[number],
                index=index,
                packing=packing,
                dropout_seed=dropout_seed,
            )
            written.append(keys_values)
            attention.append(weights)
        if self.config.norm == "pre":
            x = self.decoder_norm(x)
        if cache is not None:
            cache = Cache(tuple(written), past, cache.length + 1)
        return x, cache, tuple(attention)

    @staticmethod
    def _embed(
        embedding: keras.layers.Layer,
        positions: keras.layers.Layer,
        ids: tf.Tensor,
        packing: Packing | Grid | None,
    ) -> tf.Tensor:
        """Ids [B, L] -> [B, L, D], or packed [N, D]."""
        if packing is not None:
            return positions(embedding(packing.pack(ids)), packing.positions)
        return positions(embedding(ids), tf.range(sizes(ids)[1]))

    def new_cache(self, batch: tf.Tensor | int, room: tf.Tensor | int, beams: int = 1) -> Cache:
        """Return an empty cache for K beams of B sentences, with room for M target tokens of each."""
        heads, size = self.config.heads, self.config.size_per_head
        empty = tf.zeros([batch, heads, room * beams, size], self.compute_dtype)
        layers = tuple(KeysValues(empty, empty) for _ in self.decoder_layers)
        return Cache(layers, tf.zeros([batch, beams, room * beams], tf.bool), tf.constant(0, tf.int32))

    def call(self, source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        """Teacher forcing without dropout: source [B, S] and the target so far [B, T] -> logits [B, T, V]."""
        return self.decode(target, self.encode(source))

    def summary(self, print_fn: Callable[[str], None] = print) -> None:
        """Print every part with its output's shape and its parameters, in the order in which data passes them.

        B batch, S source length, T target length; a matrix that serves twice is counted once.
        """
        config = self.config
        heads = f"{config.heads} heads of {config.size_per_head}"
        layers = f"{config.norm}-norm, attention {heads}, feed-forward {config.d_ff}"
        tied = config.tie_embeddings != "none"
        source = [self.source_embedding, self.source_positions, *self.encoder_layers]
        target = [self.target_embedding, self.target_positions, *self.decoder_layers]
        rows = [(part.name, f"[B, S, {config.d_model}]", part.count_params(), _kind(part, layers)) for part in source]
        rows += [(part.name, f"[B, T, {config.d_model}]", part.count_params(), _kind(part, layers)) for part in target]
        if config.tie_embeddings == "all":
            name, shape, _, kind = rows[len(source)]
            rows[len(source)] = (name, shape, 0, f"{kind}, the same matrix")
        if config.norm == "pre":
            for norm, at, shape in (
                (self.encoder_norm, len(source), rows[0][1]),
                (self.decoder_norm, len(rows) + 1, rows[-1][1]),
            ):
                rows.insert(at, (norm.name, shape, norm.count_params(), "LayerNormalization"))
        last = 0 if tied else self.output_layer.count_params()
        vocabulary = self.target_embedding.vocabulary if tied else self.output_layer.units
        rows.append(("output_layer", f"[B, T, {vocabulary}]", last, "the embedding's matrix" if tied else "Linear"))
        print_fn(f"{'part':<18}{'output':<16}{'parameters':>12}  what it is")
        for name, shape, count, kind in rows:
            print_fn(f"{name:<18}{shape:<16}{count:>12,}  {kind}")
        print_fn(f"{'all':<34}{self.count_params():>12,}  {self.count_params() * 4 / 2**20:,.1f} MiB in float32")


def _kind(part: keras.layers.Layer, layers: str) -> str:
    kind = type(part).__name__
    return f"{kind}: {layers}" if isinstance(part, EncoderLayer | DecoderLayer) else kind


def _embeddings(config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> tuple[Any, Any]:
    def embedding(vocabulary: int, name: str) -> keras.layers.Layer:
        if config.word_embedding == "sinusoidal":
            return SinusoidalTokenEmbedding(config.d_model, scaled=config.scale_embeddings, name=name)
        return TokenEmbedding(vocabulary, config.d_model, scaled=config.scale_embeddings, name=name)

    if config.tie_embeddings == "all":
        if source_vocabulary != target_vocabulary:
            raise ValueError("embeddings of two vocabularies cannot be tied")
        shared = embedding(source_vocabulary, "embedding")
        return shared, shared
    return embedding(source_vocabulary, "source_embedding"), embedding(target_vocabulary, "target_embedding")


def _positions(config: ModelConfig, name: str) -> keras.layers.Layer:
    if config.positions == "learned":
        return LearnedPositions(config.max_positions, config.d_model, name=name)
    return SinusoidalPositions(name=name)


def _norm(config: ModelConfig, name: str) -> LayerNormalization:
    return LayerNormalization(config.layer_norm_epsilon, name=name)


def _attention(config: ModelConfig, layer: str, name: str) -> MultiHeadAttention:
    size = config.size_per_head
    divided_by = size if config.attention_scale == "head" else config.heads * size
    dropout = Dropout(config.attention_dropout, f"{layer}/{name}/weights")
    return MultiHeadAttention(config.heads, size, config.d_model, 1 / math.sqrt(divided_by), dropout, name=name)


def _feed_forward(config: ModelConfig, layer: str) -> FeedForward:
    dropout = Dropout(config.feed_forward_dropout, f"{layer}/feed_forward/inner")
    return FeedForward(config.d_model, config.d_ff, dropout, name="feed_forward")


def _frames(config: ModelConfig, norms: list[LayerNormalization], layer: str, names: list[str]) -> list[Residual]:
    return [
        Residual(norm, Dropout(config.dropout, f"{layer}/{name}"), config.norm, name=f"{name}_frame")
        for norm, name in zip(norms, names, strict=True)
    ]


def _encoder_layer(config: ModelConfig, number: int) -> EncoderLayer:
    layer, names = f"encoder_{number}", ["attention", "feed_forward"]
    frames = _frames(config, [_norm(config, "norm") for _ in names], layer, names)
    return EncoderLayer(_attention(config, layer, "attention"), _feed_forward(config, layer), frames, name=layer)


def _decoder_layer(config: ModelConfig, number: int) -> DecoderLayer:
    layer, names = f"decoder_{number}", ["self_attention", "cross_attention", "feed_forward"]
    norms = [_norm(config, "norm") for _ in names]
    if config.share_decoder_norm:
        norms[1] = norms[0]
    return DecoderLayer(
        _attention(config, layer, "self_attention"),
        _attention(config, layer, "cross_attention"),
        _feed_forward(config, layer),
        _frames(config, norms, layer, names),
        name=layer,
    )
