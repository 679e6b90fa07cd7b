"""A sheet of heads shows all weights on one scale, and every label has a place of its own."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from appearance import problems
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nmt.plotting import figures
from nmt.plotting.attention import (
    COLORS,
    LARGEST_SIDE,
    SMALLEST_FONT,
    Panel,
    Tokens,
    above_diagonal_blank,
    best_across,
    draw_sheet,
    top_of_scale,
)

HEADING, DETAILS = "Cross-attention, layer 1 of 1", "run base · data words · 2026-01-02"


def words(count: int) -> list[str]:
    return [f"▁{'w' * (1 + 5 * n % 9)}{n}" for n in range(count)]


def draw(heads: int, rows: int, columns: int, across: int | None = None) -> tuple[Figure, list[np.ndarray]]:
    """Return the sheet of random weights, and the weights."""
    random = np.random.default_rng(7)
    weights = [random.dirichlet(np.full(columns, 0.3), size=rows) for _ in range(heads)]
    panels = [Panel(f"head {n}", part) for n, part in enumerate(weights, start=1)]
    figure = figures.empty_figure()
    draw_sheet(
        figure, panels, Tokens("target", words(rows)), Tokens("source", words(columns)), HEADING, DETAILS, across=across
    )
    return figure, weights


def panels_of(figure: Figure) -> list[Axes]:
    return figure.axes[:-1]


def test_all_matrices_have_the_scale_of_the_colour_bar() -> None:
    figure, weights = draw(4, 6, 9)
    top = top_of_scale(weights)
    assert top == pytest.approx(np.ceil(10 * np.max(weights)) / 10)
    for axes, part in zip(panels_of(figure), weights, strict=True):
        (image,) = axes.get_images()
        np.testing.assert_array_equal(np.asarray(image.get_array()), part)
        assert image.get_clim() == (0, top)
    bar = figure.axes[-1]
    assert bar.get_ylim() == (0, top)
    assert float(bar.get_yticklabels()[-1].get_text()) == pytest.approx(top), "the bar names the largest weight"


@pytest.mark.parametrize(
    ("largest", "top"), [(0.0, 0.1), (0.01, 0.1), (0.3, 0.3), (0.31, 0.4), (0.99, 1), (1.0, 1), (1.0000001, 1)]
)
def test_the_scale_ends_at_a_tenth(largest: float, top: float) -> None:
    assert top_of_scale([np.array([[0.0, largest], [np.nan, 0.0]])]) == pytest.approx(top)


def test_colours_darken_steadily_and_blank_is_lighter_than_zero() -> None:
    grey = COLORS(np.linspace(0, 1, 256))[:, :3] @ [0.2126, 0.7152, 0.0722]
    assert np.all(np.diff(grey) < 0)
    assert grey[0] < 0.96 and grey[-1] < 0.15


def test_cells_above_the_diagonal_are_blank() -> None:
    weights = above_diagonal_blank(np.full([2, 3, 3], 0.5))
    np.testing.assert_array_equal(np.isnan(weights), [np.triu(np.ones([3, 3]), 1)] * 2)


@pytest.mark.parametrize(("heads", "rows", "columns"), [(4, 3, 3), (4, 4, 40), (3, 40, 38), (2, 68, 61), (5, 8, 8)])
def test_labels_neither_overlap_nor_leave_the_picture(heads: int, rows: int, columns: int) -> None:
    figure, _ = draw(heads, rows, columns)
    assert not problems(figure)
    *matrices, _ = figure.axes
    labels = [text for axes in matrices for text in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    assert min(text.get_fontsize() for text in labels) >= SMALLEST_FONT
    inside = [axes.get_window_extent() for axes in matrices]
    for box in inside:
        assert box.width / columns == pytest.approx(box.height / rows)
    captions = [axes.xaxis.label.get_window_extent() for axes in matrices]
    assert not any(caption.overlaps(box) for caption in captions for box in inside)


def test_each_line_and_column_of_the_sheet_has_its_tokens_once() -> None:
    figure, _ = draw(8, 5, 7)
    across = best_across(8, (5, 7))
    for number, axes in enumerate(panels_of(figure)):
        assert [text.get_text() for text in axes.get_yticklabels()] == (words(5) if number % across == 0 else [])
        assert [text.get_text() for text in axes.get_xticklabels()] == (words(7) if number < across else [])


def test_labels_of_hundreds_of_tokens_thin_out() -> None:
    figure, _ = draw(2, 10, 600)
    shown = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    step = words(600).index(shown[1])
    assert step > 1 and shown == words(600)[::step]
    assert max(figure.get_size_inches()) < LARGEST_SIDE + 5


@pytest.mark.parametrize("count", range(1, 17))
@pytest.mark.parametrize("shape", [(10, 10), (5, 40), (40, 5)])
def test_a_sheet_has_few_empty_places(count: int, shape: tuple[int, int]) -> None:
    across = best_across(count, shape)
    assert 1 <= across <= count
    assert -count % across <= 2
    if count in (4, 8, 12, 16):
        assert count % across == 0


def test_a_sheet_can_be_saved_with_any_token(tmp_path: Path) -> None:
    tokens = Tokens("source", ["$x_1$", "你好", "\x07", "<0xE4>"])
    figure = figures.empty_figure()
    draw_sheet(figure, [Panel("head 1", np.eye(4)), Panel("head 2", np.eye(4))], tokens, tokens, HEADING, DETAILS)
    figures.save(figure, tmp_path / "a.png")
    height, width = mpl.image.imread(tmp_path / "a.png").shape[:2]
    assert (width, height) == pytest.approx(tuple(figure.get_size_inches() * figure.dpi), abs=1)
