"""Teachers that are servers: requests of several sentences, answers that are checked, asked for again, and kept."""

import math
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from nmt.config.teacher import TeacherConfig
from nmt.errors import NmtError
from nmt.message import Argument
from nmt.storage.text import as_cell
from nmt.teachers.journal import Journal, Usage
from nmt.teachers.requests import RefusedError, Requests
from nmt.teachers.teacher import EMPTY, TOO_LONG, Candidate

TRIES = 3
"""How often a request is sent while its answers are unusable."""
UNUSABLE, REFUSED = "no usable answer of the server", "the teacher refused"
"""Problems of answers. A refused request is divided at once, since most of its sentences are harmless."""
_REFUSALS = {
    TOO_LONG: re.compile(r"exceed|too (?:long|large)|maximum context|context.length", re.IGNORECASE),
    REFUSED: re.compile(r"content.(?:filter|manage|policy|exists)|inappropriate|inspection|moderation", re.IGNORECASE),
}
"""What servers say when they refuse a request because of its sentences."""

Languages = tuple[str | None, str | None]
"""Language codes of source and target; None if the user has given none."""


class Answer(NamedTuple):
    """Answer of a server to a request for translations."""

    translations: Sequence[Sequence[str]]
    """Translations of each sentence, best first; none if there is a problem."""
    problem: str = ""
    """Reason for which the answer cannot be used; empty if there is none."""
    input_tokens: int = 0
    output_tokens: int = 0


class ServerTeacher(ABC):
    """A teacher that is a server. Two threads may translate at the same time; they share its parallel requests.

    The lines of a block are divided into requests by their position, so that the translations do not depend on the
    order in which the answers arrive.
    """

    def __init__(
        self, config: TeacherConfig, languages: Languages, candidates: int, requests: Requests | None,
        **depends_on: JsonValue,
    ) -> None:  # fmt: skip
        """Describe the teacher. Nothing is sent.

        Args:
            config: description of the server.
            languages: language codes, as the server knows them.
            candidates: most translations of a line.
            requests: sender of the requests; None: the usual one.
            depends_on: what else the translations depend on.
        """
        self.config, self.languages, self.candidates = config, languages, candidates
        self.requests = requests or Requests(config)
        self.name = f"{config.model} at {config.where}" if config.model else config.where
        self.identity: dict[str, JsonValue] = {
            "kind": config.kind, "where": config.where.rstrip("/"), "languages": [*languages],
            "candidates": candidates, "sentences": config.sentences, **depends_on,
        }  # fmt: skip
        self.usage = Usage()
        """Usage of the whole job: of this process, of the journals that it has read, and what ``add_usage`` added."""
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(config.parallel, "ask")
        self._failure: Exception | None = None  # first error, with which all requests end
        self._first: tuple[int, float, Usage] | None = None  # sentences, seconds and usage of the first usable answer

    @abstractmethod
    def ask(self, sentences: Sequence[str]) -> Answer:
        """Return the answer to a single request.

        Raises:
            RefusedError: if the server refuses the request.
            NmtError: if the server fails.
        """

    def translate(self, lines: Sequence[str], first: int, journal: Path) -> list[list[Candidate]]:
        """Return the candidates of each line, as in ``nmt.teachers.teacher``.

        Raises:
            NmtError: if the server fails or refuses. The journal keeps all answers. Nothing more is sent: go on with a
                new object.
        """
        answered = Journal(journal)
        self.add_usage(answered.usage)
        sentences = [(first + index, line) for index, line in enumerate(lines) if line.strip()]
        size = self.config.sentences
        requests = [dict(sentences[start : start + size]) for start in range(0, len(sentences), size)]
        futures = [self._pool.submit(self._complete, request, answered) for request in requests]
        try:
            for future in futures:
                future.result()
        except Exception:
            self._pool.shutdown(cancel_futures=True)  # answers that are on their way reach the journal
            raise
        finally:
            for future in futures:
                future.cancel()
        empty = [Candidate("", problem=EMPTY)]
        numbers = range(first, first + len(lines))
        return [answered.candidates[number] if lines[number - first].strip() else empty for number in numbers]

    def add_usage(self, usage: Usage) -> None:
        """Count the usage of a block that an earlier process finished: ``Journal(path).usage`` of that block."""
        with self._lock:
            self.usage = self.usage.plus(usage)

    def estimate(self, lines: int) -> str:
        """Return in words what the translation of a text will cost; empty before the first answer."""
        if self._first is None:
            return ""
        sentences, seconds, usage = self._first
        requests = math.ceil(lines / self.config.sentences)
        share = lines / sentences
        expected = Usage(requests, round(usage.input_tokens * share), round(usage.output_tokens * share))
        rate = self.config.requests_per_minute or math.inf
        minutes = max(requests * seconds / self.config.parallel / 60, requests / rate)
        return f"{self._in_words(expected)}; minutes: {math.ceil(minutes):,}"

    def summary(self) -> str:
        """Return in words what the translations have cost."""
        return self._in_words(self.usage)

    def close(self) -> None:
        """Cancel the requests that wait, and end all pauses."""
        self.requests.close()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _in_words(self, usage: Usage) -> str:
        price = usage.input_tokens * self.config.input_price + usage.output_tokens * self.config.output_price
        numbers = {
            "requests": usage.requests, "input tokens": usage.input_tokens, "output tokens": usage.output_tokens,
            "price": round(price / 10**6, 3), "sentences asked again": usage.repeated,
            "sentences without translation": usage.dropped,
        }  # fmt: skip
        return "; ".join(f"{name}: {number:,}" for name, number in numbers.items() if number)

    def _complete(self, request: Mapping[int, str], journal: Journal) -> None:
        """Ask for those sentences of a request that the journal lacks. After an error, nothing more is sent."""
        missing = {number: text for number, text in request.items() if number not in journal.candidates}
        try:
            if len(missing) == len(request):
                self._ask_until_usable(request, journal)
            else:  # the request was divided before
                self._ask_singly(missing, journal)
        except Exception as error:
            self._failure = self._failure or error
            self.requests.close()
            raise self._failure from None

    def _ask_singly(self, request: Mapping[int, str], journal: Journal) -> None:
        for number, text in request.items():
            self._ask_until_usable({number: text}, journal)

    def _ask_until_usable(self, request: Mapping[int, str], journal: Journal) -> None:
        """Ask up to ``TRIES`` times, then for each sentence alone. A single sentence gets a problem in the end."""
        is_single = len(request) == 1
        for tries_left in reversed(range(TRIES)):
            started = time.monotonic()
            answer = self._answer(list(request.values()))
            problem = answer.problem
            usage = Usage(1, answer.input_tokens, answer.output_tokens)
            candidates = [[Candidate(_clean(text)) for text in texts] for texts in answer.translations]
            is_hopeless = not tries_left or problem == TOO_LONG or (problem == REFUSED and not is_single)
            if not problem:
                self._first = self._first or (len(request), time.monotonic() - started, usage)
            elif is_hopeless and is_single:
                candidates = [[Candidate("", problem=problem)]]
                usage = usage._replace(dropped=1)
            else:
                usage = usage._replace(repeated=len(request))
            journal.add([*request] if candidates else [], candidates, usage)
            self.add_usage(usage)
            if candidates:
                return
            if is_hopeless:
                break
        self._ask_singly(request, journal)

    def _answer(self, sentences: Sequence[str]) -> Answer:
        """Return the answer to a request; a refusal because of the sentences is a problem of the answer."""
        try:
            return self.ask(sentences)
        except RefusedError as error:
            for problem, words in _REFUSALS.items():
                if error.status in (400, 413, 422) and words.search(error.problem):
                    return Answer([], problem)
            raise


def refuse_without_languages(languages: Languages, what: str) -> None:
    """Raise NmtError if a language is unknown.

    Args:
        languages: language codes; None if the user has given none.
        what: subject of the rule in the message, such as "A LibreTranslate server".
    """
    if None in languages:
        raise NmtError(
            f"The languages of the text and of its translations are unknown. {what} needs their codes. Add ",
            Argument("source_language", "en"),
            " and ",
            Argument("target_language", "de"),
            ", with your codes.",
        )


def _clean(text: str) -> str:
    """Return a translation in one line, without halves of characters, which cannot be written to a file."""
    return as_cell(text.encode(errors="replace").decode()).strip()
