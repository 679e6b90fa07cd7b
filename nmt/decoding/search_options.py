"""Kind of search."""

from typing import NamedTuple


class SearchOptions(NamedTuple):
    """Kind of search; its numbers are in the decoding section of the configuration."""

    sampled: bool = False
    """Whether tokens are drawn instead of searched for."""
    n_best: int = 1
    """Number of hypotheses for each sentence; more than one need beam search."""
    scored: bool = False
    """Whether scores are wanted."""


GREEDY = SearchOptions()
