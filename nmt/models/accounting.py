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
    inputs: tuple[str, ...] = ()
    """Names of what it reads: parts beside it in the same layer, parts of the model, or ``source`` and ``target``, the
    ids of both sides. A name in brackets is read as it was in the step before."""
    sublayers: tuple["Part", ...] = ()
    """Its own parts, whose weights add up to its weights; () where it has none."""


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
    """Return the parts as a table: name, output shape, weights, inputs, kind; and their total.

    Below the first of several equal layers its sublayers follow, indented. The others are a row each.
    """
    rows: list[tuple[str, str, str, str, str]] = [("part", "output", "parameters", "reads", "what it is")]
    # A layer is known by its weights and sublayers; the names of what it reads differ from layer to layer.
    known: dict[tuple[tuple[str, str, int, str], ...], str] = {}
    for part in parts:
        alike = tuple((inner.name, inner.shape, inner.weights, inner.kind) for inner in part.sublayers)
        first = known.setdefault(alike, part.name) if alike else part.name
        kind = part.kind if first == part.name else f"as {first}"
        rows.append((part.name, part.shape, f"{part.weights:,}", ", ".join(part.inputs), kind))
        if first == part.name:
            rows += [
                (f"  {inner.name}", inner.shape, f"{inner.weights:,}", ", ".join(inner.inputs), inner.kind)
                for inner in part.sublayers
            ]
    total = count_weights(parts)
    rows.append(("all", "", f"{total:,}", "", f"{total * 4 / 2**20:,.1f} MiB in float32"))
    name, shape, weights, inputs = (max(len(row[column]) for row in rows) for column in range(4))
    return "\n".join(
        f"{row[0]:<{name}}  {row[1]:<{shape}}  {row[2]:>{weights}}  {row[3]:<{inputs}}  {row[4]}".rstrip()
        for row in rows
    )


def as_json(part: Part) -> dict[str, Any]:
    """Return a part and its sublayers as what JSON holds."""
    return {
        "name": part.name,
        "shape": part.shape,
        "weights": part.weights,
        "kind": part.kind,
        "inputs": list(part.inputs),
        "sublayers": [as_json(inner) for inner in part.sublayers],
    }
