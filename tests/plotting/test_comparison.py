"""A comparison draws the numbers of several runs at their steps, epochs, tokens or minutes, and names their data."""

import json
from pathlib import Path

import numpy as np
import pytest
from appearance import problems
from matplotlib.axes import Axes

from nmt.config.schema import Config
from nmt.plotting.comparison import draw_comparison, steps_to
from nmt.plotting.figures import empty_figure
from nmt.plotting.speed import draw_speed, intervals
from nmt.runs.directory import Run, create_run
from nmt.runs.metrics import EpochMetrics, StepMetrics, StepValidation


def make_run(name: str, epochs: int = 3, *, timed: bool = True, files: dict[str, str] | None = None) -> Run:
    """Return a run of four steps an epoch, with a record every two steps: 10 tokens and 3 seconds a step."""
    run = create_run(name, Config.model_validate({"training": {"warmup_steps": 4}}), [])
    manifest = {"settings": {"dataset": "pairs"}, "prepared_at": "2026-01-31T10:11:12+00:00", "files": files or {}}
    run.dataset_path.write_text(json.dumps(manifest))
    for epoch in range(1, epochs + 1):
        for step in (2, 4):
            values = {"epoch": epoch, "step": 4 * epoch - 4 + step, "loss": 9 - epoch - step / 8}
            values |= {"accuracy": 0.1 * epoch, "learning_rate": 0.001 * epoch}
            times = {"target_tokens": 10 * step, "seconds": 3.0 * step} if timed else {}
            run.append_metrics(StepMetrics.model_validate(values | times))
        values = {"train_loss": 8.0 - epoch, "train_accuracy": 0.1 * epoch, "target_tokens": 40, "seconds": 12.0}
        values |= {"epoch": epoch, "step": 4 * epoch}
        values |= {"validation_loss": 7.0 - epoch, "validation_accuracy": 0.2 * epoch}
        run.append_metrics(EpochMetrics.model_validate(values))
    return run


@pytest.fixture(autouse=True)
def _in_an_empty_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def compared(runs: list[Run], metric: str = "loss", by: str = "epochs") -> Axes:
    figure = empty_figure()
    draw_comparison(figure, runs, metric, by)
    (axes,) = figure.axes
    return axes


def drawn(axes: Axes) -> dict[str, tuple[list[float], list[float]]]:
    return {
        str(line.get_label()): (np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist())
        for line in axes.get_lines()
    }


@pytest.mark.parametrize(
    ("by", "places"), [("epochs", [1, 2]), ("steps", [4, 8]), ("tokens", [40, 80]), ("minutes", [0.2, 0.4])]
)
@pytest.mark.parametrize("timed", [True, False])
def test_a_run_has_its_values_at_their_places_on_every_axis(by: str, places: list[float], timed: bool) -> None:
    axes = compared([make_run("base", 2, timed=timed), make_run("wide", 1)], by=by)
    assert drawn(axes) == {"base: 5": (places, [6, 5]), "wide: 6": (places[:1], [6])}


def test_training_has_a_point_for_each_record_of_steps_and_by_epochs_one_for_each_epoch() -> None:
    run = make_run("base", 2)
    assert drawn(compared([run], "train-loss", "tokens"))["base: 6.5"] == ([20, 40, 60, 80], [7.75, 7.5, 6.75, 6.5])
    assert drawn(compared([run], "train-loss", "epochs"))["base: 6"] == ([1, 2], [7, 6])
    assert drawn(compared([run], "learning-rate", "epochs"))["base"] == ([0.5, 1, 1.5, 2], [0.001, 0.001, 0.002, 0.002])


def test_records_without_times_are_placed_between_epochs() -> None:
    run = make_run("base", 2, timed=False)
    places, _ = drawn(compared([run], "train-accuracy", "minutes"))["base: 0.2"]
    assert places == pytest.approx([0.1, 0.2, 0.3, 0.4])


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
    other = make_run("other", files={"train.source.tokens.npy": "a" * 64})
    prepared = "(pairs, prepared 2026-01-31 10:11)"
    assert list(drawn(compared([base, other]))) == [f"base {prepared}: 4", f"other {prepared}: 4"]
    other.dataset_path.write_text(json.dumps({"settings": {"dataset": "news"}, "files": {}, "prepared_at": ""}))
    assert list(drawn(compared([base, other]))) == ["base (pairs): 4", "other (news): 4"]


def test_names_stand_at_the_ends_of_curves_if_all_end_there_else_beside_or_below() -> None:
    runs = [make_run(f"run-{number:02}", 2 + (number == 5)) for number in range(20)]
    at_ends, beside, below = compared(runs[:3]), compared(runs[3:9]), compared(runs)
    assert [text.get_text() for text in at_ends.texts] == ["run-00: 5", "run-01: 5", "run-02: 5"]
    legend = beside.get_legend()
    assert legend is not None and [text.get_text() for text in legend.get_texts()][-1] == "run-05: 4", "it ends lowest"
    (outside,) = below.figure.legends  # type: ignore[union-attr]
    assert len(outside.get_texts()) == 20
    for axes in (at_ends, beside, below):
        assert problems(axes.figure) == []  # type: ignore[arg-type]


# --- speed


def test_the_speed_is_that_of_the_steps_between_two_records() -> None:
    found = intervals(make_run("base", 2).metrics())
    assert [(part.first, part.last) for part in found] == [(0, 2), (2, 4), (4, 6), (6, 8)]
    assert {(part.tokens_per_second, part.step_seconds) for part in found} == {(10 / 3, 3.0)}


@pytest.mark.parametrize(("timed", "steps"), [(True, [2, 4, 6, 8]), (False, [4, 8])])
def test_without_times_of_steps_the_speed_is_that_of_epochs(timed: bool, steps: list[int]) -> None:
    figure = empty_figure()
    draw_speed(figure, make_run("base", 2, timed=timed))
    for axes, value in zip(figure.axes, (10 / 3, 3000), strict=True):
        places, values = axes.get_lines()[0].get_data()
        np.testing.assert_array_equal(places, steps)
        np.testing.assert_allclose(np.asarray(values, float), value)
    assert problems(figure) == []


def test_a_slow_step_is_marked_at_the_edge_and_its_time_is_told() -> None:
    run = make_run("base", 4)
    run.append_metrics(StepMetrics(epoch=5, step=18, loss=1, accuracy=0, learning_rate=1, target_tokens=20, seconds=60))
    figure = empty_figure()
    draw_speed(figure, run)
    _, below = figure.axes
    assert "beyond the axis up to 30,000" in below.get_title(loc="left")
    assert problems(figure) == []
