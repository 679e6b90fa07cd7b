"""Weights that a run starts from: those of another run, or word vectors of the corpus.

The vectors come from the sentence pairs that words stand in: a word and its translation start side by side.

The words of both languages are the rows of a matrix, sentence pairs its columns. Where word w stands in pair n, on
either side, the matrix has log(N / N_w) / sqrt(L_n), else 0; N_w is the number of pairs with w, L_n the number of
different words of n. Vectors are the rows of U sqrt(S) for the D largest singular values, brought to one length.
Sentences as contexts of both languages: Levy, Søgaard and Goldberg 2017, "A Strong Baseline for Learning Cross-Lingual
Word Embeddings from Sentence Alignments". Square root of the singular values: Levy, Goldberg and Dagan 2015.

Shapes: V rows, D width, N pairs.
"""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, eigsh

from nmt.config.schema import Config
from nmt.data.dataset import Dataset
from nmt.data.token_arrays import Sequences, Split
from nmt.errors import ConflictError
from nmt.models.base import Seq2SeqModel
from nmt.runs.directory import Run, find_run
from nmt.runs.weights import WeightsFile, choose_epoch
from nmt.runtime import threadpool_limits
from nmt.storage.atomic import sha256

MOST_PAIRS = 200_000
"""Pairs that are read of a corpus, at even distances."""
LEAST_EIGENVALUE = 1e-5
"""Share of the largest square of a singular value below which one is rounding error."""


def cooccurrence_vectors(
    split: Split, vocabulary: int, first_target: int, width: int, generator: np.random.Generator
) -> np.ndarray:
    """Return a vector of length 1 for each word, float32 [V, D]; zeros for words of no pair and of all pairs.

    Args:
        split: pairs of token ids.
        vocabulary: number V of rows.
        first_target: row of target id 0; 0 if the ids of both sides are those of one vocabulary.
        width: D.
        generator: starts the iteration and turns the vectors, since the columns of U have an order.
    """
    occurrences = _occurrences(split, vocabulary, first_target)
    pairs = occurrences.shape[1]
    of_words, of_pairs = (np.maximum(occurrences.sum(axis), 1) for axis in (1, 0))
    weighted = sparse.diags_array(np.log(pairs / of_words)) @ occurrences @ sparse.diags_array(of_pairs**-0.5)
    weighted = weighted.tocsr()
    squared = LinearOperator((vocabulary, vocabulary), lambda x: weighted @ (weighted.T @ x), dtype=weighted.dtype)
    known = weighted.sum(axis=1) > 0
    # One thread: rounding depends on the number of threads, and turns the vectors of eigenvalues that are nearly equal.
    # Also, threads that share the cores with other work make these small products many times slower.
    with threadpool_limits(limits=1, user_api="blas"):
        vectors = np.zeros((vocabulary, width))
        if dimensions := min(width, vocabulary - 1) if known.any() else 0:
            values, left = eigsh(squared, dimensions, rng=generator)
            real = values > LEAST_EIGENVALUE * values.max()
            vectors[:, : real.sum()] = left[:, real] * values[real] ** 0.25
        rotation, _ = np.linalg.qr(generator.normal(size=(width, width)))
        lengths = np.linalg.norm(vectors, axis=1)
        known &= lengths > 0
        vectors[known] = vectors[known] / lengths[known, np.newaxis] @ rotation
    return np.where(known[:, np.newaxis], vectors, 0).astype(np.float32)


def _occurrences(split: Split, vocabulary: int, first_target: int) -> sparse.csr_array:
    """Return 1 where a word stands in a pair, [V, N]."""
    chosen = np.unique(np.linspace(0, len(split) - 1, min(len(split), MOST_PAIRS)).astype(int))

    def tokens_of(sequences: Sequences) -> tuple[np.ndarray, np.ndarray]:
        rows = [sequences[index] for index in chosen]
        return np.concatenate(rows).astype(np.int64), np.repeat(np.arange(len(rows)), list(map(len, rows)))

    (source, source_pairs), (target, target_pairs) = tokens_of(split.source), tokens_of(split.target)
    words, pairs = np.concatenate([source, target + first_target]), np.concatenate([source_pairs, target_pairs])
    matrix = sparse.csr_array((np.ones(len(words), np.float32), (words, pairs)), shape=(vocabulary, len(chosen)))
    matrix.data[:] = 1  # a word that stands in a pair twice was counted twice
    return matrix


def starts_at_random(config: Config) -> bool:
    """Return whether all initial weights follow from the seed."""
    return not config.training.start_from and config.training.initial_embeddings == "random"


def set_initial_weights(model: Seq2SeqModel, config: Config, dataset: Dataset) -> None:
    """Load the weights ``RUN`` or ``RUN:EPOCH`` of ``training.start_from``, or set its ``initial_embeddings``.

    Raises:
        NotFoundError: if there is no such run or epoch.
        ConflictError: if its tokenizers are not those of the dataset.
        DataError: for weights that are damaged or of another model.
    """
    if config.training.start_from:
        name, _, epoch = config.training.start_from.partition(":")
        run = find_run(name)
        check_tokenizers(run, dataset, "is to start from")
        WeightsFile(run, choose_epoch(run, epoch or None)).load(model)
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


def check_tokenizers(run: Run, dataset: Dataset, doing: str) -> None:
    """Make sure that the weights of a run know the ids of a dataset.

    Raises:
        ConflictError: if the tokenizers of the run are not those of the dataset.
    """
    of_dataset = {file.name: sha256(file) for file in dataset.tokenizer_files}
    of_run = {file.name: sha256(file) for file in run.tokenizer_files}
    if of_dataset != of_run:
        raise ConflictError(
            f"The tokenizers of run {run.name!r} are not those of dataset {dataset.name!r}, which {doing} its weights. "
            "Weights know the ids of their own tokenizers alone. Prepare the data with them: "
            f"nmt prepare FILE --tokenizer-of {run.name} --name NAME"
        )
