"""Attention of a translation to its source (Bahdanau et al. 2015, figure 3; Luong et al. 2015, figure 7)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from nmt.plotting.attention import Tokens, draw_matrix


def draw_alignment(
    figure: Figure, source: Sequence[str], target: Sequence[str], weights: np.ndarray, heading: str, details: str
) -> None:
    """Draw the matrix of cross-attention with tokens as labels.

    Args:
        figure: empty figure. Its size and layout change.
        source: S tokens, the labels of the columns.
        target: T tokens, the labels of the rows.
        weights: attention of each target token to each source token, float [T, S].
        heading: content of the figure in a line.
        details: run, data and date.
    """
    draw_matrix(figure, weights, Tokens("target", target), Tokens("source", source), heading, details)
