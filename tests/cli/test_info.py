"""``nmt info``: a run is described by arithmetic, whatever its configuration asks for."""

import re
from pathlib import Path

from conftest import nmt


def test_a_giant_model_is_described_and_not_built(project: Path) -> None:
    path = project / "checkpoints" / "base" / "config.yaml"
    text = re.sub(r"d_model: \d+", "d_model: 65536", path.read_text())
    path.write_text(re.sub(r"encoder_layers: \d+", "encoder_layers: 1000", text))
    printed = nmt("info", "--run", "base", cwd=project).stdout
    (total,) = re.findall(r"^all +([\d,]+)  [\d,.]+ MiB in float32$", printed, re.M)
    assert int(total.replace(",", "")) > 10**13
    assert len(re.findall(r"^encoder_\d+ ", printed, re.M)) == 1000
    refused = nmt("translate", "--run", "base", "im one", cwd=project, code=2).stderr
    assert f"the model {total}" in refused
