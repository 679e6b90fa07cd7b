"""From a configuration to a built model, and from a batch to its predictions."""

from typing import Any

from nmt.config.model import ModelConfig
from nmt.config.training import Precision
from nmt.errors import ConfigError
from nmt.models.layers.unpadding import Packing
from nmt.models.transformer.model import Transformer
from nmt.runtime import keras, tf

ARCHITECTURES = {"transformer": Transformer}


# Keras's names. Training keeps float32 weights, since bfloat16 would swallow small changes; who only computes with them
# rounds them once, instead of at every step.
TRAINING_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}
TRAINED_POLICIES = {"float32": "float32", "bfloat16": "bfloat16", "float16": "float16"}


def fewest_weights(config: ModelConfig, target_vocabulary: int) -> int:
    """Return how many weights a model has at the least: those of its layers' matrices and of one [V, D] for words."""
    attention, feed_forward = 4 * config.d_model * config.heads * config.size_per_head, 2 * config.d_model * config.d_ff
    layers = config.encoder_layers * (attention + feed_forward) + config.decoder_layers * (2 * attention + feed_forward)
    return layers + config.d_model * target_vocabulary


def build_model(
    config: ModelConfig,
    source_vocabulary: int,
    target_vocabulary: int,
    precision: Precision = "float32",
    *,
    trained: bool = False,
) -> Transformer:
    """Return the configured model with its weights made, fresh from the global seed.

    Weights that are saved are float32 whatever the precision that layers compute in, and can be loaded into either.

    Args:
        config: the model section.
        source_vocabulary: ids on the source side.
        target_vocabulary: ids on the target side.
        precision: what layers compute in.
        trained: whether trained weights will be loaded, and not trained on: made are then zeros, in ``precision`` too.

    Raises:
        ConfigError: if embeddings are to be tied across sides with two vocabularies.
    """
    if config.tie_embeddings == "all" and source_vocabulary != target_vocabulary:
        raise ConfigError(
            "model.tie_embeddings: all needs one vocabulary for both sides; the dataset has "
            f"{source_vocabulary:,} ids on the source side and {target_vocabulary:,} on the target side. Prepare it "
            "with --set data.joint_vocabulary=true, or set model.tie_embeddings=output."
        )
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy((TRAINED_POLICIES if trained else TRAINING_POLICIES)[precision])
    try:
        model = ARCHITECTURES[config.architecture](config, source_vocabulary, target_vocabulary)
        model.make_weights(fresh=not trained)
    finally:
        keras.config.set_dtype_policy(policy)
    return model


def teacher_forced(
    model: keras.Model, source: tf.Tensor, target: tf.Tensor, **options: Any
) -> tuple[tf.Tensor, tf.Tensor]:
    """Predict each target token from those before it, as ``teacher_forced_states`` does.

    Returns:
        Logits [N, V] and the tokens expected, int32 [N]; unless packed, [B, T, V] and [B, T], padding 0.
    """
    states, expected = teacher_forced_states(model, source, target, **options)
    return model.projection().logits(states), expected


def teacher_forced_states(
    model: keras.Model,
    source: tf.Tensor,
    target: tf.Tensor,
    *,
    packed: bool = True,
    dropout_seed: tf.Tensor | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Compute what each target token is predicted from: the decoder reads the target shifted by one.

    Args:
        model: an architecture's ``encode`` and ``decode_states``.
        source: int32 [B, S].
        target: int32 [B, T + 1], from bos to eos.
        packed: whether to compute only the N positions where there is something to predict.
        dropout_seed: int64 [2] from which dropout draws, for training; None: no dropout.

    Returns:
        States [N, D] and the tokens expected, int32 [N]; unless packed, [B, T, D] and [B, T], padding 0.
    """
    shifted, expected = target[:, :-1], target[:, 1:]
    memory = model.encode(source, packed=packed, dropout_seed=dropout_seed)
    packing = Packing.of(expected) if packed else None
    states, _, _ = model.decode_states(shifted, memory, packing=packing, dropout_seed=dropout_seed)
    return states, expected if packing is None else packing.pack(expected)
