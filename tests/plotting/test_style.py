"""The style holds for any text, any number of curves and any moment: nothing leaves the figure, nothing is alike."""

import os
from pathlib import Path

import numpy as np
import pytest
from appearance import problems
from matplotlib.figure import Figure

from nmt.config.schema import Config
from nmt.plotting.style import (
    add_axes,
    add_legend,
    add_title,
    curve,
    empty_figure,
    last_training,
    output_figure,
    run_title,
    save,
)
from nmt.runs.directory import create_run
from nmt.runs.metrics import AverageMetrics


@pytest.mark.parametrize(
    "text",
    ["short", "run " + "x" * 70, "$x_1$ and \\frac{1", "WW " * 1000, "il " * 400, "数据集 · データ", "a\tb", ""],
)
def test_a_title_of_any_length_stays_in_the_figure_above_the_axes(text: str) -> None:
    figure = empty_figure()
    add_title(figure, text, text)
    axes = add_axes(figure, "x", "y")
    assert [problem for problem in problems(figure) if "missing from font" not in problem] == []
    heading, details = (title.get_window_extent() for title in figure.texts)
    assert not text or heading.y0 >= details.y1 >= details.y0 >= axes.get_window_extent().y1
    assert not any(title.get_parse_math() for title in figure.texts)


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
def test_equal_figures_are_equal_files_and_text_stays_text(suffix: str, tmp_path: Path) -> None:
    def draw() -> Figure:
        figure = empty_figure()
        axes = add_axes(figure, "step", "loss")
        axes.plot(np.arange(5), **curve(0, 5), label="$x$")
        add_legend(figure, axes.get_lines(), ["$x$"])
        add_title(figure, "A heading", "run base")
        return figure

    paths = [tmp_path / f"{number}.{suffix}" for number in (1, 2)]
    for path in paths:
        save(draw(), output_figure(path))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert not any(date in paths[0].read_bytes() for date in (b"/CreationDate", b"<dc:date>"))
    assert suffix != "svg" or b"<text" in paths[0].read_bytes()
    assert b"/Type3" not in paths[0].read_bytes(), "a font, so that text of a PDF can be searched"
