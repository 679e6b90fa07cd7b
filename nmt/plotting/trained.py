"""Figures of a run's trained embeddings of words and positions, and readers of its weights. Loads no TensorFlow.

Shapes: V ids of a vocabulary, L positions or tokens, D width of an embedding.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from nmt.config.schema import Config, TransformerConfig
from nmt.errors import DataError, NotFoundError
from nmt.models.layers.positions import sinusoidal_encoding
from nmt.plotting.sentences import Embedded, check_length
from nmt.plotting.sinusoids import MAX_SIMILAR, Encoding, cosines
from nmt.plotting.style import SIMILARITIES, add_bar, add_title, label, run_title, show_matrix
from nmt.runs.directory import Run
from nmt.runs.metrics import WeightsId
from nmt.runs.weights import choose_epoch
from nmt.storage.arrays import Arrays, read_arrays
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD, Tokenizer
from nmt.tokenizers.registry import load_tokenizer

BYTE = re.compile("<0x[0-9A-F]{2}>")  # a piece that stands for a byte rather than for text
SINUSOIDAL_POSITIONS = 100  # number of positions in a figure of sinusoids, which have no end

Side = Literal["source", "target"]


class Weights(NamedTuple):
    """Weights read from a file of a run."""

    run: Run
    config: Config
    weights_id: WeightsId
    arrays: Arrays

    @property
    def title(self) -> str:
        """Run and epoch for a title."""
        return f"{run_title(self.run)} · {'epoch ' if isinstance(self.weights_id, int) else ''}{self.weights_id}"

    def array(self, *names: str) -> np.ndarray:
        """Return the array with the first of these names that the file holds.

        Raises:
            DataError: if the file holds none of them.
        """
        for name in names:
            if name in self.arrays:
                return self.arrays[name]
        raise DataError(
            f"{self.run.weights_path(self.weights_id)} holds no {names[0]}, which the configuration of run "
            f"{self.run.name!r} asks for. Restore a copy of it, or train that epoch again."
        )


def read_weights(run: Run, epoch: str | None = None) -> Weights:
    """Return the weights that ``nmt translate --epoch`` would use.

    Raises:
        NotFoundError: if the run has no such weights.
        DataError: if the file is damaged.
    """
    chosen = choose_epoch(run, epoch)
    return Weights(run, run.config(), chosen, read_arrays(run.weights_path(chosen)))


def transformer(run: Run, config: Config) -> TransformerConfig:
    """Return the model section of a run's configuration, which must be a Transformer's.

    Raises:
        NotFoundError: for another architecture, which has no position embedding.
    """
    if not isinstance(config.model, TransformerConfig):
        raise NotFoundError(
            f"Run {run.name!r} has a model of architecture {config.model.architecture!r}, which has no position "
            "embedding. Choose another figure, or a run with a Transformer."
        )
    return config.model


class Vocabulary(NamedTuple):
    """Vocabulary of a side with its trained word embeddings."""

    tokenizer: Tokenizer
    pieces: list[str]
    """Piece of each id [V]."""
    vectors: np.ndarray
    """Word embedding, float32 [V, D]."""

    def words(self) -> list[int]:
        """Return the ids that stand for text, most frequent first, without special ids and bytes."""
        return [id_ for id_, piece in enumerate(self.pieces) if id_ >= FIRST_WORD and not BYTE.fullmatch(piece)]


def read_vocabulary(weights: Weights, side: Side) -> Vocabulary:
    """Return the vocabulary of a side with its word embeddings.

    Raises:
        NotFoundError: if the word embeddings are not trained.
        DataError: if weights and tokenizer have different numbers of ids.
    """
    model = weights.config.model
    if isinstance(model, TransformerConfig) and model.word_embedding == "sinusoidal":
        raise NotFoundError(
            f"Run {weights.run.name!r} has fixed word embeddings (model.word_embedding: sinusoidal), which training "
            "does not change. Choose a run with trained word embeddings."
        )
    tokenizer = load_tokenizer(weights.run.tokenizer_path(side))
    vectors = weights.array(f"{side}_embedding/matrix", "embedding/matrix")
    if len(vectors) != tokenizer.size:
        raise DataError(
            f"{weights.run.weights_path(weights.weights_id)} has {len(vectors):,} word embeddings, but "
            f"{weights.run.tokenizer_path(side)} has {tokenizer.size:,} ids. The two files must be of the same run. "
            f"Restore the file that does not belong to run {weights.run.name!r}."
        )
    return Vocabulary(tokenizer, tokenizer.pieces(range(tokenizer.size)), vectors)


def learned_embeddings(phrases: Sequence[str], weights: Weights, vocabulary: Vocabulary) -> list[Embedded]:
    """Return the input of a Transformer's encoder for phrases: scaled word embeddings plus position embeddings.

    Rotary positions add nothing here, since they turn queries and keys.

    Raises:
        DataError: for a phrase without tokens, or with more tokens than the model reads.
    """
    model = transformer(weights.run, weights.config)
    longest = None if model.limits.source is None else model.limits.source - 1 - int(model.reads_bos)
    factor = model.d_model**0.5 if model.scale_embeddings else 1.0
    embedded = []
    for phrase in phrases:
        ids = vocabulary.tokenizer.encode(phrase)
        check_length(phrase, len(ids), longest)
        ids = [*([BOS] if model.reads_bos else []), *ids, EOS]
        values = vocabulary.vectors[ids] * factor
        if model.positions == "learned":
            values = values + weights.array("source_positions/matrix")[: len(ids)]
        elif model.positions == "sinusoidal":
            values = values + sinusoidal_encoding(len(ids), model.d_model, model.position_base)
        embedded.append(Embedded(phrase, vocabulary.tokenizer.pieces(ids), values))
    return embedded


def draw_positions(figure: Figure, run: Run) -> None:
    """Draw the position embeddings of a run as an image, and the cosines of all pairs of positions beside it.

    Learned embeddings have a row of panels for the encoder and another for the decoder. Sinusoids are the same in both.
    For rotary positions, the figure shows sines and cosines of the angles by which a head is turned; a cosine is then
    the score of two equal vectors at these positions. At most ``MAX_SIMILAR`` positions are drawn.

    Raises:
        NotFoundError: for a model without position embedding, and for learned positions of a run without weights.
        DataError: if the weights are damaged or hold no learned positions.
    """
    model = transformer(run, run.config())
    matrices: dict[str, np.ndarray]
    if model.positions == "learned":
        weights = read_weights(run)
        details = weights.title
        sides = {"encoder": "source", "decoder": "target"}
        matrices = {name: weights.array(f"{side}_positions/matrix")[:MAX_SIMILAR] for name, side in sides.items()}
    else:
        details = f"{run_title(run)} · base {model.position_base:,.12g}"
        rotary = model.positions == "rotary"
        width = model.size_per_head if rotary else model.d_model
        encoding = Encoding(SINUSOIDAL_POSITIONS, width, model.position_base)
        matrices = {"each head of self-attention" if rotary else "encoder and decoder": encoding.matrix()}
    figure.set_figheight(0.7 + 4.3 * len(matrices))
    add_title(figure, f"{model.positions.capitalize()} position embedding", details)
    panels = figure.subplots(len(matrices), 2, squeeze=False, width_ratios=[1.25, 1])
    for (name, matrix), (left, right) in zip(matrices.items(), panels, strict=True):
        bound = float(np.abs(matrix).max())
        similarity = cosines(matrix)
        limits = min(0.0, float(similarity.min())), 1
        for axes, image, value in (
            (left, show_matrix(left, matrix, (-bound, bound)), "value"),
            (right, show_matrix(right, similarity, limits, SIMILARITIES), "cosine"),
        ):
            add_bar(figure, image, axes, value, location="bottom", aspect=30, pad=0.02)
        label(left, "dimension", "position", name)
        label(right, "position", "position", "cosine of any two positions")
