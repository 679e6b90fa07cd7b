"""Shares of a training step's time by phase and by kind of operation, read from TensorFlow's trace.

TensorFlow's profiler notes when each operation of a graph starts and ends on each thread. Operations run side by side,
so their durations add up to more than the elapsed time. Each instant is therefore divided equally among the operations
that run at it, and the shares add up to the elapsed time. Two things to know when reading them: an operation that waits
for processor cores counts its wait as its own time, and tracing slows a step of many small operations by some percent.

Only operations on the processor can be read in this way: a GPU still runs them after the thread that started them has
moved on.
"""

import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from nmt.runtime import tf

try:
    from tensorflow.tsl.profiler.protobuf import xplane_pb2
except ImportError:  # the format of a trace has no public reader, so another TensorFlow may keep it elsewhere
    xplane_pb2 = None

STEP = "nmt_step"
IDLE = "no operation running"
OTHER_KIND = "other"
# The kind of an operation is the first whose pattern matches "type name". A name starts with its scopes and layers.
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
    "unpadding, transposes and copies": r"^\S*(Transpose|Gather|Scatter|Concat|Split|Slice|Pack|Reshape|Broadcast"
    r"|Tile|Identity|Copy)\S* ",
}


class Operation(NamedTuple):
    """One run of an operation."""

    start: int
    """Start in picoseconds, from an origin that all operations of a trace share."""
    end: int
    """End in picoseconds, from the same origin."""
    kind: str
    """Operation type, such as MatMul; TensorFlow's faster versions have their own names, such as _MklMatMul."""
    name: str
    """Name in the graph."""


class StepTimes(NamedTuple):
    """Seconds of a traced step; the values of either dictionary add up to ``step``."""

    step: float
    """Mean seconds of a step."""
    by_phase: dict[str, float]
    """Seconds by phase: forward, backward, optimizer, and no operation running."""
    by_kind: dict[str, float]
    """Seconds by kind of operation: a key of ``KINDS``, other, or no operation running."""


def trace(step: Callable[[], None], steps: int) -> StepTimes | None:
    """Run ``step`` N = ``steps`` times under the profiler; return None where its trace cannot be read.

    The trace of an eager step holds no operations, and None is returned too.

    Args:
        step: runs a step and waits for the end of its work; its graph has been built by an earlier call.
        steps: number of steps.
    """
    if xplane_pb2 is None:
        return None
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
    if not operations:
        return None
    shares, idle = share_out(spans, operations)
    seconds = 1e-12 / steps

    def by(label: Callable[[Operation], str]) -> dict[str, float]:
        sums: dict[str, float] = defaultdict(float)
        for operation, share in zip(operations, shares, strict=True):
            sums[label(operation)] += share * seconds
        sums[IDLE] = idle * seconds
        return dict(sums)

    return StepTimes(sum(end - start for start, end in spans) * seconds, by(phase_of), by(kind_of))


def read_trace(path: Path) -> tuple[list[tuple[int, int]], list[Operation]]:
    """Return the steps, as (start, end) in picoseconds, and the operations of a trace file."""
    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    spans, operations = [], []
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                metadata = plane.event_metadata[event.metadata_id]
                start = line.timestamp_ns * 1000 + event.offset_ps
                end = start + event.duration_ps
                name, colon, kind = metadata.name.rpartition(":")
                if metadata.name == STEP:
                    spans.append((start, end))
                elif colon and kind == metadata.display_name:  # the form in which an executor names an operation
                    operations.append(Operation(start, end, kind, name))
    return spans, operations


def share_out(spans: Iterable[tuple[int, int]], operations: list[Operation]) -> tuple[list[float], float]:
    """Divide the time within ``spans``, which do not overlap, among the operations that run at each instant.

    Returns:
        The share of each operation, and the time during which none ran. Together they are as long as the spans.
    """
    marks: list[tuple[int, bool, int | None]]
    marks = [(time, opens, None) for span in spans for time, opens in zip(span, (True, False), strict=True)]
    marks += [
        (time, opens, number)
        for number, operation in enumerate(operations)
        for time, opens in ((operation.start, True), (operation.end, False))
    ]
    shares, idle = [0.0] * len(operations), 0.0
    running: set[int] = set()
    in_step, previous = False, 0
    for time, opens, number in sorted(marks, key=lambda mark: mark[0]):
        if in_step and running:
            for index in running:
                shares[index] += (time - previous) / len(running)
        elif in_step:
            idle += time - previous
        previous = time
        if number is None:
            in_step = opens
        elif opens:
            running.add(number)
        else:
            running.discard(number)
    return shares, idle


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
