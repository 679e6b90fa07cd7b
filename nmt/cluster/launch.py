"""Workers on this machine: the other processes of ``nmt train --workers N``, which end with this one."""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import IO, Self

from nmt.cluster.layout import Layout, local_layouts
from nmt.errors import NmtError

PARENT = "NMT_PARENT"
"""Variable with the process that has started a worker, which the worker does not outlive."""
CORES = "NMT_CORES"
"""Variable with the cores of a worker."""
LEAVE_SECONDS = 20.0
LEAVE_SECONDS_AFTER_ERROR = 2.0
MOST_LINES = 20


def cores_of(rank: int, workers: int) -> list[int]:
    """Return the cores of a worker: a share of those that this process may use, at least one."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    if workers > len(cores):
        return [cores[rank % len(cores)]]
    return cores[rank * len(cores) // workers : (rank + 1) * len(cores) // workers]


def stay_on(cores: list[int]) -> None:
    """Let this process and its threads run on some cores alone, where the system allows it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


class LocalWorkers:
    """The other workers, as processes, inside a ``with`` block; this process is worker 0."""

    def __init__(self, workers: int, arguments: Sequence[str]) -> None:
        """Take the number of workers, this one included, and the arguments of ``nmt`` of the others."""
        self.layouts = local_layouts(workers)
        self.arguments = list(arguments)
        self._processes: list[tuple[Layout, subprocess.Popen[bytes], IO[bytes]]] = []

    @property
    def layout(self) -> Layout:
        """Place of this process."""
        return self.layouts[0]

    def __enter__(self) -> Self:
        """Start the processes; this one keeps to its share of the cores."""
        addresses = [layout.address for layout in self.layouts]
        shares = [cores_of(layout.rank, layout.workers) for layout in self.layouts]
        for layout in self.layouts[1:]:
            task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": layout.rank}}
            output = tempfile.TemporaryFile()
            process = subprocess.Popen(
                [sys.executable, "-m", "nmt", *self.arguments],
                env={**os.environ, "TF_CONFIG": json.dumps(task), PARENT: str(os.getpid()),
                     CORES: ",".join(map(str, shares[layout.rank]))},
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches this process, and all stop together
            )  # fmt: skip
            self._processes.append((layout, process, output))
        stay_on(shares[0])
        return self

    def check(self) -> None:
        """Raise NmtError if a process has ended, with its last lines."""
        for layout, process, output in self._processes:
            if process.poll() is not None:
                raise NmtError(f"Worker {layout.rank} ended with exit code {process.returncode}: {tail(output)}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait until the processes have ended, less long after an error, then end them: they write nothing."""
        seconds = LEAVE_SECONDS_AFTER_ERROR if isinstance(error, NmtError) else LEAVE_SECONDS
        deadline = time.monotonic() + seconds
        for _, process, output in self._processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            output.close()


def tail(output: IO[bytes]) -> str:
    """Return the last lines that a process has written to a file."""
    output.seek(0)
    lines = output.read().decode(errors="replace").strip().splitlines()
    return "\n".join(lines[-MOST_LINES:]) or "it said nothing"


def follow_parent() -> None:
    """End this process as soon as the one that has started it is gone; of processes of ``LocalWorkers``."""
    parent = int(os.environ[PARENT])

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
