"""Energy of the processor, from a powercap folder made for the test."""

from pathlib import Path

import pytest

from nmt.runs.energy import EnergyMeter

MAXIMUM = 262_143_328_850


def zone(powercap: Path, name: str, label: str, microjoules: int | str) -> Path:
    folder = powercap / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "name").write_text(f"{label}\n")
    (folder / "energy_uj").write_text(f"{microjoules}\n")
    (folder / "max_energy_range_uj").write_text(f"{MAXIMUM}\n")
    return folder


@pytest.fixture
def powercap(tmp_path: Path) -> Path:
    """Two packages, and zones that are part of one or contain both."""
    zone(tmp_path, "intel-rapl:0", "package-0", 5_000_000)
    zone(tmp_path, "intel-rapl:1", "package-1", 7_000_000)
    zone(tmp_path, "intel-rapl:0:0", "core", 1_000_000)
    zone(tmp_path, "intel-rapl:2", "psys", 1_000_000)
    return tmp_path


def test_packages_are_summed_since_the_meter_was_made(powercap: Path) -> None:
    meter = EnergyMeter(powercap)
    assert meter.read() == 0
    zone(powercap, "intel-rapl:0", "package-0", 6_500_000)
    zone(powercap, "intel-rapl:1", "package-1", 7_250_000)
    zone(powercap, "intel-rapl:0:0", "core", 9_000_000)
    zone(powercap, "intel-rapl:2", "psys", 9_000_000)
    assert meter.read() == pytest.approx(1.75)
    zone(powercap, "intel-rapl:0", "package-0", 7_500_000)
    assert meter.read() == pytest.approx(2.75)


def test_a_counter_that_begins_again_is_continued(powercap: Path) -> None:
    zone(powercap, "intel-rapl:0", "package-0", MAXIMUM - 1_000_000)
    meter = EnergyMeter(powercap)
    for microjoules in (500_000, MAXIMUM - 500_000, 1_000_000):  # twice around
        zone(powercap, "intel-rapl:0", "package-0", microjoules)
        joules = meter.read()
    assert joules == pytest.approx((2 * MAXIMUM + 1_000_000 - (MAXIMUM - 1_000_000)) * 1e-6)


@pytest.mark.parametrize("content", ["", "no number", "-5", "1.5", None])
def test_a_counter_without_a_number_is_unknown_for_good(powercap: Path, content: str | None) -> None:
    meter = EnergyMeter(powercap)
    counter = powercap / "intel-rapl:1" / "energy_uj"
    counter.unlink() if content is None else counter.write_text(f"{content}\n")
    assert meter.read() is None
    zone(powercap, "intel-rapl:1", "package-1", 8_000_000)
    assert meter.read() is None
    assert EnergyMeter(powercap).read() == 0


def test_a_machine_without_counters_tells_nothing(tmp_path: Path) -> None:
    assert EnergyMeter(tmp_path).read() is None
    assert EnergyMeter(tmp_path / "absent").read() is None
    zone(tmp_path, "intel-rapl:2", "psys", 1_000_000)
    assert EnergyMeter(tmp_path).read() is None
