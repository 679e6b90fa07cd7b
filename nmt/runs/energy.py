"""Energy of the processor, from the counters of its packages (RAPL) that Linux shows as files.

Virtual machines have no such counters, and most systems let root alone read them.
"""

from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
MICRO = 1e-6


class EnergyMeter:
    """Energy that the packages of this machine's processors use, other programs included, from now on.

    A counter goes back to 0 at its maximum, 262 kJ on many processors: half an hour at 150 W. ``read`` must be called
    more often than that.
    """

    def __init__(self, powercap: Path = POWERCAP) -> None:
        """Find the counters in the folder ``powercap``, and begin at 0."""
        # The zones of a package, its cores for example, are part of it; the zone "psys" contains it.
        zones = [zone for zone in sorted(powercap.glob("intel-rapl:*")) if _text(zone / "name").startswith("package")]
        self._zones = [zone for zone in zones if ":" not in zone.name.removeprefix("intel-rapl:")]
        self._before = [_number(zone / "energy_uj") for zone in self._zones]
        self._sum: int | None = 0 if self._zones else None

    def read(self) -> float | None:
        """Return the joules used since the meter was made; None if the processor does not tell."""
        now = [_number(zone / "energy_uj") for zone in self._zones]
        for zone, after, before in zip(self._zones, now, self._before, strict=True):
            if self._sum is None or after is None or before is None:
                self._sum = None
                continue
            if after >= before:
                self._sum += after - before
            else:
                maximum = _number(zone / "max_energy_range_uj")
                self._sum = None if maximum is None else self._sum + maximum - before + after
        self._before = now
        return None if self._sum is None else self._sum * MICRO


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _number(path: Path) -> int | None:
    """Return the number in a file; None if it cannot be read."""
    text = _text(path)
    return int(text) if text.isascii() and text.isdecimal() else None
