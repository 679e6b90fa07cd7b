"""Beam search over any step function.

Shapes: B sentences, K beams per sentence, N live beams, V vocabulary, S source length, P length of forced prefixes, T
largest length limit, n hypotheses per sentence.
"""

from typing import Any, NamedTuple

from nmt.decoding.search import (
    Hypotheses,
    SearchLimits,
    Step,
    decode,
    forced_tokens,
    largest,
    log_probabilities,
    mask_repeats,
    write_token,
)
from nmt.models.layers.unpadding import BeamLayout
from nmt.runtime import on_host, tf
from nmt.tokenizers.base import BOS, EOS, PAD


def length_penalty(length: tf.Tensor, alpha: float) -> tf.Tensor:
    """Return lp(Y) = ((5 + |Y|) / 6)^alpha, shaped as ``length`` (Wu et al. 2016, equation 14)."""
    return ((5.0 + tf.cast(length, tf.float32)) / 6.0) ** alpha


def coverage_penalty(coverage: tf.Tensor, counts: tf.Tensor, beta: float) -> tf.Tensor:
    """Return cp(X; Y) = beta sum_i log(min(sum_j p_ij, 1)): float32 [B, K] (Wu et al. 2016, equation 14).

    Args:
        coverage: sum_j p_ij, the attention that each source token has received so far: float32 [B, K, S].
        counts: mask of the source tokens that should be covered: bool [B, S].
        beta: weight of the penalty.
    """
    logs = tf.math.log(tf.clip_by_value(coverage, 1e-9, 1.0))
    return beta * tf.reduce_sum(tf.where(counts[:, tf.newaxis], logs, 0.0), axis=-1)


class _Sentences(NamedTuple):
    """State of beam search for B sentences."""

    index: tf.Tensor
    """Place in the batch: int32 [B]."""
    tokens: tf.Tensor
    """Tokens of the live beams: int32 [B, K, T]."""
    last: tf.Tensor
    """Last token of each live beam, padding in empty slots: int32 [B, K]."""
    log_probability: tf.Tensor
    """Log-probability of each live beam, -inf in empty slots: float32 [B, K]."""
    coverage: tf.Tensor
    """Attention of each beam to each source token, summed over its tokens: float32 [B, K, S]."""
    ended: tf.Tensor
    """Tokens of the finished hypotheses, best first: int32 [B, K, T]."""
    scores: tf.Tensor
    """Score of each finished hypothesis, -inf in empty slots: float32 [B, K]."""
    finished: tf.Tensor
    """Whether the search of a sentence is over: bool [B]."""


def beam_search(
    step: Step,
    state: Any,
    limits: SearchLimits,
    *,
    beams: int,
    n_best: int = 1,
    alpha: float = 0.0,
    beta: float = 0.0,
    no_repeat_ngram_size: int = 0,
    covered: tf.Tensor | None = None,
) -> Hypotheses:
    """Search with the K likeliest prefixes of each sentence.

    A finished hypothesis keeps its slot, so the live beam shrinks until all K hypotheses are finished.

    A hypothesis Y of X scores s(Y, X) = log P(Y | X) / lp(Y) + cp(X; Y) (Wu et al. 2016, equation 14). The search of a
    sentence stops when no live beam can still enter its ``n_best``: log-probabilities only fall, lp is largest at the
    length limit, and cp is at most 0. A hypothesis that reaches its length limit counts as finished.

    Args:
        step, state, limits: as in ``step_search``; the state has K beams.
        beams: K; with 1 this is greedy search.
        n_best: n, the number of hypotheses to return for each sentence; at most K.
        alpha: exponent of the length penalty, at least 0.
        beta: weight of the coverage penalty, at least 0. Values above 0 need a step that returns attention.
        no_repeat_ngram_size: length of the n-grams that a hypothesis may contain only once; 0 allows repeats.
        covered: mask of the source tokens that the coverage penalty counts: bool [B, S].

    Returns:
        n hypotheses for each sentence. Empty slots have the score -inf and padding.
    """
    size, width = tf.size(limits.max_lengths), tf.reduce_max(limits.max_lengths)
    places = tf.range(beams)
    covered = covered if covered is not None and beta else tf.zeros([size, 1], tf.bool)

    def extend(count: tf.Tensor, old: _Sentences, state: Any) -> tuple[tf.Tensor, _Sentences, Any]:
        logits, attention, state = step(old.last, state)
        forced = forced_tokens(count, old.index, limits.prefixes)
        parents, next_tokens, total = _best_continuations(logits, old, beams, forced, count, no_repeat_ngram_size)
        with on_host():
            free = beams - tf.reduce_sum(tf.cast(old.scores > float("-inf"), tf.int32), axis=1, keepdims=True)
            continues = (places < free) & (total > float("-inf")) & ~old.finished[:, tf.newaxis]
            max_lengths = tf.gather(limits.max_lengths, old.index)
            cut = (count + 1 >= max_lengths)[:, tf.newaxis]
            ends = continues & (tf.equal(next_tokens, EOS) | cut)
            live = continues & ~ends
            tokens = write_token(tf.gather(old.tokens, parents, batch_dims=1), count, next_tokens)
            coverage, scores = old.coverage, total / length_penalty(count + 1, alpha)
            if beta and attention is not None:
                coverage = tf.gather(coverage + attention, parents, batch_dims=1)
                scores += coverage_penalty(coverage, tf.gather(covered, old.index), beta)
            all_scores = tf.concat([old.scores, tf.where(ends, scores, float("-inf"))], axis=1)
            scores, order = tf.math.top_k(all_scores, beams)
            ended = tf.gather(tf.concat([old.ended, tokens], axis=1), order, batch_dims=1)
            log_probability = tf.where(live, total, float("-inf"))
            attainable = tf.reduce_max(log_probability, axis=1) / length_penalty(max_lengths, alpha)
            finished = old.finished | ~tf.reduce_any(live, axis=1) | (scores[:, n_best - 1] >= attainable)
            extended = old._replace(
                tokens=tokens,
                last=tf.where(live & ~finished[:, tf.newaxis], next_tokens, PAD),
                log_probability=log_probability,
                coverage=coverage,
                ended=ended,
                scores=scores,
                finished=finished,
            )
        return count + 1, extended, state.reorder(parents)

    start = _Sentences(
        index=tf.range(size),
        tokens=tf.fill([size, beams, width], PAD),
        last=tf.tile(tf.where(tf.equal(places, 0), BOS, PAD)[tf.newaxis], [size, 1]),
        log_probability=tf.tile(tf.where(tf.equal(places, 0), 0.0, float("-inf"))[tf.newaxis], [size, 1]),
        coverage=tf.zeros([size, beams, tf.shape(covered)[1]]),
        ended=tf.fill([size, beams, width], PAD),
        scores=tf.fill([size, beams], float("-inf")),
        finished=limits.max_lengths < 1,
    )
    end = decode(extend, start, state)
    return Hypotheses(end.ended[:, :n_best], end.scores[:, :n_best])


def _best_continuations(
    logits: tf.Tensor, sentences: _Sentences, beams: int, forced: tf.Tensor | None, count: tf.Tensor,
    no_repeat_ngram_size: int,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:  # fmt: skip
    """Return the K likeliest continuations of each sentence from the logits [N, V] of the N live beams.

    Each beam contributes its K + 2 likeliest tokens, since pad and bos may be two of them.

    Returns:
        Parent beams int32, next tokens int32 and log-probabilities float32, all [B, K].
    """
    size, layout = tf.shape(sentences.last)[0], BeamLayout.of(sentences.last)
    logits = tf.cast(logits, tf.float32)
    possible = logits
    if no_repeat_ngram_size:
        possible = mask_repeats(logits, layout.flatten(sentences.tokens), count, no_repeat_ngram_size)
    values, tokens = largest(possible, beams + 2)
    with on_host():
        if no_repeat_ngram_size:
            tokens = tf.where(values > float("-inf"), tokens, PAD)
        if forced is not None:
            forced = layout.flatten(tf.tile(forced[:, tf.newaxis, tf.newaxis], [1, beams, 1]))
            tokens = tf.concat([tf.where(tf.equal(forced, PAD), tokens, PAD), forced], axis=1)
        allowed = tf.not_equal(tokens, PAD) & tf.not_equal(tokens, BOS)
    values = log_probabilities(logits, tokens)
    with on_host():
        scores = layout.restore(tf.where(allowed, values, float("-inf")))
        totals = sentences.log_probability[:, :, tf.newaxis] + scores
        tokens = layout.restore(tokens)
        candidates = tf.reshape(totals, [size, -1])
        total, places = tf.math.top_k(candidates, beams)
        next_tokens = tf.gather(tf.reshape(tokens, [size, -1]), places, batch_dims=1)
        return places // tf.shape(tokens)[2], next_tokens, total
