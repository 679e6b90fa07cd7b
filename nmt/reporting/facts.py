"""Facts of a run, read from its folder, without TensorFlow."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from nmt.config.schema import Config
from nmt.data.manifest import Manifest, read_manifest
from nmt.models.registry import count_weights
from nmt.runs.directory import Run
from nmt.runs.lineage import lineage
from nmt.runs.metrics import AverageMetrics, EpochMetrics, Metrics, StepMetrics, StepValidation, best_of
from nmt.training.checkpoints import newest_environment

ABSENT = EN_DASH = "\N{EN DASH}"  # for a value that there is not; between numbers
METRIC_NAMES = {"accuracy": "accuracy", "loss": "loss", "bleu": "BLEU", "chrf": "chrF"}
"""Names of the scores of a validation, by the suffix of their fields."""


@dataclass(frozen=True)
class RunFacts:
    """Everything that a report shows of a run and that needs no computation."""

    run: Run
    config: Config
    manifest: Manifest
    records: list[Metrics]
    """Records of the metrics file, in order."""
    average: AverageMetrics | None
    """Record of the averaged weights; None without a valid average."""
    parameters: int
    """Number of weights of the model."""
    environment: dict[str, str]
    """Versions and processor of the newest checkpoint; empty without one."""
    ancestors: list[str]
    """Runs whose weights this run started from, the nearest first, each with its dataset in words."""
    hidden_ancestors: list[str]
    """What hides further ancestors, in words."""
    trained_on: str
    """Date of the last line of the metrics file, ISO 8601 in UTC; empty without a file."""

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.run.name

    @property
    def epochs(self) -> list[EpochMetrics]:
        """Records of epochs."""
        return [record for record in self.records if isinstance(record, EpochMetrics)]

    @property
    def steps(self) -> list[StepMetrics]:
        """Records of training steps."""
        return [record for record in self.records if isinstance(record, StepMetrics)]

    @property
    def validations(self) -> list[StepValidation | EpochMetrics]:
        """Records of validations."""
        return [record for record in self.records if isinstance(record, StepValidation | EpochMetrics)]

    @property
    def best(self) -> StepValidation | EpochMetrics | None:
        """Best validation by ``training.best_by``; None before the first validation."""
        return best_of(self.validations, self.config.training.best_by)

    @property
    def seconds(self) -> float:
        """Time of the training steps of all finished epochs."""
        return sum(record.seconds for record in self.epochs)


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
        average=run.average(),
        parameters=count_weights(config.model, manifest.vocabulary),
        environment=newest_environment(run),
        ancestors=[*_in_words(run, ancestors)],
        hidden_ancestors=hidden,
        trained_on=datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat() if path.exists() else "",
    )


def _in_words(run: Run, runs: list[Run]) -> Iterator[str]:
    """Yield the ancestors of a run with weights and dataset; ``runs`` begins with the run itself."""
    child = run
    for ancestor in runs[1:]:
        weights = (child.config().training.start_from or "").partition(":")[2]
        chosen = f", weights {weights}" if weights else ""
        yield f"{ancestor.name}{chosen}, trained on {read_manifest(ancestor.dataset_path).settings.dataset}"
        child = ancestor


@dataclass(frozen=True)
class Clock:
    """Epochs, tokens and minutes of training behind each step of a run.

    Between two records the values are interpolated: steps of an epoch have nearly equal numbers of tokens and times.
    After the last epoch they go on as in that epoch.
    """

    facts: RunFacts
    _known: dict[str, dict[int, float]] = field(init=False)

    def __post_init__(self) -> None:
        """Collect the value of each unit at the steps of the records."""
        known: dict[str, dict[int, float]] = {"epoch": {0: 0.0}, "tokens": {0: 0.0}, "minutes": {0: 0.0}}
        tokens, seconds = 0, 0.0  # of all epochs before
        for record in self.facts.records:
            if isinstance(record, EpochMetrics):
                tokens, seconds = tokens + record.target_tokens, seconds + record.seconds
                known["epoch"][record.step] = float(record.epoch)
                known["tokens"][record.step] = float(tokens)
                known["minutes"][record.step] = seconds / 60
            elif isinstance(record, StepMetrics) and record.target_tokens is not None and record.seconds is not None:
                known["tokens"][record.step] = float(tokens + record.target_tokens)
                known["minutes"][record.step] = (seconds + record.seconds) / 60
        object.__setattr__(self, "_known", {unit: dict(sorted(points.items())) for unit, points in known.items()})

    def at(self, unit: str, steps: list[int]) -> list[float | None]:
        """Return the value of a unit, "epoch", "tokens" or "minutes", at each step; None where no record tells it."""
        known_steps, values = [*self._known[unit]], [*self._known[unit].values()]
        return [self._between(step, known_steps, values) for step in steps]

    @staticmethod
    def _between(step: int, known_steps: list[int], values: list[float]) -> float | None:
        after = min(bisect_left(known_steps, step), len(known_steps) - 1)
        if known_steps[after] == step:
            return values[after]
        if after == 0:
            return None
        share = (step - known_steps[after - 1]) / (known_steps[after] - known_steps[after - 1])
        return values[after - 1] + (values[after] - values[after - 1]) * share
