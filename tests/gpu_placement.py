"""Where the operations of a call would run on a machine with a GPU, by the kernel registry of TensorFlow's wheel.

A second logical processor stands for the GPU. A node goes there unless the code asks for the first; its inputs and
outputs are in host memory where the kernel says so, int32 mostly. An edge from device to host memory is a copy that the
host waits for. TensorFlow's placer knows more (constants, colocation), so launches are an upper bound.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from tensorflow.core.framework import types_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import dtypes, kernels, op_def_registry

from nmt.runtime import tf

HOST, GPU = "CPU:0", "CPU:1"
KERNELS = defaultdict(list)
for _kernel in kernels.get_all_registered_kernels().kernel:
    KERNELS[_kernel.op].append(_kernel)
HOST_TYPES = {types_pb2.DT_INT32, types_pb2.DT_RESOURCE, types_pb2.DT_STRING}
MOVES_NOTHING = set(
    re.findall(
        r"\S+",
        "Identity IdentityN Reshape ExpandDims Squeeze Shape ShapeN Size Rank _Arg _Retval NoOp Const ReadVariableOp "
        "VarHandleOp Switch Merge Enter Exit NextIteration LoopCond Bitcast StopGradient PreventGradient "
        "ControlTrigger EnsureShape _SwitchN BroadcastGradientArgs Placeholder DestroyResourceOp",
    )
)
CONSTANTS = {"Const", "_Arg", "_Retval", "NoOp"}


def placements(call: Callable[[], object]) -> list["Placement"]:
    """Run a call that traces its graphs, and return the placement of each."""
    eager = context.context()
    eager.enable_run_metadata()
    try:
        with tf.device(GPU):
            call()
        found = eager.export_run_metadata().function_graphs
    finally:
        eager.disable_run_metadata()
    return [Placement(graphs.post_optimization_graph) for graphs in found]


class Placement:
    """Nodes of a graph by device, their tensors by memory."""

    def __init__(self, graph: Any) -> None:
        self.nodes = {node.name: node for node in graph.node}
        self.kernels = {name: self._kernel(node) for name, node in self.nodes.items()}
        self.inputs = {name: self._tensors(node, "input_arg") for name, node in self.nodes.items()}
        self.outputs = {name: self._tensors(node, "output_arg") for name, node in self.nodes.items()}
        self._frames: dict[str, tuple[str, ...]] = {}

    @staticmethod
    def _kernel(node: Any) -> Any:
        """Return the GPU's kernel of a node; None: there is none, or the code asks for the processor."""
        if node.device.endswith(HOST):
            return None
        label = node.attr["_kernel"].s.decode() if "_kernel" in node.attr else ""
        op = "Tanh" if node.op == "_UnaryOpsComposition" else node.op  # which the processor alone puts together
        found = [k for k in KERNELS[op] if k.device_type in ("GPU", "DEFAULT") and k.label == label and fits(node, k)]
        return min(found, key=lambda kernel: (kernel.device_type != "GPU", -kernel.priority), default=None)

    def _tensors(self, node: Any, arguments: str) -> list[tuple[int, bool]]:
        """Return type of each tensor, and whether it is in the device's memory."""
        kernel, found = self.kernels[node.name], []
        for argument in getattr(op_def_registry.get(node.op), arguments):
            if argument.type_list_attr:
                types = list(node.attr[argument.type_list_attr].list.type)
            else:
                count = node.attr[argument.number_attr].i if argument.number_attr else 1
                types = [argument.type or node.attr[argument.type_attr].type] * count
            if node.op in ("_Arg", "_Retval"):
                on_device = types[0] not in HOST_TYPES and not node.device.endswith(HOST)
            else:
                on_device = kernel is not None and argument.name not in kernel.host_memory_arg
            found += [(type_, on_device) for type_ in types]
        return found

    def without_kernel(self) -> Counter[str]:
        """Operations that no GPU kernel computes and the code does not keep on the processor, with their types."""
        names = [n for n, kernel in self.kernels.items() if kernel is None and not self.nodes[n].device.endswith(HOST)]
        return Counter(f"{self.nodes[n].op} {self._types(n)}" for n in names if self.nodes[n].op not in CONSTANTS)

    def copies_to_host(self, depth: int = 0) -> set[tuple[str, int]]:
        """Outputs in device memory that a node within ``depth`` loops reads in host memory."""
        return {
            (source, port) for name, node in self.nodes.items() if self.depth(name) >= depth
            for number, (source, port) in enumerate(sources(node))
            if source in self.nodes and self.nodes[source].op != "Const" and self._copied(source, port, name, number)
        }  # fmt: skip

    def _copied(self, source: str, port: int, name: str, number: int) -> bool:
        (type_, before), (_, after) = self.outputs[source][port], self.inputs[name][number]
        return before and not after and type_ != types_pb2.DT_RESOURCE

    def launches(self, depth: int = 0) -> list[str]:
        """Nodes within ``depth`` loops that launch work on the GPU."""
        return [
            name for name, kernel in self.kernels.items()
            if kernel and self.nodes[name].op not in MOVES_NOTHING and self.depth(name) >= depth
            and any(on_device and type_ != types_pb2.DT_RESOURCE
                    for type_, on_device in self.inputs[name] + self.outputs[name])
        ]  # fmt: skip

    def depth(self, name: str) -> int:
        """Return the number of loops around a node."""
        if not self._frames:
            self._find_frames()
        return len(self._frames.get(name, ())) - (self.nodes[name].op == "Enter")  # which is entered once

    def _find_frames(self) -> None:
        readers = defaultdict(list)
        for name, node in self.nodes.items():
            for source in node.input:
                readers[source.lstrip("^").partition(":")[0]].append(name)
        waiting = [name for name, node in self.nodes.items() if not node.input]
        self._frames = dict.fromkeys(waiting, ())
        while waiting:
            name = waiting.pop()
            frame = self._frames[name]
            for reader in readers[name]:
                op, inner = self.nodes[reader].op, frame
                if op in ("Enter", "RefEnter"):
                    inner = (*frame, self.nodes[reader].attr["frame_name"].s.decode())
                elif op in ("Exit", "RefExit"):
                    inner = frame[:-1]
                if len(inner) > len(self._frames.get(reader, ())) or reader not in self._frames:
                    self._frames[reader] = inner
                    waiting.append(reader)

    def _types(self, name: str) -> str:
        return "/".join(sorted({dtypes.as_dtype(t).name for t, _ in self.inputs[name] + self.outputs[name] if t}))


def sources(node: Any) -> list[tuple[str, int]]:
    """Return node and port that each input of a node comes from, without control inputs."""
    parts = [name.partition(":") for name in node.input if not name.startswith("^")]
    return [(source, int(port or 0)) for source, _, port in parts]


def fits(node: Any, kernel: Any) -> bool:
    """Return whether a kernel is for the types of a node."""
    for constraint in kernel.constraint:
        if constraint.name in node.attr:
            value = node.attr[constraint.name]
            types = set(value.list.type) if value.HasField("list") else {value.type}
        else:
            attributes = op_def_registry.get(node.op).attr
            types = {each.default_value.type for each in attributes if each.name == constraint.name}
        if not types <= set(constraint.allowed_values.list.type):
            return False
    return True
