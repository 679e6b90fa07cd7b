"""The time of a step, divided among its operations."""

import runpy
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from nmt.benchmark import profiler
from nmt.benchmark.profiler import Operation, kind_of, phase_of, read_trace, share_out

moments = st.integers(0, 1000)
operations = st.lists(
    st.tuples(moments, moments).map(lambda ends: Operation(min(ends), max(ends), "MatMul", "a")), max_size=12
)


def run(start: int, end: int) -> Operation:
    return Operation(start, end, "MatMul", "a")


@pytest.mark.parametrize(
    ("spans", "ran", "shares", "idle"),
    [
        ([(0, 40)], [run(10, 30), run(20, 40)], [10 + 5, 5 + 10], 10),
        ([(0, 10), (20, 30)], [run(5, 25), run(12, 18)], [5 + 5, 0], 5 + 5),  # time outside the steps does not count
    ],
)
def test_every_instant_of_a_step_is_shared_by_the_operations_that_run_at_it(
    spans: list[tuple[int, int]], ran: list[Operation], shares: list[float], idle: float
) -> None:
    assert share_out(spans, ran) == (shares, idle)


@given(st.lists(moments, min_size=2, max_size=6, unique=True), operations)
def test_the_shares_and_the_idle_time_are_as_long_as_the_steps(ends: list[int], ran: list[Operation]) -> None:
    ends = sorted(ends[: len(ends) // 2 * 2])
    spans = list(zip(ends[::2], ends[1::2], strict=True))
    shares, idle = share_out(spans, ran)
    assert sum(shares) + idle == pytest.approx(sum(end - start for start, end in spans))
    assert all(
        -1e-9 <= share <= operation.end - operation.start + 1e-9 for share, operation in zip(shares, ran, strict=True)
    )


@given(operations)
def test_the_order_in_which_operations_are_listed_does_not_matter(ran: list[Operation]) -> None:
    shares, idle = share_out([(100, 900)], ran)
    backwards, same = share_out([(100, 900)], ran[::-1])
    assert backwards[::-1] == pytest.approx(shares)
    assert same == pytest.approx(idle)


@pytest.mark.parametrize(
    ("type_", "name", "phase", "kind"),
    [
        ("_MklNativeFusedMatMul", "encoder_1/feed_forward/inner/Relu", "forward", "matrix products"),
        ("_MklBatchMatMulV2", "gradient_tape/encoder_1/attention/MatMul/MatMul_1", "backward", "matrix products"),
        ("Mul", "gradient_tape/decoder_1/frame/norm/batchnorm/mul", "backward", "layer norms"),
        ("StatelessRandomUniformV2", "source_dropout/uniform", "forward", "dropout"),
        ("Cast", "encoder_1/dropout/Cast", "forward", "dropout"),
        ("Cast", "encoder_1/attention/query/Cast/Cast", "forward", "casts"),
        ("ResourceApplyAdam", "optimizer/ResourceApplyAdam_3", "optimizer", "optimizer"),
        ("AddN", "backward/AddN_7", "backward", "sums of gradients and biases"),
        ("_MklSoftmax", "encoder_1/attention/Softmax", "forward", "softmax"),
        ("SparseSoftmaxCrossEntropyWithLogits", "Sparse/Sparse", "forward", "loss and accuracy"),
        ("Transpose", "encoder_1/attention/Transpose", "forward", "unpadding, transposes and copies"),
        ("ReluGrad", "gradient_tape/encoder_1/feed_forward/inner/ReluGrad", "backward", "other"),
    ],
)
def test_phase_and_kind(type_: str, name: str, phase: str, kind: str) -> None:
    operation = Operation(0, 1, type_, name)
    assert (phase_of(operation), kind_of(operation)) == (phase, kind)


def test_a_trace_file_is_read(tmp_path: Path) -> None:
    space = xplane_pb2.XSpace()
    plane = space.planes.add(name="/host:CPU")
    for number, (name, display) in enumerate(
        [("nmt_step", ""), ("a/b:MatMul", "MatMul"), ("ThreadpoolListener::Record", ""), ("x: y", "")], 1
    ):
        plane.event_metadata[number].name, plane.event_metadata[number].display_name = name, display
    line = plane.lines.add(timestamp_ns=2)
    for number in (1, 2, 3, 4):
        line.events.add(metadata_id=number, offset_ps=100 * number, duration_ps=50)
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(space.SerializeToString())
    assert read_trace(path) == ([(2100, 2150)], [Operation(2200, 2250, "MatMul", "a/b")])


def test_without_a_reader_of_traces_nothing_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, xplane_pb2.__name__, None)
    monkeypatch.delattr(xplane_pb2.__name__)
    afresh = runpy.run_path(str(profiler.__file__))
    assert afresh["trace"](lambda: pytest.fail("a step was taken"), 1) is None
