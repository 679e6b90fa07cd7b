"""Token ids in several arrays read like those in one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.token_arrays import Shards

PIECES = st.lists(st.lists(st.integers(0, 255), max_size=5), min_size=1, max_size=6)
PLACES = st.one_of(st.none(), st.integers(-3, 40))


@given(PIECES, PLACES, PLACES)
def test_a_slice_of_shards_is_the_slice_of_the_whole(
    pieces: list[list[int]], start: int | None, stop: int | None
) -> None:
    arrays = [np.array(piece, np.uint8) for piece in pieces]
    whole, shards = np.concatenate(arrays), Shards(arrays)
    np.testing.assert_array_equal(shards[start:stop], whole[start:stop])
    assert shards[start:stop].dtype == np.uint8
    assert (len(shards), shards.shape, shards.ndim) == (len(whole), whole.shape, 1)
    if len(whole):
        assert shards.max() == whole.max()


def test_shards_of_different_types_are_refused() -> None:
    with pytest.raises(ValueError, match="uint16"):
        Shards([np.zeros(3, np.uint8), np.zeros(3, np.uint16)])
