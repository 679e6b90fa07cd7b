"""Base class of all layers, and the one way in which weights are made.

A layer declares its weights in its constructor: shape, initial values, and which optimizer moves them. ``make_weights``
makes them when the whole model is there. In between, the shapes are known and no memory is spent, so a model is first
compared with the file of weights that it shall read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from nmt.runtime import keras, tf

NO_TRAINING_FLAG = (
    "training=True is refused, because dropout draws from a seed. Pass dropout_seed=tf.constant([run, step], tf.int64) "
    "instead, to a layer or to Seq2SeqModel.teacher_forcing"
)


class Blocks(NamedTuple):
    """Division of a matrix [M, N] into blocks [M / down, N / across]. Muon moves each block like a matrix."""

    down: int = 1
    """Number of blocks along the rows M."""
    across: int = 1
    """Number of blocks along the columns N."""


@dataclass
class WeightSpec:
    """Declaration of a weight."""

    shape: tuple[int, ...]
    """Shape of the weight."""
    initializer: Any
    """Keras initializer, or the name of one, such as "zeros"."""
    blocks: Blocks | None = None
    """Blocks of a matrix from hidden states to hidden states, which Muon can move. None for all other weights, which
    Adam moves: vectors, embeddings, the output layer."""


class Layer(keras.layers.Layer):
    """A Keras layer that declares its weights and is called without most of what Keras does around ``call``.

    Keras searches every argument for masks, dtypes to cast and shapes to build from; for a short sentence that takes
    longer than the arithmetic. Here tensors arrive in the right dtype, and a mask is an ordinary argument.
    """

    def __init__(self, **kwargs: Any) -> None:
        """Take the name, as every Keras layer does."""
        super().__init__(**kwargs)
        self.specs: dict[str, WeightSpec] = {}

    def declare(self, name: str, shape: tuple[int, ...], initializer: Any, blocks: Blocks | None = None) -> None:
        """Declare a weight, see ``WeightSpec``. ``make_weights`` sets it as the attribute of this name."""
        self.specs[name] = WeightSpec(shape, initializer, blocks)

    def initialize_matrices(self, initializer: Any) -> None:
        """Give all declared matrices another initializer."""
        for spec in self.specs.values():
            if len(spec.shape) == 2:
                spec.initializer = initializer

    @tf.autograph.experimental.do_not_convert  # nothing in a layer for autograph to convert; as Keras has it
    def __call__(self, *args: Any, training: bool | None = None, **kwargs: Any) -> Any:
        """Return what ``call`` returns.

        Raises:
            TypeError: for ``training=True``.
        """
        if training:
            raise TypeError(NO_TRAINING_FLAG)
        with tf.name_scope(self.name):
            return self.call(*args, **kwargs)

    def cast(self, weight: keras.Variable) -> tf.Tensor:
        """Return a weight in the compute precision."""
        return tf.cast(weight.value, self.compute_dtype)


def parts_of(layer: keras.layers.Layer) -> list[Layer]:
    """Return the layers that are attributes of a layer, in the order in which they were set."""
    return layer._flatten_layers(recursive=False, include_self=False)


def layers_within(
    layer: keras.layers.Layer, prefix: str = "", seen: set[int] | None = None
) -> Iterator[tuple[str, Layer]]:
    """Yield all layers in a layer with their paths, such as "encoder_1/attention/": a layer, then its parts.

    A layer that serves in two places comes once, with the path of the first place.
    """
    seen = set() if seen is None else seen
    for part in parts_of(layer):
        if id(part) not in seen:
            seen.add(id(part))
            path = f"{prefix}{part.name}/"
            yield path, part
            yield from layers_within(part, path, seen)


def declared_weights(model: keras.Model) -> dict[str, WeightSpec]:
    """Return the declared weights of a model by path, such as "encoder_1/attention/query/kernel".

    Raises:
        ValueError: if two weights have the same path.
    """
    by_path: dict[str, WeightSpec] = {}
    for prefix, layer in layers_within(model):
        for name, spec in layer.specs.items():
            path = prefix + name
            if path in by_path:
                raise ValueError(
                    f"two weights of {type(model).__name__} are called {path!r}, and would be saved as one"
                )
            by_path[path] = spec
    return by_path


def make_weights(layer: keras.layers.Layer, initializer: str | None = None) -> None:
    """Make the declared weights of a layer and of the layers in it, unless they are made.

    Args:
        layer: a layer or a model.
        initializer: initializer of all weights; None: each has its own.
    """
    if layer.built:
        return
    if isinstance(layer, Layer):
        for name, spec in layer.specs.items():
            values = initializer or spec.initializer
            weight = layer.add_weight(name=name, shape=spec.shape, initializer=values, autocast=False)
            weight.blocks = spec.blocks
            setattr(layer, name, weight)
    with keras.name_scope(layer.name):
        for part in parts_of(layer):
            make_weights(part, initializer)
    layer.built = True
