"""The figure of scores by source length shows every number, and tells systems apart without colour."""

import re
from pathlib import Path

import numpy as np
import pytest
from appearance import problems
from matplotlib.figure import Figure

from nmt.errors import NmtError
from nmt.plotting.by_length import draw_by_length
from nmt.plotting.figures import check_format, empty_figure, save
from nmt.plotting.style import DIFFERENT_CURVES

LENGTHS, SENTENCES = ["1-2", "3", "4-5"], [245, 1485, 270]


def drawn(systems: list[str]) -> tuple[Figure, dict[str, dict[str, list[float]]]]:
    """Return a figure, and the scores that it shows by metric and system."""
    scores = {
        metric: {system: [top - number, top - 2.5 * number, 1.0] for number, system in enumerate(systems)}
        for metric, top in (("BLEU", 40.0), ("chrF2", 70.0))
    }
    figure = empty_figure()
    draw_by_length(figure, "test split of pairs · 2,000 sentences · 2026-01-31", LENGTHS, SENTENCES, scores)
    return figure, scores


def test_each_panel_has_the_scores_of_a_metric_over_the_buckets() -> None:
    figure, scores = drawn(["base", "wide"])
    title = ["Scores by source length", "test split of pairs · 2,000 sentences · 2026-01-31"]
    assert [text.get_text() for text in figure.texts] == title
    for axes, (metric, by_system) in zip(figure.axes, scores.items(), strict=True):
        assert axes.get_title(loc="left") == metric
        assert "source length in words" in axes.get_xlabel()
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1-2\n(245)", "3\n(1,485)", "4-5\n(270)"]
        assert [np.asarray(line.get_ydata()).tolist() for line in axes.get_lines()] == list(by_system.values())


def test_up_to_36_systems_differ_by_marker_and_line_alone() -> None:
    figure, _ = drawn([f"run-{number}" for number in range(DIFFERENT_CURVES)])
    for axes in figure.axes:
        assert len({(line.get_marker(), line.get_linestyle()) for line in axes.get_lines()}) == DIFFERENT_CURVES == 36
    assert problems(figure) == []


def test_the_legend_has_every_name_as_it_is(tmp_path: Path) -> None:
    names = ["base:best", "_out.de", "$x$/\\frac/$y$", "a/" * 30 + "long.de"]
    figure, _ = drawn(names)
    save(figure, tmp_path / "a.svg")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == names
    assert problems(figure) == []
    box = figure.legends[0].get_window_extent()
    assert all(axes.get_tightbbox().y0 >= box.y1 for axes in figure.axes)  # type: ignore[union-attr]


def test_a_name_wider_than_the_figure_is_cut_in_its_middle() -> None:
    figure, _ = drawn(["W" * 200 + ".de", "b.de"])
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert re.fullmatch("W{20,}…W{20,}.de", shown[0])
    assert shown[1] == "b.de"
    assert problems(figure) == []


def test_a_suffix_is_checked_before_there_is_a_figure() -> None:
    check_format(Path("a.SVG"))
    with pytest.raises(NmtError, match=r"cannot be written to 'a\.xyz'"):
        check_format(Path("a.xyz"))
