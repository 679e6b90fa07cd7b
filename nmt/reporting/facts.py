"""Facts of a run, read from its folder, without TensorFlow."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from nmt.config.schema import Config
from nmt.data.manifest import Manifest, read_manifest
from nmt.models.accounting import count_weights
from nmt.models.registry import parts_of
from nmt.runs.directory import Run
from nmt.runs.lineage import lineage
from nmt.runs.metrics import EpochMetrics, Metrics, StepValidation, Validation, best_of
from nmt.training.checkpoints import newest_environment

METRIC_NAMES = {"accuracy": "accuracy", "loss": "loss", "bleu": "BLEU", "chrf": "chrF"}
"""Names of the scores of a validation, by the suffix of their fields."""


class Fact(NamedTuple):
    """Name and value, with a detail in words."""

    name: str
    value: str
    detail: str = ""


@dataclass(frozen=True)
class RunFacts:
    """What a report shows of a run without computing anything."""

    run: Run
    config: Config
    manifest: Manifest
    records: list[Metrics]
    """Records of the metrics file, in order."""
    parameters: int
    """Number of weights of the model."""
    environment: dict[str, str]
    """Versions and processor of the newest checkpoint; empty without one."""
    ancestors: list[str]
    """Runs whose weights this run started from, the nearest first, each with its dataset in words."""
    hidden_ancestors: list[str]
    """What hides further ancestors, in words."""
    trained_on: str
    """Date of the last line of the metrics file, ISO 8601 in UTC; "not yet" without a file."""

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.run.name

    @property
    def epochs(self) -> list[EpochMetrics]:
        """Records of epochs."""
        return [record for record in self.records if isinstance(record, EpochMetrics)]

    @property
    def validations(self) -> list[StepValidation | EpochMetrics]:
        """Records of validations."""
        return [record for record in self.records if isinstance(record, StepValidation | EpochMetrics)]

    @property
    def best(self) -> StepValidation | EpochMetrics | None:
        """Best validation by ``training.best_by``; None before the first validation."""
        return best_of(self.validations, self.config.training.best_by)

    @property
    def summary(self) -> list[Fact]:
        """The facts at the head of the page; all runs have the same names, in the same order."""
        model, best, by, epochs = self.config.model, self.best, self.config.training.best_by, self.epochs
        languages = " to ".join(self.manifest.languages.values())
        return [
            Fact(
                "Dataset", self.manifest.settings.dataset or "", "" if languages == "source to target" else languages
            ),
            Fact("Trained", self.trained_on, f"{len(epochs)} of {self.config.training.epochs} epochs"),
            Fact("Model", model.architecture, model.description.removeprefix(model.architecture).lstrip(", ")),
            Fact("Parameters", f"{self.parameters:,}"),
            Fact(
                "Training time", duration(sum(epoch.seconds for epoch in epochs)),
                f"{self.records[-1].step:,} steps" if self.records else "",
            ),
            Fact(
                "Best validation", value_text(best, by) if best else "none yet",
                f"{METRIC_NAMES[by]}, loss {best.validation_loss:.3f}" if best else "",
            ),
        ]  # fmt: skip


def read_facts(run: Run) -> RunFacts:
    """Return the facts of a run.

    Raises:
        NmtError: if a file of the run is damaged.
    """
    config, manifest = run.config(), read_manifest(run.dataset_path)
    ancestors, hidden = lineage(run)
    path = run.metrics_path
    return RunFacts(
        run=run,
        config=config,
        manifest=manifest,
        records=run.metrics(),
        parameters=count_weights(parts_of(config.model, manifest.vocabulary)),
        environment=newest_environment(run),
        ancestors=[*_in_words(ancestors)],
        hidden_ancestors=hidden,
        trained_on=f"{datetime.fromtimestamp(path.stat().st_mtime, UTC).date()}" if path.exists() else "not yet",
    )


def _in_words(runs: list[Run]) -> Iterator[str]:
    """Yield the ancestors of the first run with weights and dataset; each run started from the next."""
    for child, ancestor in zip(runs, runs[1:], strict=False):
        weights = (child.config().training.start_from or "").partition(":")[2]
        chosen = f", weights {weights}" if weights else ""
        yield f"{ancestor.name}{chosen}, trained on {read_manifest(ancestor.dataset_path).settings.dataset}"


def value_text(validation: Validation, by: str) -> str:
    """Return a score of a validation as text."""
    value = float(getattr(validation, f"validation_{by}"))
    return f"{value:.1%}" if by == "accuracy" else f"{value:.3f}" if by == "loss" else f"{value:.1f}"


def duration(seconds: float) -> str:
    """Return a duration in words of at most two units."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
