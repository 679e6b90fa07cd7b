"""Who takes part: the number of workers, the rank of this one, and where the chief listens.

It comes from the command line, from TF_CONFIG, or from SLURM's variables under ``srun``.
"""

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from nmt.errors import ConfigError

CHIEF = 0
MOST_WORKERS = 4096
SLURM_PORTS = range(20_000, 40_000)
ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):(?P<port>\d{1,5})")
FIRST_HOST = re.compile(r"(?P<prefix>[^,\[\]]+)(?:\[(?P<number>\w+)[^\]]*\](?P<suffix>[^,\[]*))?")


@dataclass(frozen=True)
class Layout:
    """Place of this process among the workers."""

    workers: int
    """Number of workers W."""
    rank: int
    """Number of this worker, from 0; worker 0 is the chief."""
    chief: str
    """Address of the chief, host:port."""
    address: str
    """Address of this worker; port 0: any free one."""
    local_rank: int
    """Number of this worker among those of its machine, from 0, as far as it is known: the number of its GPU."""


class _Task(BaseModel):
    type: str = "worker"
    index: int = 0


class _TfConfig(BaseModel):
    """Content of TF_CONFIG; other keys than these are TensorFlow's own."""

    cluster: dict[str, list[str]] = {}
    task: _Task = _Task()


def split_address(address: str, where: str) -> tuple[str, int]:
    """Return host and port.

    Raises:
        ConfigError: for anything but host:port, naming ``where`` it was found.
    """
    match = ADDRESS.fullmatch(address)
    if not match or not 0 <= int(match["port"]) <= 65_535:
        raise ConfigError(f"{where} has the address {address!r}. An address is HOST:PORT, as in node1:8470.")
    return match["host"].strip("[]"), int(match["port"])


def layout_of_hosts(hosts: str, index: int | None) -> Layout:
    """Return the layout of ``--hosts`` and ``--index``.

    Raises:
        ConfigError: for addresses or an index that cannot be used.
    """
    addresses = hosts.split(",")
    if index is None:
        raise ConfigError(
            f"--hosts names {len(addresses)} workers, and --index is missing. Each worker gives the number of its own "
            "address in --hosts, from 0."
        )
    return _layout(addresses, index, "--hosts", "--index")


def layout_of_environment(environ: Mapping[str, str]) -> Layout | None:
    """Return the layout of TF_CONFIG, or of SLURM's variables under ``srun``; None: this process trains alone.

    Raises:
        ConfigError: for a variable that cannot be used.
    """
    if environ.get("TF_CONFIG", "").strip():
        return _layout_of_tf_config(environ["TF_CONFIG"])
    if environ.get("SLURM_STEP_NUM_TASKS", "1") != "1":
        return _layout_of_slurm(environ)
    return None


def _layout_of_tf_config(text: str) -> Layout | None:
    try:
        found = _TfConfig.model_validate_json(text)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise ConfigError(
            f"TF_CONFIG is not a cluster: {f'{place}: ' if place else ''}{problem['msg']}. It is JSON such as "
            '{"cluster": {"worker": ["a:8470", "b:8470"]}, "task": {"type": "worker", "index": 0}}.'
        ) from None
    jobs = {job: addresses for job, addresses in found.cluster.items() if addresses}
    kind, index = found.task.type, found.task.index
    unknown = [job for job in [*jobs, kind] if job not in {"chief", "master", "worker"}]
    if unknown:
        raise ConfigError(
            f"TF_CONFIG names a {unknown[0]!r}. Training has workers alone, of type worker, or a chief and workers. "
            "Leave the others out."
        )
    order: list[str] = [job for job in ("chief", "master", "worker") if job in jobs]
    addresses = [address for job in order for address in jobs[job]]
    if len(addresses) <= 1:
        return None
    if kind not in jobs:
        raise ConfigError(f"TF_CONFIG gives this process the type {kind!r}, which its cluster has not.")
    before = sum(len(jobs[job]) for job in order[: order.index(kind)])
    if not 0 <= index < len(jobs[kind]):
        raise ConfigError(
            f"TF_CONFIG gives this process index {index} of type {kind!r}, of which its cluster has {len(jobs[kind])}."
        )
    return _layout(addresses, before + index, "TF_CONFIG", "TF_CONFIG")


def _layout(addresses: list[str], rank: int, where: str, index_where: str) -> Layout:
    hosts = [split_address(address, where)[0] for address in addresses]
    doubles = [address for address in addresses if addresses.count(address) > 1]
    if doubles:
        raise ConfigError(
            f"{where} has the address {doubles[0]!r} twice. Each worker listens at an address of its own."
        )
    if not 0 <= rank < len(addresses):
        raise ConfigError(f"{index_where} is {rank}, and {where} names {len(addresses)} workers. They count from 0.")
    return Layout(len(addresses), rank, addresses[CHIEF], addresses[rank], hosts[:rank].count(hosts[rank]))


def _layout_of_slurm(environ: Mapping[str, str]) -> Layout:
    numbers = {}
    for name, default in (
        ("STEP_NUM_TASKS", None),
        ("PROCID", None),
        ("LOCALID", "0"),
        ("JOB_ID", "0"),
        ("STEP_ID", "0"),
    ):
        text = environ.get(f"SLURM_{name}", default)
        if text is None or not text.isdecimal():
            raise ConfigError(f"SLURM_{name} is {text!r}. srun sets it to a number. Start nmt with srun.")
        numbers[name] = int(text)
    nodes = environ.get("SLURM_STEP_NODELIST", "")
    match = FIRST_HOST.match(nodes)
    if not match:
        raise ConfigError(f"SLURM_STEP_NODELIST is {nodes!r}. srun sets it to the names of nodes. Start nmt with srun.")
    workers, rank = numbers["STEP_NUM_TASKS"], numbers["PROCID"]
    if rank >= workers:
        raise ConfigError(f"SLURM_PROCID is {rank}, and SLURM_STEP_NUM_TASKS is {workers}. Ranks count from 0.")
    first = f"{match['prefix']}{match['number'] or ''}{match['suffix'] or ''}"
    port = SLURM_PORTS[(numbers["JOB_ID"] * 64 + numbers["STEP_ID"]) % len(SLURM_PORTS)]
    chief = f"{first}:{port}"
    own = chief if rank == CHIEF else f"{environ.get('SLURMD_NODENAME') or socket.gethostname()}:0"
    return Layout(workers, rank, chief, own, numbers["LOCALID"])


def local_layouts(workers: int) -> list[Layout]:
    """Return the layouts of workers on this machine, at ports that are free now."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(workers)]
    addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in held]
    for one in held:
        one.close()
    return [Layout(workers, rank, addresses[CHIEF], address, rank) for rank, address in enumerate(addresses)]
