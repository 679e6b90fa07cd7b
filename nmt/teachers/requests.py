"""JSON requests to a server. They are sent again while the server is busy or the network fails."""

import contextlib
import json
import math
import os
import re
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from typing import Any

from nmt.config.teacher import TeacherConfig
from nmt.errors import NmtError, counted
from nmt.storage.json_file import MAX_JSON, parse_json
from nmt.storage.text import as_cell

PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds before each further attempt of a request."""
LONGEST_PAUSE = 600.0
"""Most seconds that a server may ask for in ``Retry-After``."""
TEMPORARY = (408, 409, 425, 429)
"""Status codes below 500 after which the same request may succeed later. All codes from 500 on count as such, too."""
MOST_SHOWN = 200
"""Most characters of a server's message that are shown."""
UNREACHABLE = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError)
"""Errors of a wrong address, if the server has not answered before."""
_ADDRESS = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?(/[!-~]*)?", re.IGNORECASE)


class RefusedError(NmtError):
    """Request that a server refuses, and would refuse again."""

    def __init__(self, status: int, problem: str, message: str) -> None:
        """Store the HTTP status and what the server says about it, with the message for the user."""
        super().__init__(message)
        self.status, self.problem = status, problem


class _TemporaryError(Exception):
    """Failure that may pass: what happened, and the seconds that the server asks to wait."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirections, which would turn POST into GET and send the key to another server."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Requests:
    """JSON requests to a server, with pauses, repetitions and the server's key. Several threads may send them."""

    def __init__(
        self,
        config: TeacherConfig,
        pauses: Sequence[float] = PAUSES,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        """Read the key from the environment. Nothing is sent.

        Args:
            config: server, with its timeout, its limit of requests and the environment variable of its key.
            pauses: seconds before each further attempt of a request.
            clock: function that returns the time in seconds.
            sleep: function that waits for some seconds; None: a wait that ``close`` ends.

        Raises:
            NmtError: if the address is not one of HTTP, or if the key is missing.
        """
        if not _ADDRESS.fullmatch(config.where):
            raise NmtError(
                f"The address of the teacher is {config.where!r}. It must be an address of HTTP without a password, "
                "such as http://localhost:5000. Correct where."
            )
        self.key = _read_key(config.key_variable)
        """Key of the server; None if it needs none. Put it into requests only."""
        self._config, self._pauses, self._clock = config, pauses, clock
        self._closed = threading.Event()
        self._sleep = sleep or self._closed.wait
        self._opener = urllib.request.build_opener(_NoRedirects)
        self._lock = threading.Lock()
        self._next_moment = clock()  # at which the limit of requests per minute allows the next request
        self._has_answered = False

    def post(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        """Return the JSON value that the server answers.

        Args:
            path: path after the address of the server, such as "/translate".
            body: JSON object to send.
            headers: further headers.

        Raises:
            RefusedError: if the server refuses the request.
            NmtError: if the server cannot be reached, or fails at each attempt.
        """
        request = urllib.request.Request(
            self._config.where.rstrip("/") + path,
            json.dumps(body).encode(),
            # Some servers refuse the name that urllib gives itself.
            {"Content-Type": "application/json", "User-Agent": "nmt", **headers},
        )
        for pause in (*self._pauses, None):
            self._take_turn()
            try:
                return self._send(request)
            except _TemporaryError as error:
                problem, wanted = error.args
            if pause is not None:
                self._wait(max(pause, wanted))
        attempts = counted(len(self._pauses) + 1, "attempt")
        raise NmtError(
            f"{self._config.where} has not answered a request in {attempts}. The last attempt ended with: {problem}. "
            "What the server answered before is kept. Repeat the command later, and it goes on from there."
        )

    def close(self) -> None:
        """End all pauses, and send nothing more. Requests that wait end with an error."""
        self._closed.set()

    def _wait(self, seconds: float) -> None:
        self._sleep(seconds)
        if self._closed.is_set():
            raise NmtError(
                "The translation was stopped. What the server answered before is kept. Repeat the command to go on."
            )

    def _take_turn(self) -> None:
        """Wait until the limit of requests per minute allows a request."""
        with self._lock:
            now = self._clock()
            moment = max(now, self._next_moment)
            self._next_moment = moment + 60 / (self._config.requests_per_minute or math.inf)
        self._wait(moment - now)

    def _send(self, request: urllib.request.Request) -> Any:
        """Return the answer to a single request; raises _TemporaryError for failures that may pass."""
        try:
            with self._opener.open(request, timeout=self._config.timeout) as response:
                answer = parse_json(response.read(MAX_JSON + 1))
        except urllib.error.HTTPError as error:
            raise self._failure(error) from None
        except ValueError as error:
            raise _TemporaryError(f"an answer that is not JSON ({error})", 0) from None
        except (OSError, HTTPException) as error:
            cause = getattr(error, "reason", error)
            problem = str(cause) or type(cause).__name__
            if self._has_answered or not isinstance(cause, UNREACHABLE):
                raise _TemporaryError(problem, 0) from None
            raise NmtError(
                f"{self._config.where} cannot be reached: {problem}. A teacher that is a server must be running. Check "
                "where and the network, then repeat the command."
            ) from None
        self._has_answered = True
        return answer

    def _failure(self, error: urllib.error.HTTPError) -> Exception:
        """Return the error for an answer whose status is a redirection or an error."""
        content = b""
        with contextlib.suppress(OSError, HTTPException), error:
            content = error.read(MAX_JSON)
        answer = error.headers["Location"] or _message_in(content)
        if self.key:
            answer = answer.replace(self.key, "***")  # before the cut, which might leave a part of the key
        problem = f"{error.code} {error.reason}: {answer[:MOST_SHOWN]}".strip(": .")
        if error.code in TEMPORARY or error.code >= 500:
            seconds = error.headers["Retry-After"] or ""  # a date is possible too, but unusual
            return _TemporaryError(problem, min(float(seconds), LONGEST_PAUSE) if seconds.isdecimal() else 0)
        return RefusedError(
            error.code,
            problem,
            f"{self._config.where} refuses a request: {problem}. What the server answered before is kept. Check where, "
            "model and key_variable of the teacher, then repeat the command, and it goes on from there.",
        )


def _read_key(variable: str | None) -> str | None:
    """Return the key in an environment variable; None without a variable."""
    if variable is None:
        return None
    key = (os.environ.get(variable) or "").strip()
    if not key or not key.isascii() or not key.isprintable():
        raise NmtError(
            f"The environment variable {variable} holds no key. key_variable names the variable with the key of the "
            f"server, which is printable ASCII. Set it, for example with: read -rs {variable} && export {variable}"
        )
    return key


def _message_in(content: bytes) -> str:
    """Return the message of an answer that reports an error, as OpenAI, LibreTranslate and other servers write it."""
    try:
        error = parse_json(content)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, LookupError, TypeError):
        return as_cell(content.decode(errors="replace"))
