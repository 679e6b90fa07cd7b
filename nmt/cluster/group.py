"""Group of hosts that train a run together: how they join, and the data that they exchange.

They exchange the plan, the initial state, sums of gradients, requests to stop, and hashes of weights. Exchanges are
TensorFlow's collective operations between processes, which ``tf.distribute`` has joined to a cluster. All hosts call
them in the same order. A process that trains alone is a group of size 1, which exchanges nothing.

Shapes: W hosts, N floats in a bucket of gradients.
"""

import contextlib
import hashlib
import itertools
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from nmt import runtime
from nmt.cluster.hosts import CHIEF, Hosts, wait_for_all
from nmt.cluster.summation import shares, sum_of_parts
from nmt.errors import ConflictError, NmtError
from nmt.runtime import tf

Arrays = dict[str, np.ndarray]
KEY = 1
BUCKET = 2**22
"""Maximum number of floats exchanged at once (16 MB), unless a single matrix has more. No other size is faster, and
this size takes little memory."""
JOB = "worker"
JOIN_SECONDS = 60
STALL_SECONDS = 120.0
"""Time after which a host counts as stalled if the other hosts wait for it, in seconds."""
MOST_DIFFERENCES = 3
# TensorFlow joins hosts in a call that holds the interpreter's lock and catches SIGTERM. So no thread could end the
# call, and a process of its own watches it.
WATCHDOG = """
import os, signal, sys, threading
joining = threading.Thread(target=os.read, args=(0, 1), daemon=True)
joining.start()
joining.join(float(sys.argv[1]))
if joining.is_alive():  # the pipe closes once all have joined, or the process ends
    sys.stderr.write(sys.argv[2])
    sys.stderr.flush()
    os.kill(os.getppid(), getattr(signal, "SIGKILL", signal.SIGTERM))  # any signal kills under Windows
"""


class HostLostError(NmtError):
    """A host is gone or stalled, so the other hosts cannot go on."""


class Group:
    """All hosts of a run, from the point of view of this process."""

    def __init__(self, hosts: Hosts | None = None, report: Callable[[str], None] = print) -> None:
        """Join the other hosts. TensorFlow must not have run any operation in this process before.

        Args:
            hosts: the hosts; None: this process trains alone.
            report: function that is called with messages about open ports, about waiting, and about differences
                between hosts that change at most the last bits.

        Raises:
            NmtError: if a host does not come, or TensorFlow cannot join them.
        """
        self.hosts, self.report = hosts or Hosts(["this process"], CHIEF), report
        self.rank, self.count = self.hosts.rank, len(self.hosts.addresses)
        """Rank of this host, and number of hosts W."""
        self.is_chief = self.rank == CHIEF
        """Whether this process writes to disk and to the terminal."""
        if hosts:
            if self.is_chief:
                report(
                    f"Note: {', '.join(hosts.addresses)} listen at these ports on all their networks. TensorFlow's "
                    "exchanges are neither encrypted nor authenticated: whoever reaches a port can read and change "
                    "them. Use a private network or a firewall."
                )
            wait_for_all(hosts, report)
            self._strategy = _join(hosts)  # the processes stay joined as long as this object lives
            self._next_key = tf.Variable(0, dtype=tf.int32, trainable=False)

    def share(self, micro_batches: int) -> range:
        """Return the micro-batches of a step that this host computes."""
        return shares(range(micro_batches), self.count)[self.rank]

    def total(self, gradients: list[tf.Tensor], sums: tf.Tensor) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Return gradients and ``sums``, float64 [3], summed over the hosts. It is called inside a graph."""
        if self.count == 1:
            return gradients, sums
        totals: list[tf.Tensor] = []
        for bucket in buckets([gradient.shape.num_elements() for gradient in gradients]):
            parts = gradients[bucket]
            with tf.control_dependencies(totals[-1:]):  # all hosts exchange the buckets in the same order
                summed = self._sum(tf.concat([tf.reshape(part, [-1]) for part in parts], axis=0))
            pieces = tf.split(summed, [part.shape.num_elements() for part in parts])
            totals += [tf.reshape(piece, part.shape) for piece, part in zip(pieces, parts, strict=True)]
        with tf.control_dependencies(totals[-1:]):
            return totals, tree_sum(tf.unstack(self.gather(sums)))

    def _sum(self, flat: tf.Tensor) -> tf.Tensor:
        """Return the sum of a vector float32 [N] over the hosts."""
        # Host r receives slice r of the vector from all hosts, adds the slices in the order of the tree, and sends the
        # sum to all hosts. So a host sends and receives about 2 N floats, whatever the number of hosts. Gathering whole
        # vectors would send (W - 1) N floats.
        size = flat.shape.num_elements()
        length = -(-size // self.count)
        slices = tf.reshape(tf.pad(flat, [[0, length * self.count - size]]), [self.count, length])
        hint = "nccl" if runtime.GPUS else "auto"  # "auto" exchanges through the processor
        received = tf.raw_ops.CollectiveAllToAllV2(
            input=slices, **self._exchange(), ordering_token=[], communication_hint=hint
        )
        slice_sum = tree_sum(tf.unstack(tf.ensure_shape(received, slices.shape)))
        return tf.reshape(self.gather(slice_sum, hint), [-1])[:size]

    def _exchange(self) -> dict[str, object]:
        """Return the arguments of the next exchange: group, instance and time limit."""
        instance = self._next_key.assign_add(1)
        return {
            "group_size": self.count, "group_key": KEY, "instance_key": instance, "timeout_seconds": STALL_SECONDS,
        }  # fmt: skip

    def gather(self, values: tf.Tensor, hint: str = "auto") -> tf.Tensor:
        """Return the values [n] of all hosts by rank: [W, n].

        The values are float32, int64 or float64. The function works inside and outside of graphs.
        """
        if self.count == 1:
            return values[tf.newaxis]
        gathered = tf.raw_ops.CollectiveGatherV2(
            input=values[tf.newaxis], **self._exchange(), ordering_token=[], communication_hint=hint
        )
        return tf.ensure_shape(gathered, [self.count, *values.shape])

    def gather_bytes(self, content: bytes) -> list[bytes]:
        """Return the content of each host, by rank."""
        lengths = self.gather(tf.constant([len(content)], tf.int64)).numpy()[:, 0].tolist()
        # Pad to at least 8 bytes, since TensorFlow crashes if nothing is exchanged.
        words = np.frombuffer(content.ljust(8 * (1 + max(lengths) // 8)), np.int64)
        rows = self.gather(tf.constant(words)).numpy()
        return [row.tobytes()[:length] for row, length in zip(rows, lengths, strict=True)]

    def broadcast_bytes(self, content: bytes) -> bytes:
        """Return the chief's content."""
        return self.gather_bytes(content)[CHIEF]

    def broadcast(self, arrays: Arrays) -> Arrays:
        """Return the chief's arrays. Names, shapes and dtypes must be the same on all hosts."""
        if self.count == 1:
            return arrays
        received = {}
        for name in sorted(arrays):
            array = np.asarray(arrays[name])
            # Arrays are sent as int32, which keeps the bits of every dtype of 4 or 8 bytes.
            words = np.ascontiguousarray(array).reshape([-1]).view(np.int32)
            if self.is_chief:
                exchanged = tf.raw_ops.CollectiveBcastSendV2(input=tf.constant(words), **self._exchange())
            else:
                exchanged = tf.raw_ops.CollectiveBcastRecvV2(shape=[len(words)], T=tf.int32, **self._exchange())
            received[name] = exchanged.numpy().view(array.dtype).reshape(array.shape)
        return received

    def flags(self, flag: bool) -> list[bool]:
        """Return the flag of each host, by rank."""
        return self.gather(tf.constant([flag], tf.int64)).numpy()[:, 0].astype(bool).tolist()

    def check_on_all_hosts(self, check: Callable[[], None], stop: type[Exception]) -> Callable[[], None]:
        """Return a check that raises ``stop`` on all hosts if ``check`` raises it on any host.

        All hosts must call it at the same point of training.
        """

        def check_together() -> None:
            reason: Exception | None = None
            try:
                check()
            except stop as error:
                reason = error
            if any(self.flags(reason is not None)):
                raise reason or stop("another host")

        return check if self.count == 1 else check_together

    def agree(self, facts: dict[str, str], environment: dict[str, str] | None = None) -> None:
        """Check that facts are equal on all hosts, and report differences between their environments.

        Args:
            facts: values that must be equal, by name: versions, arguments of the command, the dataset.
            environment: values that may differ, by name. A difference may change the last bits of a result.

        Raises:
            ConflictError: if a host differs from the chief; names the host and the differences.
        """
        gathered = self.gather_bytes(json.dumps([facts, environment or {}]).encode())
        (chief_facts, chief_environment), *host_records = map(json.loads, gathered)
        for rank, (host_facts, host_environment) in enumerate(host_records, start=1):
            if different := _differences(host_facts, chief_facts):
                more = f" and {len(different) - MOST_DIFFERENCES} more" if len(different) > MOST_DIFFERENCES else ""
                raise ConflictError(
                    f"{self.hosts.name(rank).capitalize()} differs from {self.hosts.name(CHIEF)}: "
                    f"{'; '.join(different[:MOST_DIFFERENCES])}{more}. All hosts train one run: give them the same "
                    "version of nmt, command and dataset."
                )
            for note in _differences(host_environment, chief_environment):
                self.report(f"Note: {self.hosts.name(rank)} has {note}. The last bits of the result may depend on it.")

    def compare(self, arrays: Iterable[np.ndarray]) -> None:
        """Check that arrays have the same bits on all hosts.

        Raises:
            NmtError: if a host differs from the chief; names all such hosts.
        """
        digest = hashlib.sha256()
        for array in arrays:
            digest.update(np.ascontiguousarray(array).data)
        digests = self.gather_bytes(digest.digest())
        if different := [rank for rank, received in enumerate(digests) if received != digests[CHIEF]]:
            raise NmtError(
                f"The weights of {', '.join(map(self.hosts.name, different))} and of {self.hosts.name(CHIEF)} differ. "
                "All hosts compute the same bits, so one of them has computed wrongly: its memory or processor may be "
                "damaged, or its libraries may differ. Leave it out, and start again: training resumes from the last "
                "checkpoint."
            )

    @contextlib.contextmanager
    def exchanging(self) -> Iterator[None]:
        """Turn a failed exchange inside the block into a HostLostError, which names the lost host."""
        try:
            yield
        except (tf.errors.UnavailableError, tf.errors.DeadlineExceededError, tf.errors.AbortedError,
                tf.errors.InternalError, tf.errors.CancelledError) as error:  # fmt: skip
            if self.count == 1:
                raise
            raise HostLostError(f"{self._loss_message(str(error))}. See the output of that host") from error

    def _loss_message(self, reason: str) -> str:
        """Return a message that names the lost host, from the message of TensorFlow's error."""
        gone = {int(rank) for rank in re.findall(rf"/job:{JOB}/replica:0/task:(\d+)", reason)} - {self.rank}
        gone = gone or set(self.hosts.unreachable(range(self.count)))
        if not gone and "timed out" in reason.lower():
            return f"A host has kept {self.hosts.name(self.rank)} waiting for {STALL_SECONDS:.0f} s"
        if not gone and not self.is_chief and "deadline exceeded" in reason.lower():  # heartbeats go to the chief
            gone = {CHIEF}
        if gone:
            return f"{', '.join(map(self.hosts.name, sorted(gone)))} is gone".capitalize()
        return f"An exchange of {self.hosts.name(self.rank)} failed: {(*reason.splitlines(), '')[0]}"


def _join(hosts: Hosts) -> tf.distribute.Strategy:
    """Let TensorFlow connect the processes."""
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({JOB: hosts.addresses}), task_type=JOB, task_id=hosts.rank, rpc_layer="grpc"
    )
    words = (
        f"nmt: Host {hosts.rank} has reached all other hosts, but TensorFlow has not joined them within "
        f"{JOIN_SECONDS} s. Look at their output, and check that all hosts have the same list of hosts.\n"
    )
    # TensorFlow replaces the handler of SIGTERM.
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own handler would wait for the call, too
    with subprocess.Popen([sys.executable, "-c", WATCHDOG, str(JOIN_SECONDS), words], stdin=subprocess.PIPE,
                          start_new_session=True):  # fmt: skip
        try:
            # The constructor starts this process's server and waits for the servers of the other hosts. Nothing else of
            # the strategy is used: variables are plain, and exchanges explicit.
            strategy = tf.distribute.MultiWorkerMirroredStrategy(resolver)
        except tf.errors.OpError as error:
            raise NmtError(
                f"TensorFlow cannot join {hosts.name(hosts.rank)} with the other hosts: "
                f"{(*str(error).splitlines(), '')[0]}. Look at their output, and start all hosts again."
            ) from None
    for number, handler in handlers.items():
        signal.signal(number, handler)
    return strategy


def _differences(facts: dict[str, str], chief: dict[str, str]) -> list[str]:
    names = sorted(name for name in {*facts, *chief} if facts.get(name) != chief.get(name))
    return [f"{name} {facts.get(name, 'nothing')} against {chief.get(name, 'nothing')}" for name in names]


def tree_sum(parts: Sequence[tf.Tensor]) -> tf.Tensor:
    """Return the sum of the parts of hosts or devices, which have the same shape, in the order of the summation tree.

    Two parts are added on the device of the left part.
    """

    def add(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
        # TensorFlow's graph optimizer rewrites a tree of additions as a sequential sum if all shapes are equal. This
        # changes the last bits. So each level of the tree gets another rank.
        shape = [1] * (1 + max(left.shape.rank, right.shape.rank) - parts[0].shape.rank) + parts[0].shape.as_list()
        with tf.device(left.device):
            return tf.reshape(left, shape) + tf.reshape(right, shape)

    return tf.reshape(sum_of_parts(parts, add), parts[0].shape) if len(parts) > 1 else parts[0]


def buckets(sizes: Sequence[int]) -> list[slice]:
    """Return slices of consecutive arrays. A slice has at most ``BUCKET`` floats, or is a single array."""
    starts, total = [0], 0
    for number, size in enumerate(sizes):
        if total and total + size > BUCKET:
            starts.append(number)
            total = 0
        total += size
    return [slice(*ends) for ends in itertools.pairwise([*starts, len(sizes)])]
