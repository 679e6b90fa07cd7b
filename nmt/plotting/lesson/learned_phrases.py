"""Word plus position embeddings of phrases that a run learned."""

from collections.abc import Sequence

from nmt.plotting.lesson.phrases import Embedded, check_length
from nmt.plotting.lesson.trained import Vocabulary, Weights, position_matrix, transformer
from nmt.tokenizers.base import BOS, EOS


def learned_embeddings(phrases: Sequence[str], weights: Weights, vocabulary: Vocabulary) -> list[Embedded]:
    """Return what the encoder of a run reads of phrases: scaled word embedding plus position embedding.

    Args:
        phrases: raw phrases.
        weights: weights of a run with a Transformer.
        vocabulary: its source side.

    Raises:
        DataError: for a phrase without tokens, or with more than fit.
    """
    model = transformer(weights.run, weights.config)
    longest = None if model.limits.source is None else model.limits.source - 1 - int(model.reads_bos)
    factor = model.d_model**0.5 if model.scale_embeddings else 1.0
    found = []
    for phrase in phrases:
        ids = vocabulary.tokenizer.encode(phrase)
        check_length(phrase, len(ids), longest)
        ids = [*([BOS] if model.reads_bos else []), *ids, EOS]
        positions = position_matrix(weights, "source", len(ids))
        found.append(Embedded(phrase, vocabulary.tokenizer.pieces(ids), vocabulary.vectors[ids] * factor + positions))
    return found
