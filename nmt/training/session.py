"""Training session: a run, new or resumed, held by one process from its checks to its end."""

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Self

from nmt import runtime
from nmt.cluster.group import Group
from nmt.cluster.hosts import CHIEF, Hosts
from nmt.config.schema import Config
from nmt.data.dataset import Dataset, find_dataset
from nmt.data.manifest import read_manifest
from nmt.errors import ConfigError
from nmt.runs.directory import RUNS, Run, find_run, run_exists
from nmt.storage.atomic import refuse_existing
from nmt.storage.file_lock import locked
from nmt.storage.names import check_name
from nmt.training.averaging import MakeDecode
from nmt.training.resume import apply_changes, check_changes, resolved, start_run
from nmt.training.trainer import Trainer
from nmt.version import version


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
