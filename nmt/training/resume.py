"""Start and resume of runs: what must fit, what may change, and a run held by one process to its end."""

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Self

from nmt import runtime
from nmt.cluster.group import Group
from nmt.cluster.hosts import CHIEF, Hosts
from nmt.config.record import RETIRED
from nmt.config.schema import Config
from nmt.data.dataset import Dataset, find_dataset
from nmt.data.manifest import read_manifest
from nmt.errors import ConfigError, ConflictError
from nmt.runs.directory import RUNS, Run, create_run, find_run, run_exists
from nmt.storage.atomic import refuse_existing, write_bytes
from nmt.storage.file_lock import locked
from nmt.storage.names import check_name
from nmt.training.initial_weights import check_tokenizers
from nmt.training.optimization.schedules import ends_with_run
from nmt.training.stopping import MakeDecode
from nmt.training.trainer import Trainer
from nmt.version import version

# Keys that may change when a run resumes: its length, and what is reported and kept of it. Any other key makes another
# experiment.
SAFE_TO_CHANGE = {
    ("training", key)
    for key in (
        "epochs", "patience", "samples", "log_every", "save_every", "save_every_minutes", "max_to_keep", "average_last",
        "tensorboard",
    )
}  # fmt: skip


def resolved(config: Config, dataset: Dataset) -> Config:
    """Return the configuration with what this machine and this dataset decide: precision, data settings."""
    precision = runtime.resolve_precision(config.training.precision)
    training = config.training.model_copy(update={"precision": precision})
    return config.model_copy(update={"data": dataset.manifest.settings, "training": training})


def start_run(name: str, config: Config, dataset: Dataset, recipe: str | None = None) -> Run:
    """Create the directory of a new run, with the file of its recipe if it has one; ``config`` is resolved first."""
    files = [dataset.folder / "manifest.json", *dataset.tokenizer_files]
    return create_run(name, resolved(config, dataset), files, recipe)


def environment_differences(before: dict[str, str]) -> list[str]:
    """Return the differences of versions and processor to those of a checkpoint, in words."""
    now = runtime.environment()
    return [f"{what} {old} before, {now.get(what)} now" for what, old in before.items() if old != now.get(what)]


def check_changes(run: Run, config: Config, dataset: Dataset, *, allow_changes: bool = False) -> list[str]:
    """Make sure that resuming ``run`` continues the same experiment; nothing is written.

    Returns:
        Differences that make it another experiment, in words; none unless ``allow_changes``.

    Raises:
        ConflictError: naming each such difference in configuration or data, unless ``allow_changes``; for another
            architecture and other tokenizers in any case.
    """
    before, now = run.config(), resolved(config, dataset)
    if before.model.architecture != now.model.architecture:
        raise ConflictError(
            f"Run {run.name!r} has a model of architecture {before.model.architecture!r}, and the configuration asks "
            f"for {now.model.architecture!r}. A run keeps its architecture. Start another run with --run NAME."
        )
    if before.training.optimizer != now.training.optimizer:
        raise ConflictError(
            f"Run {run.name!r} trains with optimizer {before.training.optimizer!r}, and the configuration asks for "
            f"{now.training.optimizer!r}. A run keeps its optimizer, whose state it goes on from. Start another run "
            f"with --run NAME, or from the weights of this one with --from {run.name}."
        )
    differences = [
        f"{section}.{key}: {old!r} before, {getattr(getattr(now, section), key)!r} now"
        for section in ("model", "training")
        for key, old in getattr(before, section).model_dump().items()
        if old != getattr(getattr(now, section), key) and (section, key) not in SAFE_TO_CHANGE
    ]
    differences += [
        f"training.{key}: {text}"
        for key, text in before.training.not_followed.items()
        if RETIRED["training"][key].matters
    ]
    if ends_with_run(before.training) and before.training.epochs != now.training.epochs:
        differences.append(
            f"training.epochs: {before.training.epochs} before, {now.training.epochs} now, with a schedule that falls "
            "to the end of the run"
        )
    trained_on = read_manifest(run.dataset_path)
    if trained_on.fingerprint != dataset.manifest.fingerprint:
        differences.append(f"dataset: {trained_on.settings.dataset!r} before, {dataset.name!r} or new content now")
    if differences and not allow_changes:
        raise ConflictError(
            f"Run {run.name!r} was started with other settings or data: {'; '.join(differences)}. A run keeps those "
            "that it was started with. Start another run with --run NAME, undo the change, or, if it is meant, give "
            "--allow-changes."
        )
    check_tokenizers(run, dataset, "goes on with")
    return differences


def apply_changes(run: Run, config: Config, dataset: Dataset) -> None:
    """Store configuration and dataset manifest of the resumed run, where they have changed."""
    now = resolved(config, dataset)
    if run.config() != now or now.training.not_followed:  # retired keys are written no more
        run.write_config(now)
    if read_manifest(run.dataset_path).fingerprint != dataset.manifest.fingerprint:
        write_bytes(run.dataset_path, (dataset.folder / "manifest.json").read_bytes())


class TrainingSession:
    """A run to train. Nothing is written before ``begin``, so that all refusals come first."""

    def __init__(
        self,
        name: str,
        config: Config,
        dataset_name: str | None,
        *,
        hold: bool = True,
        hosts: Hosts | None = None,
        recipe: str | None = None,
    ) -> None:
        """Find the run, if there is one of that name, and the dataset.

        Args:
            name: name of the run.
            config: its configuration.
            dataset_name: name of the dataset; None: the resumed run's, or for a new run the one prepared last.
            hold: whether to lock the run; a dry run does not.
            hosts: the hosts to train with; None: this process alone.
            recipe: file that a new run keeps, if its configuration was chosen by the dataset.

        Raises:
            NmtError: for a name that cannot be used, a missing dataset, or more hosts than a step has micro-batches.
        """
        count = len(hosts.addresses) if hosts else 1
        if count > config.training.micro_batches:
            raise ConfigError(
                f"There are {count} hosts, and training.micro_batches is {config.training.micro_batches}. A step is "
                "shared by its micro-batches, so it needs one for each host. Start fewer, or another run with --set "
                f"training.micro_batches={count}, whose batches may be smaller by that factor."
            )
        self.name, self.config, self.hold, self.recipe = name, config, hold, recipe
        self.hosts = hosts
        self.is_chief = hosts is None or hosts.rank == CHIEF
        self.resumed = run_exists(name)
        if self.resumed:
            self.run = find_run(name)
            dataset_name = dataset_name or read_manifest(self.run.dataset_path).settings.dataset
        else:
            self.run = Run(RUNS / check_name(name, "run"))
            refuse_existing(self.run.folder)
        self.dataset: Dataset = find_dataset(dataset_name)
        self._locks = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Return the session."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Release the lock of the run."""
        self._locks.close()

    def open(
        self, make_decode: MakeDecode, *, allow_changes: bool = False, report: Callable[[str], None] = print
    ) -> list[str]:
        """Check the configuration against the run, join the other hosts, and build the ``trainer``.

        Args:
            make_decode: makes the function that translates validation sentences.
            allow_changes: whether settings and data may differ from those that the run was started with.
            report: is called with words about hosts.

        Returns:
            Differences that were allowed, in words.

        Raises:
            NmtError: for all that keeps the run from training.
        """
        changes: list[str] = []
        if self.resumed and self.is_chief:
            if self.hold:
                self._lock()
            changes = check_changes(self.run, self.config, self.dataset, allow_changes=allow_changes)
        group = Group(self.hosts, report)
        with group.exchanging():
            if self.hosts:
                group.agree(self._facts())
            decode = make_decode(self.config, self.dataset)
            self.trainer = Trainer(self.run, self.config, self.dataset, decode, group)
        return changes

    def _facts(self) -> dict[str, str]:
        """Return what must be equal on all hosts, by name."""
        versions = {name: runtime.environment()[name] for name in ("tensorflow", "keras")}
        settings = resolved(self.config, self.dataset).model_dump(mode="json")
        keys = {f"{section}.{key}": str(value) for section, keys in settings.items() for key, value in keys.items()}
        return {"nmt": version(), **versions, "run": self.name, "dataset": self.dataset.manifest.fingerprint, **keys}

    def begin(self) -> None:
        """Create the run's directory, or store the allowed changes; ``trainer`` may train from then on."""
        if not self.is_chief:
            return
        if self.resumed:
            apply_changes(self.run, self.config, self.dataset)
            return
        start_run(self.name, self.config, self.dataset, self.recipe)
        self._lock()

    def _lock(self) -> None:
        self._locks.enter_context(locked(self.run.lock_path, f"Run {self.run.name!r}"))
