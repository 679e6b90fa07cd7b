"""Recurrence over time steps, with weight gradients that are computed after the loop.

A loop that TensorFlow differentiates adds a [D, F] gradient of each matrix in every step, and keeps every intermediate
result. ``scan`` keeps only the results of products, sigmoids, tanhs and softmaxes, which the gradient reads. The
backward loop collects both factors of each matrix gradient, so that the gradient is one product over all T steps.

Shapes: T steps, B sentences, R rows of a step (sentences, or live beams), D input and F output width of a product.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nmt.models.layers.ops import sizes, transposed_product
from nmt.runtime import tf

Tensors = dict[str, tf.Tensor]
"""Tensors by name."""


class Operation(NamedTuple):
    """A function with a written-out gradient."""

    compute: Callable[..., Sequence[tf.Tensor]]
    """(*x) -> the results y: outputs, then further tensors that the gradient reads."""
    gradient: Callable[[Sequence[Any], Sequence[tf.Tensor], Sequence[tf.Tensor]], Sequence[tf.Tensor]]
    """(gradients of y, None for a result that has none, y, x) -> gradients of x."""


TANH = Operation(lambda x: (tf.tanh(x),), lambda dy, y, _: (tf.raw_ops.TanhGrad(y=y[0], dy=dy[0]),))
SIGMOID = Operation(lambda x: (tf.sigmoid(x),), lambda dy, y, _: (tf.raw_ops.SigmoidGrad(y=y[0], dy=dy[0]),))
SOFTMAX = Operation(
    lambda x: (tf.nn.softmax(x),),
    lambda dy, y, _: (y[0] * (dy[0] - tf.reduce_sum(dy[0] * y[0], axis=-1, keepdims=True)),),
)


class StepOps:
    """Operations of a step that have weights, or results that the gradient reads.

    This class computes them for TensorFlow to differentiate, outside of a scan. A scan has subclasses of its own.
    """

    def __init__(self, tensors: Tensors) -> None:
        """Take the tensors that every step reads.

        Args:
            tensors: factors of products, [D, F] or [B, D, F] with a matrix for each sentence, and other tensors.
        """
        self.tensors = tensors

    def apply(self, operation: Operation, *x: tf.Tensor) -> Sequence[tf.Tensor]:
        """Return the results of an operation."""
        return operation.compute(*x)

    def product(self, name: str, x: tf.Tensor) -> tf.Tensor:
        """Multiply by a matrix: [R, D] -> [R, F]."""
        matrix = self.tensors[name]
        return self.apply(
            Operation(
                lambda x: (multiply(x, matrix),), lambda dy, _y, _x: (multiply(dy[0], matrix, transposed=True),)
            ), x,
        )[0]  # fmt: skip

    def sigmoid(self, x: tf.Tensor) -> tf.Tensor:
        """Return 1 / (1 + exp(-x))."""
        return self.apply(SIGMOID, x)[0]

    def tanh(self, x: tf.Tensor) -> tf.Tensor:
        """Return tanh(x)."""
        return self.apply(TANH, x)[0]

    def softmax(self, x: tf.Tensor) -> tf.Tensor:
        """Return the softmax over the last axis."""
        return self.apply(SOFTMAX, x)[0]


class _RecordingOps(StepOps):
    """Operations of the forward loop, which records their results."""

    def __init__(self, tensors: Tensors) -> None:
        super().__init__(tensors)
        self.results: list[tf.Tensor] = []
        self.counts: list[int] = []
        """Number of results of each operation."""
        self.factors: list[str] = []
        """Names of the tensors that are factors of products."""

    def apply(self, operation: Operation, *x: tf.Tensor) -> Sequence[tf.Tensor]:
        results = operation.compute(*x)
        self.results += results
        self.counts.append(len(results))
        return results

    def product(self, name: str, x: tf.Tensor) -> tf.Tensor:
        if name in self.factors:
            raise ValueError(f"a step multiplies twice by matrix {name!r}")
        self.factors.append(name)
        return super().product(name, x)


class _Replay(NamedTuple):
    """An operation of the backward loop."""

    operation: Operation
    """The operation."""
    x: tuple[tf.Tensor, ...]
    """Inputs of the operation."""
    y: list[tf.Tensor]
    """Results that the forward loop recorded."""
    first: int
    """Number of results of the operations before it."""


class _ReplayingOps(StepOps):
    """Operations of the backward loop, with the recorded results. The tape sees each result as a source of its own."""

    def __init__(
        self, tensors: Tensors, results: Sequence[tf.Tensor], counts: Sequence[int], tape: tf.GradientTape
    ) -> None:
        super().__init__(tensors)
        self.results, self._counts, self._tape = results, counts, tape
        self._done: list[_Replay] = []
        self._products: dict[str, int] = {}
        self._count = 0
        tape.watch(results)

    def apply(self, operation: Operation, *x: tf.Tensor) -> Sequence[tf.Tensor]:
        count = self._counts[len(self._done)]
        known = list(self.results[self._count : self._count + count])
        self._done.append(_Replay(operation, x, known, self._count))
        self._count += count
        return known

    def product(self, name: str, x: tf.Tensor) -> tf.Tensor:
        self._products[name] = len(self._done)
        return super().product(name, x)

    def differentiate(
        self, targets: list[tf.Tensor], upstream: list[tf.Tensor], sources: list[tf.Tensor]
    ) -> tuple[list[tf.Tensor], dict[str, tuple[tf.Tensor, tf.Tensor]]]:
        """Propagate gradients back from the targets of the step, one operation after the other.

        Returns:
            Gradients of the sources, and for each matrix the input x and the gradient of its product.
        """
        totals: list[tf.Tensor | None] = [None] * (len(sources) + len(self.results))

        def add(targets: Sequence[tf.Tensor], upstream: Sequence[tf.Tensor], before: int) -> None:
            """Add the gradients with respect to the sources and the first ``before`` results."""
            parts = self._tape.gradient(targets, [*sources, *self.results[:before]], upstream)
            for number, part in enumerate(parts):
                if part is not None:
                    total = totals[number]
                    totals[number] = part if total is None else total + part

        add(targets, upstream, len(self.results))
        for operation, x, y, first in reversed(self._done):
            start = len(sources) + first
            dy = totals[start : start + len(y)]
            if any(part is not None for part in dy):
                add(x, operation.gradient(dy, y, x), first)
        gradients = [
            tf.zeros_like(tensor) if total is None else total
            for total, tensor in zip(totals, [*sources, *self.results], strict=True)
        ]
        products = {}
        for name, number in self._products.items():
            replay = self._done[number]
            products[name] = replay.x[0], gradients[len(sources) + replay.first]
        return gradients[: len(sources)], products


Step = Callable[[StepOps, tf.Tensor, Sequence[tf.Tensor], Any], tuple[Any, Sequence[tf.Tensor]]]
"""(operations, step number int32 scalar, inputs [R, ...], state [R, ...]) -> (new state, outputs [R, ...])."""


def multiply(x: tf.Tensor, matrix: tf.Tensor, *, transposed: bool = False) -> tf.Tensor:
    """Multiply rows, [R, D], by a matrix [D, F], or by one for each sentence, [B, D, F], of R / B rows: [R, F]."""
    if matrix.shape.rank == 2:
        return tf.matmul(x, matrix, transpose_b=transposed)
    batch, *factor_sizes = sizes(matrix)
    width, out = reversed(factor_sizes) if transposed else factor_sizes
    rows = tf.matmul(tf.reshape(x, [batch, -1, width]), matrix, transpose_b=transposed)
    return tf.reshape(rows, [-1, out])


def scan(step: Step, inputs: Sequence[tf.Tensor], state: Any, tensors: Tensors) -> list[tf.Tensor]:
    """Run a recurrence over at least one step and return the outputs of all steps: [T, R, ...] each.

    Args:
        step: the step. It multiplies by each matrix at most once, and gets all tensors with a gradient as arguments.
        inputs: [T, R, ...] each.
        state: initial state, a structure of tensors [R, ...].
        tensors: tensors that every step reads, see ``StepOps``. The loop sums the gradients of all but the factors of
            products.
    """
    flat_state = tf.nest.flatten(state)
    counts = len(inputs), len(flat_state), len(tensors)

    @tf.custom_gradient
    def run(*flat: tf.Tensor) -> tuple[list[tf.Tensor], Callable[..., list[tf.Tensor]]]:
        inputs, first, read = _split(flat, counts)
        loop = _Loop(step, inputs, first, state, dict(zip(tensors, read, strict=True)))
        outputs = loop.forward()
        return outputs, lambda *upstream: loop.backward(upstream)

    return list(run(*inputs, *flat_state, *tensors.values()))


class _Loop:
    """Forward loop and backward loop of a scan."""

    def __init__(
        self, step: Step, inputs: list[tf.Tensor], first: list[tf.Tensor], structure: Any, tensors: Tensors
    ) -> None:
        self.step, self.first, self.structure, self.tensors = step, first, structure, tensors
        self.length = sizes(inputs[0])[0]
        self.inputs, self.input_shapes = [_unstack(part) for part in inputs], [part.shape for part in inputs]

    def forward(self) -> list[tf.Tensor]:
        """Return the outputs."""

        def one_step(t: tf.Tensor, now: list[tf.Tensor]) -> tuple[list[tf.Tensor], ...]:
            ops = _RecordingOps(self.tensors)
            state = tf.nest.pack_sequence_as(self.structure, now)
            new, outputs = self.step(ops, t, [part.read(t) for part in self.inputs], state)
            self.result_shapes, self.result_counts = [part.shape for part in ops.results], ops.counts
            self.factors = ops.factors
            return tf.nest.flatten(new), list(now), ops.results, list(outputs)

        def write(arrays: list[tf.TensorArray], t: tf.Tensor, parts: list[tf.Tensor]) -> list[tf.TensorArray]:
            return [array.write(t, part) for array, part in zip(arrays, parts, strict=True)]

        def body(t: tf.Tensor, now: list[tf.Tensor], arrays: list[list[tf.TensorArray]]) -> tuple:
            now, *parts = one_step(t, now)
            return t + 1, now, [write(kind, t, part) for kind, part in zip(arrays, parts, strict=True)]

        # The first step is taken before the loop, which needs the shapes of its results.
        start = tf.constant(0)
        now, *parts = one_step(start, self.first)
        arrays = [[_empty(part, self.length).write(start, part) for part in kind] for kind in parts]
        loop = (tf.constant(1), now, arrays)
        self.states, self.results, outputs = tf.while_loop(lambda t, *_: t < self.length, body, loop)[2]
        return [array.stack() for array in outputs]

    def backward(self, upstream: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Return the gradients of inputs, initial state and tensors."""
        above = [_unstack(part) for part in upstream]
        matrices = [self.tensors[name] for name in self.factors]
        shared = {name: tensor for name, tensor in self.tensors.items() if name not in self.factors}

        def body(t: tf.Tensor, of_state: list[tf.Tensor], of_shared: list[tf.Tensor], collected: Any) -> tuple:
            t -= 1
            inputs = [array.read(t) for array in self.inputs]
            before = [array.read(t) for array in self.states]
            sources = [*inputs, *before, *shared.values()]
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(sources)
                results = [
                    tf.ensure_shape(array.read(t), shape)
                    for array, shape in zip(self.results, self.result_shapes, strict=True)
                ]
                ops = _ReplayingOps(self.tensors, results, self.result_counts, tape)
                new, outputs = self.step(ops, t, inputs, tf.nest.pack_sequence_as(self.structure, before))
            gradients, products = ops.differentiate(
                [*tf.nest.flatten(new), *outputs], [*of_state, *(array.read(t) for array in above)], sources
            )
            of_inputs, of_before, of_all = _split(gradients, (len(inputs), len(before), len(shared)))
            factors = [products[name][0] for name in self.factors]
            of_products = [products[name][1] for name in self.factors]
            collected = [
                [array.write(t, part) for array, part in zip(arrays, parts, strict=True)]
                for arrays, parts in zip(collected, (of_inputs, factors, of_products), strict=True)
            ]
            of_shared = [total + tf.cast(part, total.dtype) for total, part in zip(of_shared, of_all, strict=True)]
            return t, of_before, of_shared, collected

        def empty(like: tf.Tensor) -> tf.TensorArray:
            return tf.TensorArray(like.dtype, self.length, infer_shape=False)

        kept = [[empty(part) for part in parts] for parts in (self.inputs, matrices, matrices)]
        zeros = (
            [tf.zeros_like(part) for part in self.first],
            [tf.zeros_like(part, tf.float32 if part.dtype.size < 4 else part.dtype) for part in shared.values()],
        )
        loop = (tf.convert_to_tensor(self.length), *zeros, kept)
        _, of_first, of_shared, kept = tf.while_loop(lambda t, *_: t > 0, body, loop)
        of_inputs, factors, of_products = ([array.stack() for array in arrays] for arrays in kept)
        of_inputs = [tf.ensure_shape(part, like) for part, like in zip(of_inputs, self.input_shapes, strict=True)]
        gradients = dict(zip(self.factors, map(_matrix_gradient, matrices, factors, of_products), strict=True))
        gradients |= {name: tf.cast(total, shared[name].dtype) for name, total in zip(shared, of_shared, strict=True)}
        return [*of_inputs, *of_first, *(gradients[name] for name in self.tensors)]


def _matrix_gradient(matrix: tf.Tensor, x: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    """Return the gradient of a matrix, [D, F] or [B, D, F].

    Args:
        matrix: the matrix.
        x: inputs of the products: [T, R, D].
        upstream: gradients of the products: [T, R, F].
    """
    *batch, width, out = sizes(matrix)
    if not batch:
        return transposed_product(tf.reshape(x, [-1, width]), tf.reshape(upstream, [-1, out]))
    return tf.matmul(tf.transpose(x, [1, 2, 0]), tf.transpose(upstream, [1, 0, 2]))


def _unstack(x: tf.Tensor) -> tf.TensorArray:
    return tf.TensorArray(x.dtype, sizes(x)[0], element_shape=x.shape[1:], clear_after_read=False).unstack(x)


def _empty(like: tf.Tensor, length: tf.Tensor) -> tf.TensorArray:
    return tf.TensorArray(like.dtype, length, element_shape=like.shape, clear_after_read=False)


def _split(parts: Sequence[tf.Tensor], counts: Sequence[int]) -> list[list[tf.Tensor]]:
    ends = [sum(counts[: n + 1]) for n in range(len(counts))]
    return [list(parts[end - count : end]) for end, count in zip(ends, counts, strict=True)]
