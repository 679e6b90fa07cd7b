"""Every pair of settings that a recurrent model admits: traced training steps, and a compiled beam search."""

import itertools
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pytest
from pydantic import ValidationError

from nmt.config.schema import Config, DecodingConfig, RecurrentConfig
from nmt.config.training import TrainingConfig
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.decoding.translation import SearchOptions
from nmt.models.weights import weights_of
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, PAD
from nmt.training.optimization.gradient_sums import Sums
from nmt.training.optimization.update import Update

AXES = [["cell", "reset_after"], ["bidirectional", "reverse_source"], ["first_state"], ["attention"],
        ["step", "input_feeding"], ["window"]]  # fmt: skip
WORDS, BEAMS, STEPS = 20, 3, 20
LIMITS = np.array([3, 6, 5], np.int32)  # sentences leave the search one after another
SOURCE = np.array([[4, 5, 6, 7, 3], [8, 9, 3, 0, 0], [5, 3, 0, 0, 0]], np.int32)
TARGET = np.array([[2, 5, 6, 7, 8, 9, 4, 3], [2, 9, 4, 6, 5, 8, 3, 0], [2, 7, 4, 5, 8, 3, 0, 0]], np.int32)
Row = tuple[tuple[tuple[str, Any], ...], ...]
"""A setting of each axis: its keys and their values."""


def config(row: Row, **more: Any) -> RecurrentConfig:
    settings = dict(itertools.chain(*row))
    halves = {"encoder_width": 4} if settings["bidirectional"] else {}
    return RecurrentConfig(width=8, window_half_width=1, **settings, **halves, **more)


def admitted() -> Iterator[Row]:
    fields = RecurrentConfig.model_fields
    options = [[[(key, value) for value in get_args(fields[key].annotation) or (False, True)] for key in axis]
               for axis in AXES]  # fmt: skip
    for row in itertools.product(*(itertools.product(*axis) for axis in options)):
        try:
            config(row)
        except ValidationError:
            continue
        yield row


def rows_with_every_pair() -> list[Row]:
    """Return rows in which every admitted pair of settings occurs, taken greedily.

    First come dot products inside the recurrence, under every window: the gradient of the annotations, a loop's, then
    has no static width.
    """
    goals: dict[Row, set[Row]] = {row: set(itertools.combinations(row, 2)) for row in admitted()}
    inside = set()
    for row, pairs in goals.items():
        ((_, attention),), ((_, step), (_, is_fed)), _ = decoder = row[3:]
        if attention in ("dot", "scaled-dot") and (is_fed or step == "bahdanau"):
            pairs.add(decoder)
            inside.add(decoder)
    chosen, left = [], set().union(*goals.values())
    while left:
        best = max(goals, key=lambda row: (len(goals[row] & left & inside), len(goals[row] & left)))
        chosen.append(best)
        left -= goals[best]
    return chosen


ROWS = rows_with_every_pair()
FAST = 2


def name(row: Row) -> str:
    return " ".join(key if value is True else value for key, value in itertools.chain(*row) if value)


@pytest.mark.parametrize(
    ("number", "row"),
    [pytest.param(number, row, id=name(row), marks=pytest.mark.slow if number >= FAST else [])
     for number, row in enumerate(ROWS)],
)  # fmt: skip
def test_steps_lower_the_loss_and_beams_score_what_the_model_says(number: int, row: Row) -> None:
    model = config(row, layers=1 + (number % 3 == 2))
    training = TrainingConfig(precision="float32", remove_padding=bool(number % 2))
    update = Update.of(Config(model=model, training=training), {"source": WORDS, "target": WORDS})
    before, losses = weights_of(update.model), []
    for step in range(STEPS):
        update.totals.set(Sums())
        update.take([(tf.constant(SOURCE), tf.constant(TARGET))], 0.01, 1 + step)
        losses.append(update.totals.read().means[0])
        if not step:
            after = weights_of(update.model)
            assert not [path for path, weight in after.items() if np.array_equal(weight, before[path])]
    assert np.isfinite(losses).all() and losses[-1] < 0.9 * losses[0]

    decoding = DecodingConfig(beam_size=BEAMS, length_penalty=0)
    engine = TensorFlowEngine(update.model, Config(model=model, decoding=decoding))
    found = engine.search_batch(SOURCE, LIMITS, SearchOptions(n_best=BEAMS))
    tokens, scores = found.tokens.numpy(), found.scores.numpy()
    assert (np.diff(scores) <= 0).all()
    is_eos = tokens == EOS
    lengths = np.where(is_eos.any(axis=-1), is_eos.argmax(axis=-1) + 1, LIMITS[:, None])
    np.testing.assert_array_equal(tokens != PAD, np.arange(tokens.shape[-1]) < lengths[..., None])
    assert BOS not in tokens
    assert all(len({*map(tuple, beams)}) == BEAMS for beams in tokens.tolist())
    rows = tokens.reshape(len(SOURCE) * BEAMS, -1)
    read = np.pad(rows[:, :-1], [(0, 0), (1, 0)], constant_values=BOS)
    logits = tf.nn.log_softmax(update.model(tf.repeat(SOURCE, BEAMS, axis=0), tf.constant(read)))
    of_tokens = tf.gather(logits, rows, batch_dims=2).numpy() * (rows != PAD)
    np.testing.assert_allclose(of_tokens.sum(axis=1).reshape(scores.shape), scores, atol=1e-4)
