"""What is saved after an epoch is restored to the bit, damage falls back to the epoch before, old files go."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt import runtime

# isort: split
import h5py
import keras
import tensorflow as tf

from nmt import plots
from nmt.checkpoint import (
    average_weights,
    choose_epoch,
    load_weights,
    restore,
    rotate_weights,
    save_state,
    save_weights,
)
from nmt.config import Config, ModelConfig, TrainingConfig
from nmt.errors import DataError, NotFoundError
from nmt.models import build_model
from nmt.optimizer import Adam
from nmt.run import AverageMetrics, EpochMetrics, Run, create_run

TINY = ModelConfig(encoder_layers=1, decoder_layers=1, d_model=8, d_ff=8, heads=2, dropout=0.5)
VOCABULARIES = 10, 11
IDS = tf.constant([[2, 4, 5, 3], [2, 6, 3, 0]], tf.int32)


Trained = tuple[Path, list[dict[str, np.ndarray]]]
ModelAndOptimizer = tuple[keras.Model, Adam]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run that has not begun."""
    monkeypatch.chdir(tmp_path)
    return create_run("first", Config(model=TINY), [])


def build(seed: int, **changes: Any) -> ModelAndOptimizer:
    """Return a tiny model with its optimizer."""
    runtime.start(seed)
    model = build_model(TINY.model_copy(update=changes), *VOCABULARIES)
    return model, Adam([variable.value for variable in model.trainable_variables], TrainingConfig())


def take_step(model: keras.Model, optimizer: Adam) -> None:
    """Take one training step, dropout on."""
    with tf.GradientTape() as tape:
        seed = tf.stack([1, optimizer.steps])
        memory = model.encode(IDS, dropout_seed=seed)
        loss = tf.reduce_mean(tf.square(model.decode(IDS, memory, dropout_seed=seed)))
    optimizer.apply(tape.gradient(loss, optimizer.variables_trained), tf.constant(0.01))


def everything(model: keras.Model, optimizer: Adam) -> dict[str, np.ndarray]:
    """Return weights and state of the optimizer."""
    variables = {f"{n} {variable.path}": variable.numpy() for n, variable in enumerate(model.variables)}
    return {**variables, **optimizer.state()}


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    """Return whether all arrays are equal to the bit."""
    return len(first) == len(second) and all(
        np.array_equal(one, two) for one, two in zip(first.values(), second.values(), strict=True)
    )


def an_epoch(epoch: int, validation_loss: float) -> EpochMetrics:
    """Return the metrics of an epoch."""
    return EpochMetrics(
        epoch=epoch, step=epoch, train_loss=2.0, train_accuracy=0.5,
        validation_loss=validation_loss, validation_accuracy=0.6, target_tokens=100, seconds=1.5,
    )  # fmt: skip


@pytest.fixture(scope="module")
def other() -> ModelAndOptimizer:
    """Another model of the same shape."""
    return build(seed=2)


@pytest.fixture
def blank(other: ModelAndOptimizer) -> ModelAndOptimizer:
    """A model and optimizer that hold nothing but zeros."""
    model, optimizer = other
    for variable in [*model.variables, optimizer.steps, *optimizer.means, *optimizer.squares]:
        variable.assign(np.zeros(variable.shape, variable.numpy().dtype))
    return other


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A run folder with three saved epochs of a step each, and what model and optimizer were after each."""
    run = Run(tmp_path_factory.mktemp("trained") / "first")
    model, optimizer = build(seed=1)
    states = []
    for epoch in (1, 2, 3):
        take_step(model, optimizer)
        save_weights(run, model, epoch)
        save_state(run, optimizer, epoch, step=epoch)
        states.append(everything(model, optimizer))
    return run.folder, states


@pytest.fixture
def copy(trained: Trained, run: Run) -> Run:
    """The trained run, to be damaged."""
    shutil.copytree(trained[0], run.folder, dirs_exist_ok=True)
    return run


# --- saving and restoring


def test_a_run_without_a_state_is_not_restored(run: Run, blank: ModelAndOptimizer) -> None:
    assert restore(run, *blank) is None
    assert not any(array.any() for array in everything(*blank).values())


def test_weights_and_optimizer_are_restored_to_the_bit(copy: Run, trained: Trained, blank: ModelAndOptimizer) -> None:
    assert not same(everything(*blank), trained[1][2])
    assert not same(trained[1][1], trained[1][2])
    restored = restore(copy, *blank)
    assert restored is not None
    assert (restored.progress.epoch, restored.progress.step, restored.damaged) == (3, 3, [])
    assert same(everything(*blank), trained[1][2])


def test_a_restored_run_takes_the_step_that_the_saved_one_took(
    copy: Run, trained: Trained, blank: ModelAndOptimizer
) -> None:
    shutil.rmtree(copy.state_path(3))
    restore(copy, *blank)
    assert same(everything(*blank), trained[1][1])
    take_step(*blank)
    assert same(everything(*blank), trained[1][2])


def test_the_newest_two_states_are_kept(copy: Run) -> None:
    assert copy.state_epochs == [2, 3]
    assert copy.weights_epochs == [1, 2, 3]


def test_saving_an_epoch_again_replaces_it(copy: Run, blank: ModelAndOptimizer) -> None:
    restore(copy, *blank)
    take_step(*blank)
    saved = everything(*blank)
    save_weights(copy, blank[0], 3)
    save_state(copy, blank[1], 3, 4)
    take_step(*blank)
    restored = restore(copy, *blank)
    assert restored is not None
    assert (restored.progress.step, restored.damaged) == (4, [])
    assert same(everything(*blank), saved)


# --- damage


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flip_a_bit(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 0b1000]) + content[middle + 1 :]


def files_of(run: Run, epoch: int) -> dict[str, Path]:
    """Return the files that a state consists of."""
    return {
        "weights": run.weights_path(epoch),
        "optimizer": run.state_path(epoch) / "optimizer.npz",
        "state": run.state_path(epoch) / "state.json",
    }


DAMAGE: dict[str, Callable[[bytes], bytes] | None] = {
    "cut": cut, "bit flipped": flip_a_bit, "empty": lambda _: b"", "missing": None,
}  # fmt: skip


def damage_file(path: Path, damage: Callable[[bytes], bytes] | None) -> None:
    """Damage a file, or remove it."""
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("part", ["weights", "optimizer", "state"])
def test_a_damaged_state_is_named_and_the_one_before_is_taken(
    copy: Run, trained: Trained, blank: ModelAndOptimizer, part: str, damage: Callable[[bytes], bytes] | None
) -> None:
    path = files_of(copy, 3)[part]
    damage_file(path, damage)
    restored = restore(copy, *blank)
    assert restored is not None
    assert (restored.progress.epoch, restored.progress.step) == (2, 2)
    # A checksum noted wrong cannot be told from a file gone wrong.
    named = "epoch-0003" if (part, damage) == ("state", flip_a_bit) else str(path)
    assert [named in message for message in restored.damaged] == [True]
    assert same(everything(*blank), trained[1][1])


@pytest.mark.parametrize(
    ("before", "after"),
    [(b'"step": 3', b'"step": 7'), (b'"epoch": 3', b'"epoch": 7'), (b'"step": 3', b'"step": "3"')],
)
def test_a_state_that_contradicts_what_it_refers_to_is_damaged(
    copy: Run, blank: ModelAndOptimizer, before: bytes, after: bytes
) -> None:
    path = files_of(copy, 3)["state"]
    content = path.read_bytes()
    assert before in content
    path.write_bytes(content.replace(before, after))
    restored = restore(copy, *blank)
    assert restored is not None
    assert (restored.progress.epoch, restored.progress.step) == (2, 2)


def test_without_a_whole_state_the_run_cannot_go_on(copy: Run, blank: ModelAndOptimizer) -> None:
    damage_file(copy.weights_path(2), flip_a_bit)
    damage_file(files_of(copy, 3)["optimizer"], cut)
    with pytest.raises(DataError) as caught:
        restore(copy, *blank)
    assert str(caught.value) == (
        "Run 'first' cannot go on: checkpoints/first/state/epoch-0003/optimizer.npz is damaged: its SHA-256 is not "
        "the one noted when it was saved. checkpoints/first/weights/epoch-0002.weights.h5 is damaged: its SHA-256 is "
        "not the one noted when it was saved. Start another with --run NAME."
    )


def test_a_state_of_another_model_is_refused(copy: Run) -> None:
    with pytest.raises(DataError, match=r"^Run 'first' cannot go on: "):
        restore(copy, *build(seed=2, d_ff=9))


class Attack:
    """Unpickled, it makes a folder."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.mkdir, (Path("ran"),)


def test_a_pickle_among_the_arrays_is_refused_unrun(copy: Run, blank: ModelAndOptimizer) -> None:
    path = files_of(copy, 3)["optimizer"]
    np.savez(path, steps=np.array([Attack()], dtype=object))
    state = files_of(copy, 3)["state"]
    progress = json.loads(state.read_text())
    progress["optimizer_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    state.write_text(json.dumps(progress))
    restored = restore(copy, *blank)
    assert restored is not None
    assert restored.progress.epoch == 2
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("vocabularies", "changes"),
    [
        (VOCABULARIES, {"d_model": 16}),
        (VOCABULARIES, {"d_ff": 9}),
        (VOCABULARIES, {"encoder_layers": 2}),
        ((12, 11), {}),
    ],
)
def test_weights_of_another_model_are_refused(
    copy: Run, vocabularies: tuple[int, int], changes: dict[str, Any]
) -> None:
    model = build_model(TINY.model_copy(update=changes), *vocabularies)
    path = copy.weights_path(3)
    with pytest.raises(DataError) as caught:
        load_weights(copy, model, 3)
    assert str(caught.value).startswith(f"{path} does not hold the weights of this model: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", [cut, lambda _: b"", lambda _: b"x" * 500, None])
def test_weights_that_cannot_be_read_are_refused(
    copy: Run, blank: ModelAndOptimizer, damage: Callable[[bytes], bytes] | None
) -> None:
    damage_file(copy.weights_path(3), damage)
    with pytest.raises(DataError, match=r"epoch-0003\.weights\.h5 does not hold the weights of this model: "):
        load_weights(copy, blank[0], 3)


def test_an_interrupted_save_leaves_the_weights_before(
    copy: Run, blank: ModelAndOptimizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, _ = blank
    before = copy.weights_path(3).read_bytes()

    def die(path: Path) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(model, "save_weights", die)
    with pytest.raises(KeyboardInterrupt):
        save_weights(copy, model, 3)
    assert copy.weights_path(3).read_bytes() == before
    assert sorted(path.name for path in copy.weights_path(3).parent.iterdir()) == [
        f"epoch-000{epoch}.weights.h5" for epoch in (1, 2, 3)
    ]


# --- which weights are kept, and which are taken


def pretend_epochs(run: Run, losses: list[float], states: tuple[int, ...] = ()) -> None:
    """Make a run look as if it had trained so many epochs."""
    run.weights_path(1).parent.mkdir(parents=True)
    for epoch, loss in enumerate(losses, start=1):
        run.weights_path(epoch).touch()
        run.append_metrics(an_epoch(epoch, loss))
    for epoch in states:
        run.state_path(epoch).mkdir(parents=True)


@pytest.mark.parametrize(
    ("max_to_keep", "losses", "states", "kept"),
    [
        (None, [3, 2, 1, 2, 3], (4, 5), [1, 2, 3, 4, 5]),
        (1, [3, 2, 1, 2, 3], (4, 5), [3, 4, 5]),
        (1, [1, 2, 3, 4, 5], (4, 5), [1, 4, 5]),
        (1, [5, 4, 3, 2, 1], (5,), [5]),
        (1, [5, 4, 3, 2, 1], (), [5]),
        (3, [3, 1, 2, 2, 3], (4, 5), [2, 3, 4, 5]),
        (9, [3, 1, 2, 2, 3], (4, 5), [1, 2, 3, 4, 5]),
        (2, [1], (1,), [1]),
    ],
)
def test_the_last_weights_the_best_and_those_with_a_state_are_kept(
    run: Run, max_to_keep: int | None, losses: list[float], states: tuple[int, ...], kept: list[int]
) -> None:
    pretend_epochs(run, losses, states)
    rotate_weights(run, max_to_keep)
    assert run.weights_epochs == kept


@pytest.mark.parametrize(
    ("wanted", "epoch"),
    [(None, 2), ("best", 2), ("last", 4), ("1", 1), ("3", 3), ("03", 3)],
)
def test_an_epoch_is_chosen_by_number_or_as_best_or_last(run: Run, wanted: str | None, epoch: int) -> None:
    pretend_epochs(run, [3, 1, 2, 4])
    assert choose_epoch(run, wanted) == epoch


@pytest.mark.parametrize(
    ("wanted", "hint"), [("5", ""), ("0", ""), ("-1", ""), ("1.0", ""), ("", ""), ("bset", " (did you mean 'best'?)")]
)
def test_an_epoch_without_weights_is_told_with_those_there_are(run: Run, wanted: str, hint: str) -> None:
    pretend_epochs(run, [3, 1, 2])
    with pytest.raises(NotFoundError) as caught:
        choose_epoch(run, wanted)
    assert str(caught.value) == (
        f"An epoch is a number, best, last or average; run 'first' has no weights of epoch {wanted!r}{hint}. "
        "Kept: 1, 2, 3."
    )


@pytest.mark.parametrize("wanted", [None, "best", "last", "1"])
def test_a_run_without_a_finished_epoch_has_nothing_to_choose(run: Run, wanted: str | None) -> None:
    with pytest.raises(NotFoundError) as caught:
        choose_epoch(run, wanted)
    assert str(caught.value) == ("Run 'first' has not finished an epoch yet. Go on with: nmt train --run first")


def test_best_is_refused_when_its_weights_are_gone(run: Run) -> None:
    pretend_epochs(run, [3, 1, 2])
    run.weights_path(2).unlink()
    with pytest.raises(NotFoundError, match="2"):
        choose_epoch(run, "best")


# --- the average of epochs


def test_the_average_is_the_mean_of_weights_and_is_loaded(
    copy: Run, trained: Trained, other: ModelAndOptimizer
) -> None:
    average_weights(copy, other[0], [1, 3])
    names = [name for name in trained[1][0] if name.split(" ")[0].isdigit()]
    for name, weight in zip(names, other[0].weights, strict=True):
        mean = (trained[1][0][name].astype(np.float64) + trained[1][2][name]) / 2
        np.testing.assert_array_equal(weight.numpy(), mean.astype(np.float32))
    loaded = build(seed=3)[0]
    load_weights(copy, loaded, "average")
    for one, two in zip(loaded.weights, other[0].weights, strict=True):
        np.testing.assert_array_equal(one, two)
    assert copy.weights_epochs == [1, 2, 3]  # and it is not taken for an epoch


def test_the_average_is_the_default_until_training_goes_on(run: Run) -> None:
    pretend_epochs(run, [3, 1, 2, 4])
    with pytest.raises(NotFoundError, match=r"training\.average_last.*run 'first' has none.*one of 1, 2, 3, 4"):
        choose_epoch(run, "average")
    run.append_metrics(AverageMetrics(epochs=[3, 4], step=4, validation_loss=0.5, validation_accuracy=0.9))
    assert choose_epoch(run, None) == 2  # its file is missing
    run.weights_path("average").touch()
    assert choose_epoch(run, None) == choose_epoch(run, "average") == "average"
    assert choose_epoch(run, "best") == 2
    run.append_metrics(an_epoch(5, 9))
    assert choose_epoch(run, None) == 2


# --- learned positions in the figure


def test_the_figure_of_learned_positions_shows_those_of_the_encoder(run: Run) -> None:
    model, _ = build(seed=1, positions="learned", max_positions=12)
    run.write_config(Config(model=TINY.model_copy(update={"positions": "learned", "max_positions": 12})))
    save_weights(run, model, 1)
    run.append_metrics(an_epoch(1, 1.0))
    assert h5py.is_hdf5(run.weights_path(1))
    image = plots.draw("positions", run).axes[0].get_images()[0]
    learned = [variable.numpy() for variable in model.source_positions.weights]
    assert len(learned) == 1
    assert np.array_equal(np.asarray(image.get_array()), learned[0])
