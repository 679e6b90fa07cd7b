"""Tests about GPUs that need no GPU: kernels, copies and launches by the registry; drivers; deterministic steps."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, nmt

from nmt import gpu, runtime
from nmt.cli.endings import gpu_notes

HERE = Path(__file__).parent
# A step, or a token of a search: copies to the host, which waits for each, and operations that the GPU starts. Smaller
# figures take the place of these; `python tests/gpu_figures.py` prints all.
FIGURES = {
    "step 2+2 float32": (1, 890),
    "step 2+2 bfloat16": (1, 1070),
    "step 2+2 float16": (3, 1262),
    "step 6+6 bfloat16": (1, 2986),
    "step 6+6 bfloat16 muon": (1, 3794),
    "step 2+2 bfloat16 r-drop": (1, 2091),
    "step 2+2 bfloat16 micro-batches": (3, 1615),
    "step 2+2 bfloat16 padded": (1, 1034),
    "step 2+2 bfloat16 clipped, averaged": (2, 1507),
    "step 2+2 bfloat16 ssru": (1, 1072),
    "step 2+2 bfloat16 rotary, untied, word dropout": (3, 1350),
    "step bahdanau bfloat16": (12, 722),
    "step luong float32": (13, 717),
    "validation": (1, 375),
    "greedy 2+2": (1, 200),
    "greedy 2+2 ssru": (1, 175),
    "beam 5 2+2": (3, 208),
    "beam 5 2+2 penalties": (7, 215),
    "sampling 2+2": (3, 216),
    "greedy luong": (3, 102),
    "beam 5 bahdanau": (3, 64),
}
RECURRENT = [name for name in FIGURES if "luong" in name or "bahdanau" in name]
TRANSFORMERS = [name for name in FIGURES if name not in RECURRENT]
STUB = """
#include <stdio.h>
int cuInit(unsigned flags) { return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)1; return 0; }
int cuCtxPushCurrent_v2(void *context) { return 0; }
int cuCtxPopCurrent_v2(void **context) { return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
int cuMemGetInfo_v2(size_t *free, size_t *total) { *free = 6ul << 30; *total = 8ul << 30; return 0; }
"""


def printed(*arguments: str | Path, **environment: str) -> str:
    """Return the output of a Python process of its own."""
    paths = os.pathsep.join([str(ROOT), str(HERE), *sys.path])
    return subprocess.run(
        [sys.executable, *arguments], check=True, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": paths, **environment},
    ).stdout  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("names", [TRANSFORMERS[::2], TRANSFORMERS[1::2], RECURRENT], ids=len)
def test_a_gpu_has_every_kernel_and_waits_and_starts_no_more_than_before(names: list[str]) -> None:
    for line in printed(HERE / "gpu_figures.py", *names).splitlines():
        [(name, (lacking, copies, launches))] = json.loads(line).items()
        assert not lacking, name
        most_copies, most_launches = FIGURES[name]
        assert copies <= most_copies and launches <= most_launches, (name, copies, launches)


@pytest.mark.slow
def test_deterministic_operations_give_the_same_bits_and_batches_are_assembled_ahead() -> None:
    plain, deterministic = (printed(HERE / "gpu_deterministic.py", mode) for mode in ("plain", "deterministic"))
    assert plain == deterministic


def test_a_driver_is_found_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpu.driver(tmp_path) is None
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidia0").touch()
    assert gpu.driver(tmp_path) == ""
    (tmp_path / "proc/driver/nvidia").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text(
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version: 12\n"
    )
    assert gpu.driver(tmp_path) == "535.104.05"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert gpu.driver(tmp_path) is None


def test_where_tensorflow_sees_no_gpu_its_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert runtime.GPUS or not list(gpu_notes())
    monkeypatch.setattr(runtime, "GPUS", [])
    monkeypatch.setattr(runtime, "DRIVER", "535.1")
    monkeypatch.setattr(gpu, "driver", lambda: "535.1")
    monkeypatch.setattr(
        gpu, "PROBE", "import sys; sys.stderr.write('W0000 00:00:1.1  7 a.cc:1] Cannot dlopen libX\\n')"
    )
    [note] = gpu_notes()
    assert "(535.1)" in note and "Cannot dlopen libX" in note and "nmt[gpu]" in note
    monkeypatch.setattr(gpu, "PROBE", "")
    assert "no reason" in gpu.reason_unseen()


@pytest.mark.slow
def test_tensorflow_gives_its_reason() -> None:
    assert runtime.GPUS or gpu.reason_unseen() != "it gives no reason"


@pytest.mark.parametrize(("capability", "newer"), [((8, 0), False), ((9, 0), False), ((12, 0), True)])
def test_a_card_is_named_and_a_newer_one_than_the_kernels_told(
    capability: tuple[int, int], newer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    details = {"device_name": "NVIDIA X", "compute_capability": capability}
    monkeypatch.setattr(runtime, "GPUS", ["one", "two"])
    monkeypatch.setattr(runtime, "DRIVER", "535.1")
    monkeypatch.setattr(runtime.tf.config.experimental, "get_device_details", lambda _: details)
    named = f"2 x NVIDIA X of compute capability {capability[0]}.{capability[1]}, driver 535.1"
    assert runtime.device() == named and runtime.devices() == ["GPU:0", "GPU:1"]
    note = runtime.gpu_note()
    assert ("NVIDIA X" in note and "9.0" in note) if newer else note is None  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize("used", [2, 3])
def test_gpus_that_have_no_micro_batch_are_told(prepared: Path, monkeypatch: pytest.MonkeyPatch, used: int) -> None:
    monkeypatch.setattr(runtime, "devices", lambda: ["CPU:0"] * 3)
    train = ["train", "--dataset", "subword", "--config", "tiny.yaml", "--run", "several", "--dry-run"]
    said = nmt(*train, "--set", f"training.micro_batches={used}", cwd=prepared).stdout
    assert (f"{used} of 3 GPUs" in said and "micro_batches=3" in said) == (used < 3)


@pytest.mark.skipif(not shutil.which("cc") or sys.platform != "linux", reason="needs a C compiler on Linux")
def test_libraries_are_loaded_and_memory_asked_for_where_pip_and_the_driver_put_them(tmp_path: Path) -> None:
    solver = tmp_path / "nvidia/cusolver/lib/libcusolver.so.11"
    solver.parent.mkdir(parents=True)
    (tmp_path / "stub.c").write_text(STUB)
    for library in (solver, tmp_path / "libcuda.so.1"):
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, tmp_path / "stub.c"], check=True)
    code = "from nmt import gpu; gpu.load_libraries(); print('libcusolver' in open('/proc/self/maps').read())"
    paths = os.pathsep.join([str(tmp_path), str(ROOT), *sys.path])
    environment = {"PYTHONPATH": paths, "LD_LIBRARY_PATH": str(tmp_path)}
    assert printed("-c", f"{code}; print(gpu.free_memory())", **environment) == f"True\n{6 << 30}\n"
    broken = tmp_path / "nvidia/cusolver/lib/libcusolver.so.12"
    broken.write_bytes(b"")
    with pytest.raises(OSError):
        ctypes.CDLL(str(broken))
    assert printed("-c", code, **environment) == "True\n"
