"""Largest batch that memory holds, as shortages have shown: larger batches are computed in parts.

Shapes: B sentences of a batch, S source length, T target length.
"""

import contextlib
from collections.abc import Callable, Iterator
from itertools import pairwise

from nmt.runtime import tf

UNLIMITED = 2**62
SHORTAGES = tf.errors.ResourceExhaustedError, MemoryError
"""Of an allocator of tensors, and of the process besides, as while TensorFlow words the first."""
UPDATE = "while the weights were updated"

Bounds = list[tuple[int, int]]
"""First sentence and end of each part of a batch."""


class ShortageError(Exception):
    """Shortage of memory that smaller parts do not cure; says what could not be computed."""


@contextlib.contextmanager
def updating() -> Iterator[None]:
    """Turn a shortage of memory inside the block, which leaves an update half done, into a ShortageError."""
    try:
        yield
    except SHORTAGES as error:
        raise ShortageError(UPDATE) from error


class BatchLimit:
    """Most tokens of a batch, source and target with padding, that are computed at once.

    A shortage of memory lowers the limit below the size that failed. The parts of a batch are a function of its shape
    and of the limit, so that a resumed run, which has the limit from its checkpoint, computes the same parts.
    """

    def __init__(self) -> None:
        """Start without a limit."""
        self.tokens = UNLIMITED
        """Limit in force: tokens of a batch; ``UNLIMITED`` before the first shortage."""
        self.found = UNLIMITED
        """Lowest limit found since, which ``settle`` puts in force."""

    def bounds(self, batch: tuple[tf.Tensor, tf.Tensor], limit: int) -> Bounds:
        """Return the parts of a batch within a limit: the fewest by halving, or single sentences."""
        rows, width = batch_shape(batch)
        parts = 1
        while parts < rows and -(-rows // parts) * width > limit:
            parts = min(2 * parts, rows)
        return list(pairwise(rows * part // parts for part in range(parts + 1)))

    def compute(
        self,
        batch: tuple[tf.Tensor, tf.Tensor],
        whole: Callable[[], None],
        in_parts: Callable[[Bounds], None],
        is_unchanged: Callable[[], bool],
    ) -> bool:
        """Compute a batch at once, and after a shortage of memory in parts, whose number doubles until they fit.

        Args:
            batch: source int32 [B, S], target int32 [B, T + 1].
            whole: computes it at once.
            in_parts: computes it in parts, and begins anew each time.
            is_unchanged: whether ``whole``, which failed, has changed nothing.

        Returns:
            Whether it was computed in parts.

        Raises:
            ShortageError: if it cannot be computed at all, or failed while results were changed.
        """
        limit = self.tokens
        while True:
            bounds = self.bounds(batch, limit)
            try:
                if len(bounds) == 1:
                    whole()
                else:
                    in_parts(bounds)
            except SHORTAGES as error:
                if len(bounds) == 1 and not is_unchanged():
                    raise ShortageError(UPDATE) from error
                rows, width = max(end - first for first, end in bounds), batch_shape(batch)[1]
                if rows == 1:
                    raise ShortageError(f"on a single sentence pair of {width:,} tokens") from error
                limit = rows * width - 1
            else:
                self.found = min(self.found, limit)
                return len(bounds) > 1

    def settle(self, limit: int | None = None) -> None:
        """Put the limit found in force, or one that all workers have agreed on."""
        self.tokens = min(self.tokens, self.found if limit is None else limit)
        self.found = self.tokens


def batch_shape(batch: tuple[tf.Tensor, tf.Tensor]) -> tuple[int, int]:
    """Return the sentences of a batch, B, and the tokens of a sentence pair with padding, S + T."""
    source, target = batch
    rows, length = source.shape
    return rows, length + target.shape[1] - 1
