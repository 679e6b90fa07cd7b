"""Architectures by the name in ``model.architecture``; TensorFlow is loaded when a model class is asked for."""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nmt.config.schema import ModelConfig
from nmt.models.accounting import Count, recurrent, transformer

if TYPE_CHECKING:
    from nmt.models.base import Seq2SeqModel


class Architecture(NamedTuple):
    """Where the model class of an architecture is, and how large its models are."""

    model: str
    """Model class as "module:class", imported at first use."""
    size: Callable[[Any, int, int], Count]
    """Size of a model: a function of its section and the numbers of ids of the source and the target side."""

    def load_model(self) -> "type[Seq2SeqModel]":
        """Return the model class."""
        module, _, name = self.model.partition(":")
        model: type[Seq2SeqModel] = getattr(importlib.import_module(module), name)
        return model


ARCHITECTURES: dict[str, Architecture] = {
    "transformer": Architecture("nmt.models.transformer.model:Transformer", transformer),
    "recurrent": Architecture("nmt.models.recurrent.model:Recurrent", recurrent),
}


def architecture_of(config: ModelConfig) -> Architecture:
    """Return the architecture of a model section."""
    return ARCHITECTURES[config.architecture]


def count_weights(config: ModelConfig, vocabulary: dict[str, int]) -> int:
    """Return the number of weights of a model for vocabularies given by side, "source" and "target"."""
    return architecture_of(config).size(config, vocabulary["source"], vocabulary["target"]).weights


def flops(config: ModelConfig, source_lengths: np.ndarray, target_lengths: np.ndarray, target_vocabulary: int) -> int:
    """Return the operations of a forward pass over B sentence pairs, two for each multiplication: it and an addition.

    Args:
        config: section model.
        source_lengths: source positions of each sentence, bos and eos included: integers [B].
        target_lengths: target positions of each sentence, that of eos included: integers [B].
        target_vocabulary: number of target ids.
    """
    s, t = np.asarray(source_lengths, np.int64), np.asarray(target_lengths, np.int64)
    numbers = (s.sum(), t.sum(), len(s), s @ s, t @ t, s @ t)
    costs = architecture_of(config).size(config, target_vocabulary, target_vocabulary)[1:]
    return 2 * sum(cost * int(number) for cost, number in zip(costs, numbers, strict=True))
