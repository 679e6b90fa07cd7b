"""Figures of a run by name. A module that draws is loaded at its first use, so that help appears at once."""

from importlib import import_module
from typing import Any, NamedTuple


class RunFigure(NamedTuple):
    """A figure that a run alone determines."""

    module: str
    """Module of ``nmt.plotting``."""
    function: str
    """Function of (figure, run) that draws into an empty matplotlib figure."""
    summary: str
    """Content of the figure in a sentence."""

    def load(self) -> Any:
        """Return the function."""
        return getattr(import_module(f"nmt.plotting.{self.module}"), self.function)


FIGURES: dict[str, RunFigure] = {
    "losses": RunFigure("curves", "draw_losses", "Draw training and validation loss by epoch."),
    "accuracy": RunFigure("curves", "draw_accuracy", "Draw training and validation accuracy by epoch."),
    "bleu": RunFigure("curves", "draw_bleu", "Draw BLEU and chrF of the validation translations by time."),
    "schedule": RunFigure("curves", "draw_schedule", "Draw the learning rate by step."),
    "speed": RunFigure("speed", "draw_speed", "Draw target tokens a second and the time of a step."),
    "positions": RunFigure(
        "lesson.trained", "draw_positions", "Draw the position embedding, sinusoidal, learned or rotary."
    ),
}
