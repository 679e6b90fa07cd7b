"""Resume: an interrupted run ends in the bits of an uninterrupted run, and which changes are allowed in between."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import outcome
from tiny_runs import digest, prepare_pairs, resume_run, start_run, tiny, train, trainer_of

from nmt import runtime
from nmt.cli.commands.train import train as train_as_typed
from nmt.cli.endings import start_lines
from nmt.data.dataset import Dataset
from nmt.errors import ConflictError, DataError
from nmt.models.base import Seq2SeqModel, TeacherForced
from nmt.models.weights import weights_of
from nmt.runs.directory import Run
from nmt.runs.metrics import DecodedValidation, Sample
from nmt.runs.weights import save_weights
from nmt.runtime import tf
from nmt.storage.arrays import Arrays, checksum
from nmt.training.estimate import estimate
from nmt.training.interrupts import StopRequested
from nmt.training.optimization.build import build_update
from nmt.training.optimization.nonfinite import LossScale

MIDWAY = {"validate_every": 2, "save_every": 3, "log_every": 2}
TWO_BATCHES = {"micro_batches": 2, "batch_size": 16}
SUBWORDS = {"tokenizer": "subword", "vocabulary_size": 60, "byte_fallback": False, "subword_sampling": True}
EAGER = {"eager": True}
"""For what a graph has no part in: pairs, files, and where a run begins. Compiling steps takes most of a tiny run."""
STAGES = [{"until_epoch": 1, "corpora": {"original": 1, "bt": 0.6}}, {"corpora": {"original": 0.5, "bt": 2}}]
Hook = Callable[[pytest.MonkeyPatch, Dataset], None]


def decode(weights: Arrays, check: Callable[[], None]) -> DecodedValidation:
    """Return scores that depend on the weights, in place of translating."""
    check()
    total = float(sum(np.abs(array).sum(dtype=np.float64) for array in weights.values()))
    return DecodedValidation(
        {"validation_bleu": total, "validation_chrf": 0.0}, [Sample(source="a", reference="b", translation=f"{total}")]
    )


def nothing(patch: pytest.MonkeyPatch, dataset: Dataset) -> None:
    """Do nothing."""


def let_batches_be_no_number(patch: pytest.MonkeyPatch, dataset: Dataset) -> None:
    """Make the loss of every third batch NaN."""
    plain = Seq2SeqModel.teacher_forcing

    def spoiled(self: Seq2SeqModel, *batch: tf.Tensor, **settings: Any) -> TeacherForced:
        forced, seed = plain(self, *batch, **settings), settings.get("dropout_seed")
        return forced if seed is None else forced._replace(states=forced.states * tf.where(seed[1] % 3 == 0, np.nan, 1))

    patch.setattr(Seq2SeqModel, "teacher_forcing", spoiled)


def let_the_scale_change(patch: pytest.MonkeyPatch, dataset: Dataset) -> None:
    """Make the first loss scale overflow, and let few steps without overflow double it."""
    patch.setattr(LossScale, "FIRST", 2.0**20)
    patch.setattr(LossScale, "PATIENCE", 3)


def train_another(patch: pytest.MonkeyPatch, dataset: Dataset) -> None:
    train("another", tiny(**EAGER, epochs=1), dataset)


def remove_the_other(patch: pytest.MonkeyPatch, dataset: Dataset) -> None:
    Run(Path("checkpoints/another")).weights_path(1).unlink()


def forbid_vectors(patch: pytest.MonkeyPatch, dataset: Dataset) -> None:
    """Fail if word vectors are computed: on another machine their last bits may differ."""
    patch.setattr("nmt.training.initial_weights.cooccurrence_vectors", lambda *_: pytest.fail("again"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def dataset(here: Path) -> Dataset:
    return prepare_pairs()


@dataclass(frozen=True)
class Case:
    training: dict[str, Any]
    model: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    dies: tuple[int, ...] = ()  # steps that each killed process takes
    leaves: int | None = None  # checks after which each of the other processes is told to leave
    first: Hook = nothing
    between: Hook = nothing


CASES = {
    "adam, averages": Case(
        {"schedule": "cosine", "peak_learning_rate": 3e-3, "weight_decay": 0.1, "clip_norm": 0.5, "ema_decay": 0.9},
        {"attention_dropout": 0.2, "feed_forward_dropout": 0.2, "word_dropout": 0.2}, dies=(6,),
    ),
    "muon, micro-batches": Case({**TWO_BATCHES, "optimizer": "muon", "weight_decay": 0.1}, dies=(3, 5)),
    "bfloat16, r-drop": Case(
        {"precision": "bfloat16", "batch_type": "tokens", "batch_size": 120, "r_drop": 5.0}, dies=(8,)
    ),
    "float16": Case({**TWO_BATCHES, "precision": "float16", "save_every": 2}, dies=(5,), first=let_the_scale_change),
    "steps left out": Case({"skip_nonfinite": 9, "save_every": 1}, dies=(7,), first=let_batches_be_no_number),
    "recurrent": Case({"save_every": 3}, {"architecture": "recurrent", "width": 16, "dropout": 0.2}, dies=(4,)),
    "ssru": Case({"batch_type": "tokens", "batch_size": 120}, {"decoder": "ssru", "target_bos": False}, dies=(4,)),
    "sampled subwords": Case(EAGER, data=SUBWORDS, dies=(6,)),
    "variants of pairs": Case(
        {**EAGER, "save_every": 1, "batch_type": "tokens", "batch_size": 900, "augment": {"typos": 1}},
        data={"tokenizer": "char"}, dies=(3, 4),
    ),
    "from another run": Case(
        {**EAGER, "start_from": "another:1", "epochs": 1}, dies=(1,), first=train_another, between=remove_the_other
    ),
    "word vectors": Case(
        {**EAGER, "initial_embeddings": "cooccurrence", "epochs": 1}, dies=(1,), between=forbid_vectors
    ),
    "validated and saved midway": Case({**EAGER, **MIDWAY}, dies=(1, 3, 4, 4)),
    "stages of corpora": Case(
        {**EAGER, **TWO_BATCHES, "schedule": "linear", "peak_learning_rate": 3e-3, "stages": STAGES, "save_every": 2},
        data={"corpora": {"bt": {"files": ["bt.tsv"], "tag": True}}}, dies=(3, 4),
    ),
    "told to leave amid micro-batches": Case({**MIDWAY, **TWO_BATCHES, "precision": "bfloat16"}, leaves=5),
}  # fmt: skip
FAST = ["adam, averages"]


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in CASES])
def test_an_interrupted_run_ends_in_the_bits_of_an_uninterrupted_one(
    here: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case = CASES[name]
    dataset, config = prepare_pairs(**case.data), tiny(case.model, **{"epochs": 2, **case.training})
    case.first(monkeypatch, dataset)
    whole = train("whole", config, dataset, decode=decode)
    for steps in case.dies:
        with pytest.raises(KeyboardInterrupt):
            train("broken", config, dataset, break_after=steps, decode=decode)
        case.between(monkeypatch, dataset)
    interruptions = len(case.dies)
    while True:
        try:
            resumed = train("broken", config, dataset, leave=case.leaves, decode=decode)
            break
        except StopRequested:
            interruptions += 1
            assert interruptions < 60
    assert interruptions >= 1
    assert digest(resumed) == digest(whole)
    assert outcome(resumed.run)["metrics"] == outcome(whole.run)["metrics"]


@pytest.mark.slow
def test_the_first_lines_tell_the_pairs_of_each_stage_by_corpus(here: Path) -> None:
    dataset = prepare_pairs(corpora={"bt": {"files": ["bt.tsv"], "tag": True}})
    original, bt = dataset.manifest.pairs_by_corpus.values()
    with trainer_of("new", tiny(epochs=3, stages=STAGES), dataset) as trainer:
        lines, ahead = [line for line in start_lines(trainer) if line.startswith("Epoch")], estimate(trainer)
    first, half = (original, round(0.6 * bt)), (round(0.5 * original), 2 * bt)
    assert lines == [
        f"{epochs}: original {old} ({old / (old + new):.0%}), bt {new} ({new / (old + new):.0%})"
        for epochs, (old, new) in (("Epoch 1", first), ("Epochs 2 to 3", half))
    ]
    assert ahead.seconds == pytest.approx(ahead.epoch_seconds * (1 + 2 * sum(half) / sum(first)))
    assert "Ahead: 3 epochs, the next of" in ahead.text and " each" not in ahead.text


@pytest.mark.slow
def test_an_estimate_changes_nothing(dataset: Dataset) -> None:
    config = tiny(**MIDWAY, epochs=2)
    whole = train("whole", config, dataset)
    with pytest.raises(KeyboardInterrupt):
        train("looked", config, dataset, break_after=4)
    run = Run(Path("checkpoints/looked"))

    def files() -> dict[Path, bytes]:
        of_lock = (run.lock_path, run.lock_path.with_name(f"{run.lock_path.name}.holder"))
        files = [path for path in run.folder.rglob("*") if path.is_file() and path not in of_lock]
        return {path: path.read_bytes() for path in files}

    before = files()
    trainer = trainer_of("looked", config, dataset)
    ahead = estimate(trainer)
    assert files() == before
    assert (ahead.epochs, ahead.steps) == (2, 4)
    assert ahead.memory is None or ahead.memory > 10**8
    trainer.train()
    assert digest(trainer) == digest(whole)


@pytest.mark.slow
def test_resuming_with_another_tensorflow_is_noted_once(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train("run", tiny(**EAGER, epochs=1), dataset)
    now = runtime.environment()
    monkeypatch.setattr(runtime, "environment", lambda: {**now, "tensorflow": "9.9", "device": "8 GPU(s)"})
    train_as_typed(run="run", overrides=["training.epochs=2"])
    note = capsys.readouterr().out
    assert f"tensorflow {now['tensorflow']} before, 9.9 now; device {now['device']} before, 8 GPU(s) now" in note
    train_as_typed(run="run", overrides=["training.epochs=3"])
    assert "Note" not in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_starts_from_the_weights_of_another(dataset: Dataset) -> None:
    first = start_run("first", tiny(), dataset)
    weights = weights_of(build_update(tiny(seed=2), dataset.manifest.vocabulary).model)
    save_weights(first, weights, 3)
    # Word vectors and averages are what a fresh run begins with.
    config = tiny(start_from="first:3", initial_embeddings="cooccurrence", ema_decay=0.9)
    started = trainer_of("second", config, dataset)
    assert checksum(weights_of(started.model)) == checksum(started.update.weights) == checksum(weights)
    wide = tiny({"d_ff": 48}, start_from="first:3")
    with pytest.raises(DataError, match=r"inner/bias has shape \[32\] in the file and \[48\] in the model"):
        trainer_of("third", wide, dataset)


def test_resuming_with_other_settings_is_possible_if_allowed(dataset: Dataset) -> None:
    run = start_run("run", tiny(), dataset)
    changed = tiny({"dropout": 0.3}, epochs=2)
    with pytest.raises(ConflictError):
        resume_run(run, changed, dataset)
    assert resume_run(run, changed, dataset, allow_changes=True) == ["model.dropout: 0.1 before, 0.3 now"]
    assert (run.config().model.dropout, run.config().training.epochs) == (0.3, 2)


def test_other_epochs_are_refused_where_they_would_change_the_schedule(dataset: Dataset) -> None:
    short, long = (tiny(schedule="cosine", peak_learning_rate=1e-3, epochs=epochs) for epochs in (1, 2))
    run = start_run("run", short, dataset)
    assert resume_run(run, short, dataset) == []
    with pytest.raises(ConflictError, match=r"training\.epochs: 1 before"):
        resume_run(run, long, dataset)


def test_a_run_with_a_retired_key_resumes_if_its_weights_do_not_depend_on_it(dataset: Dataset) -> None:
    run = start_run("run", tiny(), dataset)
    whole = run.config_path.read_text()
    run.config_path.write_text(whole.replace("training:\n", "training:\n  reduction: fastest\n  xla: false\n"))
    assert resume_run(run, tiny(), dataset) == []
    run.config_path.write_text(whole.replace("training:\n", "training:\n  xla: true\n"))
    with pytest.raises(ConflictError, match=r"training\.xla: True, a setting of older versions\. The step is not comp"):
        resume_run(run, run.config(), dataset)
    assert len(resume_run(run, run.config(), dataset, allow_changes=True)) == 1
    assert run.config_path.read_text() == whole and resume_run(run, run.config(), dataset) == []
