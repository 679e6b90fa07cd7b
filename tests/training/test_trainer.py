"""The training loop: exact means, a single trace, saved files, and equal steps by different computations."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_runs import digest, prepare_pairs, tiny, train, trainer_of

from nmt.cli.endings import finished_message
from nmt.config.schema import Config
from nmt.data.batch_plan import pad_rows
from nmt.data.dataset import Dataset
from nmt.errors import NmtError
from nmt.runs.directory import Run
from nmt.runs.metrics import DecodedValidation, WeightsId
from nmt.runs.weights import SavedWeights, average_weights, choose_epoch, save_weights
from nmt.storage.arrays import Arrays, checksum
from nmt.training.checkpoints import Checkpoint, TrainingProgress, TrainingState, save_checkpoint
from nmt.training.divergence import diverged
from nmt.training.estimate import bytes_to_write, estimate
from nmt.training.input_pipeline import InputPipeline
from nmt.training.interrupts import StopRequested
from nmt.training.optimization.build import build_update
from nmt.training.saver import Saver
from nmt.training.stopping import epochs_to_average
from nmt.training.trainer import Trainer
from nmt.training.validation import Decode


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.chdir(tmp_path)
    return prepare_pairs()


@pytest.mark.parametrize(("every", "minutes", "steps"), [(2, None, [2]), (None, 1e-9, [1, 2]), (None, None, [])])
@pytest.mark.slow
def test_states_are_saved_by_steps_and_by_time(dataset: Dataset, every: Any, minutes: Any, steps: list[int]) -> None:
    config = tiny(save_every=every, save_every_minutes=minutes, eager=True)
    with pytest.raises(KeyboardInterrupt):
        train("run", config, dataset, break_after=3)
    assert Run(Path("checkpoints/run")).state_steps == steps


def scores(*bleu: float) -> Decode:
    """Return a function in place of translating that gives each validation the next BLEU score."""
    coming = iter(bleu)
    return lambda weights, check: DecodedValidation({"validation_bleu": next(coming), "validation_chrf": 0.0})


@pytest.mark.slow
def test_training_stops_when_patience_ends_and_keeps_the_best(dataset: Dataset) -> None:
    settings = {"epochs": 9, "best_by": "bleu", "decode_validation": 5, "max_to_keep": 1, "average_last": 1}
    config = tiny(**settings, patience=2)
    trainer = train("run", config, dataset, decode=scores(10, 50, 40, 30))
    assert trainer.is_finished()
    assert trainer.progress.epoch == 4
    assert trainer.run.best() == 2
    assert trainer.run.weights_epochs == [2, 4]
    assert trainer_of("run", config, dataset).is_finished()
    trainer = train("run", tiny(**settings, patience=4), dataset, decode=scores(20, 10))
    assert trainer.progress.epoch == 6


@pytest.mark.slow
def test_a_run_that_stopped_early_ends_with_the_average_of_its_last_epochs(dataset: Dataset) -> None:
    config = tiny(epochs=40, patience=2, best_by="bleu", decode_validation=5, average_last=2)
    trainer = train("run", config, dataset, decode=scores(*range(6), 1, 0, 9))  # the last for the average
    average = trainer.run.average()
    assert average is not None
    assert (trainer.progress.epoch, average.epochs) == (8, [7, 8])


@pytest.mark.slow
def test_the_best_weights_within_an_epoch_are_kept(dataset: Dataset) -> None:
    config = tiny(epochs=1, validate_every=1, best_by="bleu", decode_validation=5)
    trainer = train("run", config, dataset, decode=scores(10, 30, 20, 10))
    assert trainer.progress.step == 4
    assert [record.step for record in trainer.run.validations()] == [1, 2, 3, 4]
    assert trainer.run.best() == "step-2" and "best step 2" in finished_message(trainer)
    assert [weights for weights in trainer.run.saved_weights if weights != 1] == ["step-2"]
    assert choose_epoch(trainer.run, None) == "step-2"


@pytest.mark.slow
def test_weights_saved_while_a_state_is_written_stay(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing the state of step 1 ends only after the weights of step 2, then the best, are saved."""
    saved = threading.Event()

    def slowly(run: Run, content: Checkpoint, saved_weights: SavedWeights | None = None) -> None:
        if content.progress.step == 1:
            assert saved.wait(60)
        save_checkpoint(run, content, saved_weights)

    def at_once(run: Run, weights: Arrays, epoch: WeightsId) -> SavedWeights:
        file = save_weights(run, weights, epoch)
        saved.set()
        return file

    monkeypatch.setattr("nmt.training.saver.save_checkpoint", slowly)
    monkeypatch.setattr("nmt.training.saver.save_weights", at_once)
    config = tiny(epochs=1, validate_every=2, save_every=1, best_by="bleu", decode_validation=5)
    with pytest.raises(StopRequested):
        train("run", config, dataset, decode=scores(9, 1), leave=4)
    assert Run(Path("checkpoints/run")).saved_weights == ["step-2"]


@pytest.mark.parametrize("refused", [False, True])
def test_saved_is_what_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: bool) -> None:
    """``saved`` does not name a checkpoint that is being written, or that could not be written."""
    written, first, second = threading.Event(), TrainingProgress(step=1), TrainingProgress(step=2)

    def slowly(*_: object) -> None:
        written.wait(60)
        if refused:
            raise NmtError("No space left on device")

    monkeypatch.setattr("nmt.training.saver.save_checkpoint", slowly)
    with Saver(Run(tmp_path), tiny().training, first, b"") as saver:
        saver.save(Checkpoint(second, b"", TrainingState({}, {}, second.totals)), None, [])
        threading.Timer(0.2, written.set).start()
        assert saver.saved == (first if refused else second) and written.is_set()
        message = str(diverged("loss", saver.saved, saver.config))
        assert f"step {1 if refused else 2} is the last one saved" in message
        with pytest.raises(NmtError) if refused else contextlib.nullcontext():
            saver.check()


@pytest.mark.slow
@pytest.mark.parametrize("micro_batches", [1, 2])
def test_a_state_does_not_change_with_later_steps(dataset: Dataset, micro_batches: int) -> None:
    config = tiny(epochs=3, ema_decay=0.9, weight_decay=0.1, micro_batches=micro_batches)
    update = build_update(config, dataset.manifest.vocabulary)
    groups = list(InputPipeline.of(config, dataset).step_batches(1))
    update.take(groups[0], 0.01, 1)
    state, averages = update.state(), update.weights

    def digests() -> list[str]:
        return [checksum(arrays) for arrays in (state.weights, averages, state.optimizer)]

    before = digests()
    update.take(groups[-1], 0.01, 2)
    after = (update.state().weights, update.weights, update.state().optimizer)
    assert not {checksum(arrays) for arrays in after} & set(before)
    update.restore(state._replace(weights={name: np.zeros_like(array) for name, array in state.weights.items()}))
    update.take(groups[0], 0.01, 3)
    assert digests() == before
    update.restore(state)
    assert checksum(update.state().weights) == before[0]
    update.take(groups[0], 0.01, 4)  # later steps change the variables, not these copies
    assert digests() == before
    assert len({batch[0].shape for group in groups for batch in group}) > 1, "one trace serves all shapes"
    graphs = [update._step] if micro_batches == 1 else [update._add, update._apply]
    assert [graph.experimental_get_tracing_count() for graph in graphs] == [1] * len(graphs)


def test_a_run_that_the_disk_cannot_hold_does_not_start(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(epochs=3)
    trainer = trainer_of("run", config, dataset)
    needed = bytes_to_write(trainer)
    trainer.train()
    written = sum(path.stat().st_size for path in trainer.run.folder.rglob("*.safetensors"))
    assert written <= needed <= 4 * written
    monkeypatch.setattr("nmt.training.estimate.free_bytes", lambda folder: 1000)
    fresh = trainer_of("fresh", config, dataset)
    with pytest.raises(NmtError, match=r"Not enough disk space: checkpoints/fresh needs .* more"):
        estimate(fresh)


@pytest.mark.parametrize("settings", [
    {"learning_rate_scale": 1e30}, {"schedule": "inverse_sqrt", "peak_learning_rate": 1e30},
], ids=str)  # fmt: skip
def test_a_non_finite_loss_stops_the_run_with_a_message(dataset: Dataset, settings: dict) -> None:
    with pytest.raises(
        NmtError, match=r"Training diverged: .*nothing has been saved.*(scale\"?[=:] ?1|rate\"?[=:] ?0\.0005)"
    ):
        train("run", tiny(**settings, eager=True), dataset)
    assert Run(Path("checkpoints/run")).metrics() == []


@pytest.mark.slow
def test_a_schedule_that_ends_with_the_run_is_zero_at_its_last_step(dataset: Dataset) -> None:
    falling = {"schedule": "linear", "peak_learning_rate": 1e-3, "warmup_steps": 2}
    batches = {"batch_type": "tokens", "batch_size": 100, "micro_batches": 2}
    trainer = train("run", tiny(**falling, **batches, epochs=2, log_every=1, eager=True), dataset)
    rates = [record.learning_rate for record in trainer.run.metrics() if record.kind == "step"]
    total = trainer.pipeline.total_steps
    assert total == 2 * trainer.run.epochs()[0].step
    np.testing.assert_allclose(rates[1:total], 1e-3 * np.arange(total - 2, -1, -1)[: len(rates) - 1] / (total - 2))
    assert trainer.pipeline.learning_rate(total) == trainer.pipeline.learning_rate(total + 5) == 0


@pytest.mark.slow
def test_a_run_ends_with_the_average_of_its_last_epochs(dataset: Dataset) -> None:
    config = tiny(epochs=8, average_last=2, max_to_keep=1)
    trainer = train("run", config, dataset)
    average = trainer.run.average()
    assert average is not None
    assert average.epochs == [7, 8]
    weights = average_weights(trainer.run, [7, 8])
    loss, accuracy, *_ = trainer.validator.validate(weights, lambda: None)
    assert (average.validation_loss, average.validation_accuracy) == (loss, accuracy)
    assert average.validation_loss not in [record.validation_loss for record in trainer.run.epochs()]
    assert trainer_of("run", config, dataset).is_finished()
    trainer.run.weights_path("average").unlink()  # as if it had been interrupted there
    again = train("run", config, dataset)
    assert again.run.average() == average
    assert digest(again) == digest(trainer)


@pytest.mark.parametrize(
    ("epochs", "average_last", "averaged"), [(7, 5, 0), (8, 5, 2), (20, 5, 5), (100, 5, 5), (20, 1, 0)]
)
def test_at_most_a_quarter_of_the_epochs_is_averaged(epochs: int, average_last: int, averaged: int) -> None:
    config = tiny(epochs=epochs, average_last=average_last).training
    assert epochs_to_average(TrainingProgress(), [], config) == list(range(epochs - averaged + 1, epochs + 1))


# --- a run of eight epochs that has learned


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainer]:
    """A trained run with a record of every step, its folder as the working directory; tests must not change it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("learned"))
        yield train("run", tiny(epochs=8, warmup_steps=60, log_every=1), prepare_pairs())


def test_training_learns(learned: Trainer) -> None:
    epochs = learned.run.epochs()
    assert epochs[-1].train_loss < 0.6 * epochs[0].train_loss
    assert epochs[-1].validation_accuracy > epochs[0].validation_accuracy + 0.1
    assert learned.run.weights_epochs == list(range(1, 9))
    assert learned.validator.step.experimental_get_tracing_count() == 1


def test_validation_metrics_are_exact_means_over_tokens_without_dropout(learned: Trainer) -> None:
    """NumPy computes them sentence by sentence, so uneven batches and padding must not matter."""
    split, loss, right, tokens = learned.validator.split, 0.0, 0, 0
    for index in range(len(split)):
        row = np.array([index])
        source, target = pad_rows(split.source, row, bos=True), pad_rows(split.target, row, bos=True)
        logits = learned.model(source, target[:, :-1]).numpy()[0].astype(np.float64)
        log_softmax = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        expected = target[0, 1:]
        loss -= log_softmax[range(len(expected)), expected].sum()
        right += int((logits.argmax(axis=-1) == expected).sum())
        tokens += len(expected)
    metrics = learned.run.epochs()[-1]
    assert metrics.validation_loss == pytest.approx(loss / tokens, abs=1e-5)
    assert metrics.validation_accuracy == pytest.approx(right / tokens, abs=1e-9)


def test_step_records_average_to_the_epoch_record_by_target_tokens(learned: Trainer) -> None:
    lengths = learned.pipeline.split(1).target.lengths + 1  # each with its eos
    weights = [lengths[batch].sum() for batch in learned.pipeline.plan(1)]
    losses = [record.loss for record in learned.run.metrics() if record.kind == "step" and record.epoch == 1]
    epoch = learned.run.epochs()[0]
    assert epoch.train_loss == pytest.approx(np.average(losses, weights=weights), abs=1e-5)
    assert epoch.target_tokens == lengths.sum()


# --- the same steps, computed otherwise

NO_DROPOUT = {"dropout": 0.0}
PADDED = {"remove_padding": False}
RECURRENT = {"architecture": "recurrent", "width": 16}
LOSSES: dict[str, list[float]] = {}  # of each configuration that has been trained


def losses(config: Config, dataset: Dataset) -> list[float]:
    """Train a run and return the loss of each step."""
    key = config.model_dump_json()
    if key not in LOSSES:
        run = train(f"run-{len(LOSSES)}", config, dataset).run
        LOSSES[key] = [record.loss for record in run.metrics() if record.kind == "step"]
    return LOSSES[key]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "settings", "plain", "changed"),
    [
        pytest.param(NO_DROPOUT, {}, {"batch_size": 24}, {"batch_size": 24, **PADDED}, id="padding computed"),
        pytest.param(NO_DROPOUT, {}, {"batch_size": 24}, {"batch_size": 8, "micro_batches": 3}, id="micro-batches"),
        pytest.param({}, {"optimizer": "muon"}, {}, {"eager": True}, id="eager muon", marks=pytest.mark.slow),
        pytest.param({}, {"micro_batches": 2, "ema_decay": 0.9, "clip_norm": 1.0}, {}, {"eager": True},
                     id="eager micro-batches", marks=pytest.mark.slow),
        pytest.param(RECURRENT, {}, {}, {"eager": True}, id="eager recurrent", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_different_computations_of_a_step_agree(
    dataset: Dataset, model: dict, settings: dict, plain: dict, changed: dict
) -> None:
    """Dropout is off where batches or padding differ, since its random numbers depend on them."""
    first, second = (losses(tiny(model, log_every=1, **settings, **variant), dataset) for variant in (plain, changed))
    assert len(first) == len(second) >= 6
    np.testing.assert_allclose(first, second, rtol=1e-4)


@pytest.mark.slow
def test_half_the_precision_learns_as_float32_does(dataset: Dataset) -> None:
    """With the same batches and initial weights, the loss curves of some hundred steps agree."""
    config = {"epochs": 30, "warmup_steps": 400}
    exact, *halves = (
        train(precision, tiny(precision=precision, **config), dataset)
        for precision in ("float32", "bfloat16", "float16")
    )
    curve = [record.train_loss for record in exact.run.epochs()]
    assert curve[-1] < 0.6 * curve[0]
    for trainer, precision in zip(halves, ("bfloat16", "float16"), strict=True):
        assert trainer.model.compute_dtype == precision
        np.testing.assert_allclose([record.train_loss for record in trainer.run.epochs()], curve, rtol=0.05)
    assert halves[1].update.state().optimizer["loss_scale"] >= 2.0**10
