"""Several devices compute the same bits as a single device. Logical CPUs of a separate process stand in for GPUs."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

SCRIPT = Path(__file__).parent / "devices.py"


@pytest.mark.slow
@pytest.mark.parametrize("case", ["uneven", "muon", "recurrent"])
def test_any_number_of_devices_computes_the_same_bits(case: str, tmp_path: Path) -> None:
    numbers = ["1", "2", "4"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    subprocess.run([sys.executable, SCRIPT, tmp_path, case, *numbers], check=True, env=environment)
    alone, *shared = (dict(np.load(tmp_path / f"{case}-{number}.npz")) for number in numbers)
    for several in shared:
        assert several.keys() == alone.keys()
        for name, array in alone.items():
            assert array.tobytes() == several[name].tobytes(), name
