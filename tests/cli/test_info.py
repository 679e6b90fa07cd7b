"""``nmt info``: a run is described by arithmetic, whatever its configuration asks for."""

import json
import re
from pathlib import Path

import pytest
from conftest import nmt

from nmt.cli.inspection.info import info


def test_a_giant_model_is_described_and_not_built(project: Path) -> None:
    path = project / "checkpoints" / "base" / "config.yaml"
    text = re.sub(r"d_model: \d+", "d_model: 65536", path.read_text())
    path.write_text(re.sub(r"encoder_layers: \d+", "encoder_layers: 1000", text))
    printed = nmt("info", "--run", "base", cwd=project).stdout
    (total,) = re.findall(r"^all +([\d,]+) +[\d,.]+ MiB in float32$", printed, re.M)
    assert int(total.replace(",", "")) > 10**13
    assert len(re.findall(r"^encoder_\d+ ", printed, re.M)) == 1000
    assert len(re.findall(r"^  feed_forward ", printed, re.M)) == 2  # of the first layer of each stack


def test_json_holds_the_parts_of_a_run_or_of_a_configuration(
    trained_project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trained_project)
    described = []
    for arguments in ({"run": "base"}, {"config": "base.yaml"}):
        info(**arguments, as_json=True)
        described.append(json.loads(capsys.readouterr().out))
    run, model = described
    assert model["weights"] == sum(part["weights"] for part in model["parts"])
    for part in model["parts"]:
        assert part["sublayers"] == [] or part["weights"] == sum(inner["weights"] for inner in part["sublayers"])
    assert run["parts"] == model["parts"]
    assert (run["run"], run["epochs"], run["best"]["weights"]) == ("base", 2, 2)
    assert run["configuration"]["model"] == model["configuration"]["model"]
    info(config="base.yaml", overrides=["model.encoder_layers=3"])
    assert re.search(r"^encoder_3 .*  as encoder_1$", capsys.readouterr().out, re.M)
