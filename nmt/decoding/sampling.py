"""Search with one hypothesis a sentence: greedy search and sampling, over any step function.

Shapes: B sentences, V vocabulary, P length of forced prefixes, T longest limit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from nmt.decoding.search import (
    Hypotheses,
    SearchLimits,
    Step,
    decode,
    forced_tokens,
    log_probabilities,
    mask_repeats,
    mask_special_tokens,
    write_token,
)
from nmt.models.layers.unpadding import BeamLayout
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, PAD

# (logits [B, V], place of each sentence in the batch int32 [B], number of tokens so far int32) -> tokens int32 [B]
Choice = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]


class _Sentences(NamedTuple):
    """Sentences in step search."""

    index: tf.Tensor
    """Place in the batch: int32 [B]."""
    tokens: tf.Tensor
    """Hypotheses so far: int32 [B, T]."""
    last: tf.Tensor
    """Last token of each: int32 [B]."""
    score: tf.Tensor
    """Log-probability of each: float32 [B]."""
    finished: tf.Tensor
    """bool [B]."""


def likeliest(logits: tf.Tensor, _index: tf.Tensor, _count: tf.Tensor) -> tf.Tensor:
    """Return the likeliest token of each row of logits, [B, V]: int32 [B]. The choice of greedy search."""
    return tf.argmax(logits, axis=-1, output_type=tf.int32)


def step_search(
    step: Step,
    state: Any,
    limits: SearchLimits,
    choose: Choice = likeliest,
    *,
    no_repeat_ngram_size: int = 0,
    scored: bool = False,
) -> Hypotheses:
    """Choose each token by the logits after the tokens before it, until eos or the limit; by default greedily.

    Args:
        step: predicts the token after the one given.
        state: state of the step function before bos, for B sentences with one beam each.
        limits: bounds on the hypotheses.
        choose: choice of the next tokens by their logits, in which pad and bos have -inf.
        no_repeat_ngram_size: n of the n-grams that a hypothesis has once at most; 0: any number of times.
        scored: whether to sum up log-probabilities.

    Returns:
        One hypothesis for each sentence: n is 1.
    """
    size = tf.size(limits.max_lengths)

    def extend(count: tf.Tensor, sentences: _Sentences, state: Any) -> tuple[tf.Tensor, _Sentences, Any]:
        layout = BeamLayout.of(sentences.last[:, tf.newaxis])
        logits, _, state = step(sentences.last[:, tf.newaxis], state)
        index = tf.gather(sentences.index, layout.indices)
        possible = mask_special_tokens(logits)
        if no_repeat_ngram_size:
            tokens = layout.flatten(sentences.tokens[:, tf.newaxis])
            possible = mask_repeats(possible, tokens, count, no_repeat_ngram_size)
        chosen = layout.restore(choose(possible, index, count))[:, 0]
        forced = forced_tokens(count, sentences.index, limits.prefixes)
        if forced is not None:
            chosen = tf.where(tf.equal(forced, PAD), chosen, forced)
        score, finished = sentences.score, sentences.finished
        if scored:
            gained = layout.restore(log_probabilities(logits, layout.flatten(chosen[:, tf.newaxis])[:, tf.newaxis]))
            score += tf.where(finished, 0.0, gained[:, 0, 0])
        tokens = tf.where(finished, PAD, chosen)
        at_limit = count + 1 >= tf.gather(limits.max_lengths, sentences.index)
        extended = sentences._replace(
            tokens=write_token(sentences.tokens, count, tokens),
            last=tokens,
            score=score,
            finished=finished | tf.equal(tokens, EOS) | at_limit,
        )
        return count + 1, extended, state

    start = _Sentences(
        index=tf.range(size),
        tokens=tf.fill([size, tf.reduce_max(limits.max_lengths)], PAD),
        last=tf.fill([size], BOS),
        score=tf.zeros([size]),
        finished=limits.max_lengths < 1,
    )
    end = decode(extend, start, state)
    return Hypotheses(end.tokens[:, tf.newaxis], end.score[:, tf.newaxis])


def sample(
    step: Step,
    state: Any,
    limits: SearchLimits,
    random: tf.Tensor,
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    **others: Any,
) -> Hypotheses:
    """Draw each token from the distribution of the model (see ``step_search``).

    Args:
        step, state, limits, others: as of ``step_search``.
        random: a number from [0, 1) for each sentence and token, float32 [B, T]; nothing else decides the draw.
        temperature: divisor of the logits.
        top_k: number of likeliest tokens to draw from (Fan et al. 2018); 0: all.
        top_p: probability of the smallest set of likeliest tokens to draw from (Holtzman et al. 2020).
    """

    def drawn(logits: tf.Tensor, index: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        return draw(tf.cast(logits, tf.float32), tf.gather(random[:, count], index), temperature, top_k, top_p)

    return step_search(step, state, limits, drawn, **others)


def draw(logits: tf.Tensor, random: tf.Tensor, temperature: float, top_k: int, top_p: float) -> tf.Tensor:
    """Return a token drawn from each row of logits, float32 [B, V], by a number from [0, 1), float32 [B]: int32 [B].

    It is the token at which the cumulative distribution passes the number.
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
    last = tf.reduce_max(tf.where(probabilities > 0, places, 0), axis=-1)  # rounding may lead past the end
    place = tf.minimum(passed, last)
    return tf.gather(ranking, place, batch_dims=1) if ranked else place
