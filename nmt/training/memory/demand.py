"""Memory that a batch takes, extrapolated from a few of its sentences.

With padding to fixed lengths, all that a step keeps grows with the number of sentences alone: tokens, attention scores
and logits. So a line through the peaks of two small parts of a batch foretells the peak of the whole, without the risk
to be killed on the way.

Shapes: B sentences of a batch, S source length, T target length.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nmt import runtime
from nmt.data.token_arrays import Split
from nmt.runtime import tf
from nmt.training.memory.free import free_memory
from nmt.training.optimization.batch_limit import batch_shape

SMALLEST_SHARE, LARGEST_SHARE = 8, 2
"""The parts measured are from 1/8 to 1/2 of a batch, each twice the one before: TensorFlow does not count tensors below
256 KB on a processor, so that smaller parts would seem to take nothing."""
SAFE_SHARE = 0.5
"""Most of the free memory that a part may be expected to take when it is measured."""

Batch = tuple[tf.Tensor, tf.Tensor]


class PaddedSize(NamedTuple):
    """Size of a batch with its padding, eos included."""

    tokens: int
    """Number of source and target tokens."""
    pairs: int
    """Number of token pairs that attention scores: source-source, target-target and target-source."""


class Demand(NamedTuple):
    """Memory that parts of a batch take beyond what the process has."""

    rows: int
    """Number of sentences B of the batch."""
    width: int
    """Tokens of a sentence pair with padding, S + T."""
    measured: tuple[tuple[int, int], ...]
    """Sentences of each part measured, ascending, and the bytes that it took."""

    def bytes(self, rows: int) -> int:
        """Return the bytes of N sentences, on a line through the two largest parts; at least those of the smallest."""
        if len(self.measured) == 1:
            return self.measured[0][1]
        (first, low), (last, high) = self.measured[-2:]
        slope = max(0.0, (high - low) / (last - first))
        return max(self.measured[0][1], high + round(slope * (rows - last)))


def measure_demand(compute: Callable[[Batch], None], batch: Batch) -> Demand | None:
    """Measure parts of a batch, as far as memory holds the next; None where the system does not say.

    Args:
        compute: computes a batch, which may be a part; returns when that is done.
        batch: source int32 [B, S], target int32 [B, T + 1].
    """
    rows, width = batch_shape(batch)
    free = free_memory()
    compute(_part(batch, 1))  # traces
    demand = Demand(rows, width, ())
    for count in _parts(rows):
        if len(demand.measured) > 1 and demand.bytes(count) > SAFE_SHARE * (free or 0):
            break
        before = runtime.tensor_memory()
        if free is None or before is None or not runtime.reset_tensor_memory():
            return None
        compute(_part(batch, count))
        after = runtime.tensor_memory() or before
        demand = demand._replace(measured=(*demand.measured, (count, max(0, after[1] - before[0]))))
    return demand


def _parts(rows: int) -> list[int]:
    """Return the sentences of the parts to measure, ascending; the first tells what does not depend on their number."""
    found, count = [1], max(2, rows // SMALLEST_SHARE)
    while count <= rows // LARGEST_SHARE:
        found.append(count)
        count *= 2
    return found


def _part(batch: Batch, rows: int) -> Batch:
    source, target = batch
    return source[:rows], target[:rows]


def longest_batches(split: Split, plan: list[np.ndarray]) -> list[np.ndarray]:
    """Return the batch with the most tokens and the batch with the most attention scores, padding counted."""
    sizes = [padded_size(split, batch) for batch in plan]
    most_tokens = max(range(len(plan)), key=lambda number: sizes[number].tokens)
    most_pairs = max(range(len(plan)), key=lambda number: sizes[number].pairs)
    return [plan[number] for number in dict.fromkeys((most_tokens, most_pairs))]


def padded_size(split: Split, indices: np.ndarray) -> PaddedSize:
    """Return the padded size of the batch with the pairs at ``indices`` [B]."""
    source, target = (
        int((side.offsets[indices + 1] - side.offsets[indices]).max()) + 1 for side in (split.source, split.target)
    )
    return PaddedSize(
        len(indices) * (source + target), len(indices) * (source * source + target * target + source * target)
    )
