"""Translation shared among processes of this machine. Each takes whole batches, so the result is that of one process.

The other processes run ``python -m nmt.decoding.shared``. They read requests from standard input and write answers to
standard output, a line of JSON each.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

from nmt.cluster.launch import CORES, PARENT, cores_of, follow_parent, stay_on, tail
from nmt.config.decoding import DecodingConfig
from nmt.data.batch_plan import length_batches
from nmt.decoding.search_options import GREEDY, SearchOptions
from nmt.decoding.translation import TextTranslator, Translation
from nmt.errors import DataError, NmtError
from nmt.runs.directory import Run
from nmt.runs.metrics import WeightsId

LEAVE_SECONDS = 10.0


class TranslationWorkers:
    """Processes with the weights of a run, which translate beside this one; for one worker there is none."""

    def __init__(self, run: Run, epoch: WeightsId, decoding: DecodingConfig, workers: int = 1) -> None:
        """Start the other processes; this one keeps to its share of the cores.

        Args:
            run: a run with weights.
            epoch: the weights.
            decoding: settings of search.
            workers: number W of processes, this one included.
        """
        self.count = workers
        self._batch_size = decoding.batch_size
        self._others = [_Process(rank, workers, run, epoch, decoding) for rank in range(1, workers)]
        self._cores = cores_of(0, 1)
        if workers > 1:
            stay_on(cores_of(0, workers))

    def __enter__(self) -> Self:
        """Return the workers."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the other processes, and give this one its cores back."""
        for process in self._others:
            process.close()
        stay_on(self._cores)

    def translate_n_best(
        self,
        own: TextTranslator,
        texts: list[str],
        names: list[str] | None,
        options: SearchOptions = GREEDY,
        prefix: str = "",
    ) -> list[list[Translation]]:
        """Return translations as ``Translator.translate_n_best`` of this process's translator does.

        Raises:
            DataError: as of ``Translator.translate_n_best``.
            NmtError: if a process has ended.
        """
        if not self._others:
            return own.translate_n_best(texts, names, options, prefix)
        lengths = [len(ids) for ids in own.encode(texts, names)]
        batches = length_batches(lengths, self._batch_size)
        shares = [
            [int(index) for batch in batches[rank :: self.count] for index in batch] for rank in range(self.count)
        ]
        shares[0] += [index for index, length in enumerate(lengths) if not length]
        for process, share in zip(self._others, shares[1:], strict=True):
            process.ask([texts[index] for index in share], share, options, prefix)
        translated = own.translate_n_best([texts[index] for index in shares[0]], None, options, prefix, shares[0])
        found = dict(zip(shares[0], translated, strict=True))
        for process, share in zip(self._others, shares[1:], strict=True):
            found |= zip(share, process.answer(), strict=True)
        return [found[index] for index in range(len(texts))]


class _Process:
    """Another process with the same weights."""

    def __init__(self, rank: int, workers: int, run: Run, epoch: WeightsId, decoding: DecodingConfig) -> None:
        self.rank = rank
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        cores = ",".join(map(str, cores_of(rank, workers)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "nmt.decoding.shared"],
            env={**os.environ, PARENT: str(os.getpid()), CORES: cores},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, encoding="utf-8",
            start_new_session=True,  # Ctrl-C reaches the first process, which ends the others
        )  # fmt: skip
        # Both streams are there, since they were asked for.
        self._requests, self._answers = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)
        self._send({
            "run": str(run.folder), "epoch": str(epoch), "rank": rank, "decoding": decoding.model_dump(),
        })  # fmt: skip

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._requests.write(json.dumps(message) + "\n")
            self._requests.flush()
        except OSError:
            raise self._lost() from None

    def _lost(self) -> NmtError:
        code = self._process.wait(LEAVE_SECONDS)
        return NmtError(
            f"Worker {self.rank} ended with exit code {code}: {tail(self._errors)}. Nothing was written. Start again, "
            "with fewer workers if memory was short."
        )

    def ask(self, texts: list[str], numbers: list[int], options: SearchOptions, prefix: str) -> None:
        """Send sentences to translate."""
        self._send({"texts": texts, "numbers": numbers, "options": options._asdict(), "prefix": prefix})

    def answer(self) -> list[list[Translation]]:
        """Wait for the translations of the sentences sent last."""
        line = self._answers.readline()
        if not line.endswith("\n"):
            raise self._lost()
        answer = json.loads(line)
        if "error" in answer:
            raise DataError(answer["error"])
        return [[Translation(*fields) for fields in n_best] for n_best in answer["found"]]

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            self._requests.close()
        self._answers.close()
        try:
            self._process.wait(LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()


def _serve(requests: Sequence[str] | IO[str], answers: IO[str]) -> None:
    """Load the weights that the first line names, and answer the lines after it."""
    lines = iter(requests)
    first = json.loads(next(lines))

    from nmt import runtime  # noqa: PLC0415 - it loads TensorFlow
    from nmt.decoding.translator import Translator  # noqa: PLC0415

    runtime.use(gpu=first["rank"])
    decoding = DecodingConfig.model_validate(first["decoding"])
    translator = Translator.load(Run(Path(first["run"])), first["epoch"], decoding)
    for line in lines:
        request = json.loads(line)
        try:
            found = translator.translate_n_best(
                request["texts"], None, SearchOptions(**request["options"]), request["prefix"], request["numbers"]
            )
            answer: dict[str, Any] = {"found": found}
        except NmtError as error:
            answer = {"error": str(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    follow_parent()
    stay_on([int(core) for core in os.environ[CORES].split(",")])
    _serve(sys.stdin, sys.stdout)
