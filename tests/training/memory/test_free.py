"""Free memory: the least of what machine, control groups and address space leave."""

from pathlib import Path

import pytest

from nmt import runtime
from nmt.training.memory.free import free_memory

GB, MB = 10**9, 10**6


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with 8 GB available, and no limits."""
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 16000000 kB\nMemAvailable: 7812500 kB\n")
    (tmp_path / "proc" / "self" / "status").write_text("VmSize:\t  1000 kB\n")
    (tmp_path / "proc" / "self" / "cgroup").write_text("0::/job/step\n")
    return tmp_path


def group(folder: Path, limit: str, used: int, cached: int, *, version: int = 2) -> None:
    names = ("memory.max", "memory.current", "inactive_file")
    if version == 1:
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    folder.mkdir(parents=True)
    (folder / names[0]).write_text(f"{limit}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {cached}\n")


def free(machine: Path) -> int | None:
    return free_memory(machine / "proc", machine / "cgroup")


@pytest.mark.skipif(bool(runtime.GPUS), reason="with a GPU its memory counts")
def test_the_least_limit_counts(machine: Path) -> None:
    assert free(machine) == 8 * GB
    group(machine / "cgroup" / "job", str(4 * GB), 3 * GB, 500 * MB)
    group(machine / "cgroup" / "job" / "step", "max", 2 * GB, 0)
    assert free(machine) == 4 * GB - 3 * GB + 500 * MB  # files in the cache can be given up


@pytest.mark.skipif(bool(runtime.GPUS), reason="with a GPU its memory counts")
def test_a_container_has_its_group_at_the_root(machine: Path) -> None:
    (machine / "proc" / "self" / "cgroup").write_text("4:memory:/docker/0123\n0::/\n")
    group(machine / "cgroup" / "memory", str(3 * GB), GB, 0, version=1)
    assert free(machine) == 2 * GB
    (machine / "cgroup" / "memory" / "memory.limit_in_bytes").write_text(f"{2**63 - 4096}\n")  # no limit
    assert free(machine) == 8 * GB


@pytest.mark.skipif(bool(runtime.GPUS), reason="with a GPU its memory counts")
def test_a_system_that_does_not_say_has_no_figure(tmp_path: Path) -> None:
    assert free(tmp_path) is None
