"""Figures show the numbers of the metrics file, are saved whole in the format of the suffix, and need no TensorFlow."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from appearance import problems
from conftest import ROOT
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nmt.config.schema import Config
from nmt.errors import NmtError, NotFoundError
from nmt.plotting import curves
from nmt.plotting import style as plots
from nmt.plotting.comparison import draw_comparison, steps_to
from nmt.plotting.sinusoids import draw_sinusoids
from nmt.plotting.style import empty_figure
from nmt.runs.directory import Run, create_run
from nmt.runs.metrics import AverageMetrics, EpochMetrics, StepMetrics, StepValidation

pytestmark = pytest.mark.usefixtures("folder")
PNG = b"\x89PNG\r\n\x1a\n"
MODEL = {"d_model": 64, "heads": 4}
SCHEDULE = {"epochs": 20, "warmup_steps": 20, "learning_rate_scale": 2.0}
Points = dict[str, tuple[list[float], list[float]]]


def make_run(name: str, epochs: int = 3, *, timed: bool = True) -> Run:
    """Return a run of four steps an epoch, with a record every two steps: 10 tokens and 3 seconds a step.

    The second epoch has the best accuracy.
    """
    run = create_run(name, Config.model_validate({"model": MODEL, "training": SCHEDULE}), [])
    manifest = {"settings": {"dataset": "pairs"}, "prepared_at": "2026-01-31T10:11:12+00:00"}
    run.dataset_path.write_text(json.dumps(manifest))
    for epoch in range(1, epochs + 1):
        for step in (2, 4):
            values = {"epoch": epoch, "step": 4 * epoch - 4 + step, "loss": 9 - epoch - step / 8}
            values |= {"accuracy": 0.1 * epoch, "learning_rate": 0.001 * epoch}
            times = {"target_tokens": 10 * step, "seconds": 3.0 * step} if timed else {}
            run.append_metrics(StepMetrics.model_validate(values | times))
        values = {"epoch": epoch, "step": 4 * epoch, "target_tokens": 40, "seconds": 12.0}
        values |= {"train_loss": 8.0 - epoch, "train_accuracy": 0.5**epoch}
        values |= {"validation_loss": 7.0 - epoch, "validation_accuracy": 0.5 - abs(epoch - 2) / 1024}
        run.append_metrics(EpochMetrics.model_validate(values))
    return run


def drawing_of(name: str, run: Run) -> Figure:
    figure = empty_figure()
    getattr(curves, f"draw_{name}")(figure, run)
    return figure


def drawn(axes: Axes) -> Points:
    """Return x and y of each labelled line, by label."""
    return {
        str(line.get_label()): (np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist())
        for line in axes.get_lines()
        if not str(line.get_label()).startswith("_")
    }


def marks(axes: Axes) -> Points:
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


# --- curves


@pytest.mark.parametrize(
    ("name", "training", "validation", "best", "average"),
    [
        ("losses", [7, 6, 5], [6, 5, 4], 5, 1.5),
        ("accuracy", [0.5, 0.25, 0.125], [0.5 - 1 / 1024, 0.5, 0.5 - 1 / 1024], 0.5, 0.7),
    ],
)
def test_curves_are_those_of_the_epochs_and_the_best_and_the_average_are_marked(
    name: str, training: list[float], validation: list[float], best: float, average: float
) -> None:
    run = make_run("base")
    run.append_metrics(AverageMetrics(epochs=[2, 3], step=3, validation_loss=1.5, validation_accuracy=0.7))
    run.weights_path("average").parent.mkdir(exist_ok=True)
    run.weights_path("average").touch()
    (axes,) = drawing_of(name, run).axes
    assert marks(axes) == {
        "validation": ([1, 2, 3], validation),
        "training (with dropout)": ([1, 2, 3], training),
        "best epoch: 2 (accuracy 0.500, loss 5.000)": ([2], [best]),
        "average of epochs 2-3 (accuracy 0.700, loss 1.500)": ([3], [average]),
    }
    assert vertical_lines(axes) == [2]


@pytest.mark.parametrize(("name", "epochs"), [("a", 1), ("n" * 100, 300)])
def test_a_run_of_any_length_and_name_is_well_drawn(name: str, epochs: int) -> None:
    assert problems(drawing_of("losses", make_run(name, epochs))) == []


def test_bleu_is_drawn_against_minutes_of_training() -> None:
    run = make_run("base", 2)
    for epoch in (3, 4):
        values = run.epochs()[0].model_dump() | {"epoch": epoch, "seconds": 48.0, "validation_bleu": 5.0 * epoch}
        run.append_metrics(EpochMetrics.model_validate(values | {"validation_chrf": 40.0}))
    (axes,) = drawing_of("bleu", run).axes
    minutes = pytest.approx([1.2, 2.0])
    curves_of = {name: drawn(axes)[name] for name in ("BLEU", "chrF")}
    assert curves_of == {"BLEU": (minutes, [15.0, 20.0]), "chrF": (minutes, [40.0, 40.0])}
    assert drawn(axes)["best BLEU: 20.0, epoch 4"] == ([2.0], [20.0])


# --- schedule


def rate(step: float, warmup: float = 20) -> float:
    """Return the learning rate of ``SCHEDULE`` by equation 3 of the paper, times its scale of 2."""
    return 2 / math.sqrt(64) * min(step / warmup**1.5, 1 / math.sqrt(step))


LINEAR = {"learning_rate_scale": 1.0, "schedule": "linear", "peak_learning_rate": 2e-3, "final_learning_rate": 2e-4}
COSINE = {"learning_rate_scale": 1.0, "schedule": "cosine", "peak_learning_rate": 1e-3}


def schedule_of(run: Run, changes: dict[str, Any]) -> tuple[Axes, np.ndarray, np.ndarray]:
    """Return the axes of the schedule, its steps and its rates."""
    run.write_config(Config.model_validate({"model": MODEL, "training": SCHEDULE | changes}))
    (axes,) = drawing_of("schedule", run).axes
    return axes, *np.array(axes.get_lines()[0].get_data())


@pytest.mark.parametrize(
    ("changes", "last", "expected"),
    [
        ({}, 80, rate),  # four steps an epoch, twenty epochs
        ({"warmup_steps": 4000}, 8000, lambda step: rate(step, 4000)),  # the run ends within it
        (LINEAR, 80, lambda step: min(2e-3 * step / 20, 2e-3 - 1.8e-3 / 60 * (step - 20))),
        (COSINE, 80, lambda step: 1e-3 * min(step / 20, (1 + math.cos(math.pi * (step - 20) / 60)) / 2)),
    ],
)
def test_the_schedule_is_drawn_over_the_steps_that_the_run_will_take(
    changes: dict[str, Any], last: int, expected: Callable[[float], float]
) -> None:
    axes, steps, rates = schedule_of(make_run("base"), changes)
    assert (steps[0], steps[-1]) == (1, last)
    np.testing.assert_allclose(rates, [expected(step) for step in steps], rtol=1e-6, atol=1e-12)
    assert vertical_lines(axes) == [changes.get("warmup_steps", 20), 80]
    [so_far] = [place for name, place in marks(axes).items() if name.startswith("trained so far: 12 steps")]
    assert so_far == ([12], pytest.approx([expected(12)]))


def test_the_schedule_of_a_run_without_metrics_shows_the_rise_and_the_fall() -> None:
    axes, steps, rates = schedule_of(make_run("base", 0), {})
    assert steps.tolist() == list(range(1, 41))
    np.testing.assert_allclose(rates, [rate(step) for step in steps])
    assert vertical_lines(axes) == [20]
    with pytest.raises(NotFoundError):
        schedule_of(make_run("linear", 0), LINEAR)  # its end is not known


# --- several runs


def compared(runs: list[Run], metric: str = "loss", by: str = "epochs") -> Axes:
    figure = empty_figure()
    draw_comparison(figure, runs, metric, by)
    (axes,) = figure.axes
    return axes


@pytest.mark.parametrize(
    ("by", "places"), [("epochs", [1, 2]), ("steps", [4, 8]), ("tokens", [40, 80]), ("minutes", [0.2, 0.4])]
)
@pytest.mark.parametrize("timed", [True, False])
def test_a_run_has_its_values_at_their_places_on_every_axis(by: str, places: list[float], timed: bool) -> None:
    axes = compared([make_run("base", 2, timed=timed), make_run("wide", 1)], by=by)
    assert drawn(axes) == {"base: 5": (places, [6, 5]), "wide: 6": (places[:1], [6])}


def test_training_has_a_point_for_each_record_of_steps_and_by_epochs_one_for_each_epoch() -> None:
    run, untimed = make_run("base", 2), make_run("untimed", 2, timed=False)
    assert drawn(compared([run], "train-loss", "tokens"))["base: 6.5"] == ([20, 40, 60, 80], [7.75, 7.5, 6.75, 6.5])
    assert drawn(compared([run], "train-loss", "epochs"))["base: 6"] == ([1, 2], [7, 6])
    assert drawn(compared([run], "learning-rate", "epochs"))["base"] == ([0.5, 1, 1.5, 2], [0.001, 0.001, 0.002, 0.002])
    places, _ = drawn(compared([untimed], "train-accuracy", "minutes"))["untimed: 0.2"]
    assert places == pytest.approx([0.1, 0.2, 0.3, 0.4]), "between the ends of epochs, whose times are known"


def test_an_unfinished_epoch_is_placed_by_what_the_records_tell() -> None:
    for timed, expected in ((True, 0.5), (False, np.nan)):
        run = make_run(f"timed-{timed}", 2, timed=timed)
        times = {"target_tokens": 20, "seconds": 6.0} if timed else {}
        values = {"epoch": 3, "step": 10, "loss": 1.0, "accuracy": 0.1, "learning_rate": 0.1} | times
        run.append_metrics(StepMetrics.model_validate(values))
        run.append_metrics(StepValidation(epoch=3, step=10, validation_loss=1.0, validation_accuracy=0.5))
        np.testing.assert_allclose(steps_to("minutes", run.metrics())([10]), expected)
        assert drawn(compared([run]))[f"timed-{timed}: 1"][0] == [1, 2, 2.5], "it is as long as the epoch before"
    assert drawn(compared([run], by="minutes"))["timed-False: 5"] == ([0.2, 0.4], [6, 5]), "its time is unknown"


def test_different_datasets_are_named_and_those_of_the_same_name_told_apart() -> None:
    base, same = make_run("base"), make_run("same")
    assert list(drawn(compared([base, same]))) == ["base: 4", "same: 4"]
    for manifest, name in (
        (
            {"settings": {"dataset": "pairs"}, "prepared_at": "2026-02-01T08:09:10+00:00"},
            "pairs, prepared 2026-02-01 08:09",
        ),
        ({"settings": {"dataset": "news"}}, "news"),
    ):
        same.dataset_path.write_text(json.dumps(manifest))
        assert list(drawn(compared([base, same]))) == [
            "base (pairs, prepared 2026-01-31 10:11): 4",
            f"same ({name}): 4",
        ]


@pytest.mark.parametrize("count", [1, 20])
def test_a_comparison_of_any_number_of_runs_is_well_drawn(count: int) -> None:
    runs = [make_run(f"run-{number:02}", 2 + (number == 5)) for number in range(count)]
    axes = compared(runs)
    assert marks(axes) == drawn(axes), "marker and line tell the curves apart"
    assert problems(axes.figure) == []  # type: ignore[arg-type]


# --- speed


@pytest.mark.parametrize(("timed", "steps"), [(True, [2, 4, 6, 8]), (False, [4, 8])])
def test_the_speed_is_that_between_records_of_steps_or_else_of_epochs(timed: bool, steps: list[int]) -> None:
    figure = drawing_of("speed", make_run("base", 2, timed=timed))
    for axes, value in zip(figure.axes, (10 / 3, 3000), strict=True):
        places, values = axes.get_lines()[0].get_data()
        np.testing.assert_array_equal(places, steps)
        np.testing.assert_allclose(np.asarray(values, float), value)
    assert problems(figure) == []


def test_a_slow_step_is_marked_at_the_edge_and_its_time_is_told() -> None:
    run = make_run("base", 4)
    run.append_metrics(StepMetrics(epoch=5, step=18, loss=1, accuracy=0, learning_rate=1, target_tokens=20, seconds=60))
    figure = drawing_of("speed", run)
    assert "beyond the axis up to 30,000" in figure.axes[1].get_title(loc="left")
    assert problems(figure) == []


# --- saving


def test_every_known_suffix_is_written_in_its_format_or_refused_in_words(tmp_path: Path) -> None:
    figure = empty_figure()
    for suffix, start in {"png": PNG, "PNG": PNG, "svg": b"<?xml", "pdf": b"%PDF-"}.items():
        path = tmp_path / "figures" / f"a.{suffix}"
        plots.save(figure, plots.output_figure(path))
        assert path.read_bytes().startswith(start)
    for suffix in ("xyz", "", "pgf"):
        with pytest.raises(NmtError):
            plots.output_figure(tmp_path / f"a.{suffix}")


def test_a_figure_larger_than_can_be_read_is_refused(tmp_path: Path) -> None:
    figure = empty_figure()
    draw_sinusoids(figure, 8, 100, [*range(50)])
    with pytest.raises(NmtError, match="would be 8 x 69 inches"):
        plots.save(figure, plots.output_figure(tmp_path / "a.png"))
    assert not list(tmp_path.iterdir())


def test_figures_appear_at_once_without_tensorflow_and_those_of_the_lesson_without_the_configuration() -> None:
    make_run("first")
    script = """
import sys
from nmt.cli import app
def plot(*words):
    sys.argv = ["nmt", "plot", *words]
    try: app.main()
    except SystemExit as ended: assert not ended.code
def loaded(*names): print([name for name in names if name in sys.modules])
for words in (["position-matrix"], ["masks", "a b"], ["embeddings", "a b", "c"], ["position-table"]): plot(*words)
loaded("tensorflow", "keras", "nmt.config.schema", "sentencepiece")
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
