"""Raw text to ids within the limits of a model: what every engine that translates has in common.

Shapes: B sentences.
"""

from collections.abc import Sequence

import numpy as np

from nmt.config.schema import Config
from nmt.errors import DataError
from nmt.tokenizers.base import EOS, Tokenizer

EXPORTED = "use the run's weights, which have more positions than their export"


def encode_sources(
    tokenizer: Tokenizer,
    config: Config,
    texts: Sequence[str],
    names: Sequence[str] | None = None,
    positions: int | None = None,
) -> list[list[int]]:
    """Return the ids of raw sentences, without bos and eos.

    Args:
        tokenizer: tokenizer of the source side.
        config: configuration of the run.
        texts: sentences.
        names: name of each sentence for error messages; None: "sentence 1", "sentence 2" ...
        positions: most tokens, bos and eos included, that an export reads; None: as many as the model.

    Raises:
        DataError: for a sentence longer than the model reads; names the first of them.
    """
    encoded = [tokenizer.encode(text) for text in texts]
    trained = config.model.limits.source
    limit = min((bound for bound in (trained, positions) if bound is not None), default=None)
    if limit is None:
        return encoded
    around = 1 + int(config.model.reads_bos)
    for number, ids in enumerate(encoded):
        if len(ids) + around > limit:
            name = names[number] if names else f"sentence {number + 1}"
            remedy = f"train with {config.model.settings_for_length(len(ids) + around)}"
            raise DataError(
                f"Too long: {name} has {len(ids)} tokens. This model reads at most {limit - around} tokens of source. "
                f"Split the sentence, or {remedy if limit == trained else EXPORTED}."
            )
    return encoded


def encode_prefix(tokenizer: Tokenizer, prefix: str) -> list[int]:
    """Return the ids that translations begin with.

    Args:
        tokenizer: tokenizer of the target side.
        prefix: raw text.

    Raises:
        DataError: for a word that the model cannot generate.
    """
    if unknown := tokenizer.unknown(prefix):
        raise DataError(
            f"Prefix {prefix!r} has the word {unknown[0]!r}, which the model never saw in training. A prefix is "
            "made of words that the model can generate. Leave that word out."
        )
    return tokenizer.encode(prefix)


def encode_target(tokenizer: Tokenizer, config: Config, text: str) -> list[int]:
    """Return the ids of a raw translation, from its first word to eos.

    Args:
        tokenizer: tokenizer of the target side.
        config: configuration of the run.
        text: raw text.

    Raises:
        DataError: if it has no words, or more than the model writes.
    """
    ids = tokenizer.encode(text)
    if not ids:
        raise DataError(f"Translation {text[:60]!r} has no words after normalization. Give a translation with a word.")
    check_target_length(config, len(ids), f"translation {text[:60]!r}")
    return [*ids, EOS]


def check_target_length(config: Config, tokens: int, name: str, positions: int | None = None) -> None:
    """Refuse a translation of N ``tokens``, eos not counted, that is longer than the model, or its export, writes.

    Raises:
        DataError: with the name of the translation.
    """
    trained = config.model.limits.target
    limit = min((bound for bound in (trained, positions) if bound is not None), default=None)
    if limit is not None and tokens + 1 > limit:
        remedy = f"train with {config.model.settings_for_length(tokens + 1)}"
        raise DataError(
            f"Too long: {name} has {tokens} tokens. This model writes at most {limit - 1} tokens. Give a shorter one, "
            f"or {remedy if limit == trained else EXPORTED}."
        )


def unknown_words(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> list[str]:
    """Return what the model does not know of a raw sentence with these ids: all of it if no ids are left."""
    return tokenizer.unknown(text) if ids or not text.strip() else [text.strip()]


def max_lengths(config: Config, lengths: np.ndarray, prefix_length: int = 0) -> np.ndarray:
    """Return the most tokens of each translation, its prefix and eos included: int32 [B].

    Args:
        config: configuration of the run; its section decoding has the ratio and the extra tokens.
        lengths: tokens of each source sentence as the encoder reads it, eos and any bos included, int [B].
        prefix_length: tokens of the prefix of every translation.
    """
    settings, limit = config.decoding, config.model.limits.target
    limits = (settings.max_length_ratio * lengths).astype(np.int32) + settings.max_length_extra + prefix_length
    return limits if limit is None else np.minimum(limits, limit)
