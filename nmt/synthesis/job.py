"""A job in blocks, which goes on after an interruption.

Each block of lines becomes a file in a hidden folder. When all blocks are there, the file of pairs is written. So it
does not depend on when a command was killed.
"""

import contextlib
import gzip
import itertools
import json
import math
import shutil
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.schema import DecodingConfig
from nmt.data.cleaning import Findings, Progress
from nmt.data.sources.text_file import numbered_lines
from nmt.errors import ConflictError, counted
from nmt.message import Argument, Report
from nmt.storage.atomic import write_bytes
from nmt.storage.file_lock import locked
from nmt.storage.json_file import check_format, parse_json, read_json, write_json
from nmt.storage.outputs import OutputFile
from nmt.synthesis.pairs import Block, Task, pairs_of
from nmt.teachers.journal import Journal, Usage
from nmt.teachers.server import ServerTeacher

FORMAT = 2
"""Format of an unfinished job. In format 1, blocks dropped pairs by their ratio of tokens."""
BLOCK = 4096  # lines: enough for batches of similar length, and few to translate again after a kill
SERVER_BLOCK = 256  # lines: a few requests, so that the progress of a slow server can be seen
AT_ONCE = 2
"""Least number of blocks that are translated at the same time: one is cut into tokens while the other is computed."""


class Synthesis(NamedTuple):
    """A finished file of synthetic pairs."""

    path: Path
    lines: int
    """Number of lines read."""
    dropped: Findings
    """Lines that were dropped, by reason."""


class Job:
    """The translation of a text into a file of pairs."""

    def __init__(self, task: Task, output: OutputFile, progress: Progress, note: Report) -> None:
        """Count the lines, and make the hidden folder.

        Args:
            task: what is done with each block.
            output: the file of pairs.
            progress: function that is called with a step, the number of lines done, and the number of all lines.
            note: function that is called with messages.
        """
        self.task, self.output, self.progress, self.note = task, output, progress, note
        self.lines = sum(1 for _ in numbered_lines(task.file))
        self.folder = output.path.with_name(f".{output.path.name.removesuffix('.jsonl.gz')}.synthesis")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.servers = {
            number: teacher for number, teacher in enumerate(task.teachers) if isinstance(teacher, ServerTeacher)
        }
        """Teachers that are servers, by their number."""
        self.size = SERVER_BLOCK if self.servers else BLOCK
        asked = [server.config.parallel * server.config.sentences for server in self.servers.values()]
        self.at_once = max(AT_ONCE, 1 + math.ceil(max(asked, default=0) / self.size))
        """Blocks that are translated at the same time, so many that servers get all parallel requests."""
        self.parts = [self.folder / f"part-{start:012d}" for start in range(0, self.lines, self.size)]

    def run(self, made_with: dict[str, Any], *, overwrite: bool) -> Synthesis:
        """Translate what is not translated yet, and write the file of pairs.

        Args:
            made_with: what the pairs depend on. Finished blocks are used again if it is the same.
            overwrite: whether blocks that depend on something else are removed.

        Raises:
            ConflictError: if there are such blocks and they are to stay, or if the file is being written.
        """
        with locked(self.folder / "lock", f"{self.output.path}"):
            self.output.check_unchanged()
            self._begin(made_with, overwrite=overwrite)
            self._count_finished()
            self._translate()
            dropped = self._collect()
            for server in self.servers.values():
                self.note(f"{server.name}, in total: {server.summary()}")
            shutil.rmtree(self.folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # Windows removes a lock file when it is released
            self.folder.rmdir()
        return Synthesis(self.output.path, self.lines, dropped)

    def _begin(self, made_with: dict[str, Any], *, overwrite: bool) -> None:
        """Prepare the folder of the blocks. Blocks that were made with other settings are refused or removed."""
        state = self.folder / "state.json"
        before = read_json(state, "The state of synthetic pairs") if state.exists() else {"format": FORMAT, **made_with}
        number = before.pop("format", None)
        check_format(number, [1, FORMAT], str(state))
        defaults = DecodingConfig().model_dump() | {"augment": {}}  # what was added since then had its default
        differences = []
        for key in {**made_with, **before}:
            older, newer = (settings.get(key, defaults.get(key)) for settings in (before, made_with))
            if older != newer:
                is_short = key not in ("input", "model", "teachers")
                differences.append(f"{key} {older} before, {newer} now" if is_short else key)
        if number != FORMAT:
            differences.append("length ratios in tokens before, in characters now")
        if differences and not overwrite:
            raise ConflictError(
                f"{self.output.path} was begun with other settings: {'; '.join(differences)}. A file has the pairs of "
                "one text and the same teachers. Repeat the command that began it, give another ",
                Argument("name"),
                ", or begin anew with ",
                Argument("overwrite", True),
                ".",
            )
        if differences or not state.exists():
            for part in [*self.folder.glob("part-*"), *self.folder.glob("answers-*")]:
                part.unlink()
            write_json(state, {"format": FORMAT, **made_with})

    def _count_finished(self) -> None:
        """Tell how many lines an earlier command has translated, and count what its servers have cost."""
        finished = [part for part in self.parts if part.exists()]
        if finished:
            count = min(len(finished) * self.size, self.lines)
            self.note(f"{count:,} of {counted(self.lines, 'line')} were translated before")
        for part in finished if self.servers else ():
            for row in map(parse_json, part.read_bytes().splitlines()):
                if "usage" in row:
                    self.servers[row["usage"]].add_usage(Usage(*row["numbers"]))

    def _translate(self) -> None:
        """Make the missing blocks."""
        items, running = numbered_lines(self.task.file), deque[Future[int]]()
        pool = ThreadPoolExecutor(self.at_once, "synthesize")
        estimated = set[str]()
        try:
            for number, part in enumerate(self.parts):
                block = list(itertools.islice(items, self.size))
                if not part.exists():
                    running.append(pool.submit(self._make, number, block))
                while running and (len(running) == self.at_once or part == self.parts[-1]):
                    self.progress("translating", running.popleft().result(), self.lines)
                    for server in self.servers.values():
                        estimate = "" if server.name in estimated else server.estimate(self.lines)
                        if estimate:
                            self.note(f"{server.name}, expected for the whole text: {estimate}")
                            estimated.add(server.name)
        except Exception:
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # Ctrl-C waits for no block

    def _make(self, number: int, block: Block) -> int:
        """Write the file of a block, and return the number of its last line."""
        start = number * self.size
        journals = [self.folder / f"answers-{start:012d}-{teacher}" for teacher in range(len(self.task.teachers))]
        rows = [*pairs_of(self.task, block, start, journals)]
        rows += [{"usage": teacher, "numbers": Journal(journals[teacher]).usage} for teacher in self.servers]
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        write_bytes(self.parts[number], content.encode())
        for journal in journals:
            journal.unlink(missing_ok=True)
        return block[-1][0]

    def _collect(self) -> Findings:
        """Write the pairs of all blocks, and return the lines that were dropped."""
        dropped = Findings()
        with (
            self.output.temporary_file() as temporary, temporary.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        ):  # fmt: skip
            for row in (row for part in self.parts for row in part.read_bytes().splitlines(keepends=True)):
                if row.startswith(b'{"dropped"'):
                    dropped.add(*parse_json(row).values())
                elif not row.startswith(b'{"usage"'):
                    packed.write(row)
        return dropped
