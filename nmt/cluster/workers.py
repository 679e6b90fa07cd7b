"""What workers exchange: sums of gradients, requests to stop, the state to begin with, hashes of weights.

One process computes with one device. Exchanges are TensorFlow's collective operations between processes, which
``tf.distribute`` has joined to a cluster; all workers call them in the same order.

Shapes: W workers, N floats of a bucket of gradients.
"""

import contextlib
import hashlib
import json
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from nmt.cluster.layout import CHIEF, Layout, split_address
from nmt.cluster.summation import shares, sum_of_parts
from nmt.errors import NmtError
from nmt.runtime import tf

Arrays = dict[str, np.ndarray]
Item = TypeVar("Item")
GROUP = 1
BUCKET = 2**22
"""Most floats exchanged at once, 16 MB, unless one matrix has more: as fast as any size, and small in memory."""
JOB = "worker"


class Workers:
    """The only worker: nothing is exchanged."""

    count = 1
    """Number of workers W."""
    is_chief = True
    """Whether this process writes to disk and to the terminal."""

    def share(self, micro_batches: int) -> range:
        """Return the micro-batches of a step that this worker computes."""
        return range(micro_batches)

    def all_shares(self, micro_batches: int) -> list[range]:
        """Return the shares of all workers by rank."""
        return shares(micro_batches, self.count)

    def bytes_sent(self, floats: int) -> int:
        """Return the bytes that each worker sends, and receives, to sum vectors of N floats: 8 N (W - 1) / W."""
        return 2 * 4 * floats * (self.count - 1) // self.count

    def turns(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the items of this worker if workers take turns."""
        return items

    def total(self, gradients: list[tf.Tensor], sums: tf.Tensor) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Return the sums over the workers' gradients, and over their sums float64 [3]; in a graph."""
        return gradients, sums

    def gather(self, values: tf.Tensor) -> tf.Tensor:
        """Return the values [n] of all workers by rank: [W, n]; int64 or float64, in a graph or outside."""
        return values[tf.newaxis]

    def broadcast(self, arrays: Arrays) -> Arrays:
        """Return the chief's arrays; names, shapes and dtypes are the same on all workers."""
        return arrays

    def broadcast_text(self, text: bytes) -> bytes:
        """Return the chief's text."""
        return text

    def gather_texts(self, texts: list[str]) -> list[list[str]]:
        """Return the texts of all workers by rank."""
        return [texts]

    def any(self, flag: bool) -> bool:
        """Return whether the flag of some worker is true."""
        return flag

    def chief_says(self, flag: bool) -> bool:
        """Return the chief's flag."""
        return flag

    def compare(self, arrays: Iterable[np.ndarray]) -> None:
        """Make sure that arrays have the same bits on all workers.

        Raises:
            NmtError: naming the workers that differ from the chief.
        """

    @contextlib.contextmanager
    def exchanging(self) -> Iterator[None]:
        """Turn the failure of an exchange inside the block into an NmtError that names the worker that is gone."""
        yield


class Cluster(Workers):
    """One of several workers."""

    def __init__(self, layout: Layout, addresses: list[str], stall_seconds: float) -> None:
        """Join the cluster. No operation may have run in this process before.

        Args:
            layout: place of this worker.
            addresses: addresses of all workers by rank.
            stall_seconds: time after which a worker that others wait for counts as stalled.
        """
        self.count, self.rank, self.addresses = layout.workers, layout.rank, addresses
        self.is_chief = layout.rank == CHIEF
        self.stall_seconds = stall_seconds
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec({JOB: addresses}), task_type=JOB, task_id=layout.rank, rpc_layer="grpc"
        )
        # Its constructor starts the server of this process and waits for those of the others. Nothing else of it
        # serves here: variables are plain, and exchanges explicit.
        self._strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver)
        self._next_key = tf.Variable(0, dtype=tf.int32, trainable=False)
        self._gather = tf.function(self.gather)

    def share(self, micro_batches: int) -> range:
        """Return the micro-batches of a step that this worker computes."""
        return shares(micro_batches, self.count)[self.rank]

    def turns(self, items: Sequence[Item]) -> Sequence[Item]:
        """Return the items of this worker if workers take turns."""
        return items[self.rank :: self.count]

    def total(self, gradients: list[tf.Tensor], sums: tf.Tensor) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Return the sums over the workers' gradients, and over their sums float64 [3]; in a graph."""
        totals: list[tf.Tensor] = []
        for bucket in buckets([gradient.shape.num_elements() for gradient in gradients]):
            parts = gradients[bucket]
            flat = tf.concat([tf.reshape(part, [-1]) for part in parts], axis=0)
            with tf.control_dependencies(totals[-1:]):  # one bucket after another, everywhere in the same order
                summed = self._sum(flat)
            sizes = [part.shape.num_elements() for part in parts]
            pieces = tf.split(summed, sizes)
            totals += [tf.reshape(piece, part.shape) for piece, part in zip(pieces, parts, strict=True)]
        with tf.control_dependencies(totals[-1:]):
            return totals, tree_sum(self.gather(sums))

    def _sum(self, flat: tf.Tensor) -> tf.Tensor:
        """Return the sum over the workers of a vector float32 [N]."""
        # Each worker receives one slice of the vector from all, adds as the tree does, and sends its sum to all: about
        # 2 N floats sent and received on any number of workers. A gather of whole vectors sends (W - 1) N.
        size = flat.shape.num_elements()
        length = -(-size // self.count)
        slices = tf.reshape(tf.pad(flat, [[0, length * self.count - size]]), [self.count, length])
        received = tf.raw_ops.CollectiveAllToAllV2(
            input=slices, **self._group(), ordering_token=[], timeout_seconds=self.stall_seconds
        )
        own = tree_sum(tf.ensure_shape(received, slices.shape))
        return tf.reshape(self.gather(own), [-1])[:size]

    def _group(self) -> dict[str, object]:
        """Return group and instance of the next exchange."""
        key = self._next_key.assign_add(1)
        return {"group_size": self.count, "group_key": GROUP, "instance_key": key}

    def gather(self, values: tf.Tensor) -> tf.Tensor:
        """Return the values [n] of all workers by rank: [W, n]; float32, int64 or float64, in a graph or outside."""
        if tf.executing_eagerly():
            return self._gather(values)
        gathered = tf.raw_ops.CollectiveGatherV2(
            input=values[tf.newaxis], **self._group(), ordering_token=[], timeout_seconds=self.stall_seconds
        )
        return tf.ensure_shape(gathered, [self.count, *values.shape])

    def broadcast(self, arrays: Arrays) -> Arrays:
        """Return the chief's arrays; names, shapes and dtypes are the same on all workers."""
        found = {}
        for name in sorted(arrays):
            array = np.asarray(arrays[name])
            # As int32, so that no bits are lost and every dtype is carried; the dtypes have 4 or 8 bytes.
            words = np.ascontiguousarray(array).reshape([-1]).view(np.int32)
            found[name] = self._send(words).view(array.dtype).reshape(array.shape)
        return found

    def _send(self, words: np.ndarray) -> np.ndarray:
        """Return the chief's vector int32 [N]."""
        common = {**self._group(), "timeout_seconds": self.stall_seconds}
        if self.is_chief:
            return tf.raw_ops.CollectiveBcastSendV2(input=tf.constant(words), **common).numpy()
        return tf.raw_ops.CollectiveBcastRecvV2(shape=[len(words)], T=tf.int32, **common).numpy()

    def broadcast_text(self, text: bytes) -> bytes:
        """Return the chief's text."""
        length = int(self.gather(tf.constant([len(text)], tf.int64))[CHIEF, 0])
        words = np.zeros(-(-length // 4), np.int32) if not self.is_chief else np.frombuffer(
            text.ljust(-(-length // 4) * 4, b"\0"), np.int32
        )  # fmt: skip
        return self._send(words).tobytes()[:length] if length else b""

    def gather_texts(self, texts: list[str]) -> list[list[str]]:
        """Return the texts of all workers by rank."""
        content = json.dumps(texts).encode()
        lengths = self.gather(tf.constant([len(content)], tf.int64)).numpy()[:, 0].tolist()
        words = np.frombuffer(content.ljust(-(-max(lengths) // 8) * 8), np.int64)
        rows = self.gather(tf.constant(words)).numpy()
        return [json.loads(row.tobytes()[:length]) for row, length in zip(rows, lengths, strict=True)]

    def any(self, flag: bool) -> bool:
        """Return whether the flag of some worker is true."""
        return bool(np.any(self.gather(tf.constant([flag], tf.int64))))

    def chief_says(self, flag: bool) -> bool:
        """Return the chief's flag."""
        return bool(self.gather(tf.constant([flag], tf.int64))[CHIEF, 0])

    def compare(self, arrays: Iterable[np.ndarray]) -> None:
        """Make sure that arrays have the same bits on all workers.

        Raises:
            NmtError: naming the workers that differ from the chief.
        """
        digest = hashlib.sha256()
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
        digests = self.gather(tf.constant(np.frombuffer(digest.digest(), np.int64))).numpy()
        different = [rank for rank, found in enumerate(digests) if not np.array_equal(found, digests[CHIEF])]
        if different:
            names = ", ".join(self._name(rank) for rank in different)
            raise NmtError(
                f"The weights of {names} differ from those of {self._name(CHIEF)}. All workers compute the same bits, "
                "so one of them has computed wrongly: its memory or processor may be damaged, or its libraries may be "
                "others. Leave it out, and start again: training goes on from the last checkpoint."
            )

    def _name(self, rank: int) -> str:
        return f"worker {rank} ({self.addresses[rank]})"

    @contextlib.contextmanager
    def exchanging(self) -> Iterator[None]:
        """Turn the failure of an exchange inside the block into an NmtError that names the worker that is gone."""
        try:
            yield
        except (tf.errors.UnavailableError, tf.errors.DeadlineExceededError, tf.errors.AbortedError,
                tf.errors.InternalError, tf.errors.CancelledError) as error:  # fmt: skip
            raise WorkerLostError(self._lost(str(error))) from error

    def _lost(self, reason: str) -> str:
        """Return who is gone, in words."""
        gone = sorted(
            {int(rank) for rank in re.findall(rf"/job:{JOB}/replica:0/task:(\d+)", reason)} - {self.rank}
        ) or [rank for rank, address in enumerate(self.addresses) if rank != self.rank and not _answers(address)]
        if gone:
            return f"{', '.join(self._name(rank) for rank in gone)} is gone".capitalize()
        if "timed out" in reason.lower():
            return f"A worker has kept {self._name(self.rank)} waiting for {self.stall_seconds:.0f} s"
        return (
            f"An exchange of {self._name(self.rank)} failed: {(reason.strip().splitlines() or ['no reason given'])[0]}"
        )


class WorkerLostError(NmtError):
    """A worker is gone or stalled; the others cannot go on."""


def _answers(address: str) -> bool:
    try:
        with socket.create_connection(split_address(address, "The cluster"), timeout=1):
            return True
    except OSError:
        return False


def tree_sum(parts: tf.Tensor) -> tf.Tensor:
    """Return the sum [n] of the workers' parts [W, n], in the order of the tree."""

    def add(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
        # TensorFlow's graph optimizer rewrites a tree of additions of one shape to a sum in turn, which has other last
        # bits. So each level of the tree has a rank of its own.
        shape = [1] * max(left.shape.rank, right.shape.rank) + [parts.shape[1]]
        return tf.reshape(left, shape) + tf.reshape(right, shape)

    return tf.reshape(sum_of_parts(tf.unstack(parts), add), [-1])


def buckets(sizes: Sequence[int]) -> list[slice]:
    """Return consecutive groups of arrays, each of at most ``BUCKET`` floats or a single array."""
    found: list[slice] = []
    start, total = 0, 0
    for number, size in enumerate(sizes):
        if total and total + size > BUCKET:
            found.append(slice(start, number))
            start, total = number, 0
        total += size
    return [*found, slice(start, len(sizes))]


def check_together(workers: Workers, check: Callable[[], None], stop: type[Exception]) -> Callable[[], None]:
    """Return a check that raises on all workers if that of one raises ``stop``; all call it at the same points."""

    def together() -> None:
        reason: Exception | None = None
        try:
            check()
        except stop as error:
            reason = error
        if workers.any(reason is not None):
            raise reason or stop("another worker")

    return check if workers.count == 1 else together
