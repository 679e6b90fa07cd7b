"""The loop that all searches share, and what they take and return: tokens found one by one by a step function.

Knows no tokenizer and no model class, only a step function and its cache. The loop runs in TensorFlow, eagerly or
compiled, and drops sentences as they finish.

Shapes: B sentences, K beams of each, V vocabulary, S source length, P length of forced prefixes, N longest limit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self

from nmt.runtime import tf

CHUNK = 16
"""Steps for which the cache gets room at a time."""
GROUP = 64
"""Places of the vocabulary that are looked at together for the largest logits."""


class Cache(Protocol):
    """What a step function keeps of B sentences with K beams each: any structure of tensors with these two methods."""

    def reorder(self, parents: tf.Tensor) -> Self:
        """Let beam k of sentence b go on from what was its beam ``parents[b, k]``: int32 [B, K]."""

    def keep(self, sentences: tf.Tensor, room: tf.Tensor) -> Self:
        """Return the cache of these sentences, int32 [B'], alone, with room for ``room`` tokens in all."""


# (tokens int32 [B, K], cache) -> (logits [B, K, V], attention to the source float32 [B, K, S] or None, cache)
Step = Callable[[tf.Tensor, Any], tuple[tf.Tensor, tf.Tensor | None, Any]]


class Task(NamedTuple):
    """What is to be found."""

    limits: tf.Tensor
    """Most tokens that each sentence may have, its eos included: int32 [B]."""
    prefixes: tf.Tensor | None = None
    """Tokens that each translation must begin with, padded: int32 [B, P]; None for none."""


class Ids(NamedTuple):
    """The ids that search must know."""

    pad: int
    """Fills rows after eos; never said."""
    bos: int
    """Starts a sentence; never said."""
    eos: int
    """Ends one."""


class Found(NamedTuple):
    """Translations, the best of a sentence first."""

    tokens: tf.Tensor
    """Ids without bos, with eos where it was reached: int32 [B, n, N]."""
    scores: tf.Tensor
    """Log-probabilities, with penalties where search has them: float32 [B, n]; 0 where none were asked for."""


def until_done(extend: Callable[[tf.Tensor, Any, Any], tuple[Any, Any]], sentences: Any, cache: Cache) -> Any:
    """Extend all sentences by a token at a time until each is done.

    Sentences that are done would cost as much as others: when they are a quarter, and whenever the cache is full, the
    others go on without them.

    Args:
        extend: (tokens found int32 scalar, sentences, cache) -> (sentences, cache), one token further.
        sentences: named tuple of tensors [B, ...], among them ``index`` int32 [B], 0 .. B - 1, and ``done`` bool [B].
        cache: of these sentences.

    Returns:
        The sentences, in their order, as they were when they were done.
    """

    def some_left(_count: tf.Tensor, _result: Any, sentences: Any, _cache: Any) -> tf.Tensor:
        return ~tf.reduce_all(sentences.done)

    def drop_and_go_on(count: tf.Tensor, result: Any, sentences: Any, cache: Any) -> Any:
        left = tf.cast(tf.where(~sentences.done)[:, 0], tf.int32)
        sentences = tf.nest.map_structure(lambda part: tf.gather(part, left), sentences)
        room = count + CHUNK
        cache = cache.keep(left, room)
        size = tf.size(left)

        def worth_it(count: tf.Tensor, sentences: Any, _cache: Any) -> tf.Tensor:
            done = tf.reduce_sum(tf.cast(sentences.done, tf.int32))
            return (count < room) & (4 * done < size)

        def one_further(count: tf.Tensor, sentences: Any, cache: Any) -> Any:
            return (count + 1, *extend(count, sentences, cache))

        state = (count, sentences, cache)
        count, sentences, cache = tf.while_loop(worth_it, one_further, state, shape_invariants=_any_shape(state))
        at = sentences.index[:, tf.newaxis]
        result = tf.nest.map_structure(
            lambda all_, part: tf.tensor_scatter_nd_update(all_, at, part), result, sentences
        )
        return count, result, sentences, cache

    state = (tf.constant(0), sentences, sentences, cache)
    return tf.while_loop(some_left, drop_and_go_on, state, shape_invariants=_any_shape(state))[1]


def _any_shape(state: Any) -> Any:
    return tf.nest.map_structure(lambda part: tf.TensorShape([None] * part.shape.rank), state)


def written(tokens: tf.Tensor, count: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
    """Tokens [..., N] with ``new`` [...] at place ``count``."""
    return tf.where(tf.equal(tf.range(tf.shape(tokens)[-1]), count), new[..., tf.newaxis], tokens)


def without_unspeakable(logits: tf.Tensor, ids: Ids) -> tf.Tensor:
    """Logits [..., V] with -inf for what is never to be said, whatever weight an undertrained model gives it."""
    vocabulary = tf.range(tf.shape(logits)[-1])
    speakable = tf.not_equal(vocabulary, ids.pad) & tf.not_equal(vocabulary, ids.bos)
    return tf.where(speakable, logits, tf.constant(float("-inf"), logits.dtype))


def forced_tokens(count: tf.Tensor, index: tf.Tensor, prefixes: tf.Tensor | None, ids: Ids) -> tf.Tensor | None:
    """Return what each sentence must say next: int32 [B], padding for anything; None where there are no prefixes."""
    if prefixes is None:
        return None
    prefixes = tf.pad(prefixes, [[0, 0], [0, 1]], constant_values=ids.pad)
    return tf.gather(prefixes[:, tf.minimum(count, tf.shape(prefixes)[1] - 1)], index)


def log_probabilities(logits: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
    """Of tokens [..., k] after logits [..., V]: float32 [..., k]; the least that is told apart is log(1e-38)."""
    # A softmax is one pass of one operation, a logarithm of all V of it another one, of which k are wanted.
    probabilities = tf.gather(tf.nn.softmax(tf.cast(logits, tf.float32)), tokens, batch_dims=len(logits.shape) - 1)
    return tf.math.log(tf.maximum(probabilities, 1e-38))


def largest(logits: tf.Tensor, k: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the k largest of logits [..., V], largest first, and their places int32; of equals the first places.

    They are in the k groups of places with the largest maxima, and maxima are found far faster than an order.
    """
    vocabulary = logits.shape[-1]
    if vocabulary is None or vocabulary <= k * GROUP:
        return tf.math.top_k(logits, tf.minimum(k, tf.shape(logits)[-1]))
    if vocabulary % GROUP:
        filled = [[0, 0]] * (len(logits.shape) - 1) + [[0, -vocabulary % GROUP]]
        logits = tf.pad(logits, filled, constant_values=float("-inf"))
    leading = tf.shape(logits)[:-1]
    groups = tf.reshape(logits, tf.concat([leading, [-1, GROUP]], axis=0))
    batch = len(logits.shape) - 1
    chosen = tf.sort(tf.math.top_k(tf.reduce_max(groups, axis=-1), k).indices)
    members = tf.reshape(tf.gather(groups, chosen, batch_dims=batch), tf.concat([leading, [k * GROUP]], axis=0))
    values, at = tf.math.top_k(members, k)
    return values, tf.gather(chosen, at // GROUP, batch_dims=batch) * GROUP + at % GROUP
