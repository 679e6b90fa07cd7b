"""Function calls in a separate process without TensorFlow, in which the consumers of exports run.

PyTorch loads triton, and a process with both triton and TensorFlow may end in a segmentation fault. So no consumer is
imported next to TensorFlow. If a consumer crashes, nmt reports it in a message.
"""

import contextlib
import importlib
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from nmt import errors
from nmt.errors import DataError, NmtError
from nmt.export.base import Exporter
from nmt.storage.atomic import scratch_folder
from nmt.storage.json_file import parse_json

MOST_SECONDS = 2 * 60 * 60
"""Time limit of a call. Translating 2,000 sentences takes minutes."""
SHOWN = 300
"""Number of characters of the consumer's own error that a message shows."""
PACKAGES = Path(__file__).resolve().parents[2]
"""Folder from which the package nmt was imported."""
_ANSWER = "from nmt.export.process import answer; answer()"
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Consumer = Exporter | type[Exporter]


def call(
    consumer: Consumer, function: Callable[Arguments, Result], *arguments: Arguments.args, **keywords: Arguments.kwargs
) -> Result:
    """Call a function of a module in a process without TensorFlow, and return its result.

    Args:
        consumer: exporter whose consumer the function uses.
        function: function of a module. Its arguments and its result are JSON values.
        arguments, keywords: arguments of the function.

    Raises:
        NmtError: if the function raises it.
        DataError: if the process crashes, fails otherwise, or exceeds ``MOST_SECONDS``.
    """
    request = [function.__module__, function.__qualname__, arguments, keywords]
    outcome = run_python(consumer, ["-P", "-c", _ANSWER], request)
    if "error" in outcome:
        kind: type[NmtError] = getattr(errors, outcome["error"])
        raise kind(outcome["message"])
    result: Result = outcome["result"]
    return result


def answer() -> None:
    """Answer a call in the new process: read the request from standard input, and write the outcome to a file."""
    for name in ("tensorflow", "keras"):
        sys.modules[name] = None  # type: ignore[assignment] # an import of it fails
    module, name, arguments, keywords = json.load(sys.stdin)
    try:
        outcome = {"result": getattr(importlib.import_module(module), name)(*arguments, **keywords)}
    except NmtError as error:
        outcome = {"error": type(error).__name__, "message": str(error)}
    Path(sys.argv[1]).write_text(json.dumps(outcome), encoding="utf-8")


def run_python(consumer: Consumer, options: list[str], request: Any, seconds: float = MOST_SECONDS) -> Any:
    """Run Python with options such as ``-c CODE``. Return the JSON value that it writes to the file ``sys.argv[1]``.

    Args:
        consumer: exporter whose consumer runs in the process, for messages.
        options: command line of Python.
        request: JSON value for the standard input of the process.
        seconds: time limit.

    Raises:
        DataError: if the process crashes, fails otherwise, or exceeds its time limit.
    """
    folders = [str(PACKAGES), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, folders))}
    with scratch_folder() as folder:
        file = folder / "answer.json"
        try:
            completed = subprocess.run(
                [sys.executable, *options, str(file)], input=json.dumps(request), env=environment, timeout=seconds,
                capture_output=True, text=True, encoding="utf-8", errors="replace", check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise _failure(consumer, f"its process gave no answer within {seconds:,.0f} seconds") from None
        code, errors_output = completed.returncode, completed.stderr
        if code < 0:
            raise _failure(consumer, f"its process was ended by {_signal_name(-code)}", errors_output)
        if code > 0 or not file.is_file():
            raise _failure(consumer, f"its process ended with exit code {code}", errors_output)
        try:
            return parse_json(file.read_bytes())
        except ValueError as error:
            problem = f"its process gave an answer that is not JSON: {error}"
            raise _failure(consumer, problem, errors_output) from None


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(number).name} ({signal.strsignal(number)})"
    return f"signal {number}"


def _failure(consumer: Consumer, problem: str, errors_output: str = "") -> DataError:
    """Return the error for a consumer that failed.

    Args:
        consumer: exporter of the consumer.
        problem: clause that says what happened to the process.
        errors_output: standard error of the process.
    """
    lines = [line.strip() for line in errors_output.splitlines() if line.strip()]
    last = f": {lines[-1][-SHOWN:]}" if lines else ""
    versions = [f"{module} {_version(module)}" for module in consumer.modules]
    packages = f" Its packages are {' and '.join(versions)}." if versions else ""
    install = f" with pip install --upgrade 'nmt[{consumer.extra}]'" if consumer.extra else ""
    return DataError(
        f"{consumer.consumer} failed: {problem}{last}.{packages} Nothing was written: a model counts as exported or "
        f"imported only when {consumer.consumer} has been compared with nmt. Free memory and disk space, or install "
        f"other versions of these packages{install}, then repeat the command."
    )


def _version(module: str) -> str:
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
