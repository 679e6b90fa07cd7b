"""Finding a translation token by token. Knows no tokenizer and no model class: only a step function.

Shapes: B batch, V vocabulary, N tokens found.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

# (tokens int32 [B, 1], cache) -> (logits [B, 1, V], cache)
Step = Callable[[tf.Tensor, Any], tuple[tf.Tensor, Any]]


class GreedyState(NamedTuple):
    """Where the search stands."""

    count: tf.Tensor
    """Tokens found for each sentence: int32 scalar."""
    tokens: tf.Tensor
    """The last of them: int32 [B]."""
    done: tf.Tensor
    """Which sentences have ended: bool [B]."""
    found: tf.TensorArray
    """All of them: N elements int32 [B]."""
    cache: Any
    """What the step function keeps."""


def greedy(step: Step, cache: Any, batch: tf.Tensor, *, bos: int, eos: int, pad: int, limits: tf.Tensor) -> tf.Tensor:
    """Take the likeliest token at each step, until every sentence has its eos or its limit.

    Args:
        step: predicts the token after the one given, and returns the cache with that one in it.
        cache: an empty cache for B sentences.
        batch: B, int32 scalar.
        bos: id that starts a sentence.
        eos: id that ends one.
        pad: id that fills the rows after eos.
        limits: most tokens that each sentence may have, its eos included: int32 [B].

    Returns:
        Ids without bos, with eos where it was reached: int32 [B, N], N at most the largest limit.
    """
    longest = tf.reduce_max(limits)

    def unfinished(state: GreedyState) -> tf.Tensor:
        return (state.count < longest) & ~tf.reduce_all(state.done)

    def extend(state: GreedyState) -> list[GreedyState]:
        logits, cache = step(state.tokens[:, tf.newaxis], state.cache)
        # Neither padding nor bos is something to say, whatever weight an undertrained model gives them.
        allowed = tf.tensor_scatter_nd_update(tf.ones([tf.shape(logits)[-1]], tf.bool), [[pad], [bos]], [False, False])
        scores = tf.where(allowed, logits[:, 0], logits.dtype.min)
        best = tf.argmax(scores, axis=-1, output_type=tf.int32)
        tokens = tf.where(state.done, pad, best)
        count = state.count + 1
        done = state.done | tf.equal(tokens, eos) | (count >= limits)
        return [GreedyState(count, tokens, done, state.found.write(state.count, tokens), cache)]

    start = GreedyState(
        count=tf.constant(0),
        tokens=tf.fill([batch], bos),
        done=tf.zeros([batch], tf.bool),
        found=tf.TensorArray(tf.int32, size=0, dynamic_size=True, element_shape=[None]),
        cache=cache,
    )
    (end,) = tf.while_loop(unfinished, extend, [start])
    return tf.transpose(end.found.stack())
