"""The observer of an evaluation."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nmt.evaluation.overlap import TrainingOverlap
    from nmt.evaluation.result import System


class EvaluationProgress:
    """Observer of an evaluation. Each method does nothing; a subclass overrides those it needs."""

    def compared_with_training(self, overlap: "TrainingOverlap", sentences: int) -> None:
        """Receive the overlap of the test set, N = ``sentences``, with the training data."""

    def translating(self, system: str, done: int, sentences: int) -> None:
        """Receive how many sentences a run has translated: first ``done`` = 0, last ``done`` = N = ``sentences``."""

    def translated(self, system: "System", translations: list[str]) -> None:
        """Receive the N translations of a run, without line breaks."""

    def scoring(self) -> None:
        """Learn that all systems are translated and scoring begins."""
