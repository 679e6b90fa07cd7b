"""Figures show the numbers of the metrics file, are saved whole in the format of the suffix, and need no TensorFlow."""

import contextlib
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT
from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase

from nmt.config.model import TransformerConfig
from nmt.config.schema import Config
from nmt.config.training import TrainingConfig
from nmt.errors import NmtError, NotFoundError
from nmt.plotting import figures as plots
from nmt.runs.directory import Run, create_run
from nmt.runs.metrics import AverageMetrics, EpochMetrics, StepMetrics

PNG = b"\x89PNG\r\n\x1a\n"
VALIDATION_LOSSES = [3.0, 2.0, 2.5]
TRAINING = "training\n(with dropout)"
SMALL = Config(
    model=TransformerConfig(d_model=64, heads=4),
    training=TrainingConfig(epochs=20, warmup_steps=50, learning_rate_scale=2.0),
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run without metrics."""
    monkeypatch.chdir(tmp_path)
    return create_run("first", SMALL, [])


ACCURACIES = [0.15, 0.4, 0.35]  # on validation, by epoch


def epoch_metrics(epoch: int, validation_loss: float) -> EpochMetrics:
    """Return the metrics of an epoch of ten steps."""
    return EpochMetrics(
        epoch=epoch, step=10 * epoch, train_loss=4.0 - epoch, train_accuracy=0.2 * epoch,
        validation_loss=validation_loss, validation_accuracy=ACCURACIES[epoch - 1], target_tokens=100, seconds=1.5,
    )  # fmt: skip


@pytest.fixture
def trained(run: Run) -> Run:
    """A run of three epochs with ten steps each; the second epoch is the best."""
    for epoch, validation_loss in enumerate(VALIDATION_LOSSES, start=1):
        run.append_metrics(StepMetrics(epoch=epoch, step=10 * epoch - 5, loss=9.0, accuracy=0.01, learning_rate=1e-4))
        run.append_metrics(epoch_metrics(epoch, validation_loss))
    return run


def lines(axes: Axes) -> dict[str, tuple[list[float], list[float]]]:
    """Return x and y of each labelled line, by label."""
    return {
        str(line.get_label()): (np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist())
        for line in axes.get_lines()
        if not str(line.get_label()).startswith("_")
    }


def marks(axes: Axes) -> dict[str, tuple[list[float], list[float]]]:
    """Return x and y of each mark of the legend below the axes, by its text."""
    (legend,) = axes.figure.legends  # type: ignore[union-attr]
    found = {}
    for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
        [line, *_] = [
            line for line in axes.get_lines()
            if (line.get_marker(), line.get_linestyle()) == (handle.get_marker(), handle.get_linestyle())
        ]  # fmt: skip
        found[text.get_text()] = (np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist())
    return found


def vertical_lines(axes: Axes) -> list[float]:
    """Return the x of each vertical line."""
    found = (np.asarray(line.get_xdata()).tolist() for line in axes.get_lines())
    return [x[0] for x in found if len(x) == 2 and x[0] == x[1]]


def test_an_unknown_figure_is_refused(trained: Run) -> None:
    with pytest.raises(NotFoundError, match="did you mean 'losses'"):
        plots.draw("losess", trained)


# --- curves


@pytest.mark.parametrize(
    ("name", "training", "validation", "best", "average"),
    [
        ("losses", [3.0, 2.0, 1.0], VALIDATION_LOSSES, 2.0, 1.5),
        ("accuracy", pytest.approx([0.2, 0.4, 0.6]), ACCURACIES, 0.4, 0.7),
    ],
)
def test_curves_are_those_of_the_epochs_and_the_best_and_the_average_are_marked(
    trained: Run, name: str, training: list[float], validation: list[float], best: float, average: float
) -> None:
    trained.append_metrics(AverageMetrics(epochs=[2, 3], step=3, validation_loss=1.5, validation_accuracy=0.7))
    trained.weights_path("average").parent.mkdir(exist_ok=True)
    trained.weights_path("average").touch()
    (axes,) = plots.draw(name, trained).axes
    assert lines(axes) == {TRAINING: ([1, 2, 3], training), "validation": ([1, 2, 3], validation)}
    assert marks(axes) == {
        "best epoch: 2 (validation accuracy 0.400, loss 2.000)": ([2], [best]),
        "average of epochs 2-3 (validation accuracy 0.700, loss 1.500)": ([3], [average]),
    }
    assert vertical_lines(axes) == [2]
    assert {text.get_text() for text in axes.texts} == {TRAINING, "validation"}, "names stand at the curves"


def test_bleu_is_drawn_against_minutes_of_training(trained: Run) -> None:
    for epoch in (4, 5):
        values = epoch_metrics(1, 1.0).model_dump() | {"epoch": epoch, "seconds": 57.75, "validation_bleu": 5.0 * epoch}
        trained.append_metrics(EpochMetrics.model_validate(values | {"validation_chrf": 40.0}))
    (axes,) = plots.draw("bleu", trained).axes
    minutes = pytest.approx([62.25 / 60, 2.0])
    assert lines(axes) == {"BLEU": (minutes, [20.0, 25.0]), "chrF": (minutes, [40.0, 40.0])}


# --- schedule


def rate(step: float, warmup: float = 50) -> float:
    """Return the learning rate of ``SMALL`` by equation 3 of the paper, times its scale of 2."""
    return 2 / math.sqrt(64) * min(step / warmup**1.5, 1 / math.sqrt(step))


LINEAR = {"learning_rate_scale": 1.0, "schedule": "linear", "peak_learning_rate": 2e-3, "final_learning_rate": 2e-4}
COSINE = {"learning_rate_scale": 1.0, "schedule": "cosine", "peak_learning_rate": 1e-3, "decay_steps": 250}


@pytest.mark.parametrize(
    ("changes", "last", "expected"),
    [
        ({}, 200, rate),  # ten steps an epoch, twenty epochs
        ({"warmup_steps": 4000}, 8000, lambda step: rate(step, 4000)),  # the run ends within it
        (LINEAR, 200, lambda step: min(2e-3 * step / 50, 2e-3 - 1.8e-3 / 150 * (step - 50))),
        (COSINE, 300, lambda step: 1e-3 * min(step / 50, (1 + math.cos(math.pi * (step - 50) / 250)) / 2)),
    ],
)
def test_the_schedule_is_drawn_over_the_steps_that_the_run_will_take(
    trained: Run, changes: dict[str, Any], last: int, expected: Callable[[float], float]
) -> None:
    trained.write_config(SMALL.model_copy(update={"training": SMALL.training.model_copy(update=changes)}))
    (axes,) = plots.draw("schedule", trained).axes
    steps, rates = np.array(axes.get_lines()[0].get_data())
    assert (steps[0], steps[-1]) == (1, last)
    np.testing.assert_allclose(rates, [expected(step) for step in steps], rtol=1e-6, atol=1e-12)
    assert vertical_lines(axes) == [changes.get("warmup_steps", 50), 200]
    [so_far] = [place for name, place in marks(axes).items() if name.startswith("trained so far: 30 steps")]
    assert so_far == ([30], pytest.approx([expected(30)]))


def test_the_schedule_of_a_run_without_metrics_shows_the_rise_and_the_fall(run: Run) -> None:
    (axes,) = plots.draw("schedule", run).axes
    steps, rates = np.array(axes.get_lines()[0].get_data())
    assert steps.tolist() == list(range(1, 101))
    np.testing.assert_allclose(rates, [rate(step) for step in steps])
    assert vertical_lines(axes) == [50]
    run.write_config(SMALL.model_copy(update={"training": SMALL.training.model_copy(update=LINEAR)}))
    with pytest.raises(NotFoundError):
        plots.draw("schedule", run)  # its end is not known


# --- saving


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [("a.png", PNG, b""), ("a.PNG", PNG, b""), ("a.svg", b"<?xml", b"</svg>\n"), ("a.pdf", b"%PDF-", b"%%EOF\n")],
)
def test_the_suffix_names_the_format(name: str, start: bytes, end: bytes, tmp_path: Path) -> None:
    path = tmp_path / "figures" / name
    plots.save(plots.empty_figure(), path)
    assert path.read_bytes().startswith(start)
    assert path.read_bytes().endswith(end)


@pytest.mark.parametrize("name", ["a.xyz", "a", "a.", ".png", "png"])
def test_an_unknown_suffix_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(NmtError, match="the suffix must name its format"):
        plots.save(plots.empty_figure(), tmp_path / name)
    assert not (tmp_path / name).exists()


def test_every_known_suffix_is_written_or_refused_in_words(tmp_path: Path) -> None:
    known = FigureCanvasBase.get_supported_filetypes()
    assert len(known) > 3
    figure = plots.empty_figure()
    figure.text(0, 0, "loss")
    for suffix in known:
        with contextlib.suppress(NmtError):
            plots.save(figure, tmp_path / f"a.{suffix}")
            assert (tmp_path / f"a.{suffix}").stat().st_size > 0


def test_a_figure_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "losses.png"
    path.write_bytes(b"old")
    figure = plots.empty_figure()

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figure, "savefig", refuse)
    with pytest.raises(NmtError, match=r"cannot be written: No space left on device\."):
        plots.save(figure, path)
    assert path.read_bytes() == b"old"


def test_figures_appear_at_once_without_tensorflow_and_those_of_the_lesson_without_the_configuration(
    trained: Run,
) -> None:
    script = """
import sys
from nmt.cli import app
def plot(*words):
    sys.argv = ["nmt", "plot", *words]
    try: app.main()
    except SystemExit as ended: assert not ended.code
def loaded(*names): print([name for name in names if name in sys.modules])
for words in (["position-matrix"], ["masks", "a b"], ["embeddings", "a b", "c"], ["position-table"]): plot(*words)
loaded("tensorflow", "keras", "nmt.config", "sentencepiece")
for name in ("losses", "accuracy", "schedule", "speed", "positions"): plot(name)
loaded("tensorflow", "keras", "jax", "torch")
"""
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=here, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    lesson = ["position-matrix.png", "masks.png", "embeddings.png", "position-table.png"]
    plotted = [
        f"checkpoints/first/plots/{name}.png" for name in ("losses", "accuracy", "schedule", "speed", "positions")
    ]
    assert done.stdout.splitlines() == [*lesson, "[]", *plotted, "[]"]
    assert all(Path(path).read_bytes().startswith(PNG) for path in (*lesson, *plotted))
