"""Runs of tiny models for tests: they are killed, asked to stop, resumed and compared."""

import hashlib
import itertools
import signal
from collections.abc import Callable
from pathlib import Path

from conftest import small_pairs, write_pickle, write_tsv

from nmt.config.schema import Config
from nmt.data.cleaning import Sources
from nmt.data.dataset import Dataset
from nmt.data.prepare import prepare
from nmt.data.sources.text_file import TextFile
from nmt.runs.directory import Run, find_run, run_exists
from nmt.training.interrupts import StopRequested, never_stop
from nmt.training.listeners import Listener, StepEvent
from nmt.training.plan import RunPlan, check_changes, make_plan, store
from nmt.training.trainer import Trainer
from nmt.training.validation import Decode

TINY_MODEL = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 32, "heads": 2}
TINY_TRAINING = {"epochs": 3, "batch_size": 32, "warmup_steps": 20, "log_every": 3, "precision": "float32"}


def tiny(model: dict | None = None, **training: object) -> Config:
    """Return a configuration whose epochs have 4 steps. A model that names its architecture replaces the tiny model."""
    model = model if model and "architecture" in model else {**TINY_MODEL, **(model or {})}
    return Config.model_validate({"model": model, "training": {**TINY_TRAINING, **training}})


def prepare_pairs(name: str = "pairs", count: int = 150, **data: object) -> Dataset:
    """Prepare a corpus in the working directory."""
    config = Config.model_validate({"data": data})
    further = {corpus: [TextFile(Path(file)) for file in keys.files] for corpus, keys in config.data.corpora.items()}
    for [file] in further.values():
        write_tsv(file.path, small_pairs(60))
    sources = Sources([TextFile(write_pickle(Path(f"{name}.pkl"), small_pairs(count)))], further=further)
    return prepare(sources, config.data, name)


class Killer(Listener):
    """Ends training after some steps, as if the process were killed there."""

    def __init__(self, steps: int | None) -> None:
        self.steps = steps

    def on_step(self, event: StepEvent) -> None:
        if self.steps is not None:
            self.steps -= 1
            if not self.steps:
                raise KeyboardInterrupt


def leave_after(checks: int | None) -> Callable[[], None]:
    """Return a check that requests a stop at its n-th call; None: never."""
    calls = itertools.count(1)

    def check() -> None:
        if next(calls) >= checks:
            raise StopRequested(signal.SIGINT)

    return never_stop if checks is None else check


def start_run(name: str, config: Config, dataset: Dataset) -> Run:
    """Create the directory of a run, as training does."""
    plan = make_plan(name, config, dataset)
    store(plan, dataset)
    return plan.directory


def resume_run(run: Run, config: Config, dataset: Dataset, *, allow_changes: bool = False) -> list[str]:
    """Check and store the changes of a resumed run, as training does."""
    stored = run.open()
    plan = make_plan(run.name, config, dataset, stored=stored)
    changes = check_changes(plan, dataset, stored, allow_changes=allow_changes)
    store(plan, dataset)
    return changes


def planned(name: str, config: Config, dataset: Dataset) -> RunPlan:
    """Return the plan of a run, after checking that an existing run is the same experiment."""
    stored = find_run(name).open() if run_exists(name) else None
    plan = make_plan(name, config, dataset, stored=stored)
    if stored:
        check_changes(plan, dataset, stored)
    return plan


def trainer_of(name: str, config: Config, dataset: Dataset, decode: Decode | None = None) -> Trainer:
    """Return the trainer of a new or existing run."""
    return Trainer(planned(name, config, dataset), (lambda *_: decode) if decode else None)


def train(
    name: str,
    config: Config,
    dataset: Dataset,
    break_after: int | None = None,
    leave: int | None = None,
    decode: Decode | None = None,
) -> Trainer:
    """Start or resume a run, and train it to its end unless it is killed or asked to stop."""
    with trainer_of(name, config, dataset, decode) as trainer:
        trainer.train([Killer(break_after)], leave_after(leave))
    return trainer


def digest(trainer: Trainer) -> str:
    """Return the hash of the weights and the optimizer."""
    whole, state = hashlib.sha256(), trainer.update.state()
    for array in [*state.weights.values(), *state.optimizer.values()]:
        whole.update(array.tobytes())
    return whole.hexdigest()
