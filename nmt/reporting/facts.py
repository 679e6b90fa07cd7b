"""Facts of a run, read from its folder, without TensorFlow."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from nmt.data.manifest import read_manifest
from nmt.runs.directory import Run
from nmt.runs.metrics import EpochMetrics, StepValidation, best_of
from nmt.runs.overview import lineage
from nmt.runs.weights import count_weights
from nmt.training.checkpoints import newest_environment


class Fact(NamedTuple):
    """Name and value, with a detail in words."""

    name: str
    value: str
    detail: str = ""


class RunFacts:
    """What a report shows of a run without computing anything."""

    def __init__(self, run: Run) -> None:
        """Read the facts.

        Raises:
            NmtError: if a file of the run is damaged.
        """
        self.run, self.name, self.config = run, run.name, run.config()
        self.manifest = read_manifest(run.dataset_path)
        self.records = run.metrics()
        self.epochs = [record for record in self.records if isinstance(record, EpochMetrics)]
        self.seconds = sum(epoch.seconds for epoch in self.epochs)  # of training steps
        self.parameters = count_weights(run)
        self.environment = newest_environment(run)
        runs, self.hidden_ancestors = lineage(run)
        self.ancestors = [
            f"weights of {child.config().training.start_from}, trained on "
            f"{read_manifest(ancestor.dataset_path).settings.dataset}"
            for child, ancestor in pairwise(runs)
        ]

    @property
    def summary(self) -> list[Fact]:
        """The facts at the head of the page; all runs have the same names, in the same order."""
        model, epochs, path = self.config.model, self.epochs, self.run.metrics_path
        languages = " to ".join(self.manifest.languages.values())
        day = f"{datetime.fromtimestamp(path.stat().st_mtime, UTC).date()}" if path.exists() else "not yet"
        steps = f"{self.records[-1].step:,} steps" if self.records else ""
        return [
            Fact("Dataset", f"{self.manifest.settings.dataset}", "" if languages == "source to target" else languages),
            Fact("Trained", day, f"{len(epochs)} of {self.config.training.epochs} epochs"),
            Fact("Model", model.architecture, model.description.removeprefix(model.architecture).lstrip(", ")),
            Fact("Parameters", "not saved yet" if self.parameters is None else f"{self.parameters:,}"),
            Fact("Training time", duration(self.seconds), steps),
            self._best(),
        ]

    def _best(self) -> Fact:
        by = self.config.training.best_by
        best = best_of([record for record in self.records if isinstance(record, StepValidation | EpochMetrics)], by)
        if best is None:
            return Fact("Best validation", "none yet", "the first comes after the first epoch")
        value = float(getattr(best, f"validation_{by}"))
        shown = f"{value:.1%}" if by == "accuracy" else f"{value:.3f}" if by == "loss" else f"{value:.1f}"
        place = f"epoch {best.epoch}" if isinstance(best, EpochMetrics) else f"step {best.step:,}"
        name = {"bleu": "BLEU", "chrf": "chrF"}.get(by, by)
        return Fact("Best validation", shown, f"{name}, {place}, loss {best.validation_loss:.3f}")


def duration(seconds: float) -> str:
    """Return a duration in words of at most two units."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
