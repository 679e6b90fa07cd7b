"""Several hypotheses a sentence: beam search, over any step function.

Shapes: B sentences, K beams of each, V vocabulary, S source length, P length of forced prefixes, N longest limit.
"""

from typing import Any, NamedTuple

from nmt.decoding.search import Found, Ids, Step, Task, forced_tokens, largest, log_probabilities, until_done, written
from nmt.runtime import tf


def length_penalty(length: tf.Tensor, alpha: float) -> tf.Tensor:
    """Return lp(Y) = ((5 + |Y|) / 6)^alpha, shaped as ``length`` (Wu et al. 2016, equation 14)."""
    return ((5.0 + tf.cast(length, tf.float32)) / 6.0) ** alpha


def coverage_penalty(coverage: tf.Tensor, counts: tf.Tensor, beta: float) -> tf.Tensor:
    """Return cp(X; Y) = beta sum_i log(min(sum_j p_ij, 1)): float32 [B, K] (Wu et al. 2016, equation 14).

    Args:
        coverage: sum_j p_ij, attention to each source token so far: float32 [B, K, S].
        counts: which source tokens are to be covered: bool [B, S].
        beta: weight of the penalty.
    """
    logs = tf.math.log(tf.clip_by_value(coverage, 1e-9, 1.0))
    return beta * tf.reduce_sum(tf.where(counts[:, tf.newaxis], logs, 0.0), axis=-1)


class _Beams(NamedTuple):
    index: tf.Tensor
    """Which sentence: int32 [B]."""
    tokens: tf.Tensor
    """Of the beams that go on: int32 [B, K, N]."""
    last: tf.Tensor
    """int32 [B, K]."""
    log_probability: tf.Tensor
    """Of the beams that go on, -inf for places without one: float32 [B, K]."""
    coverage: tf.Tensor
    """Attention to each source token so far: float32 [B, K, S]."""
    ended: tf.Tensor
    """Hypotheses that have ended, best first: int32 [B, K, N]."""
    scores: tf.Tensor
    """Of these, -inf for places without one: float32 [B, K]."""
    done: tf.Tensor
    """bool [B]."""


def beam(
    step: Step,
    cache: Any,
    task: Task,
    ids: Ids,
    *,
    beams: int,
    n_best: int = 1,
    alpha: float = 0.0,
    beta: float = 0.0,
    covered: tf.Tensor | None = None,
) -> Found:
    """Keep the K likeliest beginnings of each sentence; one that ends takes its place along, so that K can end.

    A hypothesis Y of X scores s(Y, X) = log P(Y | X) / lp(Y) + cp(X; Y) (Wu et al. 2016, equation 14). Search of a
    sentence stops once no beginning can still come among its ``n_best``: log-probabilities only fall, lp is largest at
    the limit and cp is at most 0. What is cut off by its limit counts as a hypothesis like others.

    Args:
        step, cache, task, ids: as for ``one_by_one``; the cache has K beams.
        beams: K; with 1 this is greedy search.
        n_best: n, at most K, translations are returned for each sentence.
        alpha: exponent of the length penalty, at least 0.
        beta: weight of the coverage penalty, at least 0; it needs a step that returns attention.
        covered: which source tokens the coverage penalty is about: bool [B, S].

    Returns:
        n translations for each sentence. Where fewer exist the score is -inf and the rest padding.
    """
    size, width = tf.size(task.limits), tf.reduce_max(task.limits)
    places = tf.range(beams)
    covered = covered if covered is not None and beta else tf.zeros([size, 1], tf.bool)

    def extend(count: tf.Tensor, old: _Beams, cache: Any) -> tuple[_Beams, Any]:
        logits, attention, cache = step(old.last, cache)
        parents, chosen, total = _best_continuations(
            logits, old.log_probability, beams, forced_tokens(count, old.index, task.prefixes, ids), ids
        )
        free = beams - tf.reduce_sum(tf.cast(old.scores > float("-inf"), tf.int32), axis=1, keepdims=True)
        taken = (places < free) & (total > float("-inf")) & ~old.done[:, tf.newaxis]
        limits = tf.gather(task.limits, old.index)
        cut = (count + 1 >= limits)[:, tf.newaxis]
        ends = taken & (tf.equal(chosen, ids.eos) | cut)
        goes_on = taken & ~ends
        tokens = written(tf.gather(old.tokens, parents, batch_dims=1), count, chosen)
        coverage, scores = old.coverage, total / length_penalty(count + 1, alpha)
        if beta and attention is not None:
            coverage = tf.gather(coverage + attention, parents, batch_dims=1)
            scores += coverage_penalty(coverage, tf.gather(covered, old.index), beta)
        all_scores = tf.concat([old.scores, tf.where(ends, scores, float("-inf"))], axis=1)
        scores, order = tf.math.top_k(all_scores, beams)
        ended = tf.gather(tf.concat([old.ended, tokens], axis=1), order, batch_dims=1)
        log_probability = tf.where(goes_on, total, float("-inf"))
        attainable = tf.reduce_max(log_probability, axis=1) / length_penalty(limits, alpha)
        return old._replace(
            tokens=tokens,
            last=chosen,
            log_probability=log_probability,
            coverage=coverage,
            ended=ended,
            scores=scores,
            done=old.done | ~tf.reduce_any(goes_on, axis=1) | (scores[:, n_best - 1] >= attainable),
        ), cache.reorder(parents)

    start = _Beams(
        index=tf.range(size),
        tokens=tf.fill([size, beams, width], ids.pad),
        last=tf.fill([size, beams], ids.bos),
        log_probability=tf.tile(tf.where(tf.equal(places, 0), 0.0, float("-inf"))[tf.newaxis], [size, 1]),
        coverage=tf.zeros([size, beams, tf.shape(covered)[1]]),
        ended=tf.fill([size, beams, width], ids.pad),
        scores=tf.fill([size, beams], float("-inf")),
        done=task.limits < 1,
    )
    end = until_done(extend, start, cache)
    return Found(end.ended[:, :n_best], end.scores[:, :n_best])


def _best_continuations(
    logits: tf.Tensor, log_probability: tf.Tensor, beams: int, forced: tf.Tensor | None, ids: Ids
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Return the K likeliest continuations of beams with these logits [B, K, V] and log-probabilities [B, K].

    They are among the K likeliest of each beam, and these among its K + 2 likeliest with padding and bos.

    Returns:
        Parent int32, token int32 and log-probability float32, [B, K] each.
    """
    size = tf.shape(logits)[0]
    _, tokens = largest(logits, beams + 2)
    if forced is not None:
        tokens = tf.where(tf.equal(forced, ids.pad)[:, tf.newaxis, tf.newaxis], tokens, ids.pad)
        tokens = tf.concat([tokens, tf.tile(forced[:, tf.newaxis, tf.newaxis], [1, beams, 1])], axis=2)
    speakable = tf.not_equal(tokens, ids.pad) & tf.not_equal(tokens, ids.bos)
    totals = log_probability[:, :, tf.newaxis] + log_probabilities(logits, tokens)
    candidates = tf.reshape(tf.where(speakable, totals, float("-inf")), [size, -1])
    total, at = tf.math.top_k(candidates, beams)
    return at // tf.shape(tokens)[2], tf.gather(tf.reshape(tokens, [size, -1]), at, batch_dims=1), total
