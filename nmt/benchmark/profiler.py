"""Where the time of a step goes, read from TensorFlow's own trace of the operations that run.

TensorFlow's profiler notes when each operation of a graph starts and ends on each thread. Operations run side by side,
so their durations add up to more than the time that passes; here every instant is shared out equally among the
operations that run at it, and what comes out adds up to the time that passed. Two things to know when reading it: an
operation that waits for processor cores that another one holds counts its wait as its own, and tracing itself slows a
step of many small operations down by some percent.

Only operations on the processor can be read so; a GPU runs them after the thread that asked for them has gone on.
"""

import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tensorflow.tsl.profiler.protobuf import xplane_pb2

from nmt.runtime import tf

STEP = "nmt_step"
NOTHING = "no operation running"
# The first that matches "type name" of an operation says its kind. A name starts with those of its scopes and layers.
KINDS = {
    "optimizer": r" (?:\S*/)?optimizer/",
    "sums of gradients and biases": r"^(AddN|BiasAddGrad) |column_sums",
    "matrix products": r"^\S*(MatMul|Einsum)\S* ",
    "loss and accuracy": r"CrossEntropy|loss_|^ArgMax |^TensorScatter\S* ",
    "dropout": r"^\S*Random\S* |dropout",
    "layer norms": r"norm",
    "softmax": r"Softmax",
    "embeddings and positions": r"embedding|positions",
    "casts": r"^Cast ",
    "packing, transposes and copies": r"^\S*(Transpose|Gather|Scatter|Concat|Split|Slice|Pack|Reshape|Broadcast|Tile"
    r"|Identity|Copy)\S* ",
}
OTHER_KIND = "other"


class Operation(NamedTuple):
    """One run of an operation."""

    start: int
    """Picoseconds since some moment."""
    end: int
    kind: str
    """Its type, such as MatMul; TensorFlow's faster versions have names of their own, such as _MklMatMul."""
    name: str
    """Its name in the graph."""


class Times(NamedTuple):
    """Seconds of a traced step, shared out: the values of either dictionary add up to ``step``."""

    step: float
    """Mean seconds of a step."""
    by_phase: dict[str, float]
    by_kind: dict[str, float]


def trace(step: Callable[[], None], steps: int) -> Times:
    """Run ``step`` so many times under the profiler; it has been run before, and waits until its work is done."""
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        try:
            for _ in range(steps):
                with tf.profiler.experimental.Trace(STEP):
                    step()
        finally:
            tf.profiler.experimental.stop()
        (path,) = Path(folder).rglob("*.xplane.pb")
        spans, operations = read_trace(path)
    shares, nothing = share_out(spans, operations)
    seconds = 1e-12 / steps

    def by(label: Callable[[Operation], str]) -> dict[str, float]:
        sums: dict[str, float] = defaultdict(float)
        for operation, share in zip(operations, shares, strict=True):
            sums[label(operation)] += share * seconds
        sums[NOTHING] = nothing * seconds
        return dict(sums)

    return Times(sum(end - start for start, end in spans) * seconds, by(phase_of), by(kind_of))


def read_trace(path: Path) -> tuple[list[tuple[int, int]], list[Operation]]:
    """Return the steps, as (start, end), and the operations in a trace file that the profiler wrote."""
    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    spans, operations = [], []
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                what = plane.event_metadata[event.metadata_id]
                start = line.timestamp_ns * 1000 + event.offset_ps
                end = start + event.duration_ps
                name, colon, kind = what.name.rpartition(":")
                if what.name == STEP:
                    spans.append((start, end))
                elif colon and kind == what.display_name:  # the form in which an executor names an operation
                    operations.append(Operation(start, end, kind, name))
    return spans, operations


def share_out(spans: Iterable[tuple[int, int]], operations: list[Operation]) -> tuple[list[float], float]:
    """Share the time within ``spans``, which do not overlap, among the operations that run at each instant.

    Returns:
        The share of each operation, and the time at which none ran; together they are as long as the spans.
    """
    marks: list[tuple[int, bool, int | None]]
    marks = [(time, opens, None) for span in spans for time, opens in zip(span, (True, False), strict=True)]
    marks += [
        (time, opens, number)
        for number, operation in enumerate(operations)
        for time, opens in ((operation.start, True), (operation.end, False))
    ]
    shares, nothing = [0.0] * len(operations), 0.0
    running: set[int] = set()
    inside, before = False, 0
    for time, opens, number in sorted(marks, key=lambda mark: mark[0]):
        if inside and running:
            for one in running:
                shares[one] += (time - before) / len(running)
        elif inside:
            nothing += time - before
        before = time
        if number is None:
            inside = opens
        elif opens:
            running.add(number)
        else:
            running.discard(number)
    return shares, nothing


def phase_of(operation: Operation) -> str:
    """Return "forward", "backward" or "optimizer", by the scopes of the training step and of its gradient tape."""
    scopes = operation.name.split("/")[:-1]
    if "optimizer" in scopes:
        return "optimizer"
    return "backward" if {"backward", "gradient_tape"} & set(scopes) else "forward"


def kind_of(operation: Operation) -> str:
    """Return which of ``KINDS`` an operation is, or "other"."""
    text = f"{operation.kind} {operation.name}"
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, text)), OTHER_KIND)
