"""Plan of a run: what is stored of it and compared when it resumes, and what may change then."""

import contextlib

from nmt import runtime
from nmt.config.record import RETIRED, Record
from nmt.config.schema import Config
from nmt.config.training import TrainingConfig
from nmt.data.batch_plan import pairs_seen
from nmt.data.dataset import Dataset
from nmt.data.manifest import read_manifest
from nmt.data.sources.text_file import TextFile, read_lines
from nmt.errors import ConfigError, ConflictError
from nmt.runs.directory import RUNS, Run, create_run
from nmt.storage.atomic import refuse_existing, sha256, write_bytes
from nmt.storage.names import check_name, did_you_mean
from nmt.tokenizers.base import tag_id
from nmt.tokenizers.sentences import are_single
from nmt.training.initial_weights import check_tokenizers
from nmt.training.optimization.schedules import ends_with_run
from nmt.version import version

# Keys that may change when a run resumes: its length, and what is reported and kept of it. Any other key makes another
# experiment.
SAFE_TO_CHANGE = {
    "epochs", "patience", "samples", "log_every", "save_every", "save_every_minutes", "max_to_keep", "average_last",
    "tensorboard",
}  # fmt: skip


class RunPlan(Record):
    """A run to train, with everything decided."""

    run: str
    """Name of the run."""
    config: Config
    """Its configuration, without "auto": this machine decides the precision, the dataset has the section data."""
    dataset: str
    """Name of the dataset."""
    fingerprint: str
    """Fingerprint of its content."""
    recipe: str | None = None
    """File of the recipe, which a new run keeps if its configuration is one."""
    resumes: str | None = None
    """Digest of what is stored of the run that goes on; None: a new run."""

    @property
    def directory(self) -> Run:
        """The run's directory, which a new run does not have yet."""
        return Run(RUNS / self.run)

    @property
    def facts(self) -> dict[str, str]:
        """What must be equal on all hosts, by name."""
        versions = {name: runtime.environment()[name] for name in ("tensorflow", "keras")}
        settings = self.config.model_dump(mode="json")
        keys = {f"{section}.{key}": str(value) for section, keys in settings.items() for key, value in keys.items()}
        return {"nmt": version(), **versions, "run": self.run, "dataset": self.fingerprint, **keys}


def make_plan(name: str, config: Config, dataset: Dataset, recipe: str | None = None) -> RunPlan:
    """Return the plan of a run, new or resumed, for a configuration and a dataset.

    Raises:
        NmtError: for a name that cannot be used, or that of a folder without a run.
    """
    run = Run(RUNS / check_name(name, "run"))
    resumes = _digest(run)
    if resumes is None:
        refuse_existing(run.folder)
    return RunPlan(
        run=name, config=decided(config, dataset), dataset=dataset.name, fingerprint=dataset.manifest.fingerprint,
        recipe=recipe, resumes=resumes,
    )  # fmt: skip


def decided(config: Config, dataset: Dataset) -> Config:
    """Return the configuration with what this machine and this dataset decide: precision, data settings, sentences.

    Raises:
        ConfigError: for corpora that the dataset has not, and for a stage without a pair.
    """
    _check_corpora(config.training, dataset)
    if config.decoding.tag is not None:
        tag_id(dataset.tokenizers()[0], config.decoding.tag)
    precision = runtime.resolve_precision(config.training.precision)
    training = config.training.model_copy(update={"precision": precision})
    decoding = config.decoding
    if decoding.ordinary_text == "auto":
        lines = read_lines(TextFile(dataset.text("validation", "source")))
        is_single = are_single(lines, dataset.manifest.languages["source"])
        decoding = decoding.model_copy(update={"ordinary_text": "sentences" if is_single else "lines"})
    return config.model_copy(update={"data": dataset.manifest.settings, "training": training, "decoding": decoding})


def _check_corpora(training: TrainingConfig, dataset: Dataset) -> None:
    corpora = dataset.manifest.pairs_by_corpus
    key = "training.stages" if training.stages else "training.corpora"
    for weights in [training.corpora, *(stage.corpora for stage in training.stages)]:
        if unknown := next((name for name in weights if name not in corpora), None):
            raise ConfigError(
                f"{key} names the corpus {unknown!r}{did_you_mean(unknown, corpora)}. Dataset {dataset.name!r} has "
                f"{', '.join(corpora)}. Correct the name, or prepare that corpus too."
            )
    for epochs in training.spans:
        if not any(pairs_seen(pairs, training.weight(name, epochs[0])) for name, pairs in corpora.items()):
            raise ConfigError(
                f"{key} leaves epoch {epochs[0]} without a pair of {', '.join(corpora)}. Give one a larger weight."
            )


def _digest(run: Run) -> str | None:
    with contextlib.suppress(FileNotFoundError):
        return f"{sha256(run.config_path)} {sha256(run.dataset_path)}"
    return None


def check_unchanged(plan: RunPlan) -> None:
    """Make sure that a plan was made from what its run holds now, under the run's lock.

    Raises:
        ConflictError: if another process has changed the run meanwhile.
    """
    if _digest(plan.directory) != plan.resumes:
        raise ConflictError(
            f"Another process has changed run {plan.run!r} since this one read it. A run goes on from what it holds. "
            "Give the same command again."
        )


def store(plan: RunPlan, dataset: Dataset) -> None:
    """Create the directory of a new run; of one that goes on, replace configuration and manifest if they have changed.

    Raises:
        ConflictError: if another process has created the run meanwhile.
    """
    run, manifest = plan.directory, dataset.folder / "manifest.json"
    if not plan.resumes:
        start = plan.config.training.start_from
        origin = Run(RUNS / start.partition(":")[0]).origin_path if start else None
        origins = [origin] if origin and origin.is_file() else []
        create_run(plan.run, plan.config, [manifest, *dataset.tokenizer_files, *origins], plan.recipe)
        return
    stored = run.config()
    if stored != plan.config or stored.training.not_followed:  # retired keys are written no more
        run.write_config(plan.config)
    if read_manifest(run.dataset_path).fingerprint != plan.fingerprint:
        write_bytes(run.dataset_path, manifest.read_bytes())


def check_changes(plan: RunPlan, dataset: Dataset, *, allow_changes: bool = False) -> list[str]:
    """Make sure that a plan goes on with the same experiment as its run; nothing is written.

    Returns:
        Differences that make it another experiment, in words; none unless ``allow_changes``.

    Raises:
        ConflictError: naming each such difference in configuration or data, unless ``allow_changes``; for another
            architecture, optimizer and other tokenizers in any case.
    """
    run = plan.directory
    if any(average.runs for average in run.averages()):
        raise ConflictError(
            f"Run {run.name!r} is an average of other runs, so it has no state of training to go on from. Start "
            f"another run from its weights with --from {run.name}."
        )
    before, now = run.config(), plan.config
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
    values = now.model_dump()
    differences = [
        f"{section}.{key}: {old!r} before, {new!r} now"
        for section in ("model", "training")
        for key, old in getattr(before, section).model_dump().items()
        if old != (new := values[section][key]) and not (section == "training" and key in SAFE_TO_CHANGE)
    ]
    differences += [
        f"training.{key}: {text}"
        for key, text in before.training.not_followed.items()
        if RETIRED["training"][key].changes_weights
    ]
    if ends_with_run(before.training) and before.training.epochs != now.training.epochs:
        differences.append(
            f"training.epochs: {before.training.epochs} before, {now.training.epochs} now, with a schedule that falls "
            "to the end of the run"
        )
    trained_on = read_manifest(run.dataset_path)
    if trained_on.is_imported:
        raise ConflictError(
            f"Run {run.name!r} was imported and has no state of training to go on from. Start another run from its "
            f"weights, with --run NAME --from {run.name}."
        )
    if trained_on.fingerprint != plan.fingerprint:
        differences.append(f"dataset: {trained_on.settings.dataset!r} before, {plan.dataset!r} or new content now")
    if differences and not allow_changes:
        raise ConflictError(
            f"Run {run.name!r} was started with other settings or data: {'; '.join(differences)}. A run keeps those "
            "that it was started with. Start another run with --run NAME, undo the change, or, if it is meant, give "
            "--allow-changes."
        )
    check_tokenizers(run, dataset, "goes on with")
    return differences
