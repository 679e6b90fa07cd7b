"""Journal of a block: the answers of a server, written one by one, so that no answer is paid for twice."""

import contextlib
import os
import threading
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from nmt.storage.atomic import append_line, sync_file
from nmt.storage.disk import disk_errors_in_words
from nmt.storage.json_file import check_format
from nmt.teachers.teacher import Candidate

FORMAT = 1


class Usage(NamedTuple):
    """What answers of a server have cost. In JSON, it is a list of numbers: ``Usage(*numbers)`` reads it."""

    requests: int = 0
    """Requests that the server has answered."""
    input_tokens: int = 0
    output_tokens: int = 0
    repeated: int = 0
    """Sentences that were asked for again, since an answer was unusable."""
    dropped: int = 0
    """Sentences that have no translation in the end."""

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum of two usages."""
        return Usage(*(sum(numbers) for numbers in zip(self, other, strict=True)))


class _Row(BaseModel):
    """Line of the file: an answer. The first line has a format number, as all others have."""

    format: int = FORMAT
    lines: list[int]
    candidates: list[list[Candidate]]
    usage: Usage


class Journal:
    """Answers of a server to requests for the lines of a block. Several threads may add answers.

    The file has a line of JSON for each answer. A process that is killed loses at most the answer that it was writing.
    """

    def __init__(self, path: Path) -> None:
        """Read the answers of an earlier process. Damaged lines are left out, so that they are asked for again.

        Raises:
            DataError: if another version of nmt wrote the file in another format.
            DiskError: if the file cannot be written.
        """
        self.candidates: dict[int, list[Candidate]] = {}
        """Candidates by the number of the line."""
        self.usage = Usage()
        """Sum over all answers."""
        self._path, self._lock = path, threading.Lock()
        content = path.read_bytes() if path.exists() else b""
        end = content.rfind(b"\n") + 1
        if end < len(content):  # a killed process has left an incomplete line
            with disk_errors_in_words(path):
                os.truncate(path, end)
        for line in content[:end].splitlines():
            with contextlib.suppress(ValidationError):
                row = _Row.model_validate_json(line)
                check_format(row.format, [FORMAT], str(path))
                self._keep(row)

    def add(self, lines: list[int], candidates: list[list[Candidate]], usage: Usage) -> None:
        """Write an answer to the disk.

        Args:
            lines: numbers of the lines that it translates; none for an unusable answer.
            candidates: candidates of each of the lines.
            usage: what the answer has cost.

        Raises:
            DiskError: if the disk refuses.
        """
        row = _Row(lines=lines, candidates=candidates, usage=usage)
        with self._lock:
            append_line(self._path, row.model_dump_json())
            sync_file(self._path)
            self._keep(row)

    def _keep(self, row: _Row) -> None:
        if len(row.lines) == len(row.candidates) and all(row.candidates):
            self.candidates.update(zip(row.lines, row.candidates, strict=True))
            self.usage = self.usage.plus(row.usage)
