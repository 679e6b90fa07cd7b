"""Finding a translation token by token. Knows no tokenizer and no model class: only a step function and its cache.

Greedy search, sampling and beam search share one loop, ``_until_done``: it runs in TensorFlow, eagerly or compiled, and
drops sentences as they finish.

Shapes: B sentences, K beams of each, V vocabulary, S source length, P length of forced prefixes, N longest limit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self

import tensorflow as tf

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
# (logits [B, V], tokens found so far int32) -> tokens int32 [B]
Choice = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]


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


# --- the loop


def _until_done(extend: Callable[[tf.Tensor, Any, Any], tuple[Any, Any]], sentences: Any, cache: Cache) -> Any:
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


def _written(tokens: tf.Tensor, count: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
    """Tokens [..., N] with ``new`` [...] at place ``count``."""
    return tf.where(tf.equal(tf.range(tf.shape(tokens)[-1]), count), new[..., tf.newaxis], tokens)


def _without(logits: tf.Tensor, ids: Ids) -> tf.Tensor:
    """Logits [..., V] with -inf for what is never to be said, whatever weight an undertrained model gives it."""
    vocabulary = tf.range(tf.shape(logits)[-1])
    speakable = tf.not_equal(vocabulary, ids.pad) & tf.not_equal(vocabulary, ids.bos)
    return tf.where(speakable, logits, tf.constant(float("-inf"), logits.dtype))


def _forced(count: tf.Tensor, index: tf.Tensor, prefixes: tf.Tensor | None, ids: Ids) -> tf.Tensor | None:
    """Return what each sentence must say next: int32 [B], padding for anything; None where there are no prefixes."""
    if prefixes is None:
        return None
    prefixes = tf.pad(prefixes, [[0, 0], [0, 1]], constant_values=ids.pad)
    return tf.gather(prefixes[:, tf.minimum(count, tf.shape(prefixes)[1] - 1)], index)


def _log_probabilities(logits: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
    """Of tokens [..., k] after logits [..., V]: float32 [..., k]; the least that is told apart is log(1e-38)."""
    # A softmax is one pass of one operation, a logarithm of all V of it another one, of which k are wanted.
    probabilities = tf.gather(tf.nn.softmax(tf.cast(logits, tf.float32)), tokens, batch_dims=len(logits.shape) - 1)
    return tf.math.log(tf.maximum(probabilities, 1e-38))


def _largest(logits: tf.Tensor, k: int) -> tuple[tf.Tensor, tf.Tensor]:
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


# --- one hypothesis a sentence: greedy search and sampling


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
        chosen = choose(_without(logits[:, 0], ids), lines.index, count)
        forced = _forced(count, lines.index, task.prefixes, ids)
        if forced is not None:
            chosen = tf.where(tf.equal(forced, ids.pad), chosen, forced)
        score = lines.score
        if scored:
            score += tf.where(lines.done, 0.0, _log_probabilities(logits[:, 0], chosen[:, tf.newaxis])[:, 0])
        tokens = tf.where(lines.done, ids.pad, chosen)
        return lines._replace(
            tokens=_written(lines.tokens, count, tokens),
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
    end = _until_done(extend, start, cache)
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


# --- beam search


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
            logits, old.log_probability, beams, _forced(count, old.index, task.prefixes, ids), ids
        )
        free = beams - tf.reduce_sum(tf.cast(old.scores > float("-inf"), tf.int32), axis=1, keepdims=True)
        taken = (places < free) & (total > float("-inf")) & ~old.done[:, tf.newaxis]
        limits = tf.gather(task.limits, old.index)
        cut = (count + 1 >= limits)[:, tf.newaxis]
        ends = taken & (tf.equal(chosen, ids.eos) | cut)
        goes_on = taken & ~ends
        tokens = _written(tf.gather(old.tokens, parents, batch_dims=1), count, chosen)
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
    end = _until_done(extend, start, cache)
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
    _, tokens = _largest(logits, beams + 2)
    if forced is not None:
        tokens = tf.where(tf.equal(forced, ids.pad)[:, tf.newaxis, tf.newaxis], tokens, ids.pad)
        tokens = tf.concat([tokens, tf.tile(forced[:, tf.newaxis, tf.newaxis], [1, beams, 1])], axis=2)
    speakable = tf.not_equal(tokens, ids.pad) & tf.not_equal(tokens, ids.bos)
    totals = log_probability[:, :, tf.newaxis] + _log_probabilities(logits, tokens)
    candidates = tf.reshape(tf.where(speakable, totals, float("-inf")), [size, -1])
    total, at = tf.math.top_k(candidates, beams)
    return at // tf.shape(tokens)[2], tf.gather(tf.reshape(tokens, [size, -1]), at, batch_dims=1), total
