"""Who takes part: the command line, TF_CONFIG and SLURM's variables say the same."""

import json
import socket

import pytest

from nmt.cluster.layout import Layout, layout_of_environment, layout_of_hosts, local_layouts
from nmt.errors import ConfigError

HOSTS = ["a:1", "b:1", "b:2"]


def tf_config(cluster: object, kind: object = "worker", index: object = 0) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


@pytest.mark.parametrize(("rank", "local"), [(0, 0), (1, 0), (2, 1)])
def test_hosts_and_tf_config_say_the_same(rank: int, local: int) -> None:
    expected = Layout(3, rank, "a:1", HOSTS[rank], local)
    assert layout_of_hosts(",".join(HOSTS), rank) == expected
    assert layout_of_environment(tf_config({"worker": HOSTS}, "worker", rank)) == expected
    kind, index = ("chief", 0) if rank == 0 else ("worker", rank - 1)
    assert layout_of_environment(tf_config({"chief": HOSTS[:1], "worker": HOSTS[1:]}, kind, index)) == expected
    assert layout_of_environment(tf_config({"worker": HOSTS, "ps": []}, "worker", str(rank))) == expected


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
def test_a_process_may_be_alone(environ: dict[str, str]) -> None:
    assert layout_of_environment(environ) is None


SLURM = {
    "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0", "SLURM_JOB_ID": "812", "SLURM_STEP_ID": "3", "SLURM_LOCALID": "0",
    "SLURM_STEP_NODELIST": "gpu[03-04,7],cpu1",
}  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("gpu[03-04,7],cpu1", "gpu03"),
        ("node7", "node7"),
        ("b,a", "b"),
        ("r[1-2]-n,x", "r1-n"),
        ("localhost", "localhost"),
        ("gpu-a100-[001,004]", "gpu-a100-001"),
    ],
)
def test_under_srun_the_first_node_has_the_chief(nodes: str, first: str) -> None:
    chief = layout_of_environment(SLURM | {"SLURM_STEP_NODELIST": nodes})
    assert chief is not None
    assert chief.address == chief.chief == f"{first}:{20_000 + (812 * 64 + 3) % 20_000}"
    other = SLURM | {"SLURM_STEP_NODELIST": nodes, "SLURM_PROCID": "3", "SLURM_LOCALID": "1", "SLURMD_NODENAME": "n9"}
    assert layout_of_environment(other) == Layout(4, 3, chief.chief, "n9:0", 1)
    del other["SLURMD_NODENAME"]
    assert layout_of_environment(other) == Layout(4, 3, chief.chief, f"{socket.gethostname()}:0", 1)


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"TF_CONFIG": "{"}, "TF_CONFIG is not a cluster"),
        ({"TF_CONFIG": "[]"}, "TF_CONFIG is not a cluster"),
        (tf_config({"worker": HOSTS, "ps": ["c:1"]}), "names a 'ps'"),
        (tf_config({"worker": HOSTS}, "evaluator"), "names a 'evaluator'"),
        (tf_config({"worker": HOSTS}, "worker", 3), "index 3 of type 'worker', of which its cluster has 3"),
        (tf_config({"worker": HOSTS}, "worker", -1), "index -1"),
        (tf_config({"worker": HOSTS}, "worker", "x"), "TF_CONFIG is not a cluster"),
        (tf_config({"worker": HOSTS}, "chief", 0), "which its cluster has not"),
        (tf_config({"worker": ["a:1", "a"]}), "has the address 'a'"),
        (tf_config({"worker": ["a:1", "b:70000"]}), "has the address 'b:70000'"),
        (tf_config({"worker": ["a:1", "a:1"]}), "has the address 'a:1' twice"),
        (SLURM | {"SLURM_PROCID": "4"}, "SLURM_PROCID is 4, and SLURM_STEP_NUM_TASKS is 4"),
        (SLURM | {"SLURM_STEP_NUM_TASKS": "four"}, "SLURM_STEP_NUM_TASKS is 'four'"),
        (SLURM | {"SLURM_STEP_NODELIST": ""}, "SLURM_STEP_NODELIST is ''"),
        ({key: value for key, value in SLURM.items() if key != "SLURM_PROCID"}, "SLURM_PROCID is None"),
    ],
    ids=str,
)
def test_what_cannot_be_used_is_named(environ: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        layout_of_environment(environ)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("hosts", "index", "words"),
    [
        ("a:1,b:2", None, "--index is missing"),
        ("a:1,b:2", 2, "--index is 2, and --hosts names 2 workers"),
        ("a:1,", 0, "has the address ''"),
        ("a:1,[::1]:2,c", 0, "has the address 'c'"),
    ],
)
def test_hosts_that_cannot_be_used_are_named(hosts: str, index: int | None, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        layout_of_hosts(hosts, index)
    assert words in str(caught.value)


def test_local_workers_have_ports_of_their_own() -> None:
    layouts = local_layouts(5)
    assert [layout.rank for layout in layouts] == [layout.local_rank for layout in layouts] == list(range(5))
    assert len({layout.address for layout in layouts}) == 5
    assert {layout.chief for layout in layouts} == {layouts[0].address}
