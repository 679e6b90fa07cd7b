"""The table of larger clusters in nmt/cluster/README.md, against a simulation of the exchange, message by message."""

import re
from collections import Counter
from pathlib import Path

import pytest

import nmt
from nmt.cluster.workers import Workers

WEIGHTS = {"base": 65e6, "big": 213e6}
TOKENS, OPERATIONS_A_SECOND = 25_000, 0.4 * 312e12
TEXT = (Path(nmt.__file__).parent / "cluster" / "README.md").read_text()
ROWS = [line.strip("| ").split(" | ") for line in TEXT.splitlines() if re.match(r"\| (8 GPUs|4 hosts)", line)]


def exchange(weights: float, hosts: int, each: int, worker_rate: float, host_rate: float) -> tuple[float, float]:
    """Return the bytes that a worker sends, and the seconds until the busiest link is done.

    Args:
        weights: N.
        hosts: number of hosts.
        each: workers of a host.
        worker_rate: bytes a second that a worker sends within its host.
        host_rate: bytes a second that leave a host.
    """
    workers = hosts * each
    sent: Counter[tuple[str, int]] = Counter()
    for _ in ("slices to the workers that add them", "their sums to all"):
        for sender in range(workers):
            for receiver in set(range(workers)) - {sender}:
                count = 4 * weights / workers
                sent["worker", sender] += count
                inside = sender // each == receiver // each
                sent["inside", sender] += count * inside
                sent["host", sender // each] += count * (not inside)
    seconds = max(sent["inside", 0] / worker_rate, sent["host", 0] / host_rate)
    return sent["worker", 0], seconds


def test_there_are_rows() -> None:
    assert len(ROWS) == 4


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_is_what_the_simulation_gives(row: list[str]) -> None:
    cluster, sent, *exchanges = row
    rate = float(re.search(r"([\d.]+) GB/s", cluster)[1]) * 1e9
    hosts, each = (4, 8) if cluster.startswith("4 hosts") else (1, 8)
    rates = (300e9, rate) if hosts > 1 else (rate, 1.0)
    for words, (model, weights), text in zip(sent.split(", "), WEIGHTS.items(), exchanges, strict=True):
        told, seconds = exchange(weights, hosts, each, *rates)
        workers = Workers()
        workers.count = hosts * each
        assert told == pytest.approx(workers.bytes_sent(int(weights)), rel=1e-6), model
        assert to_number(words) == pytest.approx(told, rel=0.01), model
        time, share = re.search(r"[\d.]+ m?s, \d+%", text).group(0).split(", ")
        assert to_number(time) == pytest.approx(seconds, rel=0.05), model
        computing = 6 * weights * TOKENS / OPERATIONS_A_SECOND
        assert int(share.rstrip("%")) == pytest.approx(100 * seconds / (seconds + computing), abs=1), model


def to_number(text: str) -> float:
    number, unit = re.match(r"([\d.]+) (\w+)", text).groups()
    return float(number) * {"ms": 1e-3, "s": 1.0, "MB": 1e6, "GB": 1e9}[unit]
