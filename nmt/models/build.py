"""Architectures by name; from a configuration to a model with its weights made."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor

from nmt.config.schema import ModelConfig
from nmt.config.training import Precision
from nmt.errors import ConfigError
from nmt.models.base import Seq2SeqModel
from nmt.models.layers.basic import WEIGHTS_LEFT
from nmt.models.recurrent.model import Recurrent
from nmt.models.transformer.model import Transformer
from nmt.models.weights import weight_name
from nmt.runtime import keras, seeded

ARCHITECTURES: dict[str, type[Seq2SeqModel]] = {"transformer": Transformer, "recurrent": Recurrent}
"""Model class of each architecture by its name; ``nmt.config.schema`` has the sections."""
_GLOBAL_POLICY = threading.Lock()  # Keras has one dtype policy, and Python one generator, for all threads


def build_model(
    config: ModelConfig,
    source_vocabulary: int,
    target_vocabulary: int,
    precision: Precision = "float32",
    *,
    trained: bool = False,
    seed: int | None = None,
    most_weights: float = math.inf,
) -> Seq2SeqModel:
    """Return the configured model with its weights made.

    Saved weights are float32 and fit a model of any precision.

    Args:
        config: the model section.
        source_vocabulary: number of ids of the source side.
        target_vocabulary: number of ids of the target side, V.
        precision: compute precision of the layers.
        trained: whether trained weights are to be loaded for inference: zeros are made then, in ``precision`` too;
            otherwise initial values, in float32.
        seed: seed of the initial values; None: that of Python's generator.
        most_weights: largest number of weights.

    Raises:
        ConfigError: for a model that does not fit the vocabularies.
        WeightLimitError: for a model of more weights, before memory is spent on them.
    """
    problem = config.vocabulary_problem(source_vocabulary, target_vocabulary)
    if problem:
        raise ConfigError(problem)
    with _GLOBAL_POLICY, seeded(seed):
        policy, left = keras.config.dtype_policy(), WEIGHTS_LEFT.set(most_weights)
        # Training keeps float32 weights: bfloat16 loses small changes. A trained model rounds them once, instead of at
        # every step.
        keras.config.set_dtype_policy(precision if trained or precision == "float32" else f"mixed_{precision}")
        try:
            model = ARCHITECTURES[config.architecture](config, source_vocabulary, target_vocabulary)
            model.make_weights(fresh=not trained)
        finally:
            keras.config.set_dtype_policy(policy)
            WEIGHTS_LEFT.reset(left)
    names = [weight_name(weight) for weight in model.weights]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"two weights of {type(model).__name__} are called {repeated!r}, and would be saved as one")
    return model


def weight_shapes(config: ModelConfig, source_vocabulary: int, target_vocabulary: int) -> dict[str, list[int]]:
    """Return the shapes of a model's weights by name, in the model's order. No memory is spent on their values.

    Args, raises: as of ``build_model``.
    """

    def shapes() -> dict[str, list[int]]:
        with keras.StatelessScope(initialize_variables=False):
            model = build_model(config, source_vocabulary, target_vocabulary, trained=True)
            return {weight_name(weight): list(weight.shape) for weight in model.weights}

    # Keras keeps a list, for each thread, of the variables that it has still to make.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(shapes).result()
