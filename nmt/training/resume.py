"""Start and resume of runs: what must fit, what may change."""

from pathlib import Path

from nmt import runtime
from nmt.config.schema import Config, ModelConfig
from nmt.data.dataset import Dataset
from nmt.data.manifest import Manifest, read_manifest
from nmt.errors import ConfigError, ConflictError
from nmt.models.base import Seq2SeqModel
from nmt.runs.directory import Run, create_run, find_run
from nmt.runs.weights import WeightsFile, choose_epoch
from nmt.storage.atomic import sha256, write_bytes
from nmt.training.optimization.schedules import ends_with_run

# Keys that may change when a run resumes: its length, and what is reported and kept of it. Any other key makes another
# experiment.
SAFE_TO_CHANGE = {
    ("training", key)
    for key in (
        "epochs", "patience", "samples", "log_every", "save_every", "save_every_minutes", "max_to_keep", "average_last",
        "tensorboard",
    )
}  # fmt: skip


def check_lengths(config: ModelConfig, manifest: Manifest) -> None:
    """Make sure that the model reads the longest sentences of the dataset.

    Raises:
        ConfigError: naming split and side of a sentence that is too long.
    """
    limits = {"source": config.limits.source, "target": config.limits.target}
    for name, split in manifest.splits.items():
        for side, longest in split.longest.items():
            limit, needed = limits[side], longest + 2  # bos and eos
            if limit is not None and needed > limit:
                raise ConfigError(
                    f"The longest {side} of the {name} split has {needed} tokens with bos and eos; this model reads at "
                    f"most {limit}. Set {config.settings_for_length(needed)}."
                )


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
        if before.training.retired[key].matters
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


def check_tokenizers(run: Run, dataset: Dataset, doing: str) -> None:
    """Make sure that the weights of a run know the ids of a dataset.

    Raises:
        ConflictError: if the tokenizers of the run are not those of the dataset.
    """
    of_dataset = {file.name: sha256(file) for file in dataset.tokenizer_files}
    of_run = {file.name: sha256(file) for file in run.tokenizer_files}
    if of_dataset != of_run:
        raise ConflictError(
            f"The tokenizers of run {run.name!r} are not those of dataset {dataset.name!r}, which {doing} its weights. "
            "Weights know the ids of their own tokenizers alone. Prepare the data with them: "
            f"nmt prepare FILE --tokenizer-of {run.name} --name NAME"
        )


def load_initial_weights(start_from: str, model: Seq2SeqModel, dataset: Dataset) -> Path:
    """Load the weights of another run, ``RUN`` or ``RUN:EPOCH``, into a model; returns their file.

    Raises:
        NotFoundError: if there is no such run or epoch.
        ConflictError: if its tokenizers are not those of the dataset.
        DataError: for weights that are damaged or of another model.
    """
    name, _, epoch = start_from.partition(":")
    run = find_run(name)
    check_tokenizers(run, dataset, "is to start from")
    weights = WeightsFile(run, choose_epoch(run, epoch or None))
    weights.load(model)
    return weights.path
