"""The configuration: four typed sections, every key documented where it is declared."""

import yaml
from pydantic import SerializeAsAny

from nmt.config.data import DataConfig
from nmt.config.decoding import DecodingConfig
from nmt.config.model import ModelConfig, TransformerConfig
from nmt.config.record import DocumentedRecord
from nmt.config.training import TrainingConfig
from nmt.config.yaml_io import Dumper


class Config(DocumentedRecord):
    """The whole configuration of a run."""

    data: DataConfig = DataConfig()
    model: SerializeAsAny[ModelConfig] = TransformerConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()

    def to_yaml(self) -> str:
        """Return every key with its value, defaults included, as YAML that ``load_config`` reads back unchanged."""
        return yaml.dump(self.model_dump(), Dumper=Dumper, sort_keys=False, allow_unicode=True)
