"""Weights and arithmetic of a model, counted from its configuration: nothing is built, TensorFlow is not loaded."""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

# The gradient of a product with respect to each of its two factors is a product of the same size.
BACKWARD_PER_FORWARD = 2


class Part(NamedTuple):
    """A part of a model, in the order of the data's way through it."""

    name: str
    shape: str
    """Shape of the output in the letters B batch, S source length, T target length, and numbers."""
    weights: int
    """Number of weights; 0 for a matrix counted before."""
    kind: str
    """Kind of layer and its sizes, in words."""


class Flops(NamedTuple):
    """Floating-point operations of a forward pass."""

    projections: int
    """Operations of the queries, keys, values and outputs of attention blocks, and of gates of recurrent cells."""
    attention: int
    """Operations of attention scores and contexts."""
    feed_forward: int
    """Operations of feed-forward blocks."""
    output_layer: int
    """Operations of the logits."""

    @property
    def forward(self) -> int:
        """Sum over all parts."""
        return sum(self)

    @property
    def training(self) -> int:
        """Operations of forward and backward pass, the backward pass being twice the forward."""
        return (1 + BACKWARD_PER_FORWARD) * self.forward

    def plus(self, flops: "Flops") -> Self:
        """Return the sum, part by part."""
        return type(self)(*(mine + theirs for mine, theirs in zip(self, flops, strict=True)))


class Accounting(Protocol):
    """Account of an architecture: functions of its configuration section."""

    def parts(self, config: Any, source_vocabulary: int, target_vocabulary: int) -> list[Part]:
        """Return the parts of the model for vocabularies of these numbers of ids."""

    def flops(
        self, config: Any, source_lengths: np.ndarray, target_lengths: np.ndarray, target_vocabulary: int
    ) -> Flops:
        """Return the operations of a forward pass over sentences of these lengths, integers [B] with bos and eos."""


def count_weights(parts: Iterable[Part]) -> int:
    """Return the number of weights of all parts."""
    return sum(part.weights for part in parts)


def summary(parts: list[Part]) -> str:
    """Return the parts as a table: name, output shape, weights, kind; and their total."""
    rows = [f"{'part':<18}{'output':<16}{'parameters':>14}  what it is"]
    rows += [f"{part.name:<18}{part.shape:<16}{part.weights:>14,}  {part.kind}" for part in parts]
    total = count_weights(parts)
    return "\n".join([*rows, f"{'all':<34}{total:>14,}  {total * 4 / 2**20:,.1f} MiB in float32"])
