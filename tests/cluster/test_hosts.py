"""Hosts are found by TF_CONFIG and SLURM. A missing host is named, and no host waits for ever."""

import contextlib
import json
import re
import socket
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from cluster_ports import free_addresses
from hypothesis import given
from hypothesis import strategies as st

from nmt.cluster.hosts import Hosts, find_hosts, wait_for_all
from nmt.errors import ConfigError, NmtError

ADDRESSES = ["a:1", "b:1", "b:2"]
SLURM = {
    "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0", "SLURM_JOB_ID": "812", "SLURM_STEP_ID": "3", "SLURM_LOCALID": "0",
    "SLURM_STEP_NODELIST": "gpu[9-11],cpu1", "SLURM_STEP_TASKS_PER_NODE": "1(x4)", "SLURMD_NODENAME": "gpu9",
}  # fmt: skip
PORT = 20_000 + (812 * 64 + 3) % 20_000


def tf_config(cluster: object, kind: object = "worker", index: object = 0) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


def hosts_of(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> Hosts | None:
    for name in ("TF_CONFIG", *SLURM):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    return find_hosts()


@pytest.mark.parametrize("rank", range(3))
def test_tf_config_has_workers_or_a_chief_and_workers(rank: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, index = ("chief", 0) if rank == 0 else ("worker", rank - 1)
    for environ in (
        tf_config({"worker": ADDRESSES}, "worker", rank),
        tf_config({"worker": ADDRESSES, "ps": []}, "worker", str(rank)),
        tf_config({"worker": ADDRESSES[1:], "chief": ADDRESSES[:1]}, kind, index),
    ):
        assert hosts_of(monkeypatch, environ) == Hosts(ADDRESSES, rank)


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"TF_CONFIG": " "},
        {"TF_CONFIG": "{}"},
        tf_config({"worker": ["a:1"]}),
        {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"},  # in a batch script, without srun
        {"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"},
    ],
    ids=str,
)
def test_a_process_may_be_alone(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert hosts_of(monkeypatch, environ) is None


def test_under_srun_each_task_finds_its_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """SLURM numbers gpu9 before gpu10, and TensorFlow's resolver sorts by letters. The address decides the rank."""
    expected = [f"{node}:{PORT}" for node in ("cpu1", "gpu10", "gpu11", "gpu9")]
    for process, node in enumerate(["gpu9", "gpu10", "gpu11", "cpu1"]):
        hosts = hosts_of(monkeypatch, SLURM | {"SLURM_PROCID": str(process), "SLURMD_NODENAME": node})
        assert hosts == Hosts(expected, expected.index(f"{node}:{PORT}"))
    several = {"SLURM_STEP_NODELIST": "n[1-2]", "SLURM_STEP_TASKS_PER_NODE": "2(x2)", "SLURMD_NODENAME": "n2"}
    hosts = hosts_of(monkeypatch, SLURM | several | {"SLURM_LOCALID": "1"})
    assert hosts == Hosts([f"n1:{PORT}", f"n1:{PORT + 1}", f"n2:{PORT}", f"n2:{PORT + 1}"], 3)


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"TF_CONFIG": "{"}, "TF_CONFIG is not a cluster"),
        ({"TF_CONFIG": '{"cluster": 3}'}, "TF_CONFIG is not a cluster"),
        ({"TF_CONFIG": '{"cluster": {"worker": ["a:1", "b:1"]}, "task": 7}'}, "TF_CONFIG is not a cluster"),
        (tf_config({"worker": "a:1"}), "TF_CONFIG is not a cluster"),
        (tf_config({"worker": ADDRESSES, "ps": ["c:1"]}), "names a 'ps'"),
        (tf_config({"worker": ADDRESSES}, "evaluator"), "names a 'evaluator'"),
        (tf_config({"worker": ADDRESSES}, "worker", 3), "index 3 of type 'worker', of which its cluster has 3"),
        (tf_config({"worker": ADDRESSES}, "worker", -1), "task.index is -1"),
        (tf_config({"worker": ADDRESSES}, "worker", 0.5), "task.index is 0.5 instead of a whole number"),
        (tf_config({"worker": ADDRESSES}, "worker", True), "task.index is true"),
        (tf_config({"worker": ADDRESSES}, "worker", None), "task.index is missing"),
        (tf_config({"worker": ADDRESSES}, 7, 0), "task.type is 7"),
        ({"TF_CONFIG": json.dumps({"cluster": {"worker": ADDRESSES}})}, "task is missing"),
        ({"TF_CONFIG": json.dumps({"cluster": {"worker": ADDRESSES}, "task": [1]})}, "task is [1]"),
        ({"TF_CONFIG": "[" * 100_000}, "nested too deeply"),
        ({"TF_CONFIG": '{"cluster": NaN}'}, "NaN is not a JSON number"),
        (tf_config({"worker": ADDRESSES}, "worker", "x"), "TF_CONFIG is not a cluster"),
        (tf_config({"worker": ADDRESSES}, "chief", 0), "index 0 of type 'chief', of which its cluster has 0"),
        (tf_config({"worker": ["a:1", "a"]}), "has the address 'a'"),
        (tf_config({"worker": ["a:1", 7]}), "7"),
        (tf_config({"worker": ["a:1", "b:70000"]}), "has the address 'b:70000'"),
        (tf_config({"worker": ["a:1", "a:1"]}), "has the address 'a:1' twice"),
        (SLURM | {"SLURM_STEP_NUM_TASKS": "four"}, "The variables of SLURM name no hosts"),
        (SLURM | {"SLURM_STEP_NODELIST": ""}, "The variables of SLURM name no hosts"),
        (SLURM | {"SLURM_STEP_TASKS_PER_NODE": "1"}, "The variables of SLURM name no hosts"),
        (SLURM | {"SLURMD_NODENAME": "elsewhere"}, f"but the address of this task is elsewhere:{PORT}"),
        ({key: value for key, value in SLURM.items() if key != "SLURM_PROCID"}, "SLURM_PROCID not found"),
    ],
    ids=str,
)
def test_what_cannot_be_used_is_named(environ: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError) as caught:
        hosts_of(monkeypatch, environ)
    assert words in str(caught.value)


# --- waiting


THREADS = ThreadPoolExecutor()


def waiting(addresses: list[str], rank: int, seconds: float = 20) -> tuple[Future[None], list[str]]:
    """Start a host that waits in a thread. Return its future and the list of its reports."""
    reports: list[str] = []
    return THREADS.submit(wait_for_all, Hosts(addresses, rank), reports.append, seconds), reports


def test_all_wait_for_all() -> None:
    """A host waits until it has reached all hosts. Afterwards it answers at its port, as TensorFlow does."""
    addresses = free_addresses(3)
    with contextlib.ExitStack() as servers:
        hosts = {}
        for rank in (2, 0, 1):
            assert not any(host.done() for host, _ in hosts.values())
            hosts[rank] = waiting(addresses, rank)
            time.sleep(0.3)
        while not all(host.done() for host, _ in hosts.values()):
            for rank, (host, _) in hosts.items():
                if host.done():
                    with contextlib.suppress(OSError):
                        servers.enter_context(socket.create_server(("", int(addresses[rank][10:]))))
            time.sleep(0.05)
        assert [(host.result(), reports) for host, reports in hosts.values()] == [(None, [])] * 3


def test_who_does_not_come_is_named_within_seconds() -> None:
    addresses = free_addresses(4)
    (host, reports), _ = waiting(addresses, 0, seconds=5), waiting(addresses, 2, seconds=8)
    started = time.monotonic()
    names = f"host 1 ({addresses[1]}), host 3 ({addresses[3]})"
    with pytest.raises(NmtError, match=f"^No answer within 5 s: {re.escape(names)}. Start all 4 hosts"):
        host.result(10)
    assert re.fullmatch(rf"Waiting for {re.escape(names)}: [3-5] of 5 s", reports[0])
    assert time.monotonic() - started < 10


def test_a_port_in_use_is_named() -> None:
    addresses = free_addresses(2)
    with (
        socket.create_server(("", int(addresses[1][10:]))),
        pytest.raises(NmtError, match=r"^Host 1 cannot listen at port"),
    ):
        wait_for_all(Hosts(addresses, 1), print)


def test_strangers_are_not_listened_to() -> None:
    addresses = free_addresses(2)
    host, _ = waiting(addresses, 0, seconds=3)
    time.sleep(0.5)
    for content in (b"GET / HTTP/1.1\r\n\r\n", b"x" * 100_000, b""):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(addresses[0][10:]))) as stranger:
            stranger.sendall(content)
    with pytest.raises(NmtError, match=r"^No answer within 3 s: host 1"):
        host.result(10)


WORDS = st.sampled_from(["worker", "chief", "a:1", "b:1", "0"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | WORDS
KEYS = st.sampled_from(["cluster", "task", "worker", "chief", "type", "index", "ps"])
ANY_JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
                        max_leaves=12)  # fmt: skip
CLUSTERS = st.fixed_dictionaries({"cluster": st.just({"worker": ADDRESSES}), "task": ANY_JSON})


@given(ANY_JSON | CLUSTERS)
def test_whatever_tf_config_holds_no_process_is_host_0_by_mistake(value: object) -> None:
    with pytest.MonkeyPatch.context() as patch:
        try:
            hosts = hosts_of(patch, {"TF_CONFIG": json.dumps(value)})
        except ConfigError as refused:
            assert "TF_CONFIG" in str(refused) and "{" in str(refused)
            return
        if hosts is not None:
            assert isinstance(value, dict)
            task = value["task"]
            assert type(task["index"]) in (int, str)
            chiefs = value["cluster"].get("chief") or [] if task.get("type", "worker") == "worker" else []
            assert hosts.rank == len(chiefs) + int(task["index"])


@given(st.fixed_dictionaries({}, optional={name: st.text("0123456789.-[]x(),ng", max_size=12) for name in SLURM}))
def test_whatever_slurm_s_variables_hold_is_used_or_refused(values: dict[str, str]) -> None:
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(ConfigError):
        hosts_of(patch, SLURM | values)
