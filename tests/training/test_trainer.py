"""The training loop: exact means, one trace, and a run that ends the same however often it was interrupted."""

import hashlib
import io
import itertools
import json
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from conftest import small_pairs, write_pickle

from nmt import runtime
from nmt.cli.commands.train import run_training
from nmt.config.model import ModelConfig
from nmt.config.schema import Config
from nmt.data.batch_plan import pad_rows, plan_epoch
from nmt.data.dataset import Dataset
from nmt.data.prepare import prepare
from nmt.errors import ConfigError, ConflictError, DataError, NmtError
from nmt.models.weights import set_weights, weights_of
from nmt.runs.directory import Run
from nmt.runs.energy import EnergyMeter
from nmt.runs.metrics import DecodedValidation, Sample, WeightsId
from nmt.runs.weights import SavedWeights, average_weights, choose_epoch, save_weights
from nmt.storage.arrays import Arrays, checksum, read_arrays
from nmt.training.checkpoints import Checkpoint, save_checkpoint
from nmt.training.console import Console
from nmt.training.estimate import bytes_to_write, estimate
from nmt.training.input_pipeline import InputPipeline
from nmt.training.interrupts import StopRequested
from nmt.training.listeners import StepEvent
from nmt.training.resume import apply_changes, check_changes, start_run
from nmt.training.state import TrainState
from nmt.training.trainer import Trainer
from nmt.training.validation import Decode

TINY_MODEL = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 32, "heads": 2}
TINY_TRAINING = {"epochs": 3, "batch_size": 32, "warmup_steps": 20, "log_every": 3, "precision": "float32"}


def tiny(model: dict | None = None, **training: object) -> Config:
    return Config.model_validate({"model": {**TINY_MODEL, **(model or {})}, "training": {**TINY_TRAINING, **training}})


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.chdir(tmp_path)
    return prepare(write_pickle(tmp_path / "pairs.pkl", small_pairs(150)), Config().data, "pairs")


def resume_run(run: Run, config: Config, dataset: Dataset, *, allow_changes: bool = False) -> list[str]:
    """Do what the command does before it goes on with a run."""
    changes = check_changes(run, config, dataset, allow_changes=allow_changes)
    apply_changes(run, config, dataset)
    return changes


class Silent(Console):
    """Progress that is told to nobody, and can die after some steps, as if the process were killed there."""

    def __init__(self, epochs: int, break_after: int | None = None) -> None:
        super().__init__(epochs, log_every=1, stream=io.StringIO())
        self.break_after = break_after
        self.steps_seen = 0

    def on_step(self, event: StepEvent) -> None:
        self.steps_seen += 1
        if self.steps_seen == self.break_after:
            raise KeyboardInterrupt


def leave_after(checks: int) -> Callable[[], None]:
    """Return what a trainer calls between steps and batches; at that call somebody asks to leave."""
    calls = itertools.count(1)

    def check() -> None:
        if next(calls) >= checks:
            raise StopRequested(signal.SIGINT)

    return check


def train(
    name: str,
    config: Config,
    dataset: Dataset,
    break_after: int | None = None,
    leave: int | None = None,
    decode: Decode | None = None,
) -> Trainer:
    run = Run(Path("checkpoints") / name)
    if run.config_path.exists():
        resume_run(run, config, dataset)
    else:
        start_run(name, config, dataset)
    trainer = Trainer(run, config, dataset, decode)
    check = (lambda: None) if leave is None else leave_after(leave)
    trainer.train([Silent(config.training.epochs, break_after)], check)
    return trainer


def digest(trainer: Trainer) -> str:
    """Of everything that the next step depends on."""
    whole = hashlib.sha256()
    for variable in trainer.state.model.variables:
        whole.update(variable.value.numpy().tobytes())
    for array in trainer.state.train_step.state().values():
        whole.update(array.tobytes())
    return whole.hexdigest()


def comparable(run: Run) -> list[dict]:
    records = [json.loads(line) for line in run.metrics_path.read_text().splitlines()]
    return [{key: record[key] for key in record.keys() - {"seconds", "energy_joules"}} for record in records]


@pytest.mark.slow
def test_epochs_record_the_energy_of_the_processor(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zone = tmp_path / "powercap" / "intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0")

    class Meter(EnergyMeter):
        """Each reading finds two joules more."""

        readings = 0

        def __init__(self) -> None:
            (zone / "energy_uj").write_text(f"{2_000_000 * Meter.readings}")
            super().__init__(zone.parent)

        def read(self) -> float | None:
            Meter.readings += 1
            (zone / "energy_uj").write_text(f"{2_000_000 * Meter.readings}")
            return super().read()

    monkeypatch.setattr("nmt.training.trainer.EnergyMeter", Meter)
    trainer = train("whole", tiny(epochs=2, log_every=2), dataset)
    steps = trainer.state.position.step // 2
    assert [record.energy_joules for record in trainer.run.epochs()] == [
        2.0 * (steps // 2 + 1),
        2.0 * (trainer.state.position.step // 2 - steps // 2 + 1),
    ]
    with pytest.raises(StopRequested):
        train("stopped", tiny(epochs=2), dataset, leave=2)
    first, second = train("stopped", tiny(epochs=2), dataset).run.epochs()
    assert first.energy_joules is None and second.energy_joules is not None


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(
            {"precision": "bfloat16", "batch_type": "tokens", "batch_size": 120, "r_drop": 5.0}, marks=pytest.mark.slow
        ),
        pytest.param({"precision": "float16", "micro_batches": 2, "batch_size": 16}, marks=pytest.mark.slow),
        {
            "precision": "float32",
            "model": {"attention_dropout": 0.2, "feed_forward_dropout": 0.2},
            "schedule": "cosine",
            "peak_learning_rate": 3e-3,
            "weight_decay": 0.1,
            "clip_norm": 0.5,
            "ema_decay": 0.9,
        },
    ],
    ids=str,
)
def test_an_interrupted_run_ends_bit_identical_to_an_uninterrupted_one(dataset: Dataset, settings: dict) -> None:
    config = tiny(**settings)
    whole = train("whole", config, dataset)
    with pytest.raises(KeyboardInterrupt):
        train("broken", config, dataset, break_after=2)  # before anything was saved
    with pytest.raises(KeyboardInterrupt):
        train("broken", config, dataset, break_after=6)  # in the second epoch
    resumed = train("broken", config, dataset)
    assert digest(resumed) == digest(whole)
    assert comparable(resumed.run) == comparable(whole.run)


MIDWAY = {"validate_every": 2, "save_every": 3, "log_every": 2, "epochs": 2}


def decode_nothing(weights: Arrays, check: Callable[[], None]) -> DecodedValidation:
    """Stand in for translating: figures that depend on the weights."""
    check()
    total = float(sum(np.abs(array).sum(dtype=np.float64) for array in weights.values()))
    return DecodedValidation(total, 0.0, [Sample(source="a", reference="b", translation=f"{total}")])


@pytest.mark.parametrize(
    ("settings", "looks"),
    [({}, (3, 7)), ({"precision": "bfloat16", "micro_batches": 2, "batch_size": 16}, (5,))],
    ids=str,
)
@pytest.mark.slow
def test_leaving_at_any_time_and_going_on_changes_nothing(
    dataset: Dataset, settings: dict, looks: tuple[int, ...]
) -> None:
    """Asked to leave again and again, amid epochs and amid validations."""
    config = tiny(**MIDWAY, **settings)
    whole = train("whole", config, dataset, decode=decode_nothing)
    for look in looks:
        left = 0
        while True:
            try:
                trainer = train(f"left-at-{look}", config, dataset, leave=look, decode=decode_nothing)
                break
            except StopRequested:
                left += 1
                assert left < 60
        assert left >= 1
        assert digest(trainer) == digest(whole)
        assert comparable(trainer.run) == comparable(whole.run)


@pytest.mark.slow
def test_dying_at_a_step_and_going_on_changes_nothing(dataset: Dataset) -> None:
    config = tiny(**MIDWAY)
    whole = train("whole", config, dataset, decode=decode_nothing)
    assert whole.state.position.step == 8
    for step in (1, 3, 4, 7):
        with pytest.raises(KeyboardInterrupt):
            train(f"died-at-{step}", config, dataset, break_after=step, decode=decode_nothing)
        resumed = train(f"died-at-{step}", config, dataset, decode=decode_nothing)
        assert digest(resumed) == digest(whole)
        assert comparable(resumed.run) == comparable(whole.run)


@pytest.mark.slow
def test_states_are_saved_by_steps_and_by_time(dataset: Dataset) -> None:
    with pytest.raises(KeyboardInterrupt):
        train("steps", tiny(save_every=2, save_every_minutes=None), dataset, break_after=3)
    assert Run(Path("checkpoints/steps")).state_steps == [2]
    with pytest.raises(KeyboardInterrupt):
        train("time", tiny(save_every_minutes=1e-9), dataset, break_after=3)
    assert Run(Path("checkpoints/time")).state_steps == [1, 2]
    with pytest.raises(KeyboardInterrupt):
        train("neither", tiny(save_every_minutes=None), dataset, break_after=3)
    assert Run(Path("checkpoints/neither")).state_steps == []


def scores(*bleu: float) -> Decode:
    """Stand in for translating: these BLEU scores, one a validation."""
    coming = iter(bleu)
    return lambda weights, check: DecodedValidation(next(coming), 0.0, [])


@pytest.mark.slow
def test_training_stops_when_patience_is_at_its_end_and_keeps_the_best(dataset: Dataset) -> None:
    config = tiny(epochs=9, patience=2, best_by="bleu", decode_validation=5, max_to_keep=1)
    trainer = train("run", config, dataset, decode=scores(1, 5, 4, 3))
    assert trainer.stopped_early
    assert trainer.is_finished
    assert trainer.epoch == 4
    assert trainer.run.best() == 2
    assert 2 in trainer.run.weights_epochs
    assert Trainer(trainer.run, config, dataset).is_finished
    more = tiny(epochs=9, patience=4, best_by="bleu", decode_validation=5, max_to_keep=1)
    trainer = train("run", more, dataset, decode=scores(2, 1))
    assert trainer.epoch == 6


@pytest.mark.slow
def test_a_run_that_stopped_early_ends_with_the_average_of_its_last_epochs(dataset: Dataset) -> None:
    config = tiny(epochs=40, patience=2, best_by="bleu", decode_validation=5, average_last=2)
    trainer = train("run", config, dataset, decode=scores(*range(6), 1, 0, 9))  # the last for the average
    average = trainer.run.average()
    assert average is not None
    assert (trainer.epoch, average.epochs) == (8, [7, 8])


@pytest.mark.slow
def test_the_best_weights_amid_an_epoch_are_kept(dataset: Dataset) -> None:
    config = tiny(epochs=1, validate_every=1, best_by="bleu", decode_validation=5)
    trainer = train("run", config, dataset, decode=scores(1, 3, 2, 1))
    assert trainer.state.position.step == 4
    assert [one.step for one in trainer.run.validations()] == [1, 2, 3, 4]
    assert trainer.run.best() == "step-2"
    assert trainer.run.step_weights == ["step-2"]
    assert choose_epoch(trainer.run, None) == "step-2"


@pytest.mark.slow
def test_weights_saved_while_a_state_is_written_stay(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of step 1 is written until the weights of step 2, then the best, are saved."""
    saved = threading.Event()

    def slowly(run: Run, content: Checkpoint, saved_weights: SavedWeights | None = None) -> None:
        if content.loop.step == 1:
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
    assert Run(Path("checkpoints/run")).step_weights == ["step-2"]


def test_a_run_starts_from_the_weights_of_another(dataset: Dataset) -> None:
    first = train("first", tiny(epochs=2), dataset)
    config = tiny(epochs=1, start_from="first:1")
    started = Trainer(start_run("second", config, dataset), config, dataset)
    expected = read_arrays(first.run.weights_path(1))
    assert all(np.array_equal(array, expected[name]) for name, array in weights_of(started.state.model).items())
    whole = train("whole", config, dataset)
    with pytest.raises(KeyboardInterrupt):
        train("broken", config, dataset, break_after=1)
    first.run.weights_path(1).unlink()  # once begun, a run does not need the other any more
    assert digest(train("broken", config, dataset)) == digest(whole)


def test_weights_of_another_vocabulary_are_no_start(dataset: Dataset, tmp_path: Path) -> None:
    train("first", tiny(epochs=1), dataset)
    other = prepare(write_pickle(tmp_path / "other.pkl", small_pairs(40)), Config().data, "other")
    config = tiny(epochs=1, start_from="first")
    with pytest.raises(ConflictError, match=r"run 'first' are not those of dataset 'other'.*--tokenizer-of first"):
        Trainer(start_run("second", config, other), config, other)


@pytest.mark.slow
def test_weights_of_another_shape_are_no_start(dataset: Dataset) -> None:
    train("first", tiny(epochs=1), dataset)
    config = tiny({"d_ff": 48}, epochs=1, start_from="first")
    with pytest.raises(
        DataError, match=r"feed_forward/inner/bias has shape \[32\] in the file and \[48\] in the model"
    ):
        Trainer(start_run("second", config, dataset), config, dataset)


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_what_is_being_saved_does_not_change_with_the_steps_that_follow(dataset: Dataset, micro_batches: int) -> None:
    config = tiny(epochs=3, ema_decay=0.9, weight_decay=0.1, micro_batches=micro_batches)
    state, groups = (
        TrainState(config, dataset.manifest.vocabulary),
        list(InputPipeline.of(config, dataset).step_batches(1)),
    )
    state.step(groups[0], 0.01)
    read = {"weights": weights_of(state.model), "averages": state.weights, "state": state.train_step.state()}
    copies = {part: {name: array.copy() for name, array in arrays.items()} for part, arrays in read.items()}
    digests = {part: checksum(arrays) for part, arrays in copies.items()}
    state.step(groups[-1], 0.01)
    assert all(checksum(arrays) != digests["weights"] for arrays in (weights_of(state.model), state.weights))
    set_weights(state.model, {name: np.zeros_like(array) for name, array in read["weights"].items()})
    state.step(groups[0], 0.01)
    assert {part: checksum(arrays) for part, arrays in read.items()} == digests
    set_weights(state.model, read["weights"])
    state.train_step.restore(read["state"])
    assert checksum(weights_of(state.model)) == digests["weights"]
    state.step(groups[0], 0.01)  # what they were taken from may be changed, they not
    assert {part: checksum(arrays) for part, arrays in read.items()} == digests


@pytest.mark.slow
def test_looking_ahead_leaves_no_trace(dataset: Dataset) -> None:
    config = tiny(**MIDWAY)
    whole = train("whole", config, dataset)
    with pytest.raises(KeyboardInterrupt):
        train("looked", config, dataset, break_after=4)
    run = Run(Path("checkpoints/looked"))
    before = {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}
    trainer = Trainer(run, config, dataset)
    ahead = estimate(trainer)
    assert {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()} == before
    assert (ahead.epochs, ahead.steps, ahead.parameters) == (2, 4, trainer.state.model.count_params())
    assert ahead.memory is None or ahead.memory > 10**8
    trainer.train([Silent(2)])
    assert digest(trainer) == digest(whole)


def test_a_run_that_the_disk_cannot_hold_is_not_begun(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(epochs=3)
    trainer = Trainer(start_run("run", config, dataset), config, dataset)
    needed = bytes_to_write(trainer)
    trainer.train([Silent(3)])
    written = sum(path.stat().st_size for path in trainer.run.folder.rglob("*.safetensors"))
    assert written <= needed <= 4 * written
    monkeypatch.setattr("nmt.training.estimate.free_bytes", lambda folder: 1000)
    fresh = Trainer(start_run("fresh", config, dataset), config, dataset)
    with pytest.raises(NmtError, match=r"Not enough disk space: checkpoints/fresh needs .* more"):
        estimate(fresh)


@pytest.mark.slow
def test_more_epochs_can_be_asked_of_a_finished_run(dataset: Dataset) -> None:
    at_once = train("at-once", tiny(epochs=4), dataset)
    train("in-two", tiny(epochs=2), dataset)
    in_two = train("in-two", tiny(epochs=4), dataset)
    assert digest(in_two) == digest(at_once)
    assert in_two.run.config().training.epochs == 4


@pytest.mark.slow
def test_going_on_under_another_tensorflow_is_noted_once(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train("run", tiny(epochs=1), dataset)
    now = runtime.environment()
    monkeypatch.setattr(runtime, "environment", lambda: {**now, "tensorflow": "9.9", "device": "8 GPU(s)"})
    run_training("run", tiny(epochs=2, samples=0), "pairs")
    note = (
        f"Note: the environment of run run has changed: tensorflow {now['tensorflow']} before, 9.9 now; device "
        f"{now['device']} before, 8 GPU(s) now. Its result may differ in the last bits from that of an uninterrupted "
        "run.\n"
    )
    assert note in capsys.readouterr().out
    run_training("run", tiny(epochs=3, samples=0), "pairs")
    assert "Note" not in capsys.readouterr().out


def test_a_loss_that_is_no_number_is_told_with_the_key_that_lowers_the_rate(dataset: Dataset) -> None:
    config = tiny(schedule="inverse_sqrt", peak_learning_rate=1e30)
    with pytest.raises(NmtError, match=r"--set training\.peak_learning_rate=5e\+29, with more"):
        train("run", config, dataset)


def test_a_schedule_to_the_end_of_the_run_gets_there_with_its_last_step(dataset: Dataset) -> None:
    falling = {"schedule": "linear", "peak_learning_rate": 1e-3, "warmup_steps": 2}
    batches = {"batch_type": "tokens", "batch_size": 100, "micro_batches": 2}
    trainer = train("run", tiny(**falling, **batches, epochs=2, log_every=1), dataset)
    rates = [record.learning_rate for record in trainer.run.metrics() if record.kind == "step"]
    total = trainer.pipeline.total_steps
    assert total == 2 * trainer.run.epochs()[0].step
    np.testing.assert_allclose(rates[1:total], 1e-3 * np.arange(total - 2, -1, -1)[: len(rates) - 1] / (total - 2))
    assert trainer.pipeline.learning_rate(total) == trainer.pipeline.learning_rate(total + 5) == 0


def test_other_epochs_are_refused_where_they_would_change_the_schedule(dataset: Dataset) -> None:
    falling = {"schedule": "cosine", "peak_learning_rate": 1e-3}
    config = tiny(**falling, epochs=1)
    run = start_run("run", config, dataset)
    resume_run(run, config, dataset)
    message = r"training\.epochs: 1 before, 2 now, with a schedule that falls to the end of the run\. "
    with pytest.raises(ConflictError, match=message):
        resume_run(run, tiny(**falling, epochs=2), dataset)
    fixed = start_run("fixed", tiny(**falling, decay_steps=9, epochs=1), dataset)
    resume_run(fixed, tiny(**falling, decay_steps=9, epochs=2), dataset)
    assert fixed.config().training.epochs == 2


@pytest.mark.slow
def test_a_run_ends_with_the_average_of_its_last_epochs(dataset: Dataset) -> None:
    config = tiny(epochs=8, average_last=2, max_to_keep=1)
    trainer = train("run", config, dataset)
    average = trainer.run.average()
    assert average is not None
    assert average.epochs == [7, 8]
    weights = average_weights(trainer.run, [7, 8])
    loss, accuracy, _ = trainer.validator.validate(weights, lambda: None)
    assert (average.validation_loss, average.validation_accuracy) == (loss, accuracy)
    assert average.validation_loss not in [one.validation_loss for one in trainer.run.epochs()]
    assert Trainer(trainer.run, config, dataset).is_finished
    trainer.run.weights_path("average").unlink()  # as if it had been interrupted there
    again = train("run", config, dataset)
    assert again.run.average() == average
    assert digest(again) == digest(trainer)


@pytest.mark.parametrize(
    ("epochs", "average_last", "averaged"), [(7, 5, 0), (8, 5, 2), (20, 5, 5), (100, 5, 5), (20, 1, 0)]
)
def test_at_most_a_quarter_of_the_epochs_is_averaged(
    dataset: Dataset, epochs: int, average_last: int, averaged: int
) -> None:
    config = tiny(epochs=epochs, average_last=average_last)
    trainer = Trainer(start_run("run", config, dataset), config, dataset)
    assert trainer.epochs_to_average == list(range(epochs - averaged + 1, epochs + 1))


@pytest.mark.slow
def test_sampled_subwords_are_new_every_epoch_and_the_same_when_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"tokenizer": "subword", "vocabulary_size": 60, "byte_fallback": False, "subword_sampling": True}
    config = Config.model_validate({**tiny().model_dump(), "data": settings})
    dataset = prepare(write_pickle(tmp_path / "pairs.pkl", small_pairs(150)), config.data, "pairs")
    whole = train("whole", config, dataset)
    cut = [whole.pipeline.split(epoch).source.tokens.tolist() for epoch in (1, 2, 2)]
    assert cut[0] != cut[1] == cut[2]
    with pytest.raises(KeyboardInterrupt):
        train("broken", config, dataset, break_after=6)
    assert digest(train("broken", config, dataset)) == digest(whole)


def test_another_seed_gives_another_model(dataset: Dataset) -> None:
    assert digest(train("a", tiny(epochs=1), dataset)) != digest(train("b", tiny(epochs=1, seed=2), dataset))


def test_training_learns(dataset: Dataset) -> None:
    epochs = train("run", tiny(epochs=8, warmup_steps=60), dataset).run.epochs()
    assert epochs[-1].train_loss < 0.6 * epochs[0].train_loss
    assert epochs[-1].validation_accuracy > epochs[0].validation_accuracy + 0.1


def test_one_trace_serves_all_batch_shapes(dataset: Dataset) -> None:
    trainer = train("run", tiny(), dataset)
    plan = plan_epoch(trainer.pipeline.split(1), 32, seed=1, epoch=1, sort_by_length=False)
    assert len({len(batch) for batch in plan}) > 1, "the corpus must give batches of different shapes"
    assert trainer.state.train_step.step.experimental_get_tracing_count() == 1
    assert trainer.validator.step.experimental_get_tracing_count() == 1


def test_validation_metrics_are_exact_means_over_tokens(dataset: Dataset) -> None:
    """Against NumPy, sentence by sentence: uneven batches and padding must not matter."""
    trainer = train("run", tiny(epochs=1), dataset)
    split, loss, right, tokens = trainer.validator.split, 0.0, 0, 0
    for index in range(len(split)):
        row = np.array([index])
        source, target = pad_rows(split.source, row, bos=True), pad_rows(split.target, row, bos=True)
        logits = trainer.state.model(source, target[:, :-1]).numpy()[0].astype(np.float64)
        log_softmax = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        expected = target[0, 1:]
        loss -= log_softmax[range(len(expected)), expected].sum()
        right += int((logits.argmax(axis=-1) == expected).sum())
        tokens += len(expected)
    metrics = trainer.run.epochs()[0]
    assert metrics.validation_loss == pytest.approx(loss / tokens, abs=1e-5)
    assert metrics.validation_accuracy == pytest.approx(right / tokens, abs=1e-9)


def test_training_metrics_count_every_target_token_once(dataset: Dataset) -> None:
    metrics = train("run", tiny(epochs=1), dataset).run.epochs()[0]
    train_split = dataset.manifest.splits["train"]
    assert metrics.target_tokens == train_split.tokens["target"] + train_split.pairs  # each with its eos


def test_step_records_average_to_the_epoch_record(dataset: Dataset) -> None:
    """With a record every step and batches of one size in tokens, the means agree."""
    trainer = train("run", tiny(epochs=1, log_every=1, batch_size=1), dataset)
    steps = [one for one in trainer.run.metrics() if one.kind == "step"]
    lengths = trainer.pipeline.split(1).target.lengths + 1
    plan = plan_epoch(trainer.pipeline.split(1), 1, seed=1, epoch=1, sort_by_length=False)
    weights = [int(lengths[batch[0]]) for batch in plan]
    mean = np.average([one.loss for one in steps], weights=weights)
    assert trainer.run.epochs()[0].train_loss == pytest.approx(mean, abs=1e-5)


def test_computing_only_the_tokens_that_count_changes_nothing_but_the_time(dataset: Dataset) -> None:
    """Without dropout, whose random numbers fall differently: the same losses, step by step."""
    padded = {"remove_padding": False, "pad_to_longest": True}
    runs = [train(name, tiny({"dropout": 0.0}, log_every=1, **one), dataset).run for name, one in
            (("packed", {}), ("padded", padded))]  # fmt: skip
    losses = [[record.loss for record in run.metrics() if record.kind == "step"] for run in runs]
    assert len(losses[0]) == len(losses[1]) > 10
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


@pytest.mark.slow
def test_a_step_compiled_by_xla_is_the_same_step(dataset: Dataset) -> None:
    fixed = {"remove_padding": False, "pad_to_longest": True, "epochs": 1, "log_every": 1}
    runs = [train(str(xla), tiny({"dropout": 0.0}, xla=xla, **fixed), dataset).run for xla in (False, True)]
    losses = [[record.loss for record in run.metrics() if record.kind == "step"] for run in runs]
    assert len(losses[0]) == len(losses[1]) == 4
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "training"),
    [
        ({}, {"clip_norm": 1.0}),
        ({}, {"micro_batches": 2, "ema_decay": 0.9}),
        ({"architecture": "recurrent", "width": 16}, {}),
    ],
    ids=["transformer", "micro-batches", "recurrent"],
)
def test_an_eager_step_is_the_same_step(dataset: Dataset, model: dict, training: dict) -> None:
    configs = [tiny({}, precision="float32", epochs=1, log_every=1, eager=eager, **training) for eager in (False, True)]
    if model:
        configs = [config.model_copy(update={"model": ModelConfig.model_validate(model)}) for config in configs]
    runs = [train(str(config.training.eager), config, dataset).run for config in configs]
    losses = [[record.loss for record in run.metrics() if record.kind == "step"] for run in runs]
    assert len(losses[0]) == len(losses[1]) > 1
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


def test_xla_needs_a_traced_step() -> None:
    with pytest.raises(ValueError, match=r"xla and eager are both true\. .* Set training\.eager=false"):
        tiny(xla=True, remove_padding=False, eager=True)


def test_xla_and_packing_exclude_each_other() -> None:
    with pytest.raises(
        ValueError, match=r"xla and remove_padding are both true\. .* Set training\.remove_padding=false"
    ):
        tiny(xla=True)


def test_dropout_is_off_in_validation(dataset: Dataset) -> None:
    trainer = train("run", tiny({"dropout": 0.5}, epochs=1), dataset)
    weights = weights_of(trainer.state.model)
    first, second = (trainer.validator.validate(weights, lambda: None) for _ in range(2))
    assert first == second


def test_weights_of_every_epoch_are_kept_and_rotated_when_asked(dataset: Dataset) -> None:
    assert train("all", tiny(), dataset).run.weights_epochs == [1, 2, 3]
    rotated = train("some", tiny(epochs=6, max_to_keep=1), dataset).run
    assert {rotated.best(), 6} <= set(rotated.weights_epochs)
    assert len(rotated.weights_epochs) < 6


def test_a_loss_that_is_no_number_stops_the_run_in_words(dataset: Dataset) -> None:
    config = tiny(learning_rate_scale=1e30)
    with pytest.raises(
        NmtError, match=r"Training diverged: step 2, batch 2 of epoch 1; nothing has been saved.*scale=5e\+29"
    ):
        train("run", config, dataset)
    assert Run(Path("checkpoints/run")).metrics() == []


@pytest.mark.slow
def test_bfloat16_learns_as_float32_does(dataset: Dataset) -> None:
    """The same batches and first weights: the loss curves of some hundred steps lie together."""
    curves = [
        [
            one.train_loss
            for one in train(precision, tiny(precision=precision, epochs=30, warmup_steps=400), dataset).run.epochs()
        ]
        for precision in ("float32", "bfloat16")
    ]
    assert curves[0][-1] < 0.6 * curves[0][0]
    np.testing.assert_allclose(curves[1], curves[0], rtol=0.05)


def test_batches_added_up_are_as_one(dataset: Dataset) -> None:
    """Without dropout, three batches of eight are a batch of 24 but for rounding, step by step."""
    runs = [
        train(name, tiny({"dropout": 0.0}, batch_size=size, micro_batches=count, log_every=1), dataset)
        for name, size, count in (("one", 24, 1), ("three", 8, 3))
    ]
    losses = [[record.loss for record in one.run.metrics() if record.kind == "step"] for one in runs]
    assert len(losses[0]) == len(losses[1]) > 10
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    step = runs[1].state.train_step
    assert [one.experimental_get_tracing_count() for one in (step._traced_add, step.apply, step.step)] == [1, 1, 0]


@pytest.mark.slow
def test_float16_learns_as_float32_does_and_scales_its_loss(dataset: Dataset) -> None:
    settings = {"epochs": 12, "warmup_steps": 100}
    whole, half = (train(one, tiny(precision=one, **settings), dataset) for one in ("float32", "float16"))
    assert half.state.model.compute_dtype == "float16"
    curves = [[one.train_loss for one in trainer.run.epochs()] for trainer in (whole, half)]
    np.testing.assert_allclose(curves[1], curves[0], rtol=0.05)
    assert half.state.train_step.state()["loss_scale"] >= 2.0**10


def test_a_step_whose_gradients_overflow_is_left_out_and_the_scale_halved(dataset: Dataset) -> None:
    trainer = train("run", tiny(precision="float16", epochs=1), dataset)
    scale, steps = trainer.state.train_step.loss_scale, trainer.state.train_step.optimizer.steps.numpy()
    scale.value.assign(2.0**24)
    before = [weight.numpy() for weight in trainer.state.model.weights]
    source, target = next(iter(trainer.pipeline.batches(1, [np.arange(32)])))
    rate, seed = np.float32(1e-3), np.array([1, 1])
    trainer.state.train_step.step(source, target, rate, seed)
    assert scale.value.numpy() == 2.0**23
    assert trainer.state.train_step.optimizer.steps.numpy() == steps
    for weight, old in zip(trainer.state.model.weights, before, strict=True):
        np.testing.assert_array_equal(weight, old)
    while trainer.state.train_step.optimizer.steps.numpy() == steps and scale.value.numpy() > 1:
        trainer.state.train_step.step(source, target, rate, seed)
    assert not np.array_equal(trainer.state.model.weights[0], before[0])
    assert all(np.isfinite(weight).all() for weight in trainer.state.model.weights)


def test_weights_stay_float32_in_bfloat16(dataset: Dataset) -> None:
    model = train("run", tiny(precision="bfloat16", epochs=1), dataset).state.model
    assert model.compute_dtype == "bfloat16"
    assert {weight.dtype for weight in model.weights} == {"float32"}


@pytest.mark.parametrize("model", [
    {"norm": "pre"},
    {"positions": "learned", "max_positions": 16},
    {"word_embedding": "sinusoidal", "tie_embeddings": "none"},
    {"tie_embeddings": "none", "source_bos": False, "share_decoder_norm": True, "head_size": 3,
     "attention_scale": "projection", "scale_embeddings": False},
])  # fmt: skip
def test_every_variant_of_the_model_trains(dataset: Dataset, model: dict) -> None:
    first, last = train("run", tiny(model, epochs=4), dataset).run.epochs()[::3]
    assert last.train_loss < first.train_loss


def test_embeddings_can_be_tied_across_sides_of_a_joint_vocabulary(dataset: Dataset, tmp_path: Path) -> None:
    config = tiny({"tie_embeddings": "all"}, epochs=2)
    with pytest.raises(ConfigError, match="needs one vocabulary for both"):
        train("separate", config, dataset)
    joint_settings = Config.model_validate({"data": {"joint_vocabulary": True}}).data
    joint = prepare(tmp_path / "pairs.pkl", joint_settings, "joint")
    trainer = train("joint", config, joint)
    assert trainer.state.model.source_embedding is trainer.state.model.target_embedding


def test_sentences_beyond_learned_positions_are_refused_before_training(dataset: Dataset) -> None:
    with pytest.raises(
        ConfigError, match=r"The longest source of the train split has 6 tokens .* Set model.max_positions=6"
    ):
        train("run", tiny({"positions": "learned", "max_positions": 4}), dataset)


def test_going_on_with_other_settings_or_data_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    train("run", tiny(epochs=1), dataset)
    before = (tmp_path / "checkpoints" / "run" / "config.yaml").read_text()
    with pytest.raises(ConflictError, match=r"model.dropout: 0.1 before, 0.3 now.*training.batch_size: 32 before, 16"):
        train("run", tiny({"dropout": 0.3}, batch_size=16), dataset)
    other = prepare(write_pickle(tmp_path / "other.pkl", small_pairs(160)), Config().data, "other")
    with pytest.raises(ConflictError, match="dataset: 'pairs' before, 'other'"):
        train("run", tiny(epochs=1), other)
    assert (tmp_path / "checkpoints" / "run" / "config.yaml").read_text() == before


def test_going_on_with_other_settings_can_be_allowed(dataset: Dataset) -> None:
    run = train("run", tiny(epochs=1), dataset).run
    changed = tiny({"dropout": 0.3}, epochs=2)
    assert resume_run(run, changed, dataset, allow_changes=True) == ["model.dropout: 0.1 before, 0.3 now"]
    assert train("run", changed, dataset).epoch == 2
    assert run.config().model.dropout == 0.3
