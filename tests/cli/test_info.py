"""``nmt info``: weights of a run from their file, and weights of a configuration without allocating them."""

import json
import math
import re
from pathlib import Path

import pytest
from conftest import nmt

from nmt.cli.inspection.info import info


def test_a_giant_model_is_described_and_not_built(project: Path) -> None:
    giant = ("model.d_model=65536", "model.d_ff=1000000", "model.encoder_layers=40", "model.heads=8")
    sets = [part for setting in giant for part in ("--set", setting)]
    printed = nmt("info", "--config", "base.yaml", *sets, cwd=project).stdout
    (total,) = re.findall(r"^all +([\d,]+) +[\d,.]+ MiB in float32$", printed, re.M)
    assert int(total.replace(",", "")) > 10**12
    assert len(re.findall(r"^encoder_\d+ ", printed, re.M)) == 40
    assert len(re.findall(r"^  feed_forward ", printed, re.M)) == 2  # of the first layer of each stack


def test_json_holds_the_weights_of_a_run_or_of_a_configuration(
    trained_project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trained_project)
    described = []
    for arguments in ({"run": "base"}, {"config": "base.yaml"}):
        info(**arguments, as_json=True)
        described.append(json.loads(capsys.readouterr().out))
    run, model = described
    assert model["weights"] == sum(map(math.prod, model["shapes"].values()))
    assert run["shapes"] == model["shapes"]
    assert (run["run"], run["epochs"], run["best"]["weights"]) == ("base", 2, 2)
    assert run["configuration"]["model"] == model["configuration"]["model"]
    info(config="base.yaml", overrides=["model.encoder_layers=3"])
    assert re.search(r"^encoder_3 .*  as encoder_1$", capsys.readouterr().out, re.M)
