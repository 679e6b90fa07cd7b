"""Sets the initial weights that the configuration asks for, in place of random ones."""

import numpy as np

from nmt.config.schema import Config
from nmt.data.dataset import Dataset
from nmt.models.base import Seq2SeqModel
from nmt.training.initial_weights.cooccurrence import cooccurrence_vectors
from nmt.training.resume import load_initial_weights


def starts_at_random(config: Config) -> bool:
    """Return whether all initial weights follow from the seed."""
    return not config.training.start_from and config.training.initial_embeddings == "random"


def set_initial_weights(model: Seq2SeqModel, config: Config, dataset: Dataset) -> None:
    """Load the weights of ``training.start_from``, or set the embeddings of ``training.initial_embeddings``.

    Raises:
        NotFoundError, ConflictError, DataError: for weights that are missing, of another vocabulary, or damaged.
    """
    if config.training.start_from:
        load_initial_weights(config.training.start_from, model, dataset)
    elif config.training.initial_embeddings == "cooccurrence":
        set_word_vectors(model, dataset, config.training.seed)


def set_word_vectors(model: Seq2SeqModel, dataset: Dataset, seed: int) -> None:
    """Set the embeddings to co-occurrence vectors as long as the random ones are.

    Words without such a vector, as are bos and eos, keep their random vectors.
    """
    source, target = (embedding.matrix for embedding in (model.source_embedding, model.target_embedding))
    matrices = [source] if source is target else [source, target]
    rows, width = [matrix.shape[0] for matrix in matrices], source.shape[1]
    first_target = 0 if source is target else rows[0]
    vectors = cooccurrence_vectors(dataset.split("train"), sum(rows), first_target, width, np.random.default_rng(seed))
    for matrix, new in zip(matrices, np.split(vectors, np.cumsum(rows)[:-1]), strict=True):
        random = np.asarray(matrix)
        length = np.sqrt(np.mean(np.sum(np.square(random), axis=1)))
        matrix.assign(np.where(new.any(axis=1, keepdims=True), length * new, random))
