"""The style holds for any text, any number of curves and any moment: nothing leaves the figure, nothing is alike."""

import os
from pathlib import Path

import numpy as np
import pytest
from appearance import problems
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from nmt.config.schema import Config
from nmt.plotting.figures import empty_figure, save
from nmt.plotting.style import (
    COLORS,
    add_axes,
    add_title,
    curve,
    last_training,
    luminance,
    name_curves,
    readable,
    run_title,
)
from nmt.runs.directory import create_run
from nmt.runs.metrics import AverageMetrics


def test_text_in_the_colour_of_a_curve_is_readable_on_white() -> None:
    assert luminance((0, 0, 0)) == 0 and luminance((1, 1, 1)) == pytest.approx(1)
    for color in (*COLORS, "#ffffff", "#f0e442"):
        assert 1.05 / (luminance(to_rgb(readable(color))) + 0.05) >= 4.45


@pytest.mark.parametrize(
    "text",
    ["short", "run " + "x" * 100, "$x_1$ and \\frac{1", "W" * 3000, "il " * 400, "数据集 · データ", "a\tb", ""],
)
def test_a_title_of_any_length_stays_in_the_figure_above_the_axes(text: str) -> None:
    figure = empty_figure()
    add_title(figure, text, text)
    axes = add_axes(figure, "x", "y")
    assert [problem for problem in problems(figure) if "missing from font" not in problem] == []
    heading, details = (title.get_window_extent() for title in figure.texts)
    assert not text or heading.y0 >= details.y1 >= details.y0 >= axes.get_window_extent().y1
    assert all(title.get_text().count("\n") <= 1 and not title.get_parse_math() for title in figure.texts)


@pytest.mark.parametrize("ends", [[1.0], [1, 1, 1, 1], [0, 0.01, 0.02, 5, 5.01, 10], [0, 0, 0, 10], [0, 10, 10, 10]])
def test_names_at_the_ends_of_curves_move_apart_but_no_further(ends: list[float]) -> None:
    figure = empty_figure()
    axes = add_axes(figure, "x", "y")
    for number, end in enumerate(ends):
        axes.plot([0, 1, 2, 3], [number, 2, 3, end], label=f"$run-{number}$", **curve(number))
    name_curves(axes, axes.get_lines())
    assert problems(figure) == []
    inside = axes.get_window_extent()
    for text, end in zip(axes.texts, ends, strict=True):
        assert not text.get_parse_math()
        box = text.get_window_extent()
        assert inside.y0 - 1 <= box.y0 and (box.y0 + box.y1) / 2 <= inside.y1 + 1
        alone = all(abs(end - other) > 2 for other in ends if other is not end) and ends.count(end) == 1
        at_end = axes.transData.transform((3, end))[1]
        assert not alone or abs((box.y0 + box.y1) / 2 - at_end) < 12


def test_names_at_the_ends_of_curves_are_in_the_order_of_the_ends() -> None:
    figure = empty_figure()
    axes = add_axes(figure, "x", "y")
    axes.plot([0, 1], [0, 1.01], label="upper,\nin two lines", **curve(0))
    axes.plot([0, 1], [5, 1], label="lower", **curve(1))
    name_curves(axes, axes.get_lines())
    upper, lower = (text.get_window_extent() for text in axes.texts)
    assert upper.y0 > lower.y1


def test_a_title_says_run_data_and_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = create_run("base", Config.model_validate({"data": {"dataset": "pairs"}}), [])
    assert run_title(run) == f"run base · data pairs · {last_training(run)}"
    run.append_metrics(AverageMetrics(epochs=[1], step=1))
    noon = 1_769_860_800  # 2026-01-31 12:00 UTC
    os.utime(run.metrics_path, (noon, noon))
    run.dataset_path.write_text('{"settings": {"dataset": "news"}}')
    assert run_title(run) == "run base · data news · 2026-01-31", "the dataset trained on, not the one configured"


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_equal_figures_are_equal_files(suffix: str, tmp_path: Path) -> None:
    def draw() -> Figure:
        figure = empty_figure(2)
        add_title(figure, "A heading", "run base")
        axes = add_axes(figure, "step", "loss")
        axes.plot(np.arange(5), **curve(0, 5), label="$x$")
        name_curves(axes, axes.get_lines())
        return figure

    paths = [tmp_path / f"{number}.{suffix}" for number in (1, 2)]
    for path in paths:
        save(draw(), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
