"""Batches that fit: the choice of batch_size: auto, shortages foreseen, and a run in which memory ran out."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import small_pairs, write_pickle

from nmt.cluster.workers import Workers
from nmt.config.schema import Config
from nmt.data.dataset import Dataset
from nmt.data.prepare import prepare
from nmt.errors import DataError, NmtError
from nmt.models.weights import weights_of
from nmt.runs.directory import Run
from nmt.runs.fitted_batch import FittedBatch, read_fitted_batch
from nmt.runs.metrics import ShortageMetrics
from nmt.runtime import tf
from nmt.training.estimate import estimate
from nmt.training.listeners import Listener, StepEvent
from nmt.training.memory.demand import Demand, measure_demand
from nmt.training.memory.fit import MOST_HALVINGS, Fit, choose_batch, with_batch
from nmt.training.optimization.batch_limit import UNLIMITED, batch_shape
from nmt.training.session import TrainingSession
from nmt.training.trainer import Trainer

MODEL = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 32, "heads": 2}
MB = 10**6


def config_of(**training: Any) -> Config:
    settings = {"epochs": 2, "warmup_steps": 20, "log_every": 2, "precision": "float32", "samples": 0, **training}
    return Config.model_validate({"model": MODEL, "training": settings})


def fit_of(megabytes: int, free: int, weights: int = 0) -> Fit:
    """Return the fit of a longest batch of 64 sentences that takes some megabytes."""
    demand = Demand(64, 100, ((0, 0), (64, megabytes * MB)))
    return Fit([demand], [Demand(64, 100, ((0, 0), (64, MB)))], free * MB, weights * MB)


@pytest.mark.parametrize(
    ("megabytes", "free", "weights", "size", "micro_batches"),
    [(640, 1000, 0, 64, 1), (640, 700, 0, 32, 2), (640, 100, 0, 8, 8), (640, 13, 0, 1, 64), (640, 400, 40, 16, 4)],
)
def test_a_step_learns_from_as_many_sentences_whatever_fits(
    megabytes: int, free: int, weights: int, size: int, micro_batches: int
) -> None:
    config = config_of(batch_size="auto")
    fitted = choose_batch(config, fit_of(megabytes, free, weights), Workers())
    training = with_batch(config, fitted).training
    assert (training.batch_size, training.micro_batches) == (size, micro_batches)
    assert size * micro_batches == 64
    assert fitted.chosen_bytes is not None and fitted.chosen_bytes <= 0.85 * free * MB


def test_batches_by_tokens_are_halved_alike_and_the_reason_is_said() -> None:
    config = config_of(batch_size="auto", batch_type="tokens", micro_batches=2)
    fitted = choose_batch(config, fit_of(9100, 3200), Workers())
    assert (fitted.batch_size, fitted.micro_batches) == (512, 8)
    assert fitted.text == (
        "Batch size: 512 target tokens in each of 8 micro-batches, whose longest takes 2.3 GB; 3.2 GB were free, and "
        "the default of 2,048 takes 9.1 GB"
    )


def test_where_nothing_is_known_the_default_is_taken() -> None:
    fitted = choose_batch(config_of(batch_size="auto"), None, Workers())
    assert (fitted.batch_size, fitted.micro_batches) == (64, 1)
    assert "does not say" in fitted.text


def test_where_nothing_fits_training_does_not_begin() -> None:
    with pytest.raises(NmtError, match="No batch fits into memory: the smallest takes 10 MB, and 5 MB are free"):
        choose_batch(config_of(batch_size="auto"), fit_of(64 * 10, 5), Workers())
    assert 2**MOST_HALVINGS == 64


def test_the_choice_is_read_as_written(tmp_path: Path) -> None:
    path = tmp_path / "batch_size.json"
    assert read_fitted_batch(path) is None
    fitted = choose_batch(config_of(batch_size="auto"), fit_of(640, 700), Workers())
    fitted.write(path)
    assert read_fitted_batch(path) == fitted
    for content in ("[]", "{}", '{"format": 2}', '{"format": 1, "batch_size": 0}'):
        path.write_text(content)
        with pytest.raises(DataError):
            read_fitted_batch(path)


def test_the_demand_of_a_batch_is_a_line_through_small_parts() -> None:
    """Of an operation whose memory is known: a matrix of B rows, and its square."""
    kept = []

    def compute(batch: tuple[tf.Tensor, tf.Tensor]) -> None:
        rows = batch_shape(batch)[0]
        kept[:] = [tf.ones([rows, 250_000])]
        kept[:] = [kept[0] * kept[0]]
        kept.clear()

    batch = tf.zeros([64, 3], tf.int32), tf.zeros([64, 4], tf.int32)
    demand = measure_demand(compute, batch)
    if demand is None:
        pytest.skip("this build of TensorFlow does not count the memory of tensors")
    assert [rows for rows, _ in demand.measured] == [1, 8, 16, 32]
    np.testing.assert_allclose(demand.bytes(64), 2 * 64 * MB, rtol=0.05)


# --- runs


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dataset:
    monkeypatch.chdir(tmp_path)
    return prepare(write_pickle(tmp_path / "pairs.pkl", small_pairs(120)), Config().data, "pairs")


class Killed(Listener):
    """Ends training after some steps, as a signal would."""

    def __init__(self, after: int) -> None:
        self.left = after

    def on_step(self, event: StepEvent) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def session_of(name: str, config: Config) -> TrainingSession:
    session = TrainingSession(name, config, "pairs")
    session.open(lambda *_: None)  # type: ignore[arg-type, return-value]
    session.begin()
    return session


def test_a_run_keeps_the_size_that_was_chosen(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    config = config_of(batch_size="auto", epochs=1)
    monkeypatch.setattr("nmt.training.trainer.measure_fit", lambda *_: fit_of(640, 300))
    with session_of("run", config) as session:
        assert session.trainer.state.train_step.config.micro_batches == 4
    stored = session.run.config().training
    assert (stored.batch_size, stored.micro_batches) == (16, 4)
    fitted = read_fitted_batch(session.run.fitted_batch_path)
    assert fitted == session.trainer.fitted
    monkeypatch.setattr("nmt.training.trainer.measure_fit", lambda *_: fit_of(640, 5000))  # another machine
    with session_of("run", config) as session:
        assert (session.config.training.batch_size, session.config.training.micro_batches) == (16, 4)
    assert session.run.config().training == stored


@pytest.mark.slow
def test_what_does_not_fit_is_said_and_computed_in_parts(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.training.estimate.measure_fit", lambda *_: fit_of(640, 300))
    with session_of("run", config_of(epochs=1)) as session:
        ahead = estimate(session.trainer)
        assert ahead.shortage is not None
        assert "the longest batch takes about 640 MB, and 300 MB are free. Batches of more than 1,600 tokens" in (
            ahead.text
        )
        assert "--set training.batch_size=16 --set training.micro_batches=4" in ahead.text
        assert session.trainer.state.train_step.limit.tokens == 16 * 100
        assert session.trainer.state.train_step.validation_limit.tokens == UNLIMITED


@pytest.mark.slow
def test_a_run_in_which_memory_ran_out_resumes_to_the_same_bits(dataset: Dataset) -> None:
    config = config_of(batch_size=24, eager=True, save_every_minutes=None)

    def trained(name: str, *, kill: int | None = None) -> Trainer:
        with session_of(name, config) as session:
            trainer = session.trainer
            step, calls = trainer.state.train_step.step, itertools.count(trainer.state.position.step + 1)

            def run(*arguments: Any) -> None:
                if next(calls) == 3:  # whatever the batch: the memory was short at that moment
                    raise tf.errors.ResourceExhaustedError(None, None, "no memory for a tensor")
                step(*arguments)

            trainer.state.train_step.step = run
            trainer.train([Killed(kill)] if kill else [])
        return trainer

    whole = trained("whole")
    with pytest.raises(KeyboardInterrupt):
        trained("killed", kill=4)
    assert Run(Path("checkpoints/killed")).state_steps == [3]  # saved at once
    resumed = trained("killed")
    [record] = [record for record in whole.run.metrics() if isinstance(record, ShortageMetrics)]
    assert (record.epoch, record.step) == (1, 3)
    assert record.tokens - 1 == whole.state.train_step.limit.tokens == resumed.state.train_step.limit.tokens
    assert whole.run.metrics_path.exists()
    for name, array in weights_of(whole.state.model).items():
        np.testing.assert_array_equal(array, weights_of(resumed.state.model)[name], err_msg=name)
    lines = [
        [json.loads(line) for line in trainer.run.metrics_path.read_text().splitlines()] for trainer in (whole, resumed)
    ]
    for line in itertools.chain(*lines):
        line.pop("seconds", None)
    assert lines[0] == lines[1]


@pytest.mark.slow
def test_validation_in_parts_has_the_same_figures(dataset: Dataset) -> None:
    with session_of("run", config_of()) as session:
        validator = session.trainer.validator
        expected = validator.teacher_forced(lambda: None)
        validator.limit.tokens = validator.limit.found = 40
        assert len(validator.limit.bounds(next(validator.batches(validator.plan)), 40)) > 1
        np.testing.assert_allclose(validator.teacher_forced(lambda: None), expected, rtol=1e-6)


def test_a_fitted_batch_has_positive_sizes() -> None:
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        FittedBatch(
            batch_type="tokens", batch_size=0, micro_batches=1, default_size=1, needed_bytes=None, chosen_bytes=None,
            free_bytes=None,
        )  # fmt: skip
