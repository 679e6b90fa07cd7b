"""The one door to TensorFlow and Keras: start-up, precision, seeds, memory, environment."""

import contextlib
import functools
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from nmt.config.training import Precision

FIRST_GPU_WITH_BFLOAT16 = (8, 0)  # compute capability of NVIDIA's Ampere


@contextlib.contextmanager
def _without_start_up_messages() -> Iterator[None]:
    """Hide what TensorFlow and its libraries write to standard error while loading; an exception shows it.

    Their messages about missing GPUs and processor features come before any log setting takes effect.
    """
    sys.stderr.flush()
    with tempfile.TemporaryFile() as messages:
        standard_error = os.dup(2)
        os.dup2(messages.fileno(), 2)
        try:
            yield
        except BaseException:
            messages.seek(0)
            os.write(standard_error, messages.read())
            raise
        finally:
            os.dup2(standard_error, 2)
            os.close(standard_error)


# Errors come as exceptions; other log messages are for developers of TensorFlow.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

with _without_start_up_messages():
    import keras
    import tensorflow as tf

    GPUS = tf.config.list_physical_devices("GPU")  # looking for them writes messages too

# The graph optimizer's remapping fuses a matrix product with the addition of its bias to an operation that computes
# bfloat16 without the processor's matrix units: three times as slow as product and sum apart.
tf.config.optimizer.set_experimental_options({"remapping": False})


def resolve_precision(precision: Precision | Literal["auto"]) -> Precision:
    """Return the compute precision: for "auto" bfloat16 on hardware that has it natively, else float32."""
    if precision != "auto":
        return precision
    if GPUS:
        capability = tf.config.experimental.get_device_details(GPUS[0]).get("compute_capability") or (0, 0)
        return "bfloat16" if capability >= FIRST_GPU_WITH_BFLOAT16 else "float32"
    return "bfloat16" if _processor_has_bfloat16() else "float32"


def _processor_has_bfloat16() -> bool:
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split()
    except OSError:
        return False  # not Linux: float32 is right everywhere
    return not {"avx512_bf16", "amx_bf16"}.isdisjoint(flags)


def start(seed: int) -> None:
    """Reset Keras and seed the weights and dropout of models built after."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(seed)


def use(threads: int | None = None, gpu: int | None = None) -> None:
    """Choose what this process computes with, before its first operation.

    Args:
        threads: threads within an operation; None: one for each core that the process may use.
        gpu: number of its GPU among those of the machine; None: as TensorFlow chooses.
    """
    if threads is not None:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
    if gpu is not None and GPUS:
        tf.config.set_visible_devices(GPUS[gpu % len(GPUS)], "GPU")


def threads() -> int:
    """Return the number of threads within an operation, on which sums and so the last bits of a result may depend."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return tf.config.threading.get_intra_op_parallelism_threads() or cores


@functools.cache
def environment() -> dict[str, str]:
    """Return versions, device, processor and threads, on which the last bits of a result depend."""
    return {
        "tensorflow": tf.__version__, "keras": keras.__version__, "device": device(), "processor": _processor(),
        "threads": str(threads()),
    }  # fmt: skip


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def device() -> str:
    """Return the device of computations in words."""
    return f"{len(GPUS)} GPU(s)" if GPUS else f"{os.cpu_count()} CPU cores"


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None where the system does not say."""
    if sys.platform == "win32":
        return None
    import resource  # noqa: PLC0415 - there is none on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def tensor_memory() -> tuple[int, int] | None:
    """Return the bytes of tensors on the device of computations: now, and at most since ``reset_tensor_memory``.

    None where TensorFlow does not count them, as on processors without oneDNN.
    """
    try:
        info = tf.config.experimental.get_memory_info(_memory_device())
    except (ValueError, tf.errors.OpError):
        return None
    return int(info["current"]), int(info["peak"])


def reset_tensor_memory() -> bool:
    """Let the most bytes of ``tensor_memory`` begin anew; return whether TensorFlow can."""
    try:
        tf.config.experimental.reset_memory_stats(_memory_device())
    except (ValueError, tf.errors.OpError):
        return False
    return True


def _memory_device() -> str:
    return "GPU:0" if GPUS else "CPU:0"


def free_gpu_memory() -> int | None:
    """Return the bytes that TensorFlow may still take on the first GPU; None without a GPU, or if it does not say."""
    used = tensor_memory()
    if not GPUS or used is None:
        return None
    from tensorflow.python.client import device_lib  # noqa: PLC0415 - no public name, so only where it is needed

    limits = [device.memory_limit for device in device_lib.list_local_devices() if device.device_type == "GPU"]
    return limits[0] - used[0] if limits else None
