"""Length checks: the longest sentences that a model takes, the length limits of a search, and memory errors."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from nmt.config.schema import Config
from nmt.decoding.translation import sentence_name
from nmt.errors import OutOfMemoryError, TooLongError, counted


def check_length(config: Config, side: str, tokens: int, name: str, positions: int | None = None) -> None:
    """Refuse a sentence of N ``tokens``, without bos and eos, that is longer than the model or its export takes.

    ``positions`` is the limit of an export, including bos and eos.

    Raises:
        TooLongError: if the sentence is too long; the message names it.
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
    """Return the largest number of tokens of each translation, including its prefix and eos: int32 [B].

    ``lengths``, int [B], are the source lengths as the encoder reads them, including eos and any bos;
    ``prefix_lengths``, int [B], are the lengths of the forced prefixes.
    """
    settings, limit = config.decoding, config.model.limits.target
    limits = (settings.length_ratio * lengths).astype(np.int32) + settings.max_length_extra + prefix_lengths
    return limits if limit is None else np.minimum(limits, limit)


@contextmanager
def memory_checked(encoded: Sequence[list[int]], names: Sequence[str] | None, batch_size: int) -> Iterator[None]:
    """Turn an out-of-memory error of an engine into a message.

    Raises:
        OutOfMemoryError: if memory runs out; the message names the longest sentence.
    """
    try:
        yield
    except Exception as error:
        # TensorFlow's error is recognised by its name, since an export translates without TensorFlow.
        if type(error).__name__ not in {"MemoryError", "ResourceExhaustedError"}:
            raise
        longest = max(range(len(encoded)), key=lambda index: len(encoded[index]))
        raise OutOfMemoryError(
            f"Memory ran out: the longest sentence, {sentence_name(names, longest)}, has "
            f"{counted(len(encoded[longest]), 'token')}. Split it, or set decoding.batch_size lower than {batch_size}."
        ) from error
