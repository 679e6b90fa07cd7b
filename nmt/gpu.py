"""NVIDIA GPUs, seen without TensorFlow: the driver, libraries that it must find, free memory, why it sees none."""

import contextlib
import ctypes
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

PROBE = "import tensorflow; tensorflow.config.list_physical_devices('GPU')"
OF_GPUS = ("GPU", "CUDA", "cuInit", "dlopen")
"""Words of TensorFlow's messages about GPUs."""


def driver(root: Path = Path("/")) -> str | None:
    """Return the version of the driver of this machine's GPUs, "" if it does not say; None without one, or if hidden.

    Args:
        root: folder of ``dev`` and ``proc``.
    """
    if os.environ.get("CUDA_VISIBLE_DEVICES") in {"", "-1"}:
        return None
    with contextlib.suppress(OSError):
        text = (root / "proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
        line = text.partition("Kernel Module")[2].partition("\n")[0]
        found = re.search(r"(?<!\d)\d++\.[\d.]+", line)
        return found[0] if found else ""
    return "" if (root / "dev/nvidia0").exists() or (root / "dev/dxg").exists() else None  # dxg: that of Windows


def load_libraries() -> None:
    """Load cusolver as pip installs it, before TensorFlow: its wheel looks for it in all folders but the right one."""
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or [] if spec else []:
        for library in Path(folder).glob("cusolver/lib/libcusolver.so.*"):
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def reason_unseen() -> str:
    """Return what TensorFlow says about GPUs when it looks for them in a process of its own: its last such line."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, errors="replace", check=False,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    messages = [line.partition("] ")[2] for line in done.stderr.split("\n") if re.match(r"[IWE]\d+ ", line)]
    of_gpus = [message.strip() for message in messages if any(name in message for name in OF_GPUS)]
    return of_gpus[-1] if of_gpus else "it gives no reason"


def free_memory() -> int | None:
    """Return the bytes that the driver has left on the first GPU; None if it does not say."""
    context, free, total = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
    with contextlib.suppress(OSError, AttributeError):
        cuda = ctypes.CDLL("libcuda.so.1")
        if not (cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
                or cuda.cuCtxPushCurrent_v2(context)):  # fmt: skip
            failed = cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
            cuda.cuCtxPopCurrent_v2(ctypes.byref(context))
            cuda.cuDevicePrimaryCtxRelease_v2(0)
            return None if failed else free.value
    return None
