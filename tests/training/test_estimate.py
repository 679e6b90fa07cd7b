"""The estimate before training: its words, and the split that it profiles."""

import numpy as np
import pytest

from nmt.config.schema import Config
from nmt.data.synthetic import generate_split
from nmt.training.estimate import Estimate, duration, size
from nmt.training.input_pipeline import InputPipeline


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "less than a second"), (26, "about 26 s"), (600, "about 10 min"), (3 * 3600, "about 3.0 h")],
)
def test_a_duration_reads_as_a_sentence(seconds: float, words: str) -> None:
    estimate = Estimate(1, 2, 50, seconds, 2 * seconds, None, 10, 10)
    assert f"2 epochs of 50 steps, {words} each, {duration(2 * seconds)} in all" in estimate.text


@pytest.mark.parametrize(
    ("count", "words"), [(10, "1 KB"), (89_000, "89 KB"), (979_000, "979 KB"), (55e6, "55 MB"), (5.6e9, "5.6 GB")]
)
def test_a_size_is_never_zero(count: int, words: str) -> None:
    assert size(int(count)) == words


def test_batches_of_an_epoch_are_those_of_its_resampled_split() -> None:
    """A plan over a resampled split fits no other: its sentences have other lengths."""
    splits = {epoch: generate_split(20, 30, seed=epoch) for epoch in (0, 1, 2)}
    pipeline = InputPipeline(Config(), splits[0], lambda epoch: splits[epoch])
    for epoch in (1, 2):
        ((source, target),) = pipeline.batches(epoch, [np.array([3])])
        split = splits[epoch]
        assert source.numpy()[0, 1:-1].tolist() == split.source[3].tolist()
        assert target.numpy()[0, 1:-1].tolist() == split.target[3].tolist()
