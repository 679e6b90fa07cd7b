"""Figures show the numbers of the metrics file, are saved whole in the format of the suffix, and need no TensorFlow."""

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from conftest import ROOT
from matplotlib.axes import Axes

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


@pytest.mark.parametrize(("name", "hint"), [("losess", " (did you mean 'losses'?)"), ("zzz", "")])
def test_an_unknown_figure_is_refused_with_the_known_names(trained: Run, name: str, hint: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        plots.draw(name, trained)
    assert str(caught.value) == (
        f"There is no figure {name!r}{hint}. Known: losses, accuracy, bleu, schedule, speed, positions."
    )


# --- curves


def test_losses_are_those_of_the_epochs(trained: Run) -> None:
    (axes,) = plots.draw("losses", trained).axes
    drawn = lines(axes)
    assert drawn[TRAINING] == ([1, 2, 3], [3.0, 2.0, 1.0])
    assert drawn["validation"] == ([1, 2, 3], VALIDATION_LOSSES)
    assert axes.get_xlabel() == "epoch"
    assert axes.get_ylabel() == "cross-entropy of a target token (nats)"


def test_accuracies_are_those_of_the_epochs(trained: Run) -> None:
    (axes,) = plots.draw("accuracy", trained).axes
    drawn = lines(axes)
    assert drawn[TRAINING] == ([1, 2, 3], pytest.approx([0.2, 0.4, 0.6]))
    assert drawn["validation"] == ([1, 2, 3], ACCURACIES)
    assert axes.get_ylabel() == "target tokens predicted right"


def test_bleu_is_drawn_against_minutes_of_training(trained: Run) -> None:
    with pytest.raises(NotFoundError, match="Run 'first' has no BLEU"):
        plots.draw("bleu", trained)
    for epoch in (4, 5):
        values = epoch_metrics(1, 1.0).model_dump() | {"epoch": epoch, "seconds": 57.75, "validation_bleu": 5.0 * epoch}
        trained.append_metrics(EpochMetrics.model_validate(values | {"validation_chrf": 40.0}))
    (axes,) = plots.draw("bleu", trained).axes
    drawn = lines(axes)
    assert drawn["BLEU"] == (pytest.approx([62.25 / 60, 2.0]), [20.0, 25.0])
    assert drawn["chrF"][1] == [40.0, 40.0]


@pytest.mark.parametrize(("name", "height"), [("losses", 2.0), ("accuracy", 0.4)])
def test_the_best_epoch_is_marked_and_named(trained: Run, name: str, height: float) -> None:
    (axes,) = plots.draw(name, trained).axes
    assert marks(axes) == {"best epoch: 2 (validation accuracy 0.400, loss 2.000)": ([2], [height])}
    assert vertical_lines(axes) == [2]
    assert {text.get_text() for text in axes.texts} == {TRAINING, "validation"}, "names stand at the curves"


@pytest.mark.parametrize(("name", "height"), [("losses", 1.5), ("accuracy", 0.7)])
def test_the_average_of_epochs_is_marked_beside_them(trained: Run, name: str, height: float) -> None:
    trained.append_metrics(AverageMetrics(epochs=[2, 3], step=3, validation_loss=1.5, validation_accuracy=0.7))
    trained.weights_path("average").parent.mkdir(exist_ok=True)
    trained.weights_path("average").touch()
    (axes,) = plots.draw(name, trained).axes
    assert marks(axes)["average of epochs 2-3 (validation accuracy 0.700, loss 1.500)"] == ([3], [height])


def test_one_epoch_is_enough_for_curves(run: Run) -> None:
    run.append_metrics(epoch_metrics(1, 2.0))
    figure = plots.draw("losses", run)
    assert lines(figure.axes[0])["validation"] == ([1], [2.0])
    plots.save(figure, Path("losses.png"))
    assert Path("losses.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("name", ["losses", "accuracy"])
def test_a_run_without_a_finished_epoch_has_no_curves(run: Run, name: str) -> None:
    run.append_metrics(StepMetrics(epoch=1, step=5, loss=9.0, accuracy=0.01, learning_rate=1e-4))
    with pytest.raises(NotFoundError) as caught:
        plots.draw(name, run)
    assert str(caught.value) == (
        "Run 'first' has not finished an epoch. The first point of a curve comes after the first epoch. Continue with: "
        "nmt train --run first"
    )


# --- schedule


def rate(step: float, config: Config = SMALL) -> float:
    """Return the learning rate by equation 3 of the paper, scaled."""
    training = config.training
    rise, fall = step / training.warmup_steps**1.5, 1 / math.sqrt(step)
    return training.learning_rate_scale / math.sqrt(config.model.d_model) * min(rise, fall)


def schedule_of(run: Run) -> tuple[Axes, list[float], list[float]]:
    """Return the axes of the schedule, its steps and its rates."""
    (axes,) = plots.draw("schedule", run).axes
    curve = axes.get_lines()[0]
    return axes, np.asarray(curve.get_xdata()).tolist(), np.asarray(curve.get_ydata()).tolist()


def test_the_schedule_is_drawn_over_the_steps_that_the_run_will_take(trained: Run) -> None:
    axes, steps, rates = schedule_of(trained)
    assert steps == list(range(1, 201))  # ten steps an epoch, twenty epochs
    assert rates == pytest.approx([rate(step) for step in steps], rel=1e-12)
    assert max(rates) == rates[steps.index(50)]
    assert vertical_lines(axes) == [50, 200]
    assert marks(axes)[f"warm-up ends: step 50, rate {rate(50):.3g}"][0] == [50, 50]
    assert marks(axes)["the run's last epoch ends: step 200"][0] == [200, 200]


def test_the_schedule_shows_how_far_the_run_has_come(trained: Run) -> None:
    axes, _, _ = schedule_of(trained)
    assert marks(axes)[f"trained so far: 30 steps, rate {rate(30):.3g}"] == ([30], pytest.approx([rate(30)]))


def test_the_schedule_of_a_run_without_metrics_shows_the_rise_and_the_fall(run: Run) -> None:
    axes, steps, rates = schedule_of(run)
    assert steps == list(range(1, 101))
    assert rates == pytest.approx([rate(step) for step in steps], rel=1e-12)
    assert list(marks(axes)) == [f"warm-up ends: step 50, rate {rate(50):.3g}"]


def test_a_run_that_ends_within_the_warm_up_is_drawn_beyond_its_end(trained: Run) -> None:
    long = SMALL.model_copy(update={"training": SMALL.training.model_copy(update={"warmup_steps": 4000})})
    trained.write_config(long)
    axes, steps, rates = schedule_of(trained)
    assert (steps[0], steps[-1]) == (1, 8000)
    assert rates == pytest.approx([rate(step, long) for step in steps], rel=1e-12)
    assert vertical_lines(axes) == [4000, 200]
    assert f"warm-up ends: step 4,000, rate {rate(4000, long):.3g}" in marks(axes)


def test_a_schedule_that_ends_with_the_run_is_drawn_to_its_end_once_that_is_known(trained: Run) -> None:
    changes = {
        "learning_rate_scale": 1.0,
        "schedule": "linear",
        "peak_learning_rate": 2e-3,
        "final_learning_rate": 2e-4,
    }
    config = SMALL.model_copy(update={"training": SMALL.training.model_copy(update=changes)})
    trained.write_config(config)
    axes, steps, rates = schedule_of(trained)
    assert (steps[0], steps[-1], steps[49]) == (1, 200, 50)
    assert (rates[49], rates[-1]) == (pytest.approx(2e-3), pytest.approx(2e-4))
    np.testing.assert_allclose(np.diff(rates[49:]), -1.8e-3 / 150, rtol=1e-6)
    assert marks(axes)["trained so far: 30 steps, rate 0.0012"] == ([30], pytest.approx([2e-3 * 30 / 50]))
    trained.metrics_path.unlink()
    with pytest.raises(NotFoundError, match="Run 'first' has not finished an epoch"):
        plots.draw("schedule", trained)


def test_a_fall_of_given_length_is_drawn_to_its_end(run: Run) -> None:
    changes = {"learning_rate_scale": 1.0, "schedule": "cosine", "peak_learning_rate": 1e-3, "decay_steps": 250}
    run.write_config(SMALL.model_copy(update={"training": SMALL.training.model_copy(update=changes)}))
    _, steps, rates = schedule_of(run)
    assert (steps[-1], rates[-1]) == (300, 0)


# --- saving


@pytest.mark.parametrize("name", ["losses", "accuracy", "schedule", "speed", "positions"])
def test_every_figure_is_saved_as_a_picture_with_something_on_it(trained: Run, name: str) -> None:
    path = trained.plots_path / f"{name}.png"
    plots.save(plots.draw(name, trained), path)
    assert path.read_bytes().startswith(PNG)
    pixels = mpl.image.imread(path)
    assert pixels.shape[:2] == (600, 960)
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 10
    assert [entry.name for entry in trained.plots_path.iterdir()] == [f"{name}.png"]


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [("a.png", PNG, b""), ("a.PNG", PNG, b""), ("a.svg", b"<?xml", b"</svg>\n"), ("a.pdf", b"%PDF-", b"%%EOF\n")],
)
def test_the_suffix_names_the_format(trained: Run, name: str, start: bytes, end: bytes) -> None:
    path = Path("figures") / name
    plots.save(plots.draw("losses", trained), path)
    assert path.read_bytes().startswith(start)
    assert path.read_bytes().endswith(end)


@pytest.mark.parametrize("name", ["a.xyz", "a", "a.", ".png", "png"])
def test_an_unknown_suffix_is_refused_with_the_known_formats(trained: Run, name: str) -> None:
    with pytest.raises(NmtError) as caught:
        plots.save(plots.draw("losses", trained), Path(name))
    assert str(caught.value).startswith(
        f"The figure cannot be written to '{name}': the suffix must name its format. Known: "
    )
    for known in ("pdf", "png", "svg"):
        assert f" {known}" in str(caught.value)
    assert not Path(name).exists()


@pytest.mark.slow
def test_every_known_suffix_is_written_or_refused_in_words(trained: Run) -> None:
    figure = plots.draw("schedule", trained)
    with pytest.raises(NmtError) as caught:
        plots.save(figure, Path("a.xyz"))
    known = str(caught.value).removesuffix(".").split("Known: ")[1].split(", ")
    assert len(known) > 3
    for suffix in known:
        try:
            plots.save(figure, Path(f"a.{suffix}"))
        except NmtError:
            continue
        assert Path(f"a.{suffix}").stat().st_size > 0


def test_a_figure_that_cannot_be_written_leaves_the_old_one(trained: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path("losses.png")
    path.write_bytes(b"old")
    figure = plots.draw("losses", trained)

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figure, "savefig", refuse)
    with pytest.raises(NmtError, match=r"^losses\.png cannot be written: No space left on device\."):
        plots.save(figure, path)
    assert path.read_bytes() == b"old"


def test_without_a_screen_no_window_is_opened(trained: Run) -> None:
    with mpl.rc_context({"backend": "agg"}), pytest.raises(NmtError) as caught:
        plots.show(plots.draw("losses", trained))
    assert str(caught.value) == (
        "No window can be opened: --show needs a screen and a matplotlib backend for it. Open the file instead."
    )


def test_figures_are_drawn_and_saved_without_tensorflow(trained: Run) -> None:
    script = """
import sys
from pathlib import Path
from nmt.plotting import figures as plots
from nmt.storage.arrays import write_arrays
from nmt.runs.directory import find_run
for name in ("losses", "accuracy", "schedule", "speed", "positions"):
    plots.save(plots.draw(name, find_run(None)), Path(f"{name}.png"))
print(sorted({"tensorflow", "keras", "jax", "torch"} & set(sys.modules)))
"""
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=here, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout == "[]\n"
    assert Path("positions.png").read_bytes().startswith(PNG)
