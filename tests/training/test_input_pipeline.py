"""Batches of a split that is resampled every epoch."""

import numpy as np

from nmt.config.schema import Config
from nmt.data.token_arrays import generate_split
from nmt.training.input_pipeline import InputPipeline


def test_batches_of_an_epoch_are_those_of_its_resampled_split() -> None:
    """A plan over a resampled split fits no other: its sentences have other lengths."""
    splits = {epoch: generate_split(20, 30, seed=epoch) for epoch in (0, 1, 2)}
    pipeline = InputPipeline(Config(), splits[0], lambda epoch: splits[epoch])
    for epoch in (1, 2):
        ((source, target),) = pipeline.batches(epoch, [np.array([3])])
        split = splits[epoch]
        assert source.numpy()[0, 1:-1].tolist() == split.source[3].tolist()
        assert target.numpy()[0, 1:-1].tolist() == split.target[3].tolist()
