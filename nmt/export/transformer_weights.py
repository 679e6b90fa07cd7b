"""Keys of section model that exports of Transformers support, and all matrices of a Transformer by nmt's names."""

import numpy as np

from nmt.config.transformer import TransformerConfig
from nmt.errors import NmtError
from nmt.export.base import TrainedModel
from nmt.message import Argument
from nmt.models.layers.positions import sinusoidal_encoding
from nmt.models.weights import current_name
from nmt.storage.arrays import Arrays

NEVER = -1e9
"""Bias of a token that is never generated. It is finite, so that no product with it is undefined."""
TRAINING_ONLY = frozenset({
    "dropout", "attention_dropout", "feed_forward_dropout", "word_dropout", "initializer",
    "cross_attention_initializer", "self_attention_initializer",
})  # fmt: skip
"""Keys that affect training, but not the trained model."""
SUPPORTED = frozenset({
    "encoder_layers", "decoder_layers", "d_model", "d_ff", "heads", "head_size", "attention_scale", "norm_placement",
    "layer_norm_epsilon", "share_decoder_norm", "word_embedding", "scale_embeddings", "tie_embeddings", "positions",
    "position_base", "max_positions", "source_bos", "activation", "output_bias", "query_key_norm",
})  # fmt: skip
"""Keys of which the formats support all values, except for values that an exporter refuses itself. Any other key, such
as a new key, must have its default."""
BLOCKS = {"encoder": ("attention",), "decoder": ("self_attention", "cross_attention")}
"""Attention blocks in a layer of each stack, in order."""


def not_a_transformer(model: TrainedModel, consumer: str) -> NmtError:
    """Return the refusal of a run of another architecture."""
    return NmtError(
        f"Run {model.run.name!r} has the architecture {model.config.model.architecture!r}. {consumer} runs "
        "Transformers. Export it with ",
        Argument("to", "saved-model"),
        ", or train a model of architecture transformer.",
    )


def transformer_section(model: TrainedModel, consumer: str) -> TransformerConfig:
    """Return section model of a Transformer.

    Raises:
        NmtError: for another architecture, and for an unsupported value.
    """
    section = model.config.model
    if not isinstance(section, TransformerConfig):
        raise not_a_transformer(model, consumer)
    fields = {key: field for key, field in type(section).model_fields.items() if key not in TRAINING_ONLY | SUPPORTED}
    unsupported = [key for key, field in fields.items() if getattr(section, key) != field.default]
    if unsupported:
        keys = " and ".join(f"model.{key}: {str(getattr(section, key)).lower()}" for key in unsupported)
        raise NmtError(
            f"Run {model.run.name!r} has {keys}. {consumer} runs Transformers with the default. Export it with ",
            Argument("to", "saved-model"),
            ".",
        )
    return section


def complete_weights(config: TransformerConfig, model: TrainedModel, positions: int) -> Arrays:
    """Return all matrices of a Transformer by name, float32, including matrices that its file leaves out.

    The file leaves out sinusoids, which are computed, weights that both sides or two norms share, and an output layer
    that is tied to the target embedding.

    Args:
        config: section model.
        model: the exported model.
        positions: number of position vectors of each side, if they are sinusoids.
    """
    arrays = {current_name(name): array for name, array in model.weights().items()}
    for side, words in (("source", model.source.size), ("target", model.target.size)):
        if config.word_embedding == "sinusoidal":
            arrays[f"{side}_embedding/matrix"] = sinusoidal_encoding(words, config.d_model, config.position_base)
        elif config.tie_embeddings == "all":
            arrays[f"{side}_embedding/matrix"] = arrays["embedding/matrix"]
        if config.positions == "sinusoidal":
            table = sinusoidal_encoding(positions, config.d_model, config.position_base)
            arrays[f"{side}_positions/matrix"] = table
    if config.tie_embeddings != "none":
        arrays["output_layer/kernel"] = arrays["target_embedding/matrix"].T
        bias = arrays.get("embedding/bias", arrays.get("target_embedding/bias"))
        arrays["output_layer/bias"] = np.zeros(model.target.size, np.float32) if bias is None else bias
    if config.share_decoder_norm:
        for layer in range(1, config.decoder_layers + 1):
            for part in ("gamma", "beta"):
                shared = arrays[f"decoder_{layer}/self_attention_sublayer/norm/{part}"]
                arrays[f"decoder_{layer}/cross_attention_sublayer/norm/{part}"] = shared
    return arrays
