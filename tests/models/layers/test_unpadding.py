"""Layout of live beams: rows come back to their places, and shapes are few."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.models.layers.unpadding import ROWS, BeamLayout
from nmt.runtime import tf
from nmt.tokenizers.base import PAD


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 7), st.integers(1, 6), st.floats(0, 1), st.integers(0, 10_000))
def test_live_beams_come_back_to_their_places(size: int, beams: int, share: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    live = random.random([size, beams]) < share
    layout = BeamLayout.of(tf.constant(np.where(live, 5, PAD), tf.int32), 3)
    x = random.normal(size=[size, beams, 2])
    flat = layout.flatten(tf.constant(x))
    assert len(flat) % ROWS == 0 and 0 <= len(flat) - live.sum() < ROWS
    np.testing.assert_array_equal(flat[: live.sum()], x[live])
    assert layout.positions.numpy().tolist() == [3]
    if live.any():
        back = layout.restore(flat)
        assert back.shape == x.shape
        np.testing.assert_array_equal(back.numpy()[live], x[live])
