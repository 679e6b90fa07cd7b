"""Lengths of sentences and translations: what a model takes, the limits of a search, and what memory holds."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from nmt.config.schema import Config
from nmt.decoding.translation import name_of
from nmt.errors import OutOfMemoryError, TooLongError, counted


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
        f"Too long: {name} has {counted(tokens, 'token')}. This model {takes} at most "
        f"{counted(limit - special, 'token')}{' of source' if side == 'source' else ''}. {shorter}, or {remedy}."
    )


def max_lengths(config: Config, lengths: np.ndarray, prefix_lengths: np.ndarray | int = 0) -> np.ndarray:
    """Return the most tokens of each translation, its prefix and eos included: int32 [B].

    ``lengths``, int [B], are of the sources as the encoder reads them, eos and any bos included; ``prefix_lengths``,
    int [B], are of what the translations begin with.
    """
    settings, limit = config.decoding, config.model.limits.target
    limits = (settings.max_length_ratio * lengths).astype(np.int32) + settings.max_length_extra + prefix_lengths
    return limits if limit is None else np.minimum(limits, limit)


@contextmanager
def memory_checked(encoded: Sequence[list[int]], names: Sequence[str] | None, batch_size: int) -> Iterator[None]:
    """Refuse in words what memory does not hold.

    Raises:
        OutOfMemoryError: with the name of the longest sentence.
    """
    try:
        yield
    except Exception as error:
        # TensorFlow's error is told by its name: an export translates without TensorFlow.
        if type(error).__name__ not in {"MemoryError", "ResourceExhaustedError"}:
            raise
        longest = max(range(len(encoded)), key=lambda number: len(encoded[number]))
        raise OutOfMemoryError(
            f"Memory ran out: the longest sentence, {name_of(names, longest)}, has "
            f"{counted(len(encoded[longest]), 'token')}. Split it, or set decoding.batch_size lower than {batch_size}."
        ) from error
