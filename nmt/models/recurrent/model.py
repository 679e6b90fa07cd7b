"""The recurrent encoder-decoder.

Shapes: B batch, S source length, T target length, M embedding width, n width of decoder states, E width of annotations,
V vocabulary, K beams, N real tokens.
"""

from typing import Any, NamedTuple

from nmt.config.schema import RecurrentConfig
from nmt.models.base import AttentionWeights, Seq2SeqModel, StepOutput
from nmt.models.layers.basic import Dropout, Linear, TokenEmbedding, WordDropout
from nmt.models.layers.layer import Layer
from nmt.models.layers.ops import Projection, sizes
from nmt.models.layers.unpadding import BeamLayout, Unpadding
from nmt.models.recurrent.attention import Source
from nmt.models.recurrent.cells import Cell, State
from nmt.models.recurrent.decoder import DECODERS, Decoder, Features, StepState
from nmt.models.recurrent.encoder import RecurrentEncoder, Words
from nmt.models.recurrent.scan import StepOps
from nmt.runtime import keras, tf

UNIFORM_BOUND = 0.1
"""Largest absolute initial value with ``initializer: uniform``."""


class RecurrentEncoderOutput(NamedTuple):
    """First state of the decoder and input of attention. All beams of a sentence share it."""

    first: StepState
    """State of the decoder before the first token: [B, n] each."""
    source: tuple[Source, ...]
    """Annotations; empty without attention."""


class RecurrentState(NamedTuple):
    """State of the decoder for K target prefixes of each sentence. Its size does not grow with their length."""

    step: StepState
    """State of the layers, and the attentional state with input feeding: [B, K, n] each."""
    length: tf.Tensor
    """Number of tokens of each prefix: int32 scalar."""

    def reorder(self, parents: tf.Tensor) -> "RecurrentState":
        """Return the state whose beam k of sentence b continues beam ``parents[b, k]``: int32 [B, K]."""
        step = tf.nest.map_structure(lambda part: tf.gather(part, parents, batch_dims=1), self.step)
        return RecurrentState(step, self.length)

    def select(self, rows: tf.Tensor) -> "RecurrentState":
        """Return the state of the sentences ``rows``, int32 [B'], alone."""
        return RecurrentState(tf.nest.map_structure(lambda part: tf.gather(part, rows), self.step), self.length)


class Recurrent(Seq2SeqModel):
    """Encoder and decoder of recurrent cells, with attention between them or without."""

    config: RecurrentConfig

    def __init__(self, config: RecurrentConfig, source_vocabulary: int, target_vocabulary: int, **kwargs: Any) -> None:
        """Take the model section and the number of ids of each side."""
        super().__init__(**kwargs)
        self.config = config

        def embedding(vocabulary: int, name: str) -> TokenEmbedding:
            return TokenEmbedding(vocabulary, config.input_width, scaled=False, name=name)

        self._make_embeddings(source_vocabulary, target_vocabulary, embedding)
        self.source_word_dropout = WordDropout(config.word_dropout, "source_words")
        self.target_word_dropout = WordDropout(config.word_dropout, "target_words")
        self.output_dropout = Dropout(config.dropout, "output")
        self.encoder = RecurrentEncoder(config, name="encoder")
        self.decoder: Decoder = DECODERS[config.step](config, name="decoder")
        self.bridges = self._make_bridges()
        self.output_layer: Linear | None = None
        if config.tie_embeddings not in ("output", "all"):
            self.output_layer = Linear(config.output_width, target_vocabulary, blocks=None, name="output_layer")
        if config.initializer == "uniform":
            self._start_uniform()

    def _make_bridges(self) -> list[list[Linear]]:
        """Return layers from final states of the encoder to first states of the decoder, by decoder layer."""
        config = self.config
        if config.first_state not in ("linear", "backward"):
            return []
        start = config.annotation_width if config.first_state == "linear" else config.direction_width
        parts = "hc"[: len(self.decoder.cells[0].state_types)]
        names = [[f"first_state_{number}_{part}" for part in parts] for number in range(1, config.layers + 1)]
        return [[Linear(start, config.width, name=name) for name in of_layer] for of_layer in names]

    def _start_uniform(self) -> None:
        """Replace the initializers of all matrices.

        Every initializer draws a seed: two for each layer, in the order of earlier versions, so that a run with the
        same seed starts from the same weights.
        """
        layers: list[Layer] = [self.source_embedding]
        if self.target_embedding is not self.source_embedding:
            layers.append(self.target_embedding)
        for directions in self.encoder.layers:
            layers += [direction.cell for direction in directions]
        for of_layer in self.bridges:
            layers += of_layer
        layers += [*self.decoder.cells, self.decoder]
        layers += [layer for layer in (self.decoder.attention, self.output_layer) if layer is not None]
        for layer in layers:
            of_inputs, of_states = (keras.initializers.RandomUniform(-UNIFORM_BOUND, UNIFORM_BOUND) for _ in range(2))
            layer.initialize_matrices(of_inputs)
            if isinstance(layer, Cell):
                layer.specs["recurrent_kernel"].initializer = of_states

    def encode(
        self, source: tf.Tensor, *, remove_padding: bool = True, dropout_seed: tf.Tensor | None = None
    ) -> RecurrentEncoderOutput:
        """Read source ids, int32 [B, S]; see ``Seq2SeqModel``. Padding is removed in any case."""
        unpadding, attention = Unpadding.of(source), self.decoder.attention
        ids = self.source_word_dropout(unpadding.flatten(source), dropout_seed)
        words = Words.of(ids, unpadding, lambda ids: self.encoder.dropouts[0](self.source_embedding(ids), dropout_seed))
        outputs, finals = self.encoder(words, dropout_seed)
        annotations: tuple[Source, ...] = ()
        if attention:
            annotations = (attention.source(unpadding.restore(outputs), unpadding.lengths),)
        return RecurrentEncoderOutput(self._first_state(finals), annotations)

    def decode_states(
        self,
        target: tf.Tensor,
        encoded: RecurrentEncoderOutput,
        *,
        unpadding: Unpadding | None = None,
        dropout_seed: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Read target ids, int32 [B, T]; see ``Seq2SeqModel``."""
        states = self._decode(target, encoded, unpadding or _with_padding(target), dropout_seed)[0]
        return states if unpadding is not None else tf.reshape(states, [*sizes(target), states.shape[-1]])

    def initial_state(self, encoded: RecurrentEncoderOutput, beams: int) -> RecurrentState:
        """Return the first state for K beams of each sentence."""
        first = tf.nest.map_structure(lambda part: tf.tile(part[:, tf.newaxis], [1, beams, 1]), encoded.first)
        return RecurrentState(first, tf.constant(0, tf.int32))

    def step(
        self, tokens: tf.Tensor, encoded: RecurrentEncoderOutput, state: RecurrentState, *, attention: bool = False
    ) -> StepOutput:
        """Read a token of each beam, int32 [B, K]."""
        source = _only(encoded.source)
        if source:  # the search loop knows no widths
            annotations = tf.ensure_shape(source.annotations, [None, None, self.config.annotation_width])
            source = source._replace(annotations=annotations)
        beams = BeamLayout.of(tokens, state.length)
        embedded = self.target_embedding(beams.flatten(tokens))

        def live_rows(part: tf.Tensor) -> tf.Tensor:
            return tf.ensure_shape(beams.flatten(part), [None, self.config.width])

        rows = tf.nest.map_structure(live_rows, state.step)
        ops = StepOps(self.decoder.tensors(source))
        rows, features = self.decoder.step(ops, state.length, [self.decoder.cells[0](embedded)], rows, source, beams)
        logits = self.output_projection().logits(self.decoder.readout(features.parts, embedded))
        weights = tf.reshape(features.weights[0], [*sizes(tokens), -1]) if attention and features.weights else None
        new_state = RecurrentState(tf.nest.map_structure(beams.restore, rows), state.length + 1)
        return StepOutput(logits, weights, new_state)

    def attention_weights(self, source: tf.Tensor, target: tf.Tensor) -> AttentionWeights:
        """Return the weights of the one layer and head, [1, 1, B, T, S]; see ``Seq2SeqModel``."""
        if self.decoder.attention is None:
            return super().attention_weights(source, target)
        weights = self._decode(target, self.encode(source), _with_padding(target), weights=True)[1].weights[0]
        return AttentionWeights(None, None, tf.reshape(weights, [1, 1, *sizes(target), -1]))

    def output_projection(self) -> Projection:
        """Return the output layer; with tied embeddings it is the target embedding's matrix."""
        return (self.output_layer or self.target_embedding).projection()

    def _decode(
        self,
        target: tf.Tensor,
        encoded: RecurrentEncoderOutput,
        unpadding: Unpadding,
        dropout_seed: tf.Tensor | None = None,
        *,
        weights: bool = False,
    ) -> tuple[tf.Tensor, Features]:
        """Return the input of the output layer at the real tokens of targets [B, T], [N, D], and their features."""
        ids = self.target_word_dropout(unpadding.flatten(target), dropout_seed)
        words = Words.of(ids, unpadding, lambda ids: self.decoder.dropouts[0](self.target_embedding(ids), dropout_seed))
        features = self.decoder.run(words, encoded.first, _only(encoded.source), dropout_seed, weights=weights)
        states = self.decoder.readout(features.parts, words.to_tokens(words.vectors))
        return self.output_dropout(states, dropout_seed), features

    def _first_state(self, finals: list[list[State]]) -> StepState:
        """Return the first state of the decoder from the final states of the encoder's directions by layer."""
        kind = self.config.first_state
        layers: list[State] = []
        for number, (cell, directions) in enumerate(zip(self.decoder.cells, finals, strict=True)):
            used = directions[-1:] if kind == "backward" else directions
            state = [tf.concat(parts, axis=-1) for parts in zip(*used, strict=True)]
            if kind == "zero":
                layers.append(cell.zero_state(sizes(state[0])[0]))
                continue
            if kind != "final":
                bridges = zip(self.bridges[number], state, strict=True)
                state = [tf.tanh(bridge(tf.cast(part, self.compute_dtype))) for bridge, part in bridges]
            types = [type_ or self.compute_dtype for type_ in cell.state_types]
            layers.append(tuple(tf.cast(part, type_) for part, type_ in zip(state, types, strict=True)))
        fed = (tf.zeros_like(layers[-1][0], self.compute_dtype),) if self.config.input_feeding else ()
        return StepState(tuple(layers), fed)


def _only(source: tuple[Source, ...]) -> Source | None:
    """Return the input of attention; None without attention."""
    return source[0] if source else None


def _with_padding(ids: tf.Tensor) -> Unpadding:
    """Return a layout of ids [B, L] that keeps padding."""
    places = tf.range(tf.size(ids))
    return Unpadding(places, tf.reshape(places, sizes(ids)))
