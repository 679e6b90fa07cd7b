"""The learning rate: the paper's formula in NumPy, its shape, and steps it has no value for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.schedule import warmup_rate

SETTINGS = pytest.mark.parametrize(
    ("d_model", "warmup_steps", "scale"), [(512, 4000, 1.0), (128, 400, 0.5), (2, 1, 3.0), (64, 10, 1.0)]
)


@SETTINGS
def test_rates_equal_the_formula_in_numpy(d_model: int, warmup_steps: int, scale: float) -> None:
    steps = np.concatenate([np.arange(1, 50), np.geomspace(50, 1e6, 200).astype(int)])
    expected = scale / np.sqrt(d_model) * np.minimum(1 / np.sqrt(steps), steps / np.sqrt(warmup_steps) ** 3)
    rates = [warmup_rate(int(step), d_model=d_model, warmup_steps=warmup_steps, scale=scale) for step in steps]
    np.testing.assert_allclose(rates, expected, rtol=1e-12)


def test_the_peak_of_the_base_model() -> None:
    assert warmup_rate(4000, d_model=512, warmup_steps=4000) == pytest.approx(6.98771e-4, rel=1e-6)


@SETTINGS
def test_the_rate_rises_in_a_straight_line_to_its_peak_and_then_falls(
    d_model: int, warmup_steps: int, scale: float
) -> None:
    first = warmup_rate(1, d_model=d_model, warmup_steps=warmup_steps, scale=scale)
    rates = [
        warmup_rate(step, d_model=d_model, warmup_steps=warmup_steps, scale=scale)
        for step in range(1, 2 * warmup_steps + 2)
    ]
    assert int(np.argmax(rates)) + 1 == warmup_steps
    np.testing.assert_allclose(rates[:warmup_steps], first * np.arange(1, warmup_steps + 1), rtol=1e-12)
    assert (np.diff(rates[warmup_steps - 1 :]) < 0).all()


@given(st.integers(1, 10**6), st.integers(1, 10**5))
def test_the_rate_never_jumps(step: int, warmup_steps: int) -> None:
    this, following = (warmup_rate(at, d_model=512, warmup_steps=warmup_steps) for at in (step, step + 1))
    first = warmup_rate(1, d_model=512, warmup_steps=warmup_steps)
    assert abs(following - this) <= first * (1 + 1e-9)  # no step changes it by more than the steps of the rise


@given(st.integers(1, 10**6), st.floats(1e-3, 1e3))
def test_scale_multiplies_the_whole_schedule(step: int, scale: float) -> None:
    plain = warmup_rate(step, d_model=256, warmup_steps=100)
    assert warmup_rate(step, d_model=256, warmup_steps=100, scale=scale) == pytest.approx(scale * plain, rel=1e-12)


@pytest.mark.parametrize("step", [0, -1, -4000])
def test_steps_below_one_are_refused_with_the_step(step: int) -> None:
    with pytest.raises(ValueError, match=rf"count from 1; received {step}$"):
        warmup_rate(step, d_model=512, warmup_steps=4000)
