"""How a run begins, and on what conditions it goes on."""

from pathlib import Path

from nmt import runtime
from nmt.config.model import ModelConfig
from nmt.config.schema import Config
from nmt.data.dataset import Dataset
from nmt.data.manifest import Manifest, read_manifest
from nmt.errors import ConfigError, ConflictError
from nmt.runs.directory import Run, create_run, find_run
from nmt.runs.weights import WeightsFile, choose_epoch
from nmt.runtime import keras
from nmt.storage.atomic import sha256, write_bytes
from nmt.training.optimization.schedules import ends_with_run

# What may differ when a run goes on: how long it is to be, what is said and kept of it. Everything else would make it
# another experiment.
SAFE_TO_CHANGE = {
    ("training", key)
    for key in (
        "epochs", "patience", "samples", "log_every", "save_every", "save_every_minutes", "max_to_keep", "average_last",
    )
}  # fmt: skip


def check_positions(config: ModelConfig, manifest: Manifest) -> None:
    """Make sure that learned positions reach to the end of the longest sentence.

    Raises:
        ConfigError: if they do not.
    """
    if config.positions != "learned":
        return
    for name, split in manifest.splits.items():
        for side, longest in split.longest.items():
            needed = longest + 2  # bos and eos
            if needed > config.max_positions:
                raise ConfigError(
                    f"Learned positions must reach to the end of the longest sentence; model.max_positions is "
                    f"{config.max_positions}, the longest {side} of the {name} split needs {needed}. "
                    f"Set model.max_positions={needed}, or model.positions=sinusoidal."
                )


def resolved(config: Config, dataset: Dataset) -> Config:
    """Return the configuration with what only this machine and this dataset decide."""
    precision = runtime.resolve_precision(config.training.precision)
    training = config.training.model_copy(update={"precision": precision})
    return config.model_copy(update={"data": dataset.manifest.settings, "training": training})


def start_run(name: str, config: Config, dataset: Dataset) -> Run:
    """Make the run directory of a new run."""
    files = [dataset.folder / "manifest.json", *dataset.tokenizer_files]
    return create_run(name, resolved(config, dataset), files)


def check_changes(run: Run, config: Config, dataset: Dataset, *, allow_changes: bool = False) -> list[str]:
    """Make sure that going on with ``run`` continues the same experiment; nothing is written.

    Returns:
        In words the differences that make it another experiment; none unless ``allow_changes``.

    Raises:
        ConflictError: naming each such difference in configuration or data, unless ``allow_changes``.
    """
    before, now = run.config(), resolved(config, dataset)
    differences = [
        f"{section}.{key}: {old!r} before, {getattr(getattr(now, section), key)!r} now"
        for section in ("model", "training")
        for key, old in getattr(before, section).model_dump().items()
        if old != getattr(getattr(now, section), key) and (section, key) not in SAFE_TO_CHANGE
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
            f"A run goes on with the settings and data it began with; run {run.name!r} differs in "
            f"{'; '.join(differences)}. Start another with --run NAME, undo the change, or, if it is meant, say "
            "--allow-changes."
        )
    check_tokenizers(run, dataset, "goes on with")
    return differences


def take_over_changes(run: Run, config: Config, dataset: Dataset) -> None:
    """Store configuration and data as they are from now on, once they are known to be usable."""
    now = resolved(config, dataset)
    if run.config() != now:
        run.write_config(now)
    if read_manifest(run.dataset_path).fingerprint != dataset.manifest.fingerprint:
        write_bytes(run.dataset_path, (dataset.folder / "manifest.json").read_bytes())


def check_tokenizers(run: Run, dataset: Dataset, doing: str) -> None:
    """Make sure that a run's weights know the dataset's ids.

    Raises:
        ConflictError: if the run's tokenizers are not those of the dataset.
    """
    theirs = {file.name: sha256(file) for file in dataset.tokenizer_files}
    ours = {file.name: sha256(file) for file in run.tokenizer_files}
    if theirs != ours:
        raise ConflictError(
            f"Weights know the words of their own vocabulary alone; the tokenizers of run {run.name!r} are not those "
            f"of dataset {dataset.name!r}, which {doing} them. Prepare the data with its tokenizers: "
            f"nmt prepare FILE --tokenizer-of {run.name} --name NAME"
        )


def load_start(start_from: str, model: keras.Model, dataset: Dataset) -> Path:
    """Load the weights of another run to begin with, ``RUN`` or ``RUN:EPOCH``; returns their file.

    Raises:
        NotFoundError: if there is no such run or epoch.
        ConflictError: if its tokenizers are not the dataset's.
        DataError: if its weights are damaged or of another model.
    """
    name, _, epoch = start_from.partition(":")
    run = find_run(name)
    check_tokenizers(run, dataset, "is to start from")
    weights = WeightsFile(run, choose_epoch(run, epoch or None))
    weights.load(model)
    return weights.path
