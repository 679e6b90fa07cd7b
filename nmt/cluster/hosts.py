"""Hosts that train together: their addresses from TF_CONFIG or SLURM, and a wait until all hosts can be reached.

A host is a process of ``nmt train`` on a machine of its own. A process without TF_CONFIG and SLURM trains alone, and
opens no port.
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
SILENT_SECONDS = 3.0  # a shorter wait is not reported
REPORT_SECONDS = 10.0
EXAMPLE = '{"cluster": {"worker": ["a:8470", "b:8470"]}, "task": {"type": "worker", "index": 0}}'


class Hosts(NamedTuple):
    """The hosts of a run, and the rank of this host."""

    addresses: list[str]
    """Address HOST:PORT of each host, by rank."""
    rank: int
    """Rank of this host. Host 0 is the chief, and only the chief writes to the run."""

    def name(self, rank: int) -> str:
        """Return the name of a host for messages."""
        return f"host {rank} ({self.addresses[rank]})"

    def unreachable(self, ranks: Iterable[int]) -> list[int]:
        """Return the ranks, out of ``ranks``, of hosts that cannot be reached."""
        missing = []
        for rank in set(ranks) - {self.rank}:
            try:
                socket.create_connection(_split_address(self.addresses[rank]), timeout=1).close()
            except OSError:
                missing.append(rank)
        return sorted(missing)


def find_hosts() -> Hosts | None:
    """Return the hosts from TF_CONFIG, or from SLURM's variables under ``srun``; None if this process trains alone.

    Raises:
        ConfigError: if the variables cannot be used.
    """
    if os.environ.get("TF_CONFIG", "").strip():
        hosts = _hosts_from_tf_config()
    elif os.environ.get("SLURM_STEP_NUM_TASKS", "1") != "1":
        hosts = _hosts_from_slurm()
    else:
        return None
    return hosts if hosts and len(hosts.addresses) > 1 else None


def _hosts_from_tf_config() -> Hosts | None:
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
        *(f"has the address {address!r}" for address in addresses if not all(_split_address(address))),
        *(f"has the address {address!r} twice" for address in addresses if addresses.count(address) > 1),
    ]  # fmt: skip
    if problems:
        raise ConfigError(
            f"TF_CONFIG {problems[0][:200]}. Hosts have the type worker, but one host may have the type chief. Each "
            f"host has its own address HOST:PORT, and an index from 0 in its type. Correct TF_CONFIG, as in {EXAMPLE}."
        )
    return Hosts(addresses, index if kind == "chief" else len(chiefs) + index)


def _read_tf_config(config: Any) -> tuple[dict[str, list[str]], str, int]:
    """Return the addresses of each job in TF_CONFIG, and the type and index of this process.

    A process that trains alone may leave out its task.

    Raises:
        ValueError: if a value is not as TensorFlow documents it; names the value.
    """
    if not isinstance(config, dict):
        raise ValueError(f"it is {_value_text(config)} instead of an object")
    settings: dict[str, Any] = {"cluster": {}, **config}
    cluster, task = settings["cluster"], settings.get("task")
    if not isinstance(cluster, dict):
        raise ValueError(f"cluster is {_value_text(cluster)} instead of an object")
    jobs: dict[str, list[str]] = {}
    for job, addresses in cluster.items():
        if not isinstance(addresses, list) or not all(isinstance(address, str) for address in addresses):
            raise ValueError(f"cluster.{job[:40]} is {_value_text(addresses)} instead of a list of addresses")
        if addresses:
            jobs[job] = addresses
    if task is None and sum(map(len, jobs.values())) < 2:
        return jobs, next(iter(jobs), "worker"), 0
    if not isinstance(task, dict):
        raise ValueError(f"task is {_value_text(task)} instead of an object, so that this process has no index")
    kind, index = ({"type": "worker"} | task)["type"], task.get("index")
    if not isinstance(kind, str):
        raise ValueError(f"task.type is {_value_text(kind)} instead of a text")
    if isinstance(index, str) and index.isascii() and index.isdecimal() and len(index) < 10:
        index = int(index)
    if type(index) is not int or index < 0:
        raise ValueError(f"task.index is {_value_text(index)} instead of a whole number from 0")
    return jobs, kind, index


def _value_text(value: Any) -> str:
    return "missing" if value is None else json.dumps(value)[:60]


def _hosts_from_slurm() -> Hosts:
    try:
        job, step, local = (int(os.environ.get(f"SLURM_{name}", "0")) for name in ("JOB_ID", "STEP_ID", "LOCALID"))
        tasks = int(os.environ["SLURM_STEP_NUM_TASKS"])
        port = SLURM_PORTS[(64 * job + step) % len(SLURM_PORTS)]
        # With the numbers of GPUs given, the resolver does not call nvidia-smi, which some nodes lack. srun assigns the
        # GPUs to the tasks.
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            port_base=port, gpus_per_node=tasks, gpus_per_task=1, auto_set_gpu=False
        )
        addresses = resolver.cluster_spec().job_tasks("worker")
        # The resolver sorts nodes by name (n10 before n9), so the number of a task is not its rank.
        node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
        own_address = f"{node}:{port + local}"
        if own_address not in addresses:
            raise ValueError(f"they name {', '.join(addresses)}, but the address of this task is {own_address}")
    except (RuntimeError, ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        problem = str(error).strip().rstrip(".?")
        raise ConfigError(
            f"The variables of SLURM name no hosts: {problem}. Start nmt with srun, which sets the variables, with the "
            "same number of tasks on each node."
        ) from None
    return Hosts(addresses, addresses.index(own_address))


def wait_for_all(hosts: Hosts, report: Callable[[str], None], seconds: float = MEETING_SECONDS) -> None:
    """Wait until every host has been reached at its address. Meanwhile this host listens at its own address.

    TensorFlow would wait without a message, without an end and without obeying signals. So it starts only afterwards.

    Args:
        hosts: the hosts.
        report: function that is called every few seconds with the names of missing hosts.
        seconds: time to wait.

    Raises:
        NmtError: if a host cannot be reached in time, or the port of this host is in use.
    """
    port = _split_address(hosts.addresses[hosts.rank])[1]
    try:
        server = socket.create_server(("", port), backlog=128)
    except OSError as error:
        raise NmtError(
            f"Host {hosts.rank} cannot listen at port {port}: {os.strerror(error.errno or 0)}. Each host needs a port "
            "of its own. End the process that uses this port, or give another port."
        ) from None
    started, next_report = time.monotonic(), SILENT_SECONDS
    missing: Iterable[int] = range(len(hosts.addresses))
    with server:
        server.setblocking(False)
        while missing := hosts.unreachable(missing):
            with contextlib.suppress(BlockingIOError):
                server.accept()[0].close()
            names, waited = ", ".join(map(hosts.name, missing)), time.monotonic() - started
            if waited >= seconds:
                raise NmtError(
                    f"No answer within {seconds:.0f} s: {names}. Start all {counted(len(hosts.addresses), 'host')} "
                    "with the same command, and make sure that they can reach each other at these addresses."
                )
            if waited >= next_report:
                next_report = waited + REPORT_SECONDS
                report(f"Waiting for {names}: {waited:.0f} of {seconds:.0f} s")
            time.sleep(0.1)


def _split_address(address: str) -> tuple[str, int]:
    """Return host and port of an address HOST:PORT. The port of any other text is 0."""
    host, _, port = str(address).rpartition(":")
    return host.strip("[]"), int(port) if port.isdecimal() and int(port) < 2**16 else 0
