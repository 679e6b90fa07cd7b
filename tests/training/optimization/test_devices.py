"""Several devices compute the same bits as a single device. Logical CPUs of a separate process stand in for GPUs."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

SCRIPT = Path(__file__).parent / "devices.py"


def trained(folder: Path, case: str, devices: int) -> dict[str, np.ndarray]:
    subprocess.run(
        [sys.executable, SCRIPT, str(folder), case, str(devices)], check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )  # fmt: skip
    return dict(np.load(folder / f"{case}-{devices}.npz"))


@pytest.mark.slow
@pytest.mark.parametrize("case", ["uneven", "muon", "recurrent"])
def test_any_number_of_devices_computes_the_same_bits(case: str, tmp_path: Path) -> None:
    alone, *shared = (trained(tmp_path, case, devices) for devices in (1, 2, 4))
    for several in shared:
        assert several.keys() == alone.keys()
        for name, array in alone.items():
            assert array.tobytes() == several[name].tobytes(), name
