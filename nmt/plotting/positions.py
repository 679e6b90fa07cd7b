"""The position embeddings of a run, sinusoidal, learned or rotary, and the similarity of positions."""

import numpy as np
from matplotlib.figure import Figure

from nmt.plotting.lesson.encoding import MAX_SIMILAR, Encoding, cosines, number
from nmt.plotting.lesson.panels import SIMILARITIES, add_bar, show_matrix
from nmt.plotting.lesson.trained import position_matrix, read_weights, transformer
from nmt.plotting.style import TEXT, add_title, run_title
from nmt.runs.directory import Run

SINUSOIDAL_POSITIONS = 100  # positions drawn of the formula, which has no last one
HEAD, ROW = 0.7, 4.3  # inches


def draw_positions(figure: Figure, run: Run) -> None:
    """Draw the matrix of positions and dimensions, and the cosine of any two positions beside it.

    Learned embeddings of encoder and decoder have a row of panels each; sinusoids are the same on both sides. Those of
    rotary positions are sines and cosines of the angles that turn a head, and the cosine of two positions the score of
    equal vectors at both. More than ``MAX_SIMILAR`` positions are not drawn.

    Raises:
        NotFoundError: for a model without position embedding, and for learned positions of a run without weights.
        DataError: if the weights are damaged or hold no learned positions.
    """
    model = transformer(run, run.config())
    matrices: dict[str, np.ndarray]
    if model.positions == "learned":
        weights = read_weights(run)
        details = f"{run_title(run)} · {weights.epoch}"
        matrices = {
            "encoder": position_matrix(weights, "source", MAX_SIMILAR),
            "decoder": position_matrix(weights, "target", MAX_SIMILAR),
        }
    else:
        details = f"{run_title(run)} · base {number(model.position_base)}"
        rotary = model.positions == "rotary"
        width = model.size_per_head if rotary else model.d_model
        encoding = Encoding(SINUSOIDAL_POSITIONS, width, model.position_base)
        matrices = {"each head of self-attention" if rotary else "encoder and decoder": encoding.matrix()}
    figure.set_figheight(HEAD + ROW * len(matrices))
    add_title(figure, f"{model.positions.capitalize()} position embedding", details)
    panels = figure.subplots(len(matrices), 2, squeeze=False, width_ratios=[1.25, 1])
    for (name, matrix), (left, right) in zip(matrices.items(), panels, strict=True):
        bound = float(np.abs(matrix).max())
        image = show_matrix(left, matrix, (-bound, bound))
        left.set_title(name, loc="left", fontsize=TEXT)
        left.set_xlabel("dimension", fontsize=TEXT)
        left.set_ylabel("position", fontsize=TEXT)
        add_bar(figure, image, left, "value", location="bottom", aspect=30, pad=0.02)
        similarity = cosines(matrix)
        image = show_matrix(right, similarity, (min(0.0, float(similarity.min())), 1), SIMILARITIES)
        right.set_title("cosine of any two positions", loc="left", fontsize=TEXT)
        right.set_xlabel("position", fontsize=TEXT)
        right.set_ylabel("position", fontsize=TEXT)
        add_bar(figure, image, right, "cosine", location="bottom", aspect=30, pad=0.02)
