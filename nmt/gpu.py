"""NVIDIA GPUs without TensorFlow: version of the driver, CUDA libraries, free memory, why TensorFlow sees no GPU."""

import contextlib
import ctypes
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

PROBE = "import tensorflow; tensorflow.config.list_physical_devices('GPU')"
GPU_WORDS = ("GPU", "CUDA", "cuInit", "dlopen")
"""Words that mark TensorFlow's messages about GPUs."""


def driver(root: Path = Path("/")) -> str | None:
    """Return the version of this machine's GPU driver; "" if it is unknown, None if there is no driver.

    A machine whose GPUs are hidden by ``CUDA_VISIBLE_DEVICES`` counts as one without a driver.

    Args:
        root: folder that contains ``dev`` and ``proc``.
    """
    if os.environ.get("CUDA_VISIBLE_DEVICES") in {"", "-1"}:
        return None
    with contextlib.suppress(OSError):
        text = (root / "proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
        line = text.partition("Kernel Module")[2].partition("\n")[0]
        match = re.search(r"(?<!\d)\d++\.[\d.]+", line)
        return match[0] if match else ""
    has_device = (root / "dev/nvidia0").exists() or (root / "dev/dxg").exists()  # Windows makes dev/dxg under WSL
    return "" if has_device else None


def load_libraries() -> None:
    """Load the cusolver library that pip installed. TensorFlow's wheel does not look for it in its folder."""
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or [] if spec else []:
        for library in Path(folder).glob("cusolver/lib/libcusolver.so.*"):
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def reason_unseen() -> str:
    """Return why TensorFlow sees no GPU: the last line about GPUs that it prints in a process of its own."""
    probe = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, errors="replace", check=False,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0"}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    messages = [line.partition("] ")[2] for line in probe.stderr.split("\n") if re.match(r"[IWE]\d+ ", line)]
    about_gpus = [message.strip() for message in messages if any(word in message for word in GPU_WORDS)]
    return about_gpus[-1] if about_gpus else "it gives no reason"


def free_memory() -> int | None:
    """Return the free memory of the first GPU in bytes; None if the driver does not tell."""
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
