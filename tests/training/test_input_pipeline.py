"""Input pipeline: epochs that sample subwords or draw variants of pairs, corpora and their weights."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import small_pairs, write_pickle
from tiny_runs import tiny

from nmt.config.data import DataConfig
from nmt.config.schema import Config
from nmt.data.prepare import prepare
from nmt.data.token_arrays import Split, generate_split
from nmt.errors import DataError
from nmt.training.augmentation import augment_split
from nmt.training.input_pipeline import InputPipeline
from nmt.training.plan import make_plan


def test_batches_of_an_epoch_come_from_its_resampled_split() -> None:
    """A plan fits only the split that it was made for: resampled sentences have other lengths."""
    splits = {epoch: generate_split(20, 30, seed=epoch) for epoch in (0, 1, 2)}
    pipeline = InputPipeline(Config(), splits[0], lambda epoch: splits[epoch])
    for epoch in (1, 2):
        ((source, target),) = pipeline.batches(epoch, [np.array([3])])
        split = splits[epoch]
        assert source.numpy()[0, 1:-1].tolist() == split.source[3].tolist()
        assert target.numpy()[0, 1:-1].tolist() == split.target[3].tolist()


@pytest.mark.parametrize(("batches", "resumed"), [({"batch_type": "tokens", "batch_size": 90}, [1, 3, 4]),
                                                  ({"batch_size": 7}, [3, 4])], ids=str)  # fmt: skip
def test_each_epoch_is_segmented_once_in_order(batches: dict[str, Any], resumed: list[int]) -> None:
    """The run resumes with epoch 3. Its schedule needs the token batches of epoch 1."""
    schedule = {"schedule": "linear", "peak_learning_rate": 1e-3, "warmup_steps": 2, "epochs": 4}
    config = Config.model_validate({"training": {**schedule, **batches}})

    def trained(first: int) -> tuple[list[int], list[Any]]:
        segmented: list[int] = []

        def resample(epoch: int) -> Split:
            segmented.append(epoch)
            return generate_split(60, 30, seed=epoch)

        pipeline, taken = InputPipeline(config, generate_split(60, 30, seed=0), resample), list[Any]()
        for epoch in range(first, 5):
            pipeline.split(epoch), pipeline.plan(epoch), pipeline.learning_rate(1)  # the look ahead
            taken.append([pipeline.learning_rate(epoch), pipeline.steps(epoch)])
            taken += [tensor.numpy().tolist() for [batch] in pipeline.step_batches(epoch) for tensor in batch]
        return segmented, taken

    (all_epochs, whole), (epochs, after) = trained(1), trained(3)
    assert (all_epochs, epochs) == ([1, 2, 3, 4], resumed)
    assert whole[-len(after) :] == after


def test_an_epoch_samples_subwords_then_draws_variants_even_of_batches_in_the_same_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    long = [(f"{source} {source} {source}", f"{target} {target} {target}") for source, target in small_pairs(30)]
    data = DataConfig(tokenizer="subword", vocabulary_size=60, byte_fallback=False, subword_sampling=True)
    dataset = prepare(write_pickle(Path("pairs.pkl"), [*small_pairs(90), *long]), data, "pairs")
    config, tokenizers = tiny(reshuffle=False, augment={"join": 0.5}), dataset.tokenizers()
    pipeline, again = InputPipeline.of(config, dataset), InputPipeline.of(config, dataset)

    def rows(split: Split) -> list[list[int]]:
        return [split.source[index].tolist() for index in range(len(split))]

    first, second, sampled = pipeline.split(1), pipeline.split(2), dataset.resample_subwords(1, 2)
    expected = augment_split(sampled, tokenizers, {"join": 0.5}, 1, 2)
    assert rows(again.split(2)) == rows(second) == rows(expected)
    texts = [[tokenizers[0].decode(row) for row in rows(split)] for split in (sampled, first, second)]
    joined = [[text != before for text, before in zip(drawn, texts[0], strict=True)] for drawn in texts[1:]]
    assert joined[0] != joined[1] and 20 < sum(joined[1]) < 60
    for index in np.flatnonzero(~np.array(joined[1])):
        assert second.source[index].tolist() == sampled.source[index].tolist()


SAMPLES = {
    (True, None): True, (True, True): True, (True, False): False,
    ("possible", None): False, ("possible", True): True, ("possible", False): False,
    (False, None): False, (False, True): None, (False, False): False,
}  # fmt: skip
"""Whether epochs have other subwords, by the keys of section data and of section training; None: it is refused."""


@pytest.mark.parametrize(("kept", "chosen"), SAMPLES)
def test_subwords_are_sampled_if_the_dataset_and_training_say_so(
    kept: bool | str, chosen: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    keys = {"tokenizer": "subword", "vocabulary_size": 60, "byte_fallback": False, "subword_sampling": kept}
    dataset = prepare(write_pickle(Path("pairs.pkl"), small_pairs(90)), DataConfig.model_validate(keys), "pairs")
    config = tiny(subword_sampling=chosen)
    expected = SAMPLES[kept, chosen]
    if expected is None:
        with pytest.raises(DataError, match="without its training text"):
            make_plan("run", config, dataset)
        return
    pipeline = InputPipeline.of(make_plan("run", config, dataset).config, dataset)
    first, second = (
        [sequence.tolist() for sequence in map(pipeline.split(epoch).source.__getitem__, range(20))] for epoch in (1, 2)
    )
    assert (first != second) is expected


STAGES = [{"until_epoch": 2, "corpora": {"original": 1, "bt": 0.5}}, {"until_epoch": 3, "corpora": {"bt": 2}},
          {"corpora": {"original": 1}}]  # fmt: skip


@pytest.mark.parametrize("batches", [{"batch_type": "tokens", "batch_size": 90}, {"batch_size": 7}], ids=str)
@pytest.mark.parametrize("micro_batches", [1, 3])
def test_an_epoch_has_the_corpora_of_its_stage_and_the_schedule_ends_with_the_last(
    batches: dict[str, Any], micro_batches: int
) -> None:
    schedule = {"schedule": "linear", "peak_learning_rate": 1e-3, "warmup_steps": 2, "epochs": 6}
    keys = {**schedule, **batches, "micro_batches": micro_batches, "stages": STAGES}
    config = Config.model_validate({"training": keys})
    pipeline = InputPipeline(config, generate_split(60, 30, seed=0), corpora={"original": 40, "bt": 20})
    times = {epoch: np.bincount(np.concatenate(pipeline.plan(epoch)), minlength=60) for epoch in range(1, 7)}
    seen = {epoch: (int(counts[:40].sum()), int(counts[40:].sum())) for epoch, counts in times.items()}
    assert seen == {1: (40, 10), 2: (40, 10), 3: (0, 40), 4: (40, 0), 5: (40, 0), 6: (40, 0)}
    assert {epoch: tuple(pipeline.seen(epoch).values()) for epoch in seen} == seen
    firsts = {1: 2, 3: 1, 4: 3}  # first epoch of a stage: its epochs
    assert pipeline.total_steps == sum(pipeline.steps(epoch) * count for epoch, count in firsts.items())
    shorter = Config.model_validate({"training": {**keys, "epochs": 2}})
    assert InputPipeline(shorter, generate_split(60, 30, seed=0), corpora={"original": 40, "bt": 20}).total_steps == (
        2 * pipeline.steps(1)
    )


def test_epochs_without_reshuffle_repeat_the_pairs_of_a_share() -> None:
    config = Config.model_validate({"training": {"corpora": {"original": 0.5}, "reshuffle": False}})
    pipeline = InputPipeline(config, generate_split(60, 30, seed=0))
    first, second = (np.concatenate(pipeline.plan(epoch)).tolist() for epoch in (1, 2))
    assert first == second and len(first) == 30
