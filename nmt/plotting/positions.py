"""The position embedding of a run, sinusoidal or learned."""

import numpy as np
from matplotlib.figure import Figure

from nmt.config.model import TransformerConfig
from nmt.errors import DataError, NotFoundError
from nmt.models.layers.positions import sinusoidal_encoding
from nmt.plotting.style import style_curves
from nmt.runs.directory import Run
from nmt.storage.arrays import read_arrays

LEARNED_POSITIONS = "source_positions/matrix"
SINUSOIDAL_POSITIONS = 100  # positions drawn of the formula, which has no last one


def draw_positions(figure: Figure, run: Run) -> None:
    """Draw the matrix of positions and dimensions as an image, and five of its columns as curves.

    Raises:
        NotFoundError: for a model without position embedding, and for learned positions of a run without weights.
        DataError: if the weights are damaged or hold no learned positions.
    """
    model = run.config().model
    if not isinstance(model, TransformerConfig):
        raise NotFoundError(
            f"Run {run.name!r} has a model of architecture {model.architecture!r}, which has no position embedding. "
            "Choose another figure, or a run with a Transformer."
        )
    matrix = (
        _learned_positions(run)
        if model.positions == "learned"
        else sinusoidal_encoding(SINUSOIDAL_POSITIONS, model.d_model, model.position_base)
    )
    length, d_model = matrix.shape
    above, below = figure.subplots(2, 1, height_ratios=[3, 2])
    bound = float(np.abs(matrix).max())
    image = above.imshow(matrix, aspect="auto", cmap="RdBu", vmin=-bound, vmax=bound, interpolation="nearest")
    above.set_title(f"{model.positions.capitalize()} position embedding of run {run.name}", loc="left")
    above.set_xlabel("dimension")
    above.set_ylabel("position")
    figure.colorbar(image, ax=above)
    for column in dict.fromkeys((0, 1, d_model // 8 // 2 * 2, d_model // 4 // 2 * 2, d_model // 2 // 2 * 2)):
        below.plot(range(length), matrix[:, column], label=f"dimension {column}", linewidth=1.3)
    below.set_xlabel("position")
    below.set_ylabel("value")
    style_curves(below)
    below.legend(frameon=False, ncols=5, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _learned_positions(run: Run) -> np.ndarray:
    """Return the encoder's trained position matrix [positions, d_model] from the weights of the best epoch."""
    best = run.best()
    if best is None or not run.weights_path(best).exists():
        raise NotFoundError(
            f"Run {run.name!r} has no weights. Learned positions are drawn from the weights of its best epoch. "
            f"Continue with: nmt train --run {run.name}"
        )
    weights = read_arrays(run.weights_path(best))
    if LEARNED_POSITIONS not in weights:
        raise DataError(f"{run.weights_path(best)} holds no learned positions. Train that epoch again.")
    return weights[LEARNED_POSITIONS]
