"""Lengths of sentences and translations: what a model takes, and the limits of a search."""

import numpy as np

from nmt.config.schema import Config
from nmt.errors import TooLongError


def check_length(config: Config, side: str, tokens: int, name: str, positions: int | None = None) -> None:
    """Refuse a sentence of N ``tokens``, bos and eos not counted, that is longer than the model, or its export, takes.

    ``positions`` is the limit of an export, bos and eos included.

    Raises:
        TooLongError: with the name of the sentence.
    """
    special = 1 + int(side == "source" and config.model.reads_bos)
    trained = getattr(config.model.limits, side)
    limit = min((bound for bound in (trained, positions) if bound is not None), default=None)
    if limit is None or tokens + special <= limit:
        return
    takes, shorter = ("reads", "Split the sentence") if side == "source" else ("writes", "Give a shorter one")
    remedy = "use the run's weights, which have more positions than their export"
    if limit == trained:
        remedy = f"train with {config.model.settings_for_length(tokens + special)}"
    raise TooLongError(
        f"Too long: {name} has {tokens} tokens. This model {takes} at most {limit - special} tokens"
        f"{' of source' if side == 'source' else ''}. {shorter}, or {remedy}."
    )


def max_lengths(config: Config, lengths: np.ndarray, prefix_length: int = 0) -> np.ndarray:
    """Return the most tokens of each translation, its prefix and eos included: int32 [B].

    ``lengths``, int [B], are of the sources as the encoder reads them, eos and any bos included.
    """
    settings, limit = config.decoding, config.model.limits.target
    limits = (settings.max_length_ratio * lengths).astype(np.int32) + settings.max_length_extra + prefix_length
    return limits if limit is None else np.minimum(limits, limit)
