"""The meeting of all workers: who is missing is told, what differs is named, and nobody waits for ever."""

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable

import pytest

from nmt.cluster.layout import Layout, local_layouts
from nmt.cluster.rendezvous import Meeting, meet
from nmt.errors import ConflictError, NmtError

FACTS = {"nmt": "1", "dataset": "d"}
MACHINE = {"processor": "p", "threads": "1"}


class Visitor(threading.Thread):
    """A worker in a thread: its meeting or its error, and what it reported."""

    def __init__(self, layout: Layout, facts: dict[str, str] = FACTS, machine: dict[str, str] = MACHINE, *,
                 seconds: float = 20, check: Callable[[], None] = lambda: None) -> None:  # fmt: skip
        super().__init__(daemon=True)
        self.layout, self.facts, self.machine, self.seconds, self.check = layout, facts, machine, seconds, check
        self.reports: list[str] = []
        self.meeting: Meeting | None = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.meeting = meet(
                self.layout,
                self.facts,
                self.machine,
                seconds=self.seconds,
                report=self.reports.append,
                check=self.check,
            )
        except BaseException as error:
            self.error = error

    def outcome(self) -> Meeting:
        self.join(30)
        assert not self.is_alive()
        if self.error:
            raise self.error
        assert self.meeting is not None
        return self.meeting


@pytest.mark.parametrize("workers", [2, 5])
def test_all_learn_the_addresses_of_all(workers: int) -> None:
    layouts = local_layouts(workers)
    visitors = [Visitor(layout) for layout in reversed(layouts)]
    for visitor in visitors:
        assert visitor.outcome() == Meeting([layout.address for layout in layouts], [])


def test_a_worker_without_a_port_takes_a_free_one() -> None:
    first = local_layouts(2)[0]
    visitors = [Visitor(first), Visitor(Layout(2, 1, first.address, "127.0.0.1:0", 0))]
    addresses = visitors[0].outcome().addresses
    assert addresses[0] == first.address
    assert re.fullmatch(r"127\.0\.0\.1:[1-9]\d*", addresses[1])
    assert visitors[1].outcome().addresses == addresses


def test_a_difference_is_named_to_all() -> None:
    layouts = local_layouts(3)
    other = FACTS | {"training.batch_size": "32", "dataset": "e"}
    visitors = [Visitor(layouts[0]), Visitor(layouts[1]), Visitor(layouts[2], other)]
    for visitor in visitors:
        with pytest.raises(ConflictError) as caught:
            visitor.outcome()
        message = str(caught.value)
        assert message.startswith(f"Worker 2 ({layouts[2].address}) differs from worker 0 ({layouts[0].address}): ")
        assert "dataset e against d; training.batch_size 32 against nothing." in message


def test_another_processor_is_noted() -> None:
    layouts = local_layouts(2)
    chief, _ = Visitor(layouts[0]), Visitor(layouts[1], machine=MACHINE | {"threads": "4"})
    assert chief.outcome().notes == ["threads 4 on worker 1, 1 on worker 0"]


def test_who_does_not_come_is_named_within_seconds() -> None:
    layouts = local_layouts(4)
    started = time.monotonic()
    visitors = [Visitor(layouts[0], seconds=5), Visitor(layouts[2], seconds=20)]
    for visitor in visitors:
        with pytest.raises(NmtError, match=f"^Workers 1, 3 of 4 did not come to {layouts[0].address} within 5 s"):
            visitor.outcome()
    (report,) = visitors[0].reports
    assert re.fullmatch(r"Waiting for workers 1, 3 of 4: [3-5] of 5 s", report)
    assert 5 <= time.monotonic() - started < 8


def test_a_chief_that_does_not_come_is_named_within_seconds() -> None:
    layouts = local_layouts(2)
    visitor = Visitor(layouts[1], seconds=4)
    with pytest.raises(NmtError, match=f"^Worker 1 did not reach worker 0 at {layouts[0].address} within 4 s"):
        visitor.outcome()
    (report,) = visitor.reports
    assert re.fullmatch(rf"Waiting for worker 0 at {layouts[0].address}: [34] of 4 s", report)


def test_a_port_in_use_is_named() -> None:
    layouts = local_layouts(2)
    for layout in layouts:
        with socket.create_server(("", int(layout.address.rpartition(":")[2]))):
            visitor = Visitor(layout)
            with pytest.raises(NmtError, match=f"^Worker {layout.rank} cannot listen at port"):
                visitor.outcome()


def test_a_worker_that_comes_twice_is_named() -> None:
    layouts = local_layouts(3)
    visitors = [Visitor(layouts[0]), Visitor(layouts[1])]
    time.sleep(1)
    visitors.append(Visitor(Layout(3, 1, layouts[0].address, layouts[2].address, 0)))
    for visitor in visitors:
        with pytest.raises(ConflictError, match=r"^Worker 1 came twice, from "):
            visitor.outcome()


def test_strangers_are_left_out() -> None:
    layouts = local_layouts(2)
    chief = Visitor(layouts[0])
    address = "127.0.0.1", int(layouts[0].address.rpartition(":")[2])
    for content in (b"GET / HTTP/1.1\r\n\r\n", b"\n", b"[" * 5000 + b"\n", b"{}\n", b"x" * 100, b""):
        with contextlib.suppress(OSError), _connected(address) as stranger:
            stranger.sendall(content)
    time.sleep(0.5)
    assert Visitor(layouts[1]).outcome() == chief.outcome()


def _connected(address: tuple[str, int]) -> socket.socket:
    for _ in range(100):
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(address)
        time.sleep(0.05)
    raise AssertionError("nobody listens")


def test_a_worker_that_leaves_may_come_again() -> None:
    layouts = local_layouts(3)
    chief = Visitor(layouts[0])
    card = {"format": 1, "rank": 1, "address": layouts[1].address, "facts": FACTS, "machine": MACHINE}
    with _connected(("127.0.0.1", int(layouts[0].address.rpartition(":")[2]))) as first:
        first.sendall(json.dumps(card).encode() + b"\n")
        time.sleep(0.5)
    time.sleep(0.5)
    for visitor in [Visitor(layouts[1]), Visitor(layouts[2]), chief]:
        assert visitor.outcome().addresses == [layout.address for layout in layouts]


def test_a_chief_that_breaks_off_says_so_to_all() -> None:
    layouts = local_layouts(3)

    def check() -> None:
        if time.monotonic() - started > 1.5:
            raise NmtError("Worker 2 ended with exit code 1: out of memory")

    started = time.monotonic()
    visitors = [Visitor(layouts[0], check=check), Visitor(layouts[1])]
    for visitor in visitors:
        with pytest.raises(NmtError, match="out of memory"):
            visitor.outcome()


def test_a_chief_that_is_gone_is_noticed() -> None:
    layouts = local_layouts(2)
    port = int(layouts[0].address.rpartition(":")[2])
    with socket.create_server(("", port)) as server:
        visitor = Visitor(layouts[1])
        connection, _ = server.accept()
        connection.close()
        with pytest.raises(NmtError, match="went away before training began"):
            visitor.outcome()
