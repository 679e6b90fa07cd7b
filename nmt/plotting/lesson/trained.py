"""Trained embeddings of a run, read from its files without TensorFlow.

Shapes: V ids of a vocabulary, D width of an embedding.
"""

from typing import Literal, NamedTuple

import numpy as np

from nmt.config.model import TransformerConfig
from nmt.config.schema import Config
from nmt.errors import DataError, NotFoundError
from nmt.models.layers.positions import sinusoidal_encoding
from nmt.runs.directory import Run
from nmt.runs.metrics import WeightsId
from nmt.runs.weights import choose_epoch
from nmt.storage.arrays import Arrays, read_arrays
from nmt.tokenizers.base import FIRST_WORD, Tokenizer
from nmt.tokenizers.registry import load_tokenizer

Side = Literal["source", "target"]


class Weights(NamedTuple):
    """Weights of a run, and where they are from."""

    run: Run
    config: Config
    weights_id: WeightsId
    arrays: Arrays

    @property
    def epoch(self) -> str:
        """Epoch for a title."""
        return f"epoch {self.weights_id}" if isinstance(self.weights_id, int) else str(self.weights_id)

    def array(self, *names: str) -> np.ndarray:
        """Return the first array that the file holds under one of these names.

        Raises:
            DataError: if it holds none.
        """
        for name in names:
            if name in self.arrays:
                return self.arrays[name]
        raise DataError(
            f"{self.run.weights_path(self.weights_id)} holds no {names[0]}, which the configuration of run "
            f"{self.run.name!r} asks for. Restore a copy of it, or train that epoch again."
        )


def read_weights(run: Run, epoch: str | None = None) -> Weights:
    """Return the weights that ``nmt translate`` takes for ``--epoch``.

    Raises:
        NotFoundError: if the run has no such weights.
        DataError: if the file is damaged.
    """
    chosen = choose_epoch(run, epoch)
    return Weights(run, run.config(), chosen, read_arrays(run.weights_path(chosen)))


def position_matrix(weights: Weights, side: Side, length: int | None = None) -> np.ndarray:
    """Return the position embedding of a side, float32 [L, D]: learned, or L sinusoids.

    Args:
        weights: weights of a Transformer.
        side: encoder or decoder.
        length: number of positions; None: all that were learned.
    """
    model = transformer(weights.run, weights.config)
    if model.positions == "learned":
        return weights.array(f"{side}_positions/matrix")[:length]
    return sinusoidal_encoding(length or 1, model.d_model, model.position_base)


def transformer(run: Run, config: Config) -> TransformerConfig:
    """Return the section model of a Transformer.

    Raises:
        NotFoundError: for a model without position embedding.
    """
    if not isinstance(config.model, TransformerConfig):
        raise NotFoundError(
            f"Run {run.name!r} has a model of architecture {config.model.architecture!r}, which has no position "
            "embedding. Choose another figure, or a run with a Transformer."
        )
    return config.model


class Vocabulary(NamedTuple):
    """Ids of a side with their trained vectors."""

    tokenizer: Tokenizer
    pieces: list[str]
    """Piece of each id [V]."""
    vectors: np.ndarray
    """Word embedding, float32 [V, D]."""

    def words(self) -> list[int]:
        """Return the ids of pieces of text, most frequent first: neither special ids nor bytes."""
        return [id_ for id_, piece in enumerate(self.pieces) if id_ >= FIRST_WORD and not is_byte(piece)]


def vocabulary(weights: Weights, side: Side) -> Vocabulary:
    """Return the tokens of a side with their vectors.

    Raises:
        NotFoundError: for fixed word embeddings.
        DataError: if the files of the run do not fit each other.
    """
    model = weights.config.model
    if isinstance(model, TransformerConfig) and model.word_embedding == "sinusoidal":
        raise NotFoundError(
            f"Run {weights.run.name!r} has fixed word embeddings (model.word_embedding: sinusoidal), which training "
            "leaves as they are. Choose a run with trained ones."
        )
    tokenizer = load_tokenizer(weights.run.tokenizer_path(side))
    vectors = weights.array(f"{side}_embedding/matrix", "embedding/matrix")
    if len(vectors) != tokenizer.size:
        raise DataError(
            f"{weights.run.weights_path(weights.weights_id)} has {len(vectors):,} word embeddings, and "
            f"{weights.run.tokenizer_path(side)} has {tokenizer.size:,} ids. Restore a copy of the one that is not of "
            f"run {weights.run.name!r}."
        )
    return Vocabulary(tokenizer, tokenizer.pieces(range(tokenizer.size)), vectors)


def is_byte(piece: str) -> bool:
    """Return whether a piece stands for a byte, such as "<0x0A>", rather than for text."""
    return len(piece) == len("<0x0A>") and piece.startswith("<0x") and piece.endswith(">")
