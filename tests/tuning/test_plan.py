"""Plan: the budget holds for every budget and speed, and trials have a schedule of their own length."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import Config
from nmt.training.optimization.schedules import learning_rate
from nmt.tuning import plan
from nmt.tuning.plan import Score

SECONDS = st.floats(0.001, 1000)


@given(st.integers(0, 100), st.floats(1, 1e6), SECONDS, SECONDS, st.integers(1, 10_000))
def test_the_plan_fits_into_the_budget(
    available: int, budget: float, overhead: float, step_seconds: float, epoch_steps: int
) -> None:
    rungs = plan.shape(available, budget, overhead, step_seconds, epoch_steps)
    if not rungs:
        assert available == 0 or budget < plan.least_budget(overhead, step_seconds) * (1 + 1e-9)
        return
    assert rungs[-1] == 1 and rungs[0] <= available
    assert all(later < earlier for earlier, later in itertools.pairwise(rungs))
    left, before = budget, 0.0
    for number, count in enumerate(rungs):
        seconds = plan.training_seconds(left, len(rungs) - number, count + 1, overhead)
        steps = plan.steps_in(seconds, step_seconds)
        assert steps * step_seconds <= seconds * (1 + 1e-9)
        assert seconds > before, "each rung is longer than the one before"
        left, before = left - (count + 1) * (seconds + overhead), seconds
    assert left == pytest.approx(0, abs=1e-6 * budget)


@given(st.integers(1, 1000))
def test_each_rung_has_a_third_of_the_candidates(count: int) -> None:
    rungs = plan.halving(count)
    assert rungs[0] == count and rungs[-1] == 1
    assert all(later == -(-earlier // 3) for earlier, later in itertools.pairwise(rungs))


def test_an_hour_has_room_for_three_rungs() -> None:
    assert plan.shape(27, 3600, 15.0, 0.15, 400) == [9, 3, 1]


SCORES = st.dictionaries(
    st.integers(0, 20), st.builds(Score, st.integers(0, 5).map(float), st.integers(0, 3).map(float))
)


@given(SCORES, st.integers(0, 10))
def test_the_base_and_the_best_go_on(scores: dict[int, Score], count: int) -> None:
    on = plan.going_on(scores, 0, count)
    assert on[0] == 0 and 0 not in on[1:]
    assert len(on) == 1 + min(count, len(scores.keys() - {0}))
    out = scores.keys() - set(on)
    assert all(scores[kept] >= scores[dropped] for kept in on[1:] for dropped in out)
    pair = plan.worth_combining(scores, 0)
    if pair:
        assert all(scores[number] > scores[0] for number in pair) and pair[0] != pair[1]


def test_chrf_decides_between_equal_bleu() -> None:
    assert plan.ranked({1: Score(0.0, 20.0), 2: Score(0.0, 30.0), 3: Score(1.0, 10.0), 4: Score(0.0, 30.0)}) == [
        3,
        2,
        4,
        1,
    ]


TRAININGS = [
    {"schedule": "noam", "learning_rate_scale": 0.5, "warmup_steps": 4000},
    {"schedule": "linear", "peak_learning_rate": 0.0015, "warmup_steps": 400},
    {"schedule": "cosine", "peak_learning_rate": 0.0015, "warmup_steps": 400, "decay_steps": 77},
    {"schedule": "inverse_sqrt", "peak_learning_rate": 0.0005, "warmup_steps": 50},
]  # fmt: skip


@given(st.sampled_from(TRAININGS), st.integers(1, 20_000), st.integers(1, 3000), st.integers(1, 5))
def test_the_schedule_of_a_trial_ends_with_it_and_keeps_its_peak(
    training: dict[str, object], steps: int, epoch_steps: int, rung: int
) -> None:
    whole = Config.model_validate({"training": {**training, "decode_validation": 100, "best_by": "bleu"}})
    config = plan.trial_config(whole, steps, epoch_steps, rung)

    def rate(of: Config, step: int) -> float:
        return learning_rate(step, 512, of.training, total_steps=10**6)

    warmup = config.training.warmup_steps
    assert warmup <= max(1, steps // 5)
    assert rate(config, warmup) == pytest.approx(rate(whole, whole.training.warmup_steps))
    if config.training.schedule in {"linear", "cosine"} and steps > warmup:
        assert rate(config, steps) == pytest.approx(config.training.final_learning_rate)
    assert (config.training.epochs - 1) * epoch_steps > steps, "training does not end before the trial"
    assert config.training.seed == whole.training.seed + rung - 1
    assert config.model == whole.model and config.training.decode_validation == 0


def test_a_faster_candidate_has_more_epochs_in_the_same_time() -> None:
    assert plan.full_epochs(14, 60.0, 60.0) == 14
    assert plan.full_epochs(14, 60.0, 30.0) == 28
    assert plan.full_epochs(1, 60.0, 300.0) == 1
