"""Schema of the configuration, with its four sections."""

from typing import Self

import yaml
from pydantic import SerializeAsAny, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from nmt.config.architecture import DEFAULT_ARCHITECTURE, MODEL_CONFIGS, ModelConfig
from nmt.config.data import DataConfig
from nmt.config.decoding import DecodingKeys
from nmt.config.record import Contradiction, Section
from nmt.config.recurrent import RecurrentConfig
from nmt.config.training import TrainingConfig
from nmt.config.transformer import TransformerConfig
from nmt.config.yaml_io import Dumper

MODEL_CONFIGS |= {"transformer": TransformerConfig, "recurrent": RecurrentConfig}
"""Section of each architecture by its name; ``nmt.models.build`` has the models."""

__all__ = ["DEFAULT_ARCHITECTURE", "MODEL_CONFIGS", "ModelConfig", "RecurrentConfig", "TransformerConfig"]


class DecodingConfig(DecodingKeys, Section):
    """Section ``decoding``: how translations are searched for."""

    def contradictions(self) -> list[Contradiction]:
        """See ``Section``."""
        return [
            (self.mbr_sampled and not self.mbr_candidates, "mbr_sampled mbr_candidates",
             "Samples need their number. Give mbr_candidates, such as 32"),
        ]  # fmt: skip


class Config(Section):
    """Configuration of a run."""

    data: DataConfig = DataConfig()
    """Preparation of the data."""
    model: SerializeAsAny[ModelConfig] = TransformerConfig()
    """Architecture and size of the model."""
    training: TrainingConfig = TrainingConfig()
    """Optimization, validation and saving."""
    decoding: DecodingConfig = DecodingConfig()
    """Settings of the search for translations."""

    @model_validator(mode="after")
    def _check_sections(self) -> Self:
        key = rule = None
        if self.training.initial_embeddings != "random" and not self.model.trains_embeddings:
            key, rule = "initial_embeddings", "random: the model has no trained word embeddings"
        if self.training.r_drop and not self.model.has_dropout:
            key, rule = "r_drop", "0: the model has no dropout, so two passes over a batch are the same"
        if key:
            problem = PydanticCustomError("unfit_model", "must be {rule}", {"rule": rule})
            details = InitErrorDetails(type=problem, loc=("training", key), input=getattr(self.training, key))
            raise ValidationError.from_exception_data("Config", [details])
        return self

    def to_yaml(self) -> str:
        """Return all keys with their values, defaults included, as YAML that ``load_config`` reads back unchanged."""
        return yaml.dump(self.model_dump(), Dumper=Dumper, sort_keys=False, allow_unicode=True)
