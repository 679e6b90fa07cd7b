"""TensorFlow starts without messages; the precision is chosen by the hardware; free memory is found by the limits."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from nmt import runtime


def imported(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"from nmt import runtime; {code}"], capture_output=True, text=True, check=False,
        cwd=folder, env={**os.environ, **environment},
    )  # fmt: skip


def test_importing_is_silent_and_ignores_a_users_keras_backend(tmp_path: Path) -> None:
    code = (
        "runtime.tf.zeros(1); runtime.tf.function(lambda x: x + 1, jit_compile=True)(1.0); import os; "
        "print(runtime.keras.backend.backend(), *map(os.environ.get, ['KERAS_BACKEND', 'TF_CPP_MIN_LOG_LEVEL']))"
    )
    done = imported(code, tmp_path, KERAS_BACKEND="jax")
    assert (done.returncode, done.stdout, done.stderr) == (0, "tensorflow jax None\n", "")


@pytest.mark.parametrize("program", ["nmt.cli.app", "nmt"])
def test_only_the_command_line_keeps_matplotlib_from_keras(program: str) -> None:
    code = f"import {program}, sys; import nmt.runtime; print('matplotlib.pyplot' in sys.modules); import matplotlib"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (f"{program == 'nmt'}\n", "")


@pytest.mark.parametrize(
    ("program", "before", "threads"),
    [
        pytest.param("nmt.cli.app", "0", 1, id="command line"),
        pytest.param("nmt.cli.app", "runtime.tf.zeros(1)", 3, id="after training", marks=pytest.mark.slow),
        pytest.param("nmt.api", "0", 3, id="another program", marks=pytest.mark.slow),
    ],
)
def test_operations_of_a_command_that_translates_have_one_thread(
    program: str, before: str, threads: int, tmp_path: Path
) -> None:
    code = (
        f"import {program}; runtime.tf.config.threading.set_intra_op_parallelism_threads(3); {before}; "
        "runtime.compute_each_operation_in_one_thread(); runtime.tf.zeros(1); print(runtime.threads())"
    )
    assert imported(code, tmp_path).stdout == f"{threads}\n"


def test_a_failure_at_the_start_is_shown(tmp_path: Path) -> None:
    (tmp_path / "keras.py").write_text("import sys; print('the reason', file=sys.stderr); raise RuntimeError('broken')")
    done = imported("0", tmp_path, PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
    assert done.returncode == 1
    assert "the reason" in done.stderr and "RuntimeError: broken" in done.stderr


@pytest.mark.parametrize(
    ("vendor", "flags", "chosen"),
    [
        ("GenuineIntel", "avx512_bf16 amx_bf16", "bfloat16"),
        ("GenuineIntel", "avx512_bf16", "float32"),
        ("AuthenticAMD", "avx512_bf16", "bfloat16"),
        ("AuthenticAMD", "sse", "float32"),
        ("", "", "float32"),
    ],
)
def test_auto_follows_the_processor(vendor: str, flags: str, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "GPUS", [])
    monkeypatch.setattr(runtime, "_cpuinfo", lambda: f"vendor_id\t: {vendor}\nflags\t: sse {flags}\n")
    assert runtime.resolve_precision("auto") == chosen
    assert (runtime.resolve_precision("float32"), runtime.resolve_precision("bfloat16")) == ("float32", "bfloat16")


def test_a_seed_determines_initial_values_and_python_draws_as_before() -> None:
    state, drawn = random.getstate(), []
    for seed in (1, 1, 2, None):
        with runtime.seeded(seed):
            drawn.append(runtime.keras.initializers.GlorotUniform()([4, 4]).numpy().tolist())
        assert random.getstate() == state
    assert drawn[0] == drawn[1] and len({*map(str, drawn)}) == 3


def test_free_memory_is_the_least_that_machine_and_control_groups_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "GPUS", [])
    proc, cgroups = tmp_path / "proc", tmp_path / "cgroup"
    assert runtime.free_memory(proc, cgroups) is None
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n")
    (proc / "self" / "cgroup").write_text("4:memory:/docker/0123\n3:cpu:/\n0::/job/step\n")

    def group(folder: Path, *files: str) -> None:
        folder.mkdir(parents=True)
        for file in files:
            name, _, content = file.partition("=")
            (folder / name).write_text(f"{content}\n")

    def free() -> int:
        return (runtime.free_memory(proc, cgroups) or 0) // 1024

    assert free() == 8_000_000
    group(
        cgroups / "job", f"memory.max={6_000_000 * 1024}", f"memory.current={3_000_000 * 1024}",
        f"memory.stat=anon 5\ninactive_file {1_000_000 * 1024}",
    )  # fmt: skip
    group(cgroups / "job" / "step", "memory.max=max")
    assert free() == 4_000_000
    # Version 1, in a container: its group is mounted as the root.
    group(
        cgroups / "memory", f"memory.limit_in_bytes={3_000_000 * 1024}", f"memory.usage_in_bytes={2_000_000 * 1024}",
        "memory.stat=total_inactive_file 0",
    )  # fmt: skip
    assert free() == 1_000_000
    (cgroups / "memory" / "memory.limit_in_bytes").write_text(f"{2**63 - 4096}\n")  # no limit
    assert free() == 4_000_000
