"""Model section of the configuration: one record for each architecture, discriminated by ``architecture``."""

from nmt.config.architecture import DEFAULT_ARCHITECTURE, MODEL_CONFIGS, LengthLimits, ModelConfig
from nmt.config.recurrent import RecurrentConfig
from nmt.config.transformer import TransformerConfig

MODEL_CONFIGS |= {"transformer": TransformerConfig, "recurrent": RecurrentConfig}
"""Section of each architecture by its name; ``nmt.models.registry`` has the models."""

__all__ = [
    "DEFAULT_ARCHITECTURE",
    "MODEL_CONFIGS",
    "LengthLimits",
    "ModelConfig",
    "RecurrentConfig",
    "TransformerConfig",
]
