"""One hypothesis a sentence: greedy search and sampling, over any step function.

Shapes: B sentences, K beams of each, V vocabulary, S source length, P length of forced prefixes, N longest limit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from nmt.decoding.search import (
    Found,
    Ids,
    Step,
    Task,
    forced_tokens,
    log_probabilities,
    until_done,
    without_unspeakable,
    written,
)
from nmt.runtime import tf

# (logits [B, V], tokens found so far int32) -> tokens int32 [B]
Choice = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]


class _Line(NamedTuple):
    index: tf.Tensor
    """Which sentence: int32 [B]."""
    tokens: tf.Tensor
    """int32 [B, N]."""
    last: tf.Tensor
    """int32 [B]."""
    score: tf.Tensor
    """float32 [B]."""
    done: tf.Tensor
    """bool [B]."""


def one_by_one(step: Step, cache: Any, task: Task, ids: Ids, choose: Choice, *, scored: bool = False) -> Found:
    """Choose each token from the logits of those before it, until every sentence has its eos or its limit.

    Args:
        step: predicts the token after the one given, and returns the cache with that one in it.
        cache: an empty cache for B sentences of one beam.
        task: what is to be found, for B sentences.
        ids: the special ids.
        choose: (logits [B, V] with -inf for what must not be said, index of each sentence int32 [B], number of tokens
            found before) -> int32 [B].
        scored: whether to add up log-probabilities.

    Returns:
        One translation for each sentence: n is 1.
    """
    size = tf.size(task.limits)

    def extend(count: tf.Tensor, lines: _Line, cache: Any) -> tuple[_Line, Any]:
        logits, _, cache = step(lines.last[:, tf.newaxis], cache)
        chosen = choose(without_unspeakable(logits[:, 0], ids), lines.index, count)
        forced = forced_tokens(count, lines.index, task.prefixes, ids)
        if forced is not None:
            chosen = tf.where(tf.equal(forced, ids.pad), chosen, forced)
        score = lines.score
        if scored:
            score += tf.where(lines.done, 0.0, log_probabilities(logits[:, 0], chosen[:, tf.newaxis])[:, 0])
        tokens = tf.where(lines.done, ids.pad, chosen)
        return lines._replace(
            tokens=written(lines.tokens, count, tokens),
            last=tokens,
            score=score,
            done=lines.done | tf.equal(tokens, ids.eos) | (count + 1 >= tf.gather(task.limits, lines.index)),
        ), cache

    start = _Line(
        index=tf.range(size),
        tokens=tf.fill([size, tf.reduce_max(task.limits)], ids.pad),
        last=tf.fill([size], ids.bos),
        score=tf.zeros([size]),
        done=task.limits < 1,
    )
    end = until_done(extend, start, cache)
    return Found(end.tokens[:, tf.newaxis], end.score[:, tf.newaxis])


def greedy(step: Step, cache: Any, task: Task, ids: Ids, *, scored: bool = False) -> Found:
    """Take the likeliest token at each step (see ``one_by_one``)."""

    def likeliest(logits: tf.Tensor, _index: tf.Tensor, _count: tf.Tensor) -> tf.Tensor:
        return tf.argmax(logits, axis=-1, output_type=tf.int32)

    return one_by_one(step, cache, task, ids, likeliest, scored=scored)


def sample(
    step: Step,
    cache: Any,
    task: Task,
    ids: Ids,
    random: tf.Tensor,
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    scored: bool = False,
) -> Found:
    """Draw each token from the distribution of the model (see ``one_by_one``).

    Args:
        step, cache, task, ids, scored: as for ``one_by_one``.
        random: for each sentence and token a number from [0, 1), float32 [B, N]: what is drawn depends on nothing else.
        temperature: logits are divided by it.
        top_k: draw from the k likeliest tokens only (Fan et al. 2018); 0: from all.
        top_p: draw from the fewest likeliest tokens that have this probability together (Holtzman et al. 2020).
    """

    def drawn(logits: tf.Tensor, index: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        return draw(tf.cast(logits, tf.float32), tf.gather(random[:, count], index), temperature, top_k, top_p)

    return one_by_one(step, cache, task, ids, drawn, scored=scored)


def draw(logits: tf.Tensor, random: tf.Tensor, temperature: float, top_k: int, top_p: float) -> tf.Tensor:
    """Draw a token from each row of logits, float32 [B, V], by a number from [0, 1), float32 [B]: int32 [B].

    The token is where the cumulative distribution passes that number.
    """
    logits /= temperature
    ranked = bool(top_k) or top_p < 1
    if ranked:
        size = tf.shape(logits)[-1]
        logits, ranking = tf.math.top_k(logits, tf.minimum(top_k, size) if top_k else size)
    probabilities = tf.nn.softmax(logits)
    if top_p < 1:
        before = tf.cumsum(probabilities, axis=-1, exclusive=True)
        probabilities = tf.where(before < top_p, probabilities, 0.0)
    cumulative = tf.cumsum(probabilities, axis=-1)
    passed = tf.reduce_sum(tf.cast(cumulative <= random[:, tf.newaxis] * cumulative[:, -1:], tf.int32), axis=-1)
    places = tf.range(tf.shape(logits)[-1])
    last = tf.reduce_max(tf.where(probabilities > 0, places, 0), axis=-1)  # where rounding would lead beyond the end
    place = tf.minimum(passed, last)
    return tf.gather(ranking, place, batch_dims=1) if ranked else place
