"""Learning-rate schedules as pure functions of the step, shared by training and plots."""


def warmup_rate(step: int, *, d_model: int, warmup_steps: int, scale: float = 1.0) -> float:
    """Return the learning rate of a step, the first being 1 (Vaswani et al. 2017, equation 3).

    scale * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5): a straight rise over ``warmup_steps``, then a
    fall with the square root of the step.

    Raises:
        ValueError: for a step below 1, where the formula has no value.
    """
    if step < 1:
        raise ValueError(f"steps count from 1; received {step}")
    return float(scale * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))
