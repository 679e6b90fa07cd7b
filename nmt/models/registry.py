"""Architectures by the name in ``model.architecture``; TensorFlow is loaded when a model class is asked for."""

import importlib
from typing import TYPE_CHECKING, NamedTuple

from nmt.config.model import ModelConfig
from nmt.models.accounting import Accounting, Part
from nmt.models.recurrent import accounting as recurrent
from nmt.models.transformer import accounting as transformer

if TYPE_CHECKING:
    from nmt.models.base import Seq2SeqModel


class Architecture(NamedTuple):
    """Where the model class and the account of an architecture are."""

    model: str
    """Model class as "module:class", imported at first use."""
    accounting: Accounting

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


def parts_of(config: ModelConfig, vocabulary: dict[str, int]) -> list[Part]:
    """Return the parts of a model for vocabularies given by side, "source" and "target"."""
    return architecture_of(config).accounting.parts(config, vocabulary["source"], vocabulary["target"])
