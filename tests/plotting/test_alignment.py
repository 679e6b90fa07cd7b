"""An alignment matrix shows the weights as they are, with every token in the picture whatever its characters."""

import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from nmt.plotting import figures
from nmt.plotting.alignment import draw_alignment
from nmt.plotting.attention import LARGEST_SIDE, LONGEST_LABEL

TITLE = "Attention of layer 1 of 1, mean of 4 heads", "run base · data words · 2026-01-02"


def draw(source: list[str], target: list[str], seed: int = 0) -> tuple[Figure, np.ndarray]:
    """Return the figure of random weights, and the weights."""
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(source)), size=len(target))
    figure = figures.empty_figure()
    draw_alignment(figure, source, target, weights, *TITLE)
    return figure, weights


def words(count: int, longest: int = 12) -> list[str]:
    return [f"{'w' * (1 + 5 * n % longest)}{n}" for n in range(count)]


def test_the_matrix_is_that_of_the_weights() -> None:
    figure, weights = draw(["im", "thirsty", "</s>"], ["ich", "bin", "durstig", "</s>"])
    matrix, bar = figure.axes
    (image,) = matrix.get_images()
    np.testing.assert_array_equal(np.asarray(image.get_array()), weights)
    assert image.get_clim() == (0, pytest.approx(np.ceil(10 * weights.max()) / 10)) == bar.get_ylim()
    assert [label.get_text() for label in matrix.get_xticklabels()] == ["im", "thirsty", "</s>"]
    assert [label.get_text() for label in matrix.get_yticklabels()] == ["ich", "bin", "durstig", "</s>"]
    top, bottom = (matrix.get_yticklabels()[row].get_window_extent().y0 for row in (0, -1))
    assert top > bottom, "the translation is read from top to bottom"
    assert (matrix.get_title(), matrix.get_ylabel(), bar.get_ylabel()) == ("source", "target", "attention weight")
    assert tuple(text.get_text() for text in figure.texts) == TITLE


@pytest.mark.parametrize(
    ("columns", "rows", "longest"),
    [(1, 1, 1), (3, 4, 12), (1, 30, 5), (30, 1, 5), (25, 28, 20), (50, 50, 12), (4, 3, 39)],
)
def test_everything_is_in_the_picture_and_cells_are_squares(columns: int, rows: int, longest: int) -> None:
    figure, _ = draw(words(columns, longest), words(rows, longest))
    matrix, bar = figure.axes
    title, details = figure.texts
    labels = [*matrix.get_xticklabels(), *matrix.get_yticklabels(), matrix.title, matrix.yaxis.label]
    around = matrix.get_tightbbox()
    assert around is not None
    for part in [*labels, *bar.get_yticklabels(), bar.yaxis.label, title, details]:
        box = part.get_window_extent()
        assert box.x0 >= 0 and box.y0 >= 0, part
        assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, part
    assert title.get_window_extent().y0 > details.get_window_extent().y1
    assert details.get_window_extent().y0 > around.y1, "the title stands above the labels"
    inside = matrix.get_window_extent()
    assert inside.width / columns == pytest.approx(inside.height / rows)
    assert inside.height / rows >= 1.2 * matrix.get_yticklabels()[0].get_fontsize() * figure.dpi / 72
    assert matrix.get_yticklabels()[0].get_fontsize() >= 9


def test_the_picture_of_a_very_long_sentence_has_a_bound() -> None:
    figure, _ = draw(words(600), words(500))
    assert max(figure.get_size_inches()) < LARGEST_SIDE + 5


@pytest.mark.parametrize(
    "token", ["$", "$x_1$", "\\frac{1", "größer", "你好", "\U0001f4f7", "مرحبا", "\x07", "\u2581", "%", "<0xE4>"]
)
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_any_character_can_be_in_a_label(token: str, suffix: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure, _ = draw([token, "a"], ["b", token])
        figures.save(figure, tmp_path / f"a.{suffix}")
    assert (tmp_path / f"a.{suffix}").stat().st_size > 1000
    label = figure.axes[0].get_xticklabels()[0]
    assert not label.get_parse_math()
    assert label.get_text() == ("\\x07" if token == "\x07" else token)


def test_a_token_of_great_length_is_cut_in_its_label() -> None:
    figure, _ = draw(["w" * 5000], ["v"])
    assert figure.axes[0].get_xticklabels()[0].get_text() == "w" * (LONGEST_LABEL - 1) + "…"


def test_the_saved_picture_has_the_size_of_the_figure(tmp_path: Path) -> None:
    figure, _ = draw(words(5), words(6))
    figures.save(figure, tmp_path / "alignment.png")
    height, width = mpl.image.imread(tmp_path / "alignment.png").shape[:2]
    assert (width, height) == pytest.approx(tuple(figure.get_size_inches() * figure.dpi), abs=1)
