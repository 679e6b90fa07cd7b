"""Weights by name: the names of older files are understood."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nmt.config.schema import Config
from nmt.models.weights import set_weights, shape_difference
from nmt.runs.directory import create_run
from nmt.runs.weights import average_weights, save_weights

OLD, NEW = "encoder_1/attention_frame/norm/gamma", "encoder_1/attention_sublayer/norm/gamma"


class Variable:
    """Stand-in for a variable in a layer of a model."""

    shape = (3,)

    def __init__(self, layer: str) -> None:
        self.path = f"transformer/encoder_1/{layer}/norm/gamma"

    def assign(self, value: np.ndarray) -> None:
        self.assigned = value


def array() -> np.ndarray:
    return np.arange(3, dtype=np.float32)


@pytest.mark.parametrize(
    ("layer", "name"), [("attention_sublayer", OLD), ("attention_frame", OLD), ("attention_sublayer", NEW)]
)
def test_weights_of_older_files_are_put_into_a_model(layer: str, name: str) -> None:
    variable = Variable(layer)
    set_weights(SimpleNamespace(weights=[variable]), {name: array()})  # type: ignore[arg-type]
    assert np.array_equal(variable.assigned, array())


def test_shapes_are_compared_under_the_names_of_today() -> None:
    assert shape_difference({OLD: [3]}, {NEW: [3]}) is None
    assert shape_difference({OLD: [3]}, {NEW: [4]}) == f"{NEW} has shape [3] in the file and [4] in the model"
    assert shape_difference({}, {NEW: [3]}) == f"the file has no {NEW}, the model has one"
    assert shape_difference({OLD: [3]}, {}) == f"the file has {NEW}, the model has none"


def test_an_average_over_the_change_of_names_has_the_names_of_its_last_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = create_run("older", Config(), [])
    for epoch, name in ((1, OLD), (2, NEW)):
        save_weights(run, {name: epoch * array()}, epoch)
    assert {name: mean.tolist() for name, mean in average_weights(run, [1, 2]).items()} == {NEW: [0.0, 1.5, 3.0]}
    assert list(average_weights(run, [1])) == [OLD]
