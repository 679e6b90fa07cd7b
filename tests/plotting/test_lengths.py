"""Lengths and padding are those of the dataset and of the batches that training makes of it."""

import numpy as np
import pytest
from appearance import problems
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.batch_plan import pad_rows, plan_epoch
from nmt.data.token_arrays import Sequences, Split
from nmt.plotting.lengths import draw_lengths, padding_of
from nmt.plotting.style import empty_figure
from nmt.tokenizers.base import PAD

LENGTHS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=40)


def split_of(pairs: list[tuple[int, int]]) -> Split:
    source, target = (Sequences.from_rows([[7] * pair[side] for pair in pairs], 10) for side in (0, 1))
    return Split(source, target)


@settings(max_examples=40)
@given(LENGTHS, st.integers(1, 9), st.booleans())
def test_the_padding_is_that_of_the_padded_arrays(pairs: list[tuple[int, int]], size: int, by_length: bool) -> None:
    split = split_of(pairs)
    plan = plan_epoch(split, size, seed=1, epoch=1, sort_by_length=by_length)
    lengths = {"source": split.source.lengths, "target": split.target.lengths}
    found = padding_of(plan, lengths, {"source": 2, "target": 1})
    for side, sequences, bos in (("source", split.source, True), ("target", split.target, False)):
        rows = [pad_rows(sequences, batch, bos=bos) for batch in plan]
        padded, real = (
            sum(int(part(array)) for array in rows) for part in (np.size, lambda array: (array != PAD).sum())
        )
        assert found[side] == 1 - real / padded


@pytest.mark.parametrize("longest", [1, 900])
def test_histogram_and_cumulative_share_are_those_of_the_lengths(longest: int) -> None:
    random = np.random.default_rng(longest)
    lengths = {"source (en)": random.integers(1, longest + 1, 500), "target (de)": random.integers(0, longest + 1, 500)}
    figure = empty_figure()
    draw_lengths(figure, "data pairs · 500 pairs", lengths, "words")
    histogram, cumulative = figure.axes
    assert len({(line.get_marker(), line.get_linestyle()) for line in cumulative.get_lines()}) == 2
    for counts, patch, line in zip(lengths.values(), histogram.patches, cumulative.get_lines(), strict=True):
        values, edges, _ = patch.get_data()  # type: ignore[attr-defined]
        assert values.sum() == pytest.approx(1)
        np.testing.assert_allclose(values, np.histogram(counts, edges)[0] / 500)
        assert len(values) <= 70
        for place, share in zip(*line.get_data(), strict=True):
            assert share == pytest.approx((counts <= place).mean())
        chosen = [int(np.asarray(line.get_xdata())[index]) for index in line.get_markevery()]  # type: ignore[union-attr]
        for quantile, length in zip((0.5, 0.9, 0.99), chosen, strict=True):
            assert (counts <= length).mean() >= quantile > (counts <= length - 1).mean()
    assert problems(figure) == []
