"""Search space: valid candidates around any base, the base first, in an order that the seed decides."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config.schema import Config
from nmt.tuning.space import BASE, candidates, combined, costs_as_base, with_changes

TRANSFORMERS = st.fixed_dictionaries({
    "encoder_layers": st.integers(1, 30), "decoder_layers": st.integers(1, 30),
    "d_model": st.sampled_from([2, 16, 48, 128, 256, 320, 512, 4096]), "heads": st.sampled_from([1, 2]),
    "head_size": st.sampled_from([None, 24]), "dropout": st.sampled_from([0.0, 0.04, 0.1, 0.3, 0.6, 0.95]),
    "norm": st.sampled_from(["pre", "post"]), "initializer": st.sampled_from(["small", "glorot"]),
    "attention_dropout": st.sampled_from([0.0, 0.2]),
})  # fmt: skip
RECURRENT = st.fixed_dictionaries({
    "architecture": st.just("recurrent"), "layers": st.integers(1, 5), "width": st.sampled_from([8, 100, 256, 2048]),
    "bidirectional": st.booleans(), "first_state": st.just("linear"), "dropout": st.sampled_from([0.0, 0.2]),
    "embedding_width": st.sampled_from([None, 64]),
})  # fmt: skip
TRAININGS = st.sampled_from([
    {}, {"batch_size": 1}, {"batch_size": 2**24}, {"batch_type": "tokens", "label_smoothing": 0.0},
    {"schedule": "linear", "peak_learning_rate": 0.0015, "final_learning_rate": 0.001, "warmup_steps": 1},
    {"schedule": "inverse_sqrt", "peak_learning_rate": 0.0005, "label_smoothing": 0.95},
])  # fmt: skip


@given(TRANSFORMERS | RECURRENT, TRAININGS, st.integers(0, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_candidates_are_valid_different_and_begin_with_the_base(
    model: dict[str, Any], training: dict[str, Any], count: int, seed: int
) -> None:
    base = Config.model_validate({"model": model, "training": training})
    found = candidates(base, count, seed)
    assert found[0].number == BASE and not found[0].changes
    assert [candidate.number for candidate in found] == list(range(len(found)))
    assert len(found) <= 1 + count
    configs = [with_changes(base, candidate.changes) for candidate in found]  # raises if one is not valid
    assert configs[0] == base
    assert all(config not in configs[:number] for number, config in enumerate(configs))
    assert candidates(base, count, seed) == found
    assert candidates(base, count // 2, seed) == found[: 1 + count // 2], "a larger budget adds to a smaller one"


def test_there_are_enough_candidates_and_the_seed_orders_them() -> None:
    base = Config()
    found = candidates(base, 27, 1)
    assert len(found) == 28
    assert candidates(base, 27, 2) != found
    assert any(len(candidate.changes) > 2 for candidate in candidates(base, 60, 1)), "pairs of changes come last"


def test_the_weighty_changes_come_first() -> None:
    keys = {key for candidate in candidates(Config(), 10, 3) for key in candidate.changes}
    assert keys <= {
        "training.learning_rate_scale", "training.batch_size", "training.optimizer", "model.dropout",
        "model.encoder_layers", "model.decoder_layers", "model.d_model", "model.d_ff", "model.heads",
    }  # fmt: skip


def test_another_schedule_has_another_key_for_the_rate() -> None:
    base = Config.model_validate({"training": {"schedule": "linear", "peak_learning_rate": 0.0015}})
    rates = {candidate.changes.get("training.peak_learning_rate") for candidate in candidates(base, 12, 1)}
    assert rates == {None, 0.003, 0.00075}  # twice and half; Muon has twice


@pytest.mark.parametrize(("optimizer", "other", "peak"), [("adam", "muon", 0.003), ("muon", "adam", 0.00075)])
def test_the_other_optimizer_has_a_peak_of_its_own(optimizer: str, other: str, peak: float) -> None:
    settings = {"schedule": "linear", "peak_learning_rate": 0.0015, "optimizer": optimizer}
    changes = [candidate.changes for candidate in candidates(Config.model_validate({"training": settings}), 12, 1)]
    assert {"training.optimizer": other, "training.peak_learning_rate": peak} in changes


def test_a_run_that_starts_from_weights_keeps_its_model() -> None:
    base = Config.model_validate({"training": {"start_from": "letters"}})
    for candidate in candidates(base, 60, 1):
        assert all(key.startswith("training.") or key.endswith("dropout") for key in candidate.changes)


def test_changes_of_one_key_are_not_combined() -> None:
    assert combined({"model.dropout": 0.2}, {"model.dropout": 0.0}) is None
    assert combined({"model.dropout": 0.2}, {"model.norm": "pre"}) == {"model.dropout": 0.2, "model.norm": "pre"}


@pytest.mark.parametrize(
    ("changes", "costs"),
    [
        ({}, True),
        ({"training.peak_learning_rate": 0.1, "training.warmup_steps": 3}, True),
        ({"model.dropout": 0.3}, True),
        ({"model.dropout": 0.0}, False),
        ({"training.batch_size": 128}, False),
        ({"model.dropout": 0.3, "model.d_model": 256}, False),
    ],
)
def test_only_what_changes_the_arithmetic_is_measured_anew(changes: dict[str, Any], costs: bool) -> None:
    assert costs_as_base(Config(), changes) == costs
