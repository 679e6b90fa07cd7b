"""Architectures by name, and the way from a configuration to a model with its weights."""

import threading
from collections.abc import Callable

from nmt.config.schema import ModelConfig
from nmt.config.training import Precision
from nmt.errors import ConfigError
from nmt.models.base import Seq2SeqModel
from nmt.models.layers.basic import SeededDropout
from nmt.models.layers.layer import declared_weights, layers_within, make_weights
from nmt.models.recurrent.model import Recurrent
from nmt.models.transformer.model import Transformer
from nmt.models.weights import Shapes
from nmt.runtime import seeded

ARCHITECTURES: dict[str, type[Seq2SeqModel]] = {"transformer": Transformer, "recurrent": Recurrent}
"""Model class of each architecture by its name; ``nmt.config.schema`` has the sections."""
_GENERATOR = threading.Lock()  # initializers draw their seeds from Python's generator, which all threads share


def build_model(
    config: ModelConfig,
    source_vocabulary: int,
    target_vocabulary: int,
    precision: Precision = "float32",
    *,
    trained: bool = False,
    seed: int | None = None,
    check_shapes: Callable[[Shapes], None] | None = None,
) -> Seq2SeqModel:
    """Return the configured model with its weights.

    Saved weights are float32 and fit a model of any precision.

    Args:
        config: the model section.
        source_vocabulary: number of ids of the source side.
        target_vocabulary: number of ids of the target side, V.
        precision: compute precision of the layers.
        trained: whether trained weights are to be loaded for inference. Then the weights are zeros, in ``precision``
            too; otherwise they are initial values, in float32.
        seed: seed of the initial values; None: the state of Python's generator decides.
        check_shapes: is called with the shapes of all weights before memory is spent on them, and may raise.

    Raises:
        ConfigError: for a model that does not fit the vocabularies.
    """
    model = _declared_model(config, source_vocabulary, target_vocabulary, seed)
    shapes = _shapes(model)
    if check_shapes is not None:
        check_shapes(shapes)
    # Training keeps float32 weights, because bfloat16 loses small changes. A trained model rounds its weights once
    # instead of at every step.
    policy = precision if trained or precision == "float32" else f"mixed_{precision}"
    model.dtype_policy = policy
    for _, layer in layers_within(model):
        layer.dtype_policy = policy
    make_weights(model, "zeros" if trained else None)
    return model


def weight_shapes(config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> Shapes:
    """Return the shapes of a model's weights by name. No memory is spent on their values.

    The arguments and errors are the ones of ``build_model``.
    """
    return _shapes(_declared_model(config, source_vocabulary, target_vocabulary))


def _declared_model(
    config: ModelConfig, source_vocabulary: int, target_vocabulary: int, seed: int | None = None
) -> Seq2SeqModel:
    """Return the configured model without its weights."""
    problem = config.vocabulary_problem(source_vocabulary, target_vocabulary)
    if problem:
        raise ConfigError(problem)
    with _GENERATOR, seeded(seed):
        model = ARCHITECTURES[config.architecture](config, source_vocabulary, target_vocabulary)
    streams: set[int] = set()
    for _, layer in layers_within(model):
        if isinstance(layer, SeededDropout):
            if layer.number in streams:
                raise ValueError(f"dropout {layer.name!r} drops the same elements as another one: give it another name")
            streams.add(layer.number)
    return model


def _shapes(model: Seq2SeqModel) -> Shapes:
    return {path: list(spec.shape) for path, spec in declared_weights(model).items()}
