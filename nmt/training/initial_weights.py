"""Initial weights of a run: the weights of another run, or word vectors of the corpus.

The word vectors come from co-occurrence in sentence pairs, so a word and its translation start side by side.

The words of both languages are the rows of a matrix, and sentence pairs are its columns. If word w occurs in pair n, on
either side, the matrix has log(N / N_w) / sqrt(L_n), else 0. N_w is the number of pairs with w, and L_n the number of
different words in pair n. The vectors are the rows of U sqrt(S) for the D largest singular values, scaled to length 1.
Levy, Søgaard and Goldberg 2017, "A Strong Baseline for Learning Cross-Lingual Word Embeddings from Sentence
Alignments", use sentences as contexts of both languages. Levy, Goldberg and Dagan 2015 use the square root of the
singular values.

Shapes: V rows, D width, N pairs.
"""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from nmt.config.schema import Config
from nmt.data.dataset import Dataset
from nmt.data.token_arrays import Sequences, Split
from nmt.errors import ConflictError
from nmt.message import Argument, Command
from nmt.models.base import Seq2SeqModel
from nmt.runs.directory import Run, find_run
from nmt.runs.weights import WeightsFile, choose_epoch
from nmt.runtime import threadpool_limits
from nmt.storage.atomic import sha256

MOST_PAIRS = 200_000
"""Most pairs that are read of a corpus, evenly spaced."""
LEAST_EIGENVALUE = 1e-5
"""Squared singular values below this share of the largest count as rounding errors."""


def cooccurrence_vectors(
    split: Split, vocabulary: int, first_target: int, width: int, generator: np.random.Generator
) -> np.ndarray:
    """Return a vector of length 1 for each word, float32 [V, D]; zeros for words in no pair or in every pair.

    Args:
        split: pairs of token ids.
        vocabulary: number V of rows.
        first_target: row of target id 0; 0 if both sides share a vocabulary.
        width: D.
        generator: draws the start of the iteration, and a random rotation, because the columns of U are ordered.
    """
    occurrences = _occurrences(split, vocabulary, first_target)
    pairs = occurrences.shape[1]
    pairs_of_word, words_of_pair = (np.maximum(occurrences.sum(axis), 1) for axis in (1, 0))
    inverse_frequency = sparse.diags_array(np.log(pairs / pairs_of_word))
    weighted = (inverse_frequency @ occurrences @ sparse.diags_array(words_of_pair**-0.5)).tocsr()
    squared = LinearOperator((vocabulary, vocabulary), lambda x: weighted @ (weighted.T @ x), dtype=weighted.dtype)
    known = weighted.sum(axis=1) > 0
    # One thread: rounding depends on the number of threads, and rotates the vectors of nearly equal eigenvalues.
    # Threads that share the cores with other work would also make these small products many times slower.
    with threadpool_limits(limits=1, user_api="blas"):
        vectors = np.zeros((vocabulary, width))
        if dimensions := min(width, vocabulary - 1) if known.any() else 0:
            values, left = eigsh(squared, dimensions, rng=generator)
            is_real = values > LEAST_EIGENVALUE * values.max()
            vectors[:, : is_real.sum()] = left[:, is_real] * values[is_real] ** 0.25
        rotation, _ = np.linalg.qr(generator.normal(size=(width, width)))
        lengths = np.linalg.norm(vectors, axis=1)
        known &= lengths > 0
        vectors[known] = vectors[known] / lengths[known, np.newaxis] @ rotation
    return np.where(known[:, np.newaxis], vectors, 0).astype(np.float32)


def _occurrences(split: Split, vocabulary: int, first_target: int) -> sparse.csr_array:
    """Return a matrix [V, N] that is 1 where a word occurs in a pair."""
    chosen = np.unique(np.linspace(0, len(split) - 1, min(len(split), MOST_PAIRS)).astype(int))

    def tokens_of(sequences: Sequences) -> tuple[np.ndarray, np.ndarray]:
        rows = [sequences[index] for index in chosen]
        return np.concatenate(rows).astype(np.int64), np.repeat(np.arange(len(rows)), list(map(len, rows)))

    (source, source_pairs), (target, target_pairs) = tokens_of(split.source), tokens_of(split.target)
    words, pairs = np.concatenate([source, target + first_target]), np.concatenate([source_pairs, target_pairs])
    matrix = sparse.csr_array((np.ones(len(words), np.float32), (words, pairs)), shape=(vocabulary, len(chosen)))
    matrix.data[:] = 1  # a word that occurs in a pair twice was counted twice
    return matrix


def starts_at_random(config: Config) -> bool:
    """Return whether the seed alone determines all initial weights."""
    return not config.training.start_from and config.training.initial_embeddings == "random"


def set_initial_weights(model: Seq2SeqModel, config: Config, dataset: Dataset) -> None:
    """Load the weights ``RUN`` or ``RUN:EPOCH`` of ``training.start_from``, or set its ``initial_embeddings``.

    Raises:
        NotFoundError: if there is no such run or epoch.
        ConflictError: if its tokenizers differ from the dataset's.
        DataError: for weights that are damaged or belong to another model.
    """
    if config.training.start_from:
        name, _, epoch = config.training.start_from.partition(":")
        run = find_run(name)
        check_tokenizers(run, dataset, "would start from")
        WeightsFile(run, choose_epoch(run, epoch or None)).load(model)
    elif config.training.initial_embeddings == "cooccurrence":
        set_word_vectors(model, dataset, config.training.seed)


def set_word_vectors(model: Seq2SeqModel, dataset: Dataset, seed: int) -> None:
    """Set the embeddings to co-occurrence vectors, scaled to the length of the random vectors.

    Words without such a vector, such as bos and eos, keep their random vectors.
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


def check_tokenizers(run: Run, dataset: Dataset, purpose: str) -> None:
    """Check that a run and a dataset have the same tokenizers.

    Args:
        run: run whose weights are used.
        dataset: dataset that is trained on.
        purpose: how training uses the weights, such as "would start from".

    Raises:
        ConflictError: if the tokenizers differ.
    """
    dataset_hashes = {file.name: sha256(file) for file in dataset.tokenizer_files}
    run_hashes = {file.name: sha256(file) for file in run.tokenizer_files}
    if dataset_hashes != run_hashes:
        raise ConflictError(
            f"Run {run.name!r} and dataset {dataset.name!r} have different tokenizers, and training {purpose} the "
            "run's weights. Weights only fit the ids of their own tokenizers. Prepare the data with them: ",
            Command("prepare FILE", Argument("tokenizer_of", run.name), Argument("name", "NAME")),
        )
