"""Checkpoints: they restore the same bits, a damaged one falls back to its predecessor, and old files are deleted."""

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, an_epoch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nmt.config.schema import Config, TransformerConfig
from nmt.config.training import TrainingConfig
from nmt.errors import DataError, NotFoundError
from nmt.models.build import build_model
from nmt.models.weights import set_weights, weights_of
from nmt.runs.directory import Run, create_run
from nmt.runs.metrics import AverageMetrics, WeightsId
from nmt.runs.weights import average_weights, choose_epoch, save_weights, weights_to_delete
from nmt.runtime import keras, tf
from nmt.storage.arrays import checksum, read_arrays, write_arrays
from nmt.training.checkpoints import (
    Checkpoint,
    TrainingProgress,
    TrainingState,
    read_checkpoint,
    restore_newest,
    save_checkpoint,
)
from nmt.training.optimization.optimizer import Adam

QUICK = settings(deadline=None, max_examples=50)
TINY = TransformerConfig(encoder_layers=1, decoder_layers=1, d_model=8, d_ff=8, heads=2, dropout=0.5)
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
    model = build_model(TINY.model_copy(update=changes), *VOCABULARIES, seed=seed)
    return model, Adam([variable.value for variable in model.trainable_variables], TrainingConfig())


def take_step(model: keras.Model, optimizer: Adam) -> None:
    """Take a training step with dropout."""
    with tf.GradientTape() as tape:
        seed = tf.stack([1, optimizer.steps])
        states = model.decode_states(IDS, model.encode(IDS, dropout_seed=seed), dropout_seed=seed)
        loss = tf.reduce_mean(tf.square(model.output_projection().logits(states)))
    optimizer.apply(tape.gradient(loss, optimizer.variables_trained), tf.constant(0.01))


def everything(model: keras.Model, optimizer: Adam) -> dict[str, np.ndarray]:
    """Return weights and state of the optimizer."""
    variables = {f"{n} {variable.path}": variable.numpy() for n, variable in enumerate(model.variables)}
    return {**variables, **optimizer.state()}


def same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    """Return whether all arrays are equal to the bit."""
    return len(first) == len(second) and all(
        np.array_equal(array, same) for array, same in zip(first.values(), second.values(), strict=True)
    )


def restore(run: Run, model: keras.Model, optimizer: Adam) -> tuple[Checkpoint | None, list[str]]:
    """Restore the newest checkpoint into model and optimizer."""

    def load(state: TrainingState) -> None:
        set_weights(model, state.weights)
        optimizer.restore(state.optimizer)

    return restore_newest(run, load)


def progress(step: int) -> TrainingProgress:
    """Return the progress of a run whose epochs have a single step."""
    return TrainingProgress(
        epoch=step, step=step, steps_in_epoch=0, seconds=0.5, totals=(1.5, 2.0, 3.0), logged=(0.0, 0.0, 0.0),
        environment={"tensorflow": "2"},
    )  # fmt: skip


def save(run: Run, model: keras.Model, optimizer: Adam, step: int) -> None:
    """Save weights, metrics and state as after an epoch with a single step."""
    saved = save_weights(run, weights_of(model), step)
    run.append_metrics(an_epoch(step, step=step))
    state = TrainingState(weights_of(model), optimizer.state(), (1.5, 2.0, 3.0))
    content = Checkpoint(progress(step), run.metrics_path.read_bytes(), state)
    save_checkpoint(run, content, saved)


@pytest.fixture(scope="module")
def twin() -> ModelAndOptimizer:
    """Another model of the same shape."""
    return build(seed=2)


@pytest.fixture
def blank(twin: ModelAndOptimizer) -> ModelAndOptimizer:
    """A model and an optimizer whose values are all zero."""
    model, optimizer = twin
    for variable in [*model.variables, optimizer.steps, *optimizer.means, *optimizer.squares]:
        variable.assign(np.zeros(variable.shape, variable.numpy().dtype))
    return twin


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A run folder with three saved epochs of a single step, and the state after each epoch."""
    run = Run(tmp_path_factory.mktemp("trained") / "first")
    model, optimizer = build(seed=1)
    states = []
    for epoch in (1, 2, 3):
        take_step(model, optimizer)
        save(run, model, optimizer, epoch)
        states.append(everything(model, optimizer))
    return run.folder, states


@pytest.fixture
def copy(trained: Trained, run: Run) -> Run:
    """The trained run, to be damaged."""
    shutil.copytree(trained[0], run.folder, dirs_exist_ok=True)
    return run


# --- saving and restoring


def test_weights_and_optimizer_are_restored_to_the_bit(trained: Trained, run: Run, blank: ModelAndOptimizer) -> None:
    assert restore(run, *blank) == (None, [])  # a run that has not begun
    trained_run, (_, second, third) = Run(trained[0]), trained[1]
    assert not same(everything(*blank), third) and not same(second, third)
    restored, damaged = restore(trained_run, *blank)
    assert restored is not None
    assert (restored.progress, damaged) == (progress(3), [])
    assert restored.metrics == trained_run.metrics_path.read_bytes()
    assert same(everything(*blank), third)
    assert (trained_run.state_steps, trained_run.weights_epochs) == ([2, 3], [1, 2, 3])
    assert (trained_run.state_path(3) / "weights.safetensors").samefile(trained_run.weights_path(3))


@pytest.mark.parametrize(("step", "left"), [(2, [2]), (4, [3, 4])])
@pytest.mark.parametrize("links", [True, False])
def test_saving_a_step_again_replaces_it_and_deletes_later_steps(
    copy: Run, blank: ModelAndOptimizer, monkeypatch: pytest.MonkeyPatch, step: int, left: list[int], links: bool
) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError("no links here")

    if not links:
        monkeypatch.setattr(Path, "hardlink_to", refuse)
    restore(copy, *blank)
    take_step(*blank)
    saved = everything(*blank)
    save(copy, *blank, step)
    take_step(*blank)
    restored, damaged = restore(copy, *blank)
    assert restored is not None
    assert (restored.progress.step, damaged) == (step, [])
    assert same(everything(*blank), saved)
    assert copy.state_steps == left


# --- damage


PARTS = ["weights.safetensors", "optimizer.safetensors", "metrics.jsonl", "state.json"]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "missing": bytes,
}


@pytest.mark.parametrize("damage", [*DAMAGE, "of another state"])
@pytest.mark.parametrize("part", PARTS)
def test_a_damaged_state_is_named_and_its_predecessor_is_restored(
    copy: Run, trained: Trained, blank: ModelAndOptimizer, part: str, damage: str
) -> None:
    path = copy.state_path(3) / part
    content = (copy.state_path(2) / part).read_bytes() if damage == "of another state" else path.read_bytes()
    path.unlink()  # not to write to the weights of the epoch, which share its place
    if damage != "missing":
        path.write_bytes(DAMAGE.get(damage, bytes)(content))
    restored, damaged = restore(copy, *blank)
    assert restored is not None
    assert restored.progress == progress(2)
    assert [str(path) in message for message in damaged] == [True]
    assert same(everything(*blank), trained[1][1])


@pytest.mark.parametrize("part", PARTS)
def test_any_flipped_bit_is_detected(copy: Run, blank: ModelAndOptimizer, part: str) -> None:
    """Forty positions of the file, including its ends."""
    path = copy.state_path(3) / part
    whole = path.read_bytes()
    for place in np.linspace(0, len(whole) - 1, 40).astype(int):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :])
        restored, _ = restore(copy, *blank)
        assert restored is not None
        # What tells nothing, such as white space, may change; what counts may not.
        assert restored.progress in (progress(2), progress(3))
        if restored.progress == progress(3):
            assert part in ("state.json", "weights.safetensors", "optimizer.safetensors")
            assert restored.metrics.count(b"\n") == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"step": 3', b'"step": 7'), (b'"epoch": 3', b'"epoch": 7'), (b'"step": 3', b'"step": "3"'),
        (b'"format": 2', b'"format": 1'), (b'"files": {', b'"files": {"a": "c", '),
    ],
)  # fmt: skip
def test_a_state_that_was_edited_is_damaged(copy: Run, blank: ModelAndOptimizer, before: bytes, after: bytes) -> None:
    path = copy.state_path(3) / "state.json"
    content = path.read_bytes()
    assert before in content
    path.write_bytes(content.replace(before, after))
    restored, damaged = restore(copy, *blank)
    assert restored is not None
    assert restored.progress == progress(2)
    assert "state.json is damaged" in damaged[0]


def test_without_an_undamaged_state_the_run_cannot_resume(copy: Run, blank: ModelAndOptimizer) -> None:
    (copy.state_path(2) / "weights.safetensors").unlink()
    (copy.state_path(3) / "metrics.jsonl").unlink()
    with pytest.raises(DataError, match=r"step-00000003/metrics\.jsonl .*step-00000002/weights\.safetensors "):
        restore(copy, *blank)


def test_weights_of_another_type_are_refused_and_change_nothing(blank: ModelAndOptimizer) -> None:
    model = blank[0]
    arrays = {name: array + 1 for name, array in weights_of(model).items()}
    name = sorted(arrays)[-1]
    with pytest.raises(ValueError, match="has type float64 in the file, weights are saved as float32"):
        set_weights(model, {**arrays, name: arrays[name].astype(np.float64)})
    assert not any(weight.numpy().any() for weight in model.weights)


@QUICK
@given(
    st.dictionaries(
        st.text("abc/0", min_size=1),
        hnp.arrays(
            st.sampled_from([np.float32, np.float64, np.int64, np.int32, np.bool_]),
            hnp.array_shapes(min_dims=0, max_dims=3, min_side=0),
        ),
    )
)
def test_arrays_of_all_shapes_are_read_back_with_their_checksum(
    tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, np.ndarray]
) -> None:
    path = tmp_path_factory.mktemp("arrays") / "some.safetensors"
    assert write_arrays(path, arrays) == checksum(arrays)
    read = read_arrays(path, checksum(arrays))
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)
        assert read[name].tobytes() == array.tobytes()
    with pytest.raises(DataError, match="was not saved together with the files beside it"):
        read_arrays(path, checksum({**arrays, "more": np.zeros(1)}))


def test_a_checkpoint_of_format_1_is_read(copy: Run) -> None:
    """It has the same content under other names, and another checksum."""
    folder = copy.state_path(3)
    content = json.loads((folder / "state.json").read_text())
    loop = content["loop"] | {"made_with": content["loop"]["environment"]}
    del loop["environment"]
    (folder / "optimizer.safetensors").rename(folder / "learner.safetensors")
    files = content["files"] | {"learner.safetensors": content["files"]["optimizer.safetensors"]}
    del files["optimizer.safetensors"]
    digest = hashlib.sha256(json.dumps([loop, files], sort_keys=True).encode()).hexdigest()
    (folder / "state.json").write_text(json.dumps({"standing": loop, "files": files, "sha256": digest}))
    assert read_checkpoint(folder, 3).progress == progress(3)


# --- which weights are kept, and which are taken


def rotate(run: Run, max_to_keep: int | None, best: WeightsId | None) -> None:
    """Delete what is superfluous."""
    for path in weights_to_delete(run, max(run.weights_epochs), max_to_keep, best):
        path.unlink()


def pretend_epochs(run: Run, losses: list[float]) -> None:
    """Give a run the files of a number of trained epochs."""
    run.weights_path(1).parent.mkdir(parents=True)
    for epoch, loss in enumerate(losses, start=1):
        run.weights_path(epoch).touch()
        run.append_metrics(an_epoch(epoch, step=epoch, validation_loss=loss))


@pytest.mark.parametrize(
    ("max_to_keep", "losses", "kept"),
    [
        (None, [3, 2, 1, 2, 3], [1, 2, 3, 4, 5]),
        (1, [3, 2, 1, 2, 3], [3, 5]),
        (1, [1, 2, 3, 4, 5], [1, 5]),
        (1, [5, 4, 3, 2, 1], [5]),
        (3, [3, 1, 2, 2, 3], [2, 3, 4, 5]),
        (9, [3, 1, 2, 2, 3], [1, 2, 3, 4, 5]),
        (2, [1], [1]),
    ],
)
def test_the_last_weights_and_the_best_are_kept(
    run: Run, max_to_keep: int | None, losses: list[float], kept: list[int]
) -> None:
    pretend_epochs(run, losses)
    rotate(run, max_to_keep, run.best())
    assert run.weights_epochs == kept


def test_weights_that_are_still_to_be_written_count_as_the_last(run: Run) -> None:
    pretend_epochs(run, [3, 1, 2])
    assert weights_to_delete(run, 4, 2, 2) == [run.weights_path(1)]
    assert weights_to_delete(run, 4, 1, 4) == [run.weights_path(epoch) for epoch in (1, 2, 3)]


def test_only_the_best_weights_within_epochs_are_kept(run: Run) -> None:
    pretend_epochs(run, [2, 3])
    for step in (5, 15, 25):
        run.weights_path(f"step-{step}").touch()
    rotate(run, None, "step-15")
    assert run.saved_weights == [1, 2, "step-15"]
    assert choose_epoch(run, "step-15") == "step-15"
    rotate(run, 1, 1)
    assert run.saved_weights == [1, 2]


@pytest.mark.parametrize(("wanted", "epoch"), [(None, 2), ("best", 2), ("last", 4), ("1", 1), ("3", 3)])
def test_an_epoch_is_chosen_by_number_or_as_best_or_last(run: Run, wanted: str | None, epoch: int) -> None:
    pretend_epochs(run, [3, 1, 2, 4])
    assert choose_epoch(run, wanted) == epoch


@pytest.mark.parametrize("wanted", ["5", "0", "-1", "1.0", "", "bset", "best"])
def test_an_epoch_without_weights_is_refused(run: Run, wanted: str) -> None:
    pretend_epochs(run, [3, 1, 2])
    run.weights_path(2).unlink()
    with pytest.raises(NotFoundError):
        choose_epoch(run, wanted)


# --- the average of epochs


def test_the_average_is_the_mean_of_weights(copy: Run) -> None:
    average = average_weights(copy, [1, 3])
    first, third = (read_arrays(copy.weights_path(epoch)) for epoch in (1, 3))
    assert average.keys() == first.keys()
    for name, mean in average.items():
        expected = (first[name].astype(np.float64) + third[name]) / 2
        np.testing.assert_array_equal(mean, expected.astype(np.float32))
        assert mean.dtype == np.float32
    save_weights(copy, average, "average")
    assert copy.weights_epochs == [1, 2, 3]  # and it is not taken for an epoch


def test_the_average_is_the_default_until_training_goes_on(run: Run) -> None:
    pretend_epochs(run, [3, 1, 2, 4])
    with pytest.raises(NotFoundError, match="has no averaged"):
        choose_epoch(run, "average")
    run.append_metrics(AverageMetrics(epochs=[3, 4], step=4, validation_loss=0.5, validation_accuracy=0.9))
    assert choose_epoch(run, None) == 2  # its file is missing
    run.weights_path("average").touch()
    assert choose_epoch(run, None) == choose_epoch(run, "average") == "average"
    assert choose_epoch(run, "best") == 2
    run.append_metrics(an_epoch(5, step=5, validation_loss=9))
    assert choose_epoch(run, None) == 2


def test_the_readme_lists_the_files_of_a_run(trained_project: Path) -> None:
    """Numbers and sides stand for any others; a name without suffix is that of weights or of a folder."""

    def general(name: str) -> str:
        return re.sub(r"\d+", "N", re.sub(r"\.(source|target)\.", ".<side>.", name))

    page = (ROOT / "checkpoints" / "README.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1] for row in page.partition("## A run on disk")[2].splitlines() if row.startswith("| ")][1:]
    of_run, of_state = (
        {general(name) for row in rows if row.startswith(" its ") == its for name in re.findall(r"`([^`]+)`", row)}
        for its in (False, True)
    )
    folder = trained_project / "checkpoints" / "base"
    found = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    found = [path for path in found if path.parts[0] not in ("plots", "exports")]  # which other tests may have made
    states = [path for path in found if path.parts[0] == "state"]
    assert {path.name for path in states} == of_state
    assert {general(f"{path.parent}/") for path in states} <= of_run
    others = {general(str(path)) for path in found if path not in states}
    assert len(others) >= 5
    assert others <= of_run | {f"{name}.safetensors" for name in of_run}
