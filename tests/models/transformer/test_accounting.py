"""The count of arithmetic: against TensorFlow's own count of a graph, by hand, and as a sum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.config.schema import TransformerConfig
from nmt.models.build import build_model
from nmt.models.registry import flops
from nmt.runtime import tf

lengths = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=8)


def count(config: TransformerConfig, pairs: list[tuple[int, int]], vocabulary: int = 1000) -> int:
    source, target = np.array(pairs).reshape(-1, 2).T
    return flops(config, source, target, vocabulary)


def tensorflows_count(function: tf.types.experimental.PolymorphicFunction) -> int:
    """What TensorFlow's own profiler counts for the matrix products of a graph, all shapes known."""
    profiler = tf.compat.v1.profiler
    options = profiler.ProfileOptionBuilder(profiler.ProfileOptionBuilder.float_operation())
    sums = [".*column_sums.*", ".*layer_norm.*"]  # sums and means of rows and columns, as products with ones
    options = options.with_node_names(show_name_regexes=[".*MatMul.*"], hide_name_regexes=sums)
    options = options.with_empty_output().build()
    return profiler.profile(function.get_concrete_function().graph, options=options).total_float_ops


@pytest.mark.parametrize(
    "varied", [{}, {"head_size": 5, "tie_embeddings": "none", "encoder_feed_forward": False}], ids=str
)
def test_tensorflow_counts_the_same(varied: dict) -> None:
    config = TransformerConfig(
        **{"encoder_layers": 2, "decoder_layers": 3, "d_model": 16, "d_ff": 24, "heads": 4, **varied}
    )
    model = build_model(config, 40, 50)

    def shapes(source: int, target: int) -> list[tf.TensorSpec]:  # of three pairs without padding
        return [tf.TensorSpec([3, source], tf.int32), tf.TensorSpec([3, target + 1], tf.int32)]

    @tf.function(input_signature=shapes(7, 9))
    def forward(source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        return model.output_projection().logits(model.teacher_forcing(source, target, remove_padding=False).states)

    # Of equal lengths: the profiler takes the wrong side of a batch of products whose first factor is transposed.
    @tf.function(input_signature=shapes(8, 8))
    def training(source: tf.Tensor, target: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            logits = model.output_projection().logits(
                model.teacher_forcing(source, target, remove_padding=False).states
            )
        return tape.gradient(logits, model.trainable_variables)

    assert tensorflows_count(forward) == count(config, [(7, 9)] * 3, 50)
    assert tensorflows_count(training) == 3 * count(config, [(8, 8)] * 3, 50)


def test_by_hand() -> None:
    config = TransformerConfig(encoder_layers=1, decoder_layers=1, d_model=2, d_ff=3, heads=1)
    projections = 4 * (2 * 5 * 2 * 2) + 6 * (2 * 7 * 2 * 2) + 2 * (2 * 5 * 2 * 2)
    attention = 2 * (2 * 5 * 5 * 2) + 2 * (2 * 7 * 7 * 2) + 2 * (2 * 7 * 5 * 2)
    feed_forward = 2 * (2 * 5 * 2 * 3) + 2 * (2 * 7 * 2 * 3)
    assert count(config, [(5, 7)], 11) == projections + attention + feed_forward + 2 * 7 * 2 * 11


@given(lengths, lengths)
def test_it_adds_up_over_batches(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    config = TransformerConfig(encoder_layers=2, decoder_layers=1, d_model=8, d_ff=16, heads=2)
    assert count(config, first + second) == count(config, first) + count(config, second)


def test_a_large_corpus_does_not_overflow() -> None:
    lengths = np.full(3, 50_000, np.int32)
    total = flops(TransformerConfig(), lengths, lengths, 2**20)
    assert total == count(TransformerConfig(), [(50_000, 50_000)] * 3, 2**20)
    assert total > 2**44
