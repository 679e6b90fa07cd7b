"""The checks of a figure's look find what they are for."""

import numpy as np
import pytest
from appearance import corners, overlap, problems

from nmt.plotting.figures import empty_figure


def test_problems_are_found_and_named() -> None:
    figure = empty_figure()
    axes = figure.add_subplot()
    axes.plot([1, 2, 3], [1, 4, 9], label="a", color="#0072b2")
    axes.plot([1, 2, 3], [2, 3, 4], label="b", color="#0074b4")
    axes.set_xticks(range(1, 4), ["a very long label of a tick " * 2] * 3)
    figure.text(0.98, 0.5, "clipped at the edge")
    figure.text(0.2, 0.5, "\U0001f4f7")
    found = "\n".join(problems(figure))
    assert "'clipped at the edge' leaves the figure" in found
    assert "'a very long label of a tick a very long label of a tick ' overlaps" in found
    assert "a and b are alike in grey" in found
    assert "missing from font" in found


@pytest.mark.parametrize(("shift", "expected"), [(0, True), (19, True), (21, False), (60, False)])
def test_parallel_texts_that_are_turned_overlap_only_if_they_touch(shift: float, expected: bool) -> None:
    figure = empty_figure()
    texts = [
        figure.text((300 + place) / 960, 0.4, "a longer label", fontsize=9, rotation=45, rotation_mode="anchor")
        for place in (0, shift)
    ]
    one, other = map(corners, texts)
    assert overlap(one, other) == overlap(other, one)
    height = np.linalg.norm(one[2] - one[1])
    assert overlap(one, other) == (shift / np.sqrt(2) < height - 1) == expected
