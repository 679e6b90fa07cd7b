"""Matrices of attention show the weights as they are on one scale, with every token in the picture."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from appearance import problems
from matplotlib.figure import Figure

from nmt.plotting import style
from nmt.plotting.attention import ACROSS, LARGEST_CELLS, SMALLEST_FONT, draw_attention, top_of_scale
from nmt.plotting.style import LONGEST_LABEL

TITLE = "Attention of layer 1 of 1, mean of 4 heads", "run base · data words · 2026-01-02"
TOKENS = ["$", "$x_1$", "\\frac{1", "größer", "你好", "\U0001f4f7", "مرحبا", "\x07", "\u2581", "%", "<0xE4>"]


def words(count: int) -> list[str]:
    return [f"▁{'w' * (1 + 5 * n % 9)}{n}" for n in range(count)]


def draw(heads: int, target: list[str], source: list[str]) -> tuple[Figure, list[np.ndarray]]:
    """Return the figure of random weights, and the weights."""
    random = np.random.default_rng(7)
    weights = [random.dirichlet(np.full(len(source), 0.3), size=len(target)) for _ in range(heads)]
    panels = [(f"head {n}", part) for n, part in enumerate(weights, start=1)]
    figure = style.empty_figure()
    draw_attention(figure, panels, ("target", target), ("source", source), *TITLE)
    return figure, weights


@pytest.mark.parametrize("heads", [1, 4, 8])
def test_matrices_and_labels_are_those_of_the_weights_on_one_scale(heads: int) -> None:
    figure, weights = draw(heads, words(5), words(7))
    *matrices, bar = figure.axes
    for number, (axes, part) in enumerate(zip(matrices, weights, strict=True)):
        (image,) = axes.get_images()
        np.testing.assert_array_equal(np.asarray(image.get_array()), part)
        assert image.get_clim() == (0, top_of_scale(weights)) == bar.get_ylim()
        # A line or column of a sheet has its tokens once.
        assert [text.get_text() for text in axes.get_yticklabels()] == (words(5) if number % ACROSS == 0 else [])
        assert [text.get_text() for text in axes.get_xticklabels()] == (words(7) if number < ACROSS else [])
    figure.draw_without_rendering()
    top, bottom = (matrices[0].get_yticklabels()[row].get_window_extent().y0 for row in (0, -1))
    assert top > bottom, "the translation is read from top to bottom"
    assert tuple(text.get_text() for text in figure.texts) == TITLE


@pytest.mark.parametrize(
    ("largest", "top"), [(0.0, 0.1), (0.01, 0.1), (0.3, 0.3), (0.31, 0.4), (0.99, 1), (1.0, 1), (1.0000001, 1)]
)
def test_the_scale_ends_at_a_tenth(largest: float, top: float) -> None:
    assert top_of_scale([np.array([[0.0, largest], [np.nan, 0.0]])]) == pytest.approx(top)


@pytest.mark.parametrize(
    ("heads", "rows", "columns"), [(1, 1, 1), (1, 1, 30), (1, 30, 1), (1, 28, 25), (4, 4, 40), (2, 61, 38), (5, 8, 8)]
)
def test_labels_of_any_number_neither_overlap_nor_leave_the_picture(heads: int, rows: int, columns: int) -> None:
    figure, _ = draw(heads, words(rows), words(columns))
    assert not problems(figure)
    *matrices, _ = figure.axes
    labels = [text for axes in matrices for text in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    assert min(text.get_fontsize() for text in labels) >= SMALLEST_FONT
    for box in (axes.get_window_extent() for axes in matrices):
        assert box.width / columns == pytest.approx(box.height / rows), "cells are squares"


@pytest.mark.parametrize("heads", [1, 2])
def test_labels_of_hundreds_of_tokens_thin_out_and_the_picture_has_a_bound(heads: int) -> None:
    figure, _ = draw(heads, words(3), words(600))
    shown = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    step = words(600).index(shown[1])
    assert step > 1 and shown == words(600)[::step]
    assert max(figure.get_size_inches()) < LARGEST_CELLS + 5


@pytest.mark.parametrize(("heads", "suffix"), [(1, "png"), (2, "svg"), (1, "pdf")])
def test_any_character_can_be_in_a_label_of_bounded_length(heads: int, suffix: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure, _ = draw(heads, TOKENS, [*TOKENS, "w" * 5000])
        style.save(figure, style.output_figure(tmp_path / f"a.{suffix}"))
    assert (tmp_path / f"a.{suffix}").stat().st_size > 1000
    labels = figure.axes[0].get_xticklabels()
    assert not any(label.get_parse_math() for label in labels)
    *shown, long = [label.get_text() for label in labels]
    assert shown == [token.replace("\x07", "\\x07") for token in TOKENS]
    assert len(long) == LONGEST_LABEL and "…" in long
