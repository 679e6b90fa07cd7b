"""Learning-rate schedules against the paper's formula in NumPy and the schedules of Keras."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.training import TrainingConfig
from nmt.runtime import keras
from nmt.training.optimization.schedules import learning_rate, steps_of_run


@pytest.mark.parametrize(("d_model", "warmup_steps", "scale"), [(512, 4000, 1.0), (128, 400, 0.5), (2, 1, 3.0)])
def test_rates_equal_the_formula_in_numpy(d_model: int, warmup_steps: int, scale: float) -> None:
    steps = np.concatenate([np.arange(1, 50), np.geomspace(50, 1e6, 200).astype(int)])
    expected = scale / np.sqrt(d_model) * np.minimum(1 / np.sqrt(steps), steps / np.sqrt(warmup_steps) ** 3)
    training = TrainingConfig(warmup_steps=warmup_steps, learning_rate_scale=scale)
    rates = [learning_rate(int(step), d_model, training) for step in steps]
    np.testing.assert_allclose(rates, expected, rtol=1e-12)


# --- the schedules that take their peak


def settings(schedule: str, **changes: Any) -> TrainingConfig:
    peak = None if schedule == "noam" else 2e-3
    return TrainingConfig(schedule=schedule, peak_learning_rate=peak, warmup_steps=10, **changes)


STEPS = [1, 2, 9, 10, 11, 25, 49, 50, 51, 200]


def rates(training: TrainingConfig, total_steps: int | None = None, steps: list[int] = STEPS) -> list[float]:
    return [learning_rate(step, 512, training, total_steps) for step in steps]


@pytest.mark.parametrize("final", [0.0, 5e-4])
@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_decays_equal_those_of_keras(schedule: str, final: float) -> None:
    theirs = {
        "cosine": keras.optimizers.schedules.CosineDecay(2e-3, decay_steps=40, alpha=final / 2e-3),
        "linear": keras.optimizers.schedules.PolynomialDecay(2e-3, 40, end_learning_rate=final, power=1.0),
    }[schedule]
    expected = [2e-3 * step / 10 if step < 10 else float(theirs(step - 10)) for step in STEPS]
    ours = rates(settings(schedule, final_learning_rate=final), total_steps=50)
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-9)


@given(st.integers(1, 10**6), st.integers(1, 10**5), st.sampled_from([64, 512]))
def test_inverse_sqrt_is_the_papers_schedule_with_its_peak_given(step: int, warmup_steps: int, d_model: int) -> None:
    peak = (d_model * warmup_steps) ** -0.5
    training = TrainingConfig(schedule="inverse_sqrt", peak_learning_rate=peak, warmup_steps=warmup_steps)
    paper = learning_rate(step, d_model, TrainingConfig(warmup_steps=warmup_steps))
    assert learning_rate(step, d_model, training) == pytest.approx(paper, rel=1e-9)


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_the_fall_ends_with_the_run(schedule: str) -> None:
    training = settings(schedule, final_learning_rate=1e-4)
    assert learning_rate(50, 512, training, 50) == pytest.approx(1e-4)
    assert learning_rate(10, 512, training, 5) == 2e-3  # a run shorter than its rise only rises
    with pytest.raises(ValueError, match=f"schedule {schedule} to the end of the run needs total_steps"):
        learning_rate(1, 512, training)


@pytest.mark.parametrize("schedule", ["noam", "inverse_sqrt", "cosine", "linear"])
def test_every_schedule_rises_straight_to_its_peak_and_falls_from_there(schedule: str) -> None:
    whole = rates(settings(schedule), 300, list(range(1, 301)))
    np.testing.assert_allclose(whole[:10], whole[0] * np.arange(1, 11), rtol=1e-12)
    assert (np.diff(whole[9:]) < 0).all()
    assert schedule == "noam" or whole[9] == pytest.approx(2e-3, rel=1e-12)
    for step in (0, -4000):
        with pytest.raises(ValueError, match=rf"count from 1; received {step}$"):
            learning_rate(step, 512, settings(schedule), 100)


@pytest.mark.parametrize(("batches", "accumulate", "expected"), [(100, 1, 500), (100, 3, 170), (1, 8, 5)])
def test_the_steps_of_a_run_are_those_of_its_first_epoch_times_the_epochs(
    batches: int, accumulate: int, expected: int
) -> None:
    assert steps_of_run(lambda _: batches, TrainingConfig(epochs=5, micro_batches=accumulate)) == expected
