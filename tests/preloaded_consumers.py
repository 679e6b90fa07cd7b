"""Calls of PyTorch and transformers, in processes that do not import them anew: a process that has them forks for each.

A call of ``nmt.export.process`` takes seconds to import both. Everything else in it is as in a process of its own.
"""

import io
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

OPTIONS = ["-P", "-c"]


class Preloaded:
    """A process that has imported PyTorch and transformers. It takes the place of ``subprocess.run``."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        """Start the process. Calls leave their output in the folder."""
        self.folder, self.count = folder, 0
        command = [sys.executable, "-P", __file__]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def run(self, command: Sequence[str], *, input: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run Python code in a fork of the process."""
        assert list(command[1:3]) == OPTIONS, command
        assert self.process.stdin and self.process.stdout
        self.count += 1
        output = self.folder / f"output-{self.count}"
        given = {"code": command[3], "arguments": command[4:], "input": input, "output": str(output)}
        self.process.stdin.write(f"{json.dumps({**given, 'folder': str(Path.cwd())})}\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        return subprocess.CompletedProcess(command, code, "", output.read_text(encoding="utf-8", errors="replace"))

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def preload(patch: Any, folder: Path) -> Preloaded:
    """Let calls of consumers run in forks of a process."""
    from nmt.export import process

    folders = [str(process.PACKAGES), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    preloaded = Preloaded(environment, folder)
    patch.setattr(process, "subprocess", SimpleNamespace(run=preloaded.run, TimeoutExpired=subprocess.TimeoutExpired))
    return preloaded


def answer(request: dict[str, Any]) -> None:
    """Run the code of a request in this process."""
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.chdir(request["folder"])
    sys.stdin = io.StringIO(request["input"])
    sys.argv = ["-c", *request["arguments"]]
    exec(compile(request["code"], "<string>", "exec"), {"__name__": "__main__"})


def main() -> None:
    """Answer the requests of standard input, each in a fork, with its exit code."""
    for name in ("tensorflow", "keras"):
        sys.modules[name] = None  # type: ignore[assignment] # an import of it fails
    import torch  # noqa: F401
    import transformers

    for name in ("AutoModelForSeq2SeqLM", "AutoTokenizer", "GenerationConfig", "MarianMTModel", "MarianTokenizer"):
        getattr(transformers, name)  # which imports its module
    for line in sys.stdin:
        child = os.fork()
        if not child:
            code = 1
            try:
                answer(json.loads(line))
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
