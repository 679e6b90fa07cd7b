"""Free memory of this process: of the machine, of its control group, of its address space, or of the GPU."""

import sys
from pathlib import Path

from nmt import runtime

PROC, CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def free_memory(proc: Path = PROC, cgroups: Path = CGROUPS) -> int | None:
    """Return the bytes that this process may still take: the least of all limits; None where the system does not say.

    With a GPU it is the memory of the GPU.

    Args:
        proc: folder of process information of the Linux kernel.
        cgroups: folder of control groups.
    """
    if runtime.GPUS:
        return runtime.free_gpu_memory()
    found = [_available(proc), _address_space(proc), *_of_control_groups(proc, cgroups)]
    known = [free for free in found if free is not None]
    return max(0, min(known)) if known else None


def _available(proc: Path) -> int | None:
    return _kilobytes(proc / "meminfo", "MemAvailable")


def _kilobytes(path: Path, name: str) -> int | None:
    """Return an entry "Name:  123 kB" of a file in bytes; None without it."""
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    values = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return int(values[0]) * 1024 if values else None


def _address_space(proc: Path) -> int | None:
    """Return what a limit of the address space (``ulimit -v``) leaves; None without a limit."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - there is none on Windows

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    used = _kilobytes(proc / "self" / "status", "VmSize")
    return None if limit == resource.RLIM_INFINITY or used is None else limit - used


def _of_control_groups(proc: Path, cgroups: Path) -> list[int]:
    """Return what the control groups of this process, versions 1 and 2, leave of their limits."""
    try:
        lines = (proc / "self" / "cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found: list[int] = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "memory" not in controllers.split(","):
            continue
        root = cgroups / "memory" if controllers else cgroups
        names = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            if controllers
            else ("memory.max", "memory.current", "inactive_file")
        )
        folder = root / path.lstrip("/")
        # In a container the group is mounted as the root, whatever its path is outside.
        for group in dict.fromkeys([folder, *folder.parents, root]):
            if group.is_relative_to(root) and (free := _of_control_group(group, *names)) is not None:
                found.append(free)
    return found


def _of_control_group(folder: Path, limit: str, usage: str, cached: str) -> int | None:
    """Return limit - usage + cached files, which the system gives up when memory is short; None without a limit."""
    try:
        most, used = (folder / limit).read_text().strip(), int((folder / usage).read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        if not most.isdecimal() or int(most) >= 2**60:
            return None
        return int(most) - used + int(stat[cached])
    except (OSError, ValueError, KeyError):
        return None
