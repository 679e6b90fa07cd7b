"""Plan of a run: how it is made and stored, and what may change when the run resumes."""

from nmt import runtime
from nmt.config.record import RETIRED, Record
from nmt.config.schema import Config
from nmt.config.training import TrainingConfig
from nmt.data.batch_plan import pairs_seen
from nmt.data.dataset import Dataset
from nmt.data.encoding import search_ratio
from nmt.data.manifest import Manifest
from nmt.data.sources.text_file import TextFile, read_lines
from nmt.errors import ConfigError, ConflictError
from nmt.message import Argument, Settings
from nmt.models.build import weight_shapes
from nmt.runs.directory import RUNS, Run, StoredRun, create_run
from nmt.storage.atomic import refuse_existing
from nmt.storage.names import check_name, did_you_mean
from nmt.tokenizers.base import tag_id
from nmt.tokenizers.sentences import are_single
from nmt.training.initial_weights import check_tokenizers
from nmt.training.optimization.schedules import ends_with_run

# Keys of section training that may change when a run resumes: its length, its reports, and the files that it keeps. A
# change of any other key makes another experiment.
SAFE_TO_CHANGE = {
    "epochs", "patience", "samples", "log_every", "save_every", "save_every_minutes", "max_to_keep", "average_last",
    "tensorboard",
}  # fmt: skip


class RunPlan(Record):
    """Plan of a run to train, with everything decided."""

    run: str
    """Name of the run."""
    config: Config
    """Configuration without "auto": this machine has decided the precision, and section data is the dataset's."""
    dataset: str
    """Name of the dataset."""
    fingerprint: str
    """Fingerprint of the dataset's content."""
    recipe: str | None = None
    """Content of ``recipe.yaml``, which a new run keeps; None if its configuration is not a recipe."""
    resumes: str | None = None
    """Digest of the stored files of the run that resumes; None: a new run."""

    @property
    def directory(self) -> Run:
        """Directory of the run. A new run does not have it yet."""
        return Run(RUNS / self.run)


def make_plan(
    name: str, config: Config, dataset: Dataset, recipe: str | None = None, stored: StoredRun | None = None
) -> RunPlan:
    """Return the plan of a new or resumed run.

    Args:
        name: name of the run.
        config: its configuration.
        dataset: its dataset.
        recipe: content of ``recipe.yaml``, if the configuration is a recipe.
        stored: the run that resumes; None: a new run.

    Raises:
        NmtError: if the name cannot be used, or belongs to a folder that is not a run.
    """
    if stored is None:
        refuse_existing(RUNS / check_name(name, "run"))
    return RunPlan(
        run=name, config=decided(config, dataset), dataset=dataset.name, fingerprint=dataset.manifest.fingerprint,
        recipe=recipe, resumes=stored.digest if stored else None,
    )  # fmt: skip


def decided(config: Config, dataset: Dataset) -> Config:
    """Return a configuration with the values that machine and dataset decide.

    They are the precision, section data, and "auto" in section decoding.

    Raises:
        ConfigError: for corpora or a tag that the dataset does not have, or a stage without pairs.
        DataError: if subwords are to be sampled and the dataset has no training text.
    """
    _check_corpora(config.training, dataset)
    if config.training.subword_sampling:
        dataset.check_training_text()
    if config.decoding.tag is not None:
        tag_id(dataset.tokenizers()[0], config.decoding.tag)
    if config.decoding.target_language or config.decoding.source_language:
        dataset.manifest.direction(config.decoding.source_language, config.decoding.target_language)
    precision = runtime.resolve_precision(config.training.precision)
    training = config.training.model_copy(update={"precision": precision})
    decoding = config.decoding
    if decoding.ordinary_text == "auto":
        lines = read_lines(TextFile(dataset.text("validation", "source")))
        is_single = are_single(lines, dataset.manifest.languages["source"])
        decoding = decoding.model_copy(update={"ordinary_text": "sentences" if is_single else "lines"})
    if decoding.max_length_ratio == "auto":
        decoding = decoding.model_copy(update={"max_length_ratio": search_ratio(dataset.manifest)})
    return config.model_copy(update={"data": dataset.manifest.settings, "training": training, "decoding": decoding})


def _check_corpora(training: TrainingConfig, dataset: Dataset) -> None:
    corpora = dataset.manifest.pairs_by_corpus
    key = "training.stages" if training.stages else "training.corpora"
    for weights in [training.corpora, *(stage.corpora for stage in training.stages)]:
        for name in weights:
            if name not in corpora:
                raise ConfigError(
                    f"{key} names the corpus {name!r}{did_you_mean(name, corpora)}. Dataset {dataset.name!r} has "
                    f"{', '.join(corpora)}. Correct the name, or prepare that corpus too."
                )
    for epochs in training.spans:
        if not any(pairs_seen(pairs, training.weight(name, epochs[0])) for name, pairs in corpora.items()):
            raise ConfigError(
                f"{key} leaves epoch {epochs[0]} without a pair of {', '.join(corpora)}. Give one a larger weight."
            )


def check_unchanged(plan: RunPlan) -> None:
    """Check, under the run's lock, that the run has not changed since its plan was made.

    Raises:
        ConflictError: if another process has changed the run.
    """
    if plan.directory.digest() != plan.resumes:
        raise ConflictError(
            f"Another process has changed run {plan.run!r} since this process read it. A run resumes from its files. "
            "Give the same command again."
        )


def store(plan: RunPlan, dataset: Dataset) -> None:
    """Create the directory of a new run, or update the configuration and manifest of a resumed run.

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
    run.update(plan.config, manifest)


def check_changes(plan: RunPlan, dataset: Dataset, stored: StoredRun, *, allow_changes: bool = False) -> list[str]:
    """Check that a plan continues the experiment of a stored run; nothing is written.

    Returns:
        Messages about differences that make it another experiment; empty unless ``allow_changes``.

    Raises:
        ConflictError: naming each such difference in configuration or data, unless ``allow_changes``. A different
            architecture, optimizer, tokenizer or shape of weights is always refused.
    """
    run = stored.run
    if any(average.runs for average in run.averages()):
        raise ConflictError(
            f"Run {run.name!r} is an average of other runs, so it has no training state to resume from. Start another "
            "run from its weights with ",
            Settings({"training.start_from": run.name}),
            ".",
        )
    before, now = stored.config, plan.config
    if before.model.architecture != now.model.architecture:
        raise ConflictError(
            f"Run {run.name!r} has a model of architecture {before.model.architecture!r}, and the configuration asks "
            f"for {now.model.architecture!r}. A run keeps its architecture. Start another run with ",
            Argument("run", "NAME"),
            ".",
        )
    if before.training.optimizer != now.training.optimizer:
        raise ConflictError(
            f"Run {run.name!r} trains with optimizer {before.training.optimizer!r}, and the configuration asks for "
            f"{now.training.optimizer!r}. A run keeps its optimizer and resumes from its state. Start another run "
            "with ",
            Argument("run", "NAME"),
            ", or from the weights of this run with ",
            Settings({"training.start_from": run.name}),
            ".",
        )
    differences = []
    for section, safe_keys in (("model", set()), ("training", SAFE_TO_CHANGE)):
        values = getattr(now, section).model_dump()
        for key, old in getattr(before, section).model_dump().items():
            if values[key] != old and key not in safe_keys:
                differences.append(f"{section}.{key}: {old!r} before, {values[key]!r} now")
    for key, text in before.training.not_followed.items():
        if RETIRED["training"][key].changes_weights:
            differences.append(f"training.{key}: {text}")
    if ends_with_run(before.training) and before.training.epochs != now.training.epochs:
        differences.append(
            f"training.epochs: {before.training.epochs} before, {now.training.epochs} now, with a schedule that falls "
            "to the end of the run"
        )
    trained_on = stored.manifest
    if trained_on.is_imported:
        raise ConflictError(
            f"Run {run.name!r} was imported and has no training state to resume from. Start another run from its "
            "weights, with ",
            Argument("run", "NAME"),
            " ",
            Settings({"training.start_from": run.name}),
            ".",
        )
    if trained_on.fingerprint != plan.fingerprint:
        differences.append(f"dataset: {trained_on.settings.dataset!r} before, {plan.dataset!r} or new content now")
    check_tokenizers(run, dataset, "resumes with")
    _check_state_fits(run, before, now, trained_on)
    if differences and not allow_changes:
        raise ConflictError(
            f"Run {run.name!r} was started with other settings or data: {'; '.join(differences)}. A run keeps its "
            "settings and data. Start another run with ",
            Argument("run", "NAME"),
            ", undo the change, or, if it is intended, give ",
            Argument("allow_changes", True),
            ".",
        )
    return differences


def _check_state_fits(run: Run, before: Config, now: Config, trained_on: Manifest) -> None:
    """Make sure that a model and optimizer can take over the state of a run, which no option changes.

    Raises:
        ConflictError: if weights have other names or shapes, or moving averages are missing.
    """
    reason = ""
    if before.model != now.model:
        vocabulary = trained_on.vocabulary
        shapes = [weight_shapes(config.model, vocabulary["source"], vocabulary["target"]) for config in (before, now)]
        if shapes[0] != shapes[1]:
            old, new = before.model.model_dump(), now.model.model_dump()
            changed = [f"model.{key}: {old[key]!r} before, {new[key]!r} now" for key in old if old[key] != new[key]]
            reason = f"its weights have other names or shapes ({'; '.join(changed)})"
    if now.training.ema_decay and not before.training.ema_decay:
        reason = f"it has no moving averages (training.ema_decay: None before, {now.training.ema_decay} now)"
    if reason:
        raise ConflictError(
            f"Run {run.name!r} cannot go on with this configuration: {reason}. Start another run with ",
            Argument("run", "NAME"),
            ", or undo the change.",
        )
