"""A recipe is a valid, sensible configuration for every dataset, and follows the settings of the user."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.config.schema import Config, TransformerConfig
from nmt.recipes import sizes
from nmt.recipes.recipe import Facts, Recipe, choose, compose, steps_for
from nmt.recipes.sizes import SIZES, WARMUP_STEPS, dropout_for, most_epochs, size_for, smaller

CORPORA = [1, 2, 40, 900, 2_000, 8_000, 10_000, 18_000, 29_000, 80_000, 160_000, 400_000, 1_500_000, 50_000_000]


def facts(pairs: int = 29_000, length: int = 15, joint: bool = True, validation: int = 1_000) -> Facts:
    """Return the facts of a corpus whose sentences have a length."""
    return Facts(
        dataset="corpus", pairs=pairs, source_tokens=pairs * length, target_tokens=pairs * length,
        target_length=length, validation_pairs=validation, is_joint=joint,
    )  # fmt: skip


def weights(recipe: Recipe) -> int:
    """Return the approximate number of weights of a Transformer's layers."""
    model: Any = recipe.config.model
    return (model.encoder_layers + model.decoder_layers) * model.d_model**2


def steps(recipe: Recipe) -> int:
    training = recipe.config.training
    return steps_for(recipe.facts, training.batch_size) * training.epochs


@settings(max_examples=60, deadline=None)
@given(pairs=st.integers(1, 10**8), length=st.integers(0, 500), joint=st.booleans(), validation=st.integers(0, 5_000))
def test_every_choice_is_a_configuration_that_keeps_the_rules(
    pairs: int, length: int, joint: bool, validation: int
) -> None:
    recipe = compose(facts(pairs, length, joint, validation))
    model: Any = recipe.config.model
    training = recipe.config.training
    assert model.d_model % model.heads == 0 and model.d_ff == (4 if model.d_model >= 384 else 2) * model.d_model
    assert (model.tie_embeddings == "all") == joint
    total = steps(recipe)
    assert 1 <= training.warmup_steps <= min(WARMUP_STEPS, max(1, total * sizes.WARMUP_SHARE))
    assert training.schedule == "linear" and training.final_learning_rate == 0
    assert training.average_last == 1 and training.patience is None
    assert sizes.LEAST_BATCH <= training.batch_size <= sizes.MOST_BATCH
    room = min(sizes.MOST_BATCH, sizes.LEAST_SENTENCES * (length + 1))
    assert training.batch_size >= room or total < 2 * sizes.LEAST_STEPS
    assert (training.best_by == "bleu") == (validation >= 100)


def test_a_larger_corpus_has_no_smaller_model_and_no_more_epochs_or_dropout() -> None:
    recipes = [compose(facts(pairs)) for pairs in CORPORA]
    weighed = [weights(recipe) for recipe in recipes]
    assert weighed == sorted(weighed) and weighed[0] < weighed[-1]
    epochs = [recipe.config.training.epochs for recipe in recipes]
    assert epochs == sorted(epochs, reverse=True)
    rates = [recipe.config.training.peak_learning_rate for recipe in recipes]
    assert rates == sorted(rates, reverse=True)
    for count in (3, 10, 20, 60, 300):
        dropout = [dropout_for(row, count) for row in SIZES]
        assert dropout == sorted(dropout, reverse=True)
        at = [dropout_for(SIZES[3], seen) for seen in range(1, count)]
        assert at == sorted(at)


def test_a_small_corpus_of_long_sentences_gets_fewer_epochs() -> None:
    epochs = [compose(facts(pairs=20_000, length=length)).config.training.epochs for length in (10, 40, 400)]
    assert epochs == [14, 10, sizes.LEAST_EPOCHS]
    assert compose(facts(pairs=200_000, length=400)).config.training.epochs == size_for(200_000).epochs


def test_sampled_subwords_come_with_joined_pairs_and_longer_translations() -> None:
    for pairs, directions, has_text, is_small in [
        (14_999, 1, True, True),
        (14_999, 1, False, False),
        (15_000, 1, True, False),
        (29_998, 2, True, True),
    ]:
        config = compose(facts(pairs)._replace(directions=directions, has_text=has_text)).config
        assert config.training.subword_sampling == (True if is_small else None)
        assert config.training.augment == ({"join": sizes.JOINED_PAIRS} if is_small else {})
        assert config.decoding.length_penalty == (2 if is_small else 1.4)
    own = compose(facts(10_000)._replace(has_text=True), ["training.augment={}"]).config
    assert own.training.augment == {}


def test_translations_of_weak_models_are_longer_and_repeat_no_phrases() -> None:
    for pairs, length, is_weak in [(59_999, 25, True), (59_999, 24, False), (60_000, 25, False), (9_000, 10, True)]:
        corpus = facts(pairs, length)._replace(has_text=True)
        decoding = compose(corpus).config.decoding
        assert (decoding.length_penalty, decoding.no_repeat_ngram_size) == ((2, 4) if is_weak else (1.4, 0))
        assert compose(corpus._replace(has_repeats=True)).config.decoding.no_repeat_ngram_size == 0
        assert compose(corpus._replace(has_text=False)).config.decoding.length_penalty == 1.4


def test_the_table_is_in_order() -> None:
    assert [row.pairs for row in SIZES] == sorted({row.pairs for row in SIZES}) and SIZES[0].pairs == 0
    for row in SIZES:
        assert [most for most, _ in row.dropout] == sorted(most for most, _ in row.dropout)
        assert most_epochs(row) >= row.epochs
        assert size_for(row.pairs) == row


def test_smaller_models_of_a_row_end_with_the_smallest() -> None:
    row, models = SIZES[-1], []
    while row:
        models.append((row.layers, row.width))
        assert row._replace(layers=0, width=0) == SIZES[-1]._replace(layers=0, width=0)  # all else stays
        row = smaller(row)  # type: ignore[assignment]
    assert models == sorted(set(models), reverse=True) and models[-1] == (SIZES[0].layers, SIZES[0].width)


def test_dependent_settings_follow_the_users_settings() -> None:
    wide = compose(facts(), ["model.d_model=512"]).config
    assert (wide.model.heads, wide.model.d_ff, wide.training.peak_learning_rate) == (8, 2048, 0.002)  # type: ignore[attr-defined]
    short, long = (compose(facts(), [f"training.epochs={epochs}"]).config for epochs in (2, 40))
    assert short.training.warmup_steps < long.training.warmup_steps == WARMUP_STEPS
    assert short.model.dropout < long.model.dropout  # type: ignore[attr-defined]
    whole, halves = compose(facts()).config.training, compose(facts(), ["training.accumulate=2"]).config.training
    assert halves.micro_batches == 2 and 2 * halves.batch_size == whole.batch_size
    assert halves.warmup_steps == whole.warmup_steps
    own = compose(facts(), ["model.dropout=0", "training.batch_size=100", "training.tensorboard=true"]).config
    assert (own.model.dropout, own.training.batch_size, own.training.tensorboard) == (0, 100, True)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("own", "optimizer", "peak"),
    [([], "muon", 0.003), (["training.optimizer=adam"], "adam", 0.0015), (["model.d_model=384"], "muon", 0.0024),
     (["model.architecture=recurrent"], "adam", 0.0015),
     (["model.architecture=recurrent", "training.optimizer=muon"], "muon", 0.003)],
)  # fmt: skip
def test_muon_is_for_transformers_at_twice_the_peak_of_adam(own: list[str], optimizer: str, peak: float) -> None:
    training = compose(facts(), own).config.training
    assert (training.optimizer, training.peak_learning_rate) == (optimizer, peak)


@pytest.mark.parametrize(
    ("own", "positions"),
    [([], "rotary"), (["model.heads=1", "model.d_model=6"], "rotary"),
     (["model.heads=2", "model.d_model=6"], "sinusoidal"),
     (["model.head_size=5"], "sinusoidal"), (["model.head_size=5", "model.positions=learned"], "learned")],
)  # fmt: skip
def test_positions_are_rotary_where_heads_have_pairs_of_channels(own: list[str], positions: str) -> None:
    model = compose(facts(), own).config.model
    assert isinstance(model, TransformerConfig)
    assert model.positions == positions
    assert model.self_attention_initializer == ("neighbors" if positions == "rotary" else "same")


@pytest.mark.parametrize(
    "own",
    ["training.schedule=noam", "training.schedule=paper", "training.schedule=cosine", "training.batch_type=sentences",
     "training.decode_validation=0", "model.tie_embeddings=none", "model.norm_placement=pre",
     "training.xla=true", "training.decay_steps=9"],
)  # fmt: skip
def test_a_setting_needs_no_other(own: str) -> None:
    config = compose(facts(), [own]).config
    if own.endswith("sentences"):
        assert config.training.batch_size == 64
    assert config.training.best_by == ("accuracy" if "decode_validation" in own else "bleu")


def test_settings_that_are_not_valid_do_not_disturb_the_choice() -> None:
    values = {"training.epochs": "many", "model.d_model": -4, "training.batch_size": 0, "training.micro_batches": None}
    assert choose(facts(), SIZES[3], values) == choose(facts(), SIZES[3], {})


def test_another_architecture_keeps_its_default_size() -> None:
    recipe = compose(facts(), ["model.architecture=recurrent"])
    default = Config.model_validate({"model": {"architecture": "recurrent"}}).model
    assert recipe.config.model == default
    assert recipe.config.training.schedule == "linear"
