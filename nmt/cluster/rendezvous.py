"""Rendezvous: before anything is computed, all workers meet at the chief, which compares what they are about to do.

Over TCP, lines of JSON. A worker sends its card. While others are missing the chief sends who they are; at the end it
sends the addresses of all, or why they cannot train together. TensorFlow binds the same ports afterwards.
"""

import contextlib
import json
import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from nmt.cluster.layout import CHIEF, Layout, split_address
from nmt.config.record import Record
from nmt.errors import ConflictError, NmtError

FORMAT = 1
LONGEST_LINE = 2**20
SILENT_SECONDS = 3.0  # waiting that needs no words
REPORT_SECONDS = 10.0
ALIVE_SECONDS = 5.0  # between two lines of the chief to those who wait
LOST_SECONDS = 20.0  # without a line from the chief
MOST_DIFFERENCES = 3


class Card(Record):
    """What a worker says of itself."""

    format: int
    """Number of this protocol."""
    rank: int = Field(ge=0)
    """Number of the worker."""
    address: str
    """Where TensorFlow of this worker will listen."""
    facts: dict[str, str]
    """What must be equal on all workers: versions, configuration, dataset."""
    machine: dict[str, str]
    """What the last bits of results depend on besides: processor, threads."""


@dataclass
class _Guest:
    """A connection to the chief."""

    connection: socket.socket
    received: bytes = b""
    card: Card | None = None
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Meeting:
    """Outcome of the rendezvous."""

    addresses: list[str]
    """Address of each worker, by rank."""
    notes: list[str]
    """Differences between workers that change at most the last bits, in words."""


def meet(
    layout: Layout,
    facts: dict[str, str],
    machine: dict[str, str],
    *,
    seconds: float,
    report: Callable[[str], None],
    check: Callable[[], None],
) -> Meeting:
    """Wait until all workers have come, and return their addresses.

    Args:
        layout: place of this process.
        facts: what must be equal on all workers.
        machine: what may differ, but not without a note.
        seconds: time to wait.
        report: is called with who is missing, every few seconds.
        check: is called several times a second, and may raise to break off.

    Raises:
        ConflictError: if workers differ in a fact.
        NmtError: if a worker does not come in time, or a port is in use.
    """
    host, port = split_address(layout.address, "The layout")
    if layout.rank == CHIEF:
        with _listening(port, layout) as server:
            card = Card(format=FORMAT, rank=CHIEF, address=layout.address, facts=facts, machine=machine)
            return _Chief(server, layout, card, report, check).meet(seconds)
    with _listening(port, layout) as reserved:  # a port in use is told before the others are kept waiting
        port = reserved.getsockname()[1]
    host = f"[{host}]" if ":" in host else host
    card = Card(format=FORMAT, rank=layout.rank, address=f"{host}:{port}", facts=facts, machine=machine)
    return _visit(layout, card, seconds, report, check)


@contextlib.contextmanager
def _listening(port: int, layout: Layout) -> Iterator[socket.socket]:
    try:
        server = socket.create_server(("", port), backlog=128)
    except OSError as error:
        raise NmtError(
            f"Worker {layout.rank} cannot listen at port {port}: {os.strerror(error.errno or 0)}. Each worker listens "
            "at a port of its own. End the process that uses it (a worker of an earlier start, perhaps), or give "
            "another port."
        ) from None
    with server:
        yield server


class _Chief:
    """The chief's side."""

    def __init__(
        self,
        server: socket.socket,
        layout: Layout,
        card: Card,
        report: Callable[[str], None],
        check: Callable[[], None],
    ) -> None:
        self.server, self.layout, self.card, self.report, self.check = server, layout, card, report, check
        self.guests: list[_Guest] = []

    def meet(self, seconds: float) -> Meeting:
        started = time.monotonic()
        reported, told = started + SILENT_SECONDS - REPORT_SECONDS, started
        try:
            while missing := self._missing():
                self.check()
                self._listen(0.2)
                now = time.monotonic()
                if now - told >= ALIVE_SECONDS:
                    told = now
                    self._tell({"missing": missing})
                if now - reported >= REPORT_SECONDS:
                    reported = now
                    self.report(f"Waiting for {_workers(missing)} of {self.layout.workers}: {now - started:.0f} of "
                                f"{seconds:.0f} s")  # fmt: skip
                if now - started >= seconds:
                    raise NmtError(
                        f"{_workers(missing).capitalize()} of {self.layout.workers} did not come to "
                        f"{self.layout.chief} within {seconds:.0f} s. Start all workers with the same command, and see "
                        "that they reach that address."
                    )
            self._compare()
            cards = [self.card, *sorted(self._cards(), key=lambda card: card.rank)]
            meeting = Meeting([card.address for card in cards], _notes(cards))
            self._tell({"addresses": meeting.addresses, "notes": meeting.notes})
            return meeting
        except NmtError as error:
            self._tell({"refused": str(error)})
            raise
        finally:
            for guest in self.guests:
                guest.connection.close()

    def _cards(self) -> list[Card]:
        return [guest.card for guest in self.guests if guest.card]

    def _missing(self) -> list[int]:
        present = {CHIEF, *(card.rank for card in self._cards())}
        return [rank for rank in range(self.layout.workers) if rank not in present]

    def _listen(self, seconds: float) -> None:
        ready, _, _ = select.select([self.server, *(guest.connection for guest in self.guests)], [], [], seconds)
        for guest in list(self.guests):
            if guest.connection in ready:
                self._hear(guest)
        if self.server in ready:
            connection, _ = self.server.accept()
            connection.setblocking(False)
            self.guests.append(_Guest(connection))

    def _hear(self, guest: _Guest) -> None:
        """Read from a connection; drop it if it has ended, or speaks something else."""
        try:
            content = guest.connection.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            content = b""
        guest.received += content
        if content and b"\n" not in guest.received and len(guest.received) <= LONGEST_LINE:
            return
        try:
            card = Card.model_validate(json.loads(guest.received)) if content else None
        except (ValueError, RecursionError):
            card = None
        if card is None:
            self.guests.remove(guest)
            guest.connection.close()
            return
        guest.received = b""
        self._admit(guest, card)

    def _admit(self, guest: _Guest, card: Card) -> None:
        others = [self.card, *self._cards()]
        double = next((other for other in others if other.rank == card.rank), None)
        guest.card = card
        if double:
            raise ConflictError(
                f"Worker {card.rank} came twice, from {double.address} and {card.address}. Each worker has a number of "
                "its own: see --index, TF_CONFIG or the variables of SLURM."
            )
        if card.format != FORMAT or card.rank >= self.layout.workers:
            raise ConflictError(
                f"A worker at {card.address} calls itself number {card.rank} and speaks format {card.format}; there "
                f"are {self.layout.workers} workers, and the format is {FORMAT}. Start all workers with the same "
                "command and the same version of nmt."
            )

    def _compare(self) -> None:
        for card in self._cards():
            different = [
                f"{name} {card.facts.get(name, 'nothing')} against {self.card.facts.get(name, 'nothing')}"
                for name in sorted({*card.facts, *self.card.facts})
                if card.facts.get(name) != self.card.facts.get(name)
            ]
            if different:
                more = f" and {len(different) - MOST_DIFFERENCES} more" if len(different) > MOST_DIFFERENCES else ""
                raise ConflictError(
                    f"Worker {card.rank} ({card.address}) differs from worker {CHIEF} ({self.card.address}): "
                    f"{'; '.join(different[:MOST_DIFFERENCES])}{more}. All workers train one run: give them the same "
                    "version of nmt, configuration and dataset."
                )

    def _tell(self, message: dict[str, Any]) -> None:
        line = json.dumps(message).encode() + b"\n"
        for guest in self.guests:
            if guest.card:
                guest.connection.settimeout(2)
                with contextlib.suppress(OSError):
                    guest.connection.sendall(line)


def _notes(cards: list[Card]) -> list[str]:
    first = cards[CHIEF]
    return [
        f"{name} {card.machine.get(name)} on worker {card.rank}, {value} on worker {CHIEF}"
        for card in cards[1:]
        for name, value in first.machine.items()
        if card.machine.get(name) != value
    ]


def _workers(ranks: list[int]) -> str:
    return f"worker {ranks[0]}" if len(ranks) == 1 else f"workers {', '.join(map(str, ranks))}"


def _visit(
    layout: Layout, card: Card, seconds: float, report: Callable[[str], None], check: Callable[[], None]
) -> Meeting:
    """The side of the other workers: connect to the chief, send the card, wait for the outcome."""
    started = time.monotonic()
    connection = _connect(layout, started, seconds, report, check)
    with connection:
        connection.sendall(card.model_dump_json().encode() + b"\n")
        answer = _answer(connection, layout, check)
    if "refused" in answer:
        raise ConflictError(str(answer["refused"]))
    return Meeting([str(address) for address in answer["addresses"]], [])


def _connect(
    layout: Layout, started: float, seconds: float, report: Callable[[str], None], check: Callable[[], None]
) -> socket.socket:
    host, port = split_address(layout.chief, "The layout")
    reported = started + SILENT_SECONDS - REPORT_SECONDS
    while True:
        check()
        try:
            return socket.create_connection((host, port), timeout=2)
        except OSError as error:
            now = time.monotonic()
            if now - started >= seconds:
                raise NmtError(
                    f"Worker {layout.rank} did not reach worker {CHIEF} at {layout.chief} within {seconds:.0f} s: "
                    f"{error.strerror or error}. Start all workers with the same command, and see that they reach that "
                    "address."
                ) from None
            if now - reported >= REPORT_SECONDS:
                reported = now
                report(f"Waiting for worker {CHIEF} at {layout.chief}: {now - started:.0f} of {seconds:.0f} s")
            time.sleep(0.2)


def _answer(connection: socket.socket, layout: Layout, check: Callable[[], None]) -> dict[str, Any]:
    """Return the chief's last line; lines before it tell that it is there."""
    connection.settimeout(0.5)
    received, heard = b"", time.monotonic()
    lost = NmtError(f"Worker {CHIEF} at {layout.chief} went away before training began. See what it printed.")
    while True:
        check()
        try:
            content = connection.recv(65_536)
            if not content:
                raise lost
        except TimeoutError:
            content = b""
        except OSError:
            raise lost from None
        heard = time.monotonic() if content else heard
        if time.monotonic() - heard > LOST_SECONDS or len(received) > LONGEST_LINE:
            raise lost
        received += content
        *lines, received = received.split(b"\n")
        for line in lines:
            try:
                answer = json.loads(line)
            except ValueError:
                raise lost from None
            if isinstance(answer, dict) and {"refused", "addresses"} & answer.keys():
                return answer
