"""The only module that imports TensorFlow and Keras: start-up, precision, seeds, memory, environment."""

import contextlib
import functools
import gc
import os
import platform
import random
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from nmt import gpu
from nmt.config.training import Precision

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

FIRST_GPU_WITH_BFLOAT16 = (8, 0)  # compute capability of NVIDIA's Ampere


@contextlib.contextmanager
def _without_start_up_messages() -> Iterator[None]:
    """Hide the messages that TensorFlow and its libraries print while they load. They are shown if loading fails.

    Messages about missing GPUs and processor features come before any log setting takes effect.
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


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Set environment variables inside the block. Afterwards restore the environment and the warning filters."""
    before = dict(os.environ)
    os.environ.update(values)
    with warnings.catch_warnings():
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


@contextlib.contextmanager
def _without_matplotlib() -> Iterator[None]:
    """Hide matplotlib inside the block, unless it is loaded already.

    Keras imports it to draw images, which takes a tenth of the start time. Only the command line hides it, since a
    program that uses nmt may want Keras to draw.
    """
    hides = "nmt.cli.app" in sys.modules and "matplotlib" not in sys.modules
    if hides:
        sys.modules["matplotlib"] = None  # type: ignore[assignment]  # its import fails
    try:
        yield
    finally:
        if hides:
            del sys.modules["matplotlib"]


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Switch the garbage collector off inside the block: an import creates many objects and hardly any garbage.

    The command line also excludes these objects from later collections. A program that uses nmt keeps its own settings.
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if "nmt.cli.app" in sys.modules:
            gc.freeze()
        if is_enabled:
            gc.enable()


@contextlib.contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Seed Python's random generator inside the block, if there is a seed. Afterwards restore the generator.

    Keras draws a seed from this generator for each initializer, even for weights that are loaded.
    """
    state = random.getstate()
    if seed is not None:
        random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)


DRIVER = gpu.driver()
if DRIVER is not None:
    gpu.load_libraries()
# Keras reads its backend when it is first imported. A user's setting for other programs must not take effect here.
# TensorFlow reports errors as exceptions; its log messages are for its developers.
_LEVEL = os.environ.get("TF_CPP_MIN_LOG_LEVEL") or "3"
with (
    _environment(KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL=_LEVEL),
    seeded(None),  # TensorFlow's modules draw random numbers when they are imported
    _without_start_up_messages(),
    _without_matplotlib(),
    _without_collection(),
):
    import keras
    import tensorflow as tf
    from threadpoolctl import threadpool_limits  # noqa: F401 - sets an environment variable

    GPUS = tf.config.list_physical_devices("GPU")  # this call prints messages too

# The graph optimizer's remapping fuses a matrix product and the addition of its bias. In bfloat16 the fused operation
# does not use the processor's matrix units, and takes three times as long as the two operations.
tf.config.optimizer.set_experimental_options({"remapping": False})
if GPUS:
    tf.config.experimental.enable_op_determinism()
    tf.config.experimental.enable_tensor_float_32_execution(False)  # TensorFloat-32 has a mantissa of only 10 bits
    for _gpu in GPUS:
        tf.config.experimental.set_memory_growth(_gpu, True)


def devices() -> list[str]:
    """Return the names of the devices that share the micro-batches of a step: all GPUs, or the processor."""
    return [f"GPU:{number}" for number in range(len(GPUS))] or ["CPU:0"]


def on_host() -> contextlib.AbstractContextManager[None]:
    """Place the operations of the block on the CPU. It is meant for seeds, and for integers that determine shapes.

    A GPU would not compute them faster, and the CPU would wait for each result.
    """
    is_eager = not GPUS and tf.executing_eagerly()
    return contextlib.nullcontext() if is_eager else tf.device("CPU:0")


def resolve_precision(precision: Precision | Literal["auto"]) -> Precision:
    """Return the compute precision. "auto" is bfloat16 on hardware that is faster with it, else float32."""
    if precision != "auto":
        return precision
    if GPUS:
        return "bfloat16" if _capability() >= FIRST_GPU_WITH_BFLOAT16 else "float32"
    # Intel processors with avx512_bf16 but without amx_bf16 multiply bfloat16 more slowly than float32: training took
    # 1.55 times as long.
    flags = set(_cpuinfo().split())
    return "bfloat16" if "amx_bf16" in flags or {"avx512_bf16", "AuthenticAMD"} <= flags else "float32"


def _cpuinfo() -> str:
    """Return the content of /proc/cpuinfo; "" on systems other than Linux."""
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


SLOW_STRIDES = not GPUS and {"avx2", "avx512f"} & set(_cpuinfo().split()) == {"avx2"}
"""Whether this processor has no AVX-512, so that some float32 products are slow (see ``transposed_product``)."""


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """Return the number of threads of an operation. The last bits of sums, and so of results, may depend on it."""
    return tf.config.threading.get_intra_op_parallelism_threads() or cores()


def compute_each_operation_in_one_thread() -> None:
    """Compute each operation in one thread from now on, if the command line runs and nothing has been computed yet.

    It is meant for translation, which computes a batch on each core. Its operations are so small that it takes longer
    to divide them between threads than to compute them. A program that uses nmt keeps its own setting, and so does a
    machine with GPUs, which compute a batch at a time.
    """
    if "nmt.cli.app" in sys.modules and not GPUS:
        with contextlib.suppress(RuntimeError):  # this process has trained before: TensorFlow keeps its threads
            tf.config.threading.set_intra_op_parallelism_threads(1)


@functools.cache
def environment() -> dict[str, str]:
    """Return versions, device, processor and threads, on which the last bits of a result depend."""
    lines = _cpuinfo().split("\n")
    processor = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return {
        "tensorflow": tf.__version__, "keras": keras.__version__, "device": device(),
        "processor": processor if lines[0] else platform.processor(), "threads": str(threads()),
    }  # fmt: skip


def device() -> str:
    """Return a description of the device on which TensorFlow computes."""
    if not GPUS:
        return f"{os.cpu_count()} CPU cores"
    return f"{len(GPUS)} x {_model()}, driver {DRIVER or 'unknown'}"


def _capability() -> tuple[int, int]:
    return tf.config.experimental.get_device_details(GPUS[0]).get("compute_capability") or (0, 0)


def _model() -> str:
    name = tf.config.experimental.get_device_details(GPUS[0]).get("device_name") or "GPU"
    return f"{name} of compute capability {'.'.join(map(str, _capability()))}"


def gpu_note() -> str | None:
    """Return a note about a GPU of this machine that is not used or starts slowly; None if all is well."""
    if not GPUS:
        return None if DRIVER is None else (
            f"Note: this machine has an NVIDIA driver{DRIVER and f' ({DRIVER})'}, but TensorFlow sees no GPU and "
            f"computes on the processor. It says: {gpu.reason_unseen().rstrip('.')}. Install its libraries with "
            "pip install 'nmt[gpu]'; if nvidia-smi shows no GPU either, mend the driver. CUDA_VISIBLE_DEVICES=-1 ends "
            "this note."
        )  # fmt: skip
    kernels = tf.sysconfig.get_build_info().get("cuda_compute_capabilities") or []
    newest = max((divmod(int(kernel.rpartition("_")[2]), 10) for kernel in kernels), default=(99, 0))
    return None if _capability()[0] <= newest[0] else (  # kernels serve later minor versions too
        f"Note: this is an {_model()}, and TensorFlow {tf.__version__} has kernels up to {newest[0]}.{newest[1]}. The "
        "driver compiles them at the first start, which may take half an hour, and keeps them. Set "
        "CUDA_CACHE_MAXSIZE=4294967296 so that it has room for all."
    )  # fmt: skip


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None if the system does not tell."""
    if resource is None:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def free_memory(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the bytes that this process may still allocate; None if the system does not tell.

    With a GPU this is the free memory of the first GPU. Otherwise the free memory of the machine, the limits of the
    control groups of this process and its address-space limit (``ulimit -v``) count, and the smallest is returned.

    Args:
        proc: the Linux kernel's folder of process information.
        cgroups: folder of control groups.
    """
    if GPUS:
        return gpu.free_memory()
    try:
        limits = [_kilobytes(proc / "meminfo", "MemAvailable"), *_free_in_control_groups(proc, cgroups)]
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            limits.append(limit - _kilobytes(proc / "self" / "status", "VmSize"))
    except (AttributeError, OSError, ValueError, KeyError):
        return None
    return max(0, min(limits))


def _kilobytes(path: Path, name: str) -> int:
    """Return the bytes of the entry ``name`` in a file with lines such as "Name:  123 kB"."""
    entries = dict(line.split(":", 1) for line in path.read_text(encoding="utf-8").splitlines())
    return int(entries[name].split()[0]) * 1024


def _free_in_control_groups(proc: Path, cgroups: Path) -> Iterator[int]:
    """Yield the free bytes of each control group that has a limit, in version 1 or 2 of control groups."""
    for line in (proc / "self" / "cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, limit, used, cached = cgroups, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            root, limit, used = cgroups / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            cached = "total_inactive_file"
        else:
            continue
        folder = root / path.lstrip("/")
        # In a container the group is mounted as the root, whatever its path outside is.
        groups = [group for group in {folder, *folder.parents, root} if group.is_relative_to(root)]
        for group in groups:
            maximum = (group / limit).read_text().strip() if (group / limit).exists() else "max"
            if maximum.isdecimal() and int(maximum) < 2**60:
                stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
                # The kernel drops cached files when memory is short.
                yield int(maximum) - int((group / used).read_text()) + int(stat[cached])
