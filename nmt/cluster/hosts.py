"""Hosts that train together: who they are, by TF_CONFIG or SLURM, and a wait until all can be reached.

A host is a process of ``nmt train`` on a machine of its own. A process without TF_CONFIG and SLURM is alone, and opens
no port.
"""

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from nmt.errors import ConfigError, NmtError, counted
from nmt.runtime import tf
from nmt.storage.json_file import parse_json

CHIEF = 0
SLURM_PORTS = range(20_000, 40_000)
MEETING_SECONDS = 300.0
SILENT_SECONDS = 3.0  # waiting that needs no words
REPORT_SECONDS = 10.0
EXAMPLE = '{"cluster": {"worker": ["a:8470", "b:8470"]}, "task": {"type": "worker", "index": 0}}'


class Hosts(NamedTuple):
    """The hosts of a run, and the rank of this one."""

    addresses: list[str]
    """Address of each host by rank, HOST:PORT."""
    rank: int
    """Rank of this host; host 0 is the chief, which alone writes to the run."""

    def name(self, rank: int) -> str:
        """Return a host in words."""
        return f"host {rank} ({self.addresses[rank]})"

    def absent(self, ranks: Iterable[int]) -> list[int]:
        """Return those of the ranks whose hosts cannot be reached."""
        found = []
        for rank in set(ranks) - {self.rank}:
            try:
                socket.create_connection(_split(self.addresses[rank]), timeout=1).close()
            except OSError:
                found.append(rank)
        return sorted(found)


def find_hosts() -> Hosts | None:
    """Return the hosts that TF_CONFIG, or under ``srun`` SLURM's variables name; None: this process is alone.

    Raises:
        ConfigError: for variables that cannot be used.
    """
    if os.environ.get("TF_CONFIG", "").strip():
        hosts = _of_tf_config()
    elif os.environ.get("SLURM_STEP_NUM_TASKS", "1") != "1":
        hosts = _of_slurm()
    else:
        return None
    return hosts if hosts and len(hosts.addresses) > 1 else None


def _of_tf_config() -> Hosts | None:
    try:
        config = parse_json(os.environ["TF_CONFIG"])
        jobs, kind, index = _read_tf_config(config)
    except ValueError as error:
        problem = str(error).strip().rstrip(".")
        raise ConfigError(f"TF_CONFIG is not a cluster: {problem}. It is JSON such as {EXAMPLE}.") from None
    if sum(map(len, jobs.values())) == 0:
        return None
    chiefs, workers = (jobs.get(job) or [] for job in ("chief", "worker"))
    addresses, count = [*chiefs, *workers], len(chiefs if kind == "chief" else workers)
    problems = [
        *(f"names a {job!r}" for job in [*jobs, kind] if job not in {"chief", "worker"}),
        *([f"gives this process index {index} of type {kind!r}, of which its cluster has {count}"]
          if index >= count else []),
        *(f"has the address {address!r}" for address in addresses if not all(_split(address))),
        *(f"has the address {address!r} twice" for address in addresses if addresses.count(address) > 1),
    ]  # fmt: skip
    if problems:
        raise ConfigError(
            f"TF_CONFIG {problems[0][:200]}. Hosts are of type worker, but one may be of type chief; they count from "
            f"0, and each has an address HOST:PORT of its own. Correct it, as in {EXAMPLE}."
        )
    return Hosts(addresses, index if kind == "chief" else len(chiefs) + index)


def _read_tf_config(config: Any) -> tuple[dict[str, list[str]], str, int]:
    """Return the addresses of each job of TF_CONFIG, the type of this process, and its index.

    A process that is alone may leave out its task.

    Raises:
        ValueError: naming what is not as TensorFlow documents it.
    """
    if not isinstance(config, dict):
        raise ValueError(f"it is {_shown(config)} instead of an object")
    settings: dict[str, Any] = {"cluster": {}, **config}
    cluster, task = settings["cluster"], settings.get("task")
    if not isinstance(cluster, dict):
        raise ValueError(f"cluster is {_shown(cluster)} instead of an object")
    jobs: dict[str, list[str]] = {}
    for job, addresses in cluster.items():
        if not isinstance(addresses, list) or not all(isinstance(address, str) for address in addresses):
            raise ValueError(f"cluster.{job[:40]} is {_shown(addresses)} instead of a list of addresses")
        if addresses:
            jobs[job] = addresses
    if task is None and sum(map(len, jobs.values())) < 2:
        return jobs, next(iter(jobs), "worker"), 0
    if not isinstance(task, dict):
        raise ValueError(f"task is {_shown(task)} instead of an object, so that this process has no index")
    kind, index = ({"type": "worker"} | task)["type"], task.get("index")
    if not isinstance(kind, str):
        raise ValueError(f"task.type is {_shown(kind)} instead of a text")
    if isinstance(index, str) and index.isascii() and index.isdecimal() and len(index) < 10:
        index = int(index)
    if type(index) is not int or index < 0:
        raise ValueError(f"task.index is {_shown(index)} instead of a whole number from 0")
    return jobs, kind, index


def _shown(value: Any) -> str:
    return "missing" if value is None else json.dumps(value)[:60]


def _of_slurm() -> Hosts:
    try:
        job, step, local = (int(os.environ.get(f"SLURM_{name}", "0")) for name in ("JOB_ID", "STEP_ID", "LOCALID"))
        tasks = int(os.environ["SLURM_STEP_NUM_TASKS"])
        port = SLURM_PORTS[(64 * job + step) % len(SLURM_PORTS)]
        # Given numbers of GPUs, it does not ask nvidia-smi, which not every node has; srun shares them out.
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            port_base=port, gpus_per_node=tasks, gpus_per_task=1, auto_set_gpu=False
        )
        addresses = resolver.cluster_spec().job_tasks("worker")
        # The resolver sorts nodes by name (n10 before n9), so that a task's number is not its rank.
        own = f"{os.environ.get('SLURMD_NODENAME') or socket.gethostname()}:{port + local}"
        if own not in addresses:
            raise ValueError(f"it names {', '.join(addresses)}, and this one is {own}")
    except (RuntimeError, ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        problem = str(error).strip().rstrip(".?")
        raise ConfigError(
            f"The variables of SLURM name no hosts: {problem}. Start nmt with srun, which sets them, as many tasks on "
            "each node."
        ) from None
    return Hosts(addresses, addresses.index(own))


def wait_for_all(hosts: Hosts, report: Callable[[str], None], seconds: float = MEETING_SECONDS) -> None:
    """Wait until each host has been reached at its address; until then this one can be reached at its own.

    TensorFlow waits without a word, without an end and without obeying signals, so it begins only then.

    Args:
        hosts: the hosts.
        report: is called with who is missing, every few seconds.
        seconds: time to wait.

    Raises:
        NmtError: if a host does not come in time, or the port of this one is in use.
    """
    port = _split(hosts.addresses[hosts.rank])[1]
    try:
        server = socket.create_server(("", port), backlog=128)
    except OSError as error:
        raise NmtError(
            f"Host {hosts.rank} cannot listen at port {port}: {os.strerror(error.errno or 0)}. Each host listens at a "
            "port of its own. End the process that uses it, or give another port."
        ) from None
    started, next_report = time.monotonic(), SILENT_SECONDS
    missing: Iterable[int] = range(len(hosts.addresses))
    with server:
        server.setblocking(False)
        while missing := hosts.absent(missing):
            with contextlib.suppress(BlockingIOError):
                server.accept()[0].close()
            names, waited = ", ".join(map(hosts.name, missing)), time.monotonic() - started
            if waited >= seconds:
                raise NmtError(
                    f"No answer within {seconds:.0f} s: {names}. Start all {counted(len(hosts.addresses), 'host')} "
                    "with the same command, and see that they reach each other at these addresses."
                )
            if waited >= next_report:
                next_report = waited + REPORT_SECONDS
                report(f"Waiting for {names}: {waited:.0f} of {seconds:.0f} s")
            time.sleep(0.1)


def _split(address: str) -> tuple[str, int]:
    """Return host and port of an address; port 0 for anything but HOST:PORT."""
    host, _, port = str(address).rpartition(":")
    return host.strip("[]"), int(port) if port.isdecimal() and int(port) < 2**16 else 0
