"""The decoding loop that all searches share, its records, greedy search and sampling.

A search depends on no model class, only on a step function and its state. The loop runs in TensorFlow, eagerly
or compiled, and drops finished sentences as it goes:

    outer loop, until every sentence is finished:
        select the unfinished sentences, and the part of the state that their beams still use
        inner loop, until a quarter of these have finished or CHUNK tokens were added:
            extend each sentence by a token
        write the sentences back into their rows of the result

Finished beams cost little more than attention. Selecting copies the cache, so it runs once per CHUNK tokens, or when a
quarter of the sentences have finished. It also drops cache columns that no surviving beam uses.

Shapes: B sentences, K beams per sentence, N live beams, V vocabulary, S source length, P length of forced prefixes, T
largest length limit, n hypotheses per sentence.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from nmt.models.base import DecoderState
from nmt.models.layers.unpadding import BeamLayout
from nmt.runtime import on_host, tf
from nmt.tokenizers.base import BOS, EOS, PAD

CHUNK = 8
"""Most tokens between two selections."""
GROUP = 32
"""Size of the groups of vocabulary entries whose maxima ``largest`` compares first."""

# (tokens int32 [B, K], padding for finished beams, state) -> (logits [N, V] of the N live beams in the order of
# BeamLayout, attention to the source float32 [B, K, S] or None, new state)
Step = Callable[[tf.Tensor, Any], tuple[tf.Tensor, tf.Tensor | None, Any]]


class SearchLimits(NamedTuple):
    """Bounds on the hypotheses of each sentence."""

    max_lengths: tf.Tensor
    """Most tokens of a hypothesis, eos included: int32 [B]."""
    prefixes: tf.Tensor | None = None
    """Tokens that each hypothesis must begin with, padded: int32 [B, P]; None without prefixes."""


class Hypotheses(NamedTuple):
    """Hypotheses of each sentence, best first."""

    tokens: tf.Tensor
    """Ids without bos, with eos if the hypothesis reached it: int32 [B, n, T]."""
    scores: tf.Tensor
    """Log-probabilities, with penalties in beam search: float32 [B, n]; 0 if scores were not requested."""


def decode(
    extend: Callable[[tf.Tensor, Any, Any], tuple[tf.Tensor, Any, Any]], sentences: Any, state: DecoderState
) -> Any:
    """Run the two loops of the module docstring; return the sentences in their order, as they were when they finished.

    Args:
        extend: (number of tokens so far int32 scalar, sentences, state) -> the same three, one token longer.
        sentences: named tuple of tensors [B, ...], including ``index`` int32 [B], the row 0 .. B - 1 in the
            batch, and ``finished`` bool [B].
        state: state of the step function before the first token.
    """

    def unfinished(_count: tf.Tensor, _result: Any, sentences: Any, _state: Any) -> tf.Tensor:
        with on_host():
            return tf.reduce_min(sentences.finished) < 1

    def decode_chunk(count: tf.Tensor, result: Any, sentences: Any, state: Any) -> Any:
        with on_host():
            rows = tf.cast(tf.where(sentences.finished < 1)[:, 0], tf.int32)
            sentences = tf.nest.map_structure(lambda part: tf.gather(part, rows), sentences)
            end, size = count + CHUNK, tf.size(rows)

        def most_unfinished(count: tf.Tensor, sentences: Any, _state: Any) -> tf.Tensor:
            with on_host():
                return (count < end) & (4 * tf.reduce_sum(sentences.finished) < size)

        def extend_integers(count: tf.Tensor, integers: Any, state: Any) -> tuple[tf.Tensor, Any, Any]:
            with on_host():
                sentences = tf.nest.map_structure(_from_integers, integers, start)
            count, sentences, state = extend(count, sentences, state)
            with on_host():
                return count, tf.nest.map_structure(_as_integers, sentences), state

        loop = (count, sentences, state.select(rows))
        count, sentences, state = tf.while_loop(
            most_unfinished, extend_integers, loop, shape_invariants=_any_shape(loop)
        )
        with on_host():
            places = sentences.index[:, tf.newaxis]
            result = tf.nest.map_structure(
                lambda whole, part: tf.tensor_scatter_nd_update(whole, places, part), result, sentences
            )
        return count, result, sentences, state

    start = sentences
    with on_host():
        sentences = tf.nest.map_structure(_as_integers, start)
    loop = (tf.constant(0), sentences, sentences, state)
    result = tf.while_loop(unfinished, decode_chunk, loop, shape_invariants=_any_shape(loop))[1]
    with on_host():
        return tf.nest.map_structure(_from_integers, result, start)


def _as_integers(x: tf.Tensor) -> tf.Tensor:
    """Return the bits of x as int32, the only type of loop variables that TensorFlow leaves in the host's memory."""
    return tf.cast(x, tf.int32) if x.dtype == tf.bool else tf.bitcast(x, tf.int32)


def _from_integers(x: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Undo ``_as_integers``."""
    return tf.cast(x, tf.bool) if like.dtype == tf.bool else tf.bitcast(x, like.dtype)


def _any_shape(loop: Any) -> Any:
    return tf.nest.map_structure(lambda part: tf.TensorShape([None] * part.shape.rank), loop)


def write_token(tokens: tf.Tensor, count: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
    """Return tokens, [..., T], with ``new``, [...], in column ``count``."""
    return tf.where(tf.equal(tf.range(tf.shape(tokens)[-1]), count), new[..., tf.newaxis], tokens)


def mask_special_tokens(logits: tf.Tensor) -> tf.Tensor:
    """Return logits, [..., V], with -inf for pad and bos, which an undertrained model may prefer."""
    vocabulary = tf.range(tf.shape(logits)[-1])
    allowed = tf.not_equal(vocabulary, PAD) & tf.not_equal(vocabulary, BOS)
    return tf.where(allowed, logits, tf.constant(float("-inf"), logits.dtype))


def mask_repeats(logits: tf.Tensor, tokens: tf.Tensor, count: tf.Tensor, size: int) -> tf.Tensor:
    """Return logits, [N, V], with -inf for each token that would repeat an n-gram of its hypothesis.

    Args:
        logits: logits of the next token.
        tokens: hypotheses so far: int32 [N, T], padding from column ``count`` on.
        count: number of tokens so far.
        size: n, at least 1.
    """
    windows = tf.maximum(tf.shape(tokens)[1] - size + 1, 0)
    repeated = tf.range(windows) + size <= count
    for place in range(size - 1):
        latest = tokens[:, tf.maximum(count - size + 1 + place, 0), tf.newaxis]
        repeated &= tf.equal(tokens[:, place : place + windows], latest)
    ends = tf.where(repeated, tokens[:, size - 1 :], PAD)  # pad is never generated: it stands for "no token"
    places = tf.stack([tf.broadcast_to(tf.range(tf.shape(ends)[0])[:, tf.newaxis], tf.shape(ends)), ends], axis=-1)
    never = tf.fill(tf.shape(ends), tf.constant(float("-inf"), logits.dtype))
    return tf.tensor_scatter_nd_min(logits, places, never)


def forced_tokens(count: tf.Tensor, index: tf.Tensor, prefixes: tf.Tensor | None) -> tf.Tensor | None:
    """Return each sentence's prefix token in column ``count``: int32 [B], pad past its end; None without prefixes."""
    if prefixes is None:
        return None
    with on_host():
        prefixes = tf.pad(prefixes, [[0, 0], [0, 1]], constant_values=PAD)
        return tf.gather(prefixes[:, tf.minimum(count, tf.shape(prefixes)[1] - 1)], index)


def log_probabilities(logits: tf.Tensor, tokens: tf.Tensor) -> tf.Tensor:
    """Return the log-probabilities of tokens [..., k] under logits [..., V]: float32 [..., k], at least log(1e-38)."""
    # A softmax is one operation; log_softmax would take another pass over all V, though only k are needed.
    probabilities = tf.gather(tf.nn.softmax(tf.cast(logits, tf.float32)), tokens, batch_dims=len(logits.shape) - 1)
    return tf.math.log(tf.maximum(probabilities, 1e-38))


def largest(logits: tf.Tensor, k: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the k largest logits [..., V], largest first, and their ids int32; ties go to the lowest ids.

    The k largest are in the k groups with the largest maxima, and maxima take far less time than sorting.
    """
    vocabulary = logits.shape[-1]
    if vocabulary is None or vocabulary <= k * GROUP:
        return tf.math.top_k(logits, tf.minimum(k, tf.shape(logits)[-1]))
    if vocabulary % GROUP:
        padding = [[0, 0]] * (len(logits.shape) - 1) + [[0, -vocabulary % GROUP]]
        logits = tf.pad(logits, padding, constant_values=float("-inf"))
    leading = tf.shape(logits)[:-1]
    groups = tf.reshape(logits, tf.concat([leading, [-1, GROUP]], axis=0))
    batch = len(logits.shape) - 1
    best_groups = tf.math.top_k(tf.reduce_max(groups, axis=-1), k).indices
    with on_host():
        best_groups = tf.sort(best_groups)
    members = tf.reshape(tf.gather(groups, best_groups, batch_dims=batch), tf.concat([leading, [k * GROUP]], axis=0))
    values, places = tf.math.top_k(members, k)
    with on_host():
        return values, tf.gather(best_groups, places // GROUP, batch_dims=batch) * GROUP + places % GROUP


# --- one hypothesis per sentence

# (logits [B, V], row of each sentence in the batch int32 [B], number of tokens so far int32) -> tokens int32 [B]
Choice = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]


class _Sentences(NamedTuple):
    """State of greedy search or sampling for B sentences."""

    index: tf.Tensor
    """Row in the batch: int32 [B]."""
    tokens: tf.Tensor
    """Hypotheses so far: int32 [B, T]."""
    last: tf.Tensor
    """Last token of each hypothesis: int32 [B]."""
    score: tf.Tensor
    """Log-probability of each hypothesis: float32 [B]."""
    finished: tf.Tensor
    """Whether a hypothesis is finished: bool [B]."""


def likeliest(logits: tf.Tensor, _index: tf.Tensor, _count: tf.Tensor) -> tf.Tensor:
    """Return the likeliest token of each row of logits, [B, V]: int32 [B]. Greedy search chooses it."""
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
    """Extend each hypothesis by a chosen token, greedily by default, until eos or its length limit.

    Args:
        step: step function, which predicts the token after the last one.
        state: state of the step function before bos, for B sentences with one beam each.
        limits: bounds on the hypotheses.
        choose: function that chooses the next tokens from their logits, in which pad and bos have -inf.
        no_repeat_ngram_size: length of the n-grams that a hypothesis may contain only once; 0 allows repeats.
        scored: whether to sum the log-probabilities of the tokens.

    Returns:
        One hypothesis for each sentence (n = 1).
    """
    size = tf.size(limits.max_lengths)

    def extend(count: tf.Tensor, sentences: _Sentences, state: Any) -> tuple[tf.Tensor, _Sentences, Any]:
        logits, _, state = step(sentences.last[:, tf.newaxis], state)
        with on_host():
            layout = BeamLayout.of(sentences.last[:, tf.newaxis])
            index = tf.gather(sentences.index, layout.indices)
        possible = mask_special_tokens(logits)
        if no_repeat_ngram_size:
            hypotheses = layout.flatten(sentences.tokens[:, tf.newaxis])
            possible = mask_repeats(possible, hypotheses, count, no_repeat_ngram_size)
        tokens = choose(possible, index, count)
        with on_host():
            tokens = layout.restore(tokens)[:, 0]
            forced = forced_tokens(count, sentences.index, limits.prefixes)
            if forced is not None:
                tokens = tf.where(tf.equal(forced, PAD), tokens, forced)
        score, finished = sentences.score, sentences.finished
        if scored:
            gained = log_probabilities(logits, layout.flatten(tokens[:, tf.newaxis])[:, tf.newaxis])
        with on_host():
            if scored:
                score += tf.where(finished, 0.0, layout.restore(gained)[:, 0, 0])
            tokens = tf.where(finished, PAD, tokens)
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
    epsilon: float = 0.0,
    **options: Any,
) -> Hypotheses:
    """Draw each token from the model's distribution (see ``step_search``).

    Args:
        step, state, limits, options: as in ``step_search``.
        random: a number in [0, 1) for each sentence and token, float32 [B, T], which alone decides the draw.
        temperature: divisor of the logits.
        top_k: number of likeliest tokens to draw from (Fan et al. 2018); 0: all.
        top_p: probability mass of the smallest set of likeliest tokens to draw from (Holtzman et al. 2020).
        epsilon: least probability of a token to draw, unless it is the likeliest (Hewitt et al. 2022); 0: any.
    """

    def choose(logits: tf.Tensor, index: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
        numbers = tf.gather(random[:, count], index)
        return draw(tf.cast(logits, tf.float32), numbers, temperature, top_k, top_p, epsilon)

    return step_search(step, state, limits, choose, **options)


def draw(
    logits: tf.Tensor, random: tf.Tensor, temperature: float, top_k: int, top_p: float, epsilon: float
) -> tf.Tensor:
    """Return a token drawn from each row of logits, float32 [B, V], with a number in [0, 1), float32 [B]: int32 [B].

    The drawn token is the one at which the cumulative distribution exceeds the number. ``top_p`` and ``epsilon`` are
    compared with probabilities after ``temperature`` and ``top_k``.
    """
    logits /= temperature
    ranked = bool(top_k) or top_p < 1
    if ranked:
        size = tf.shape(logits)[-1]
        logits, ranking = tf.math.top_k(logits, tf.minimum(top_k, size) if top_k else size)
    probabilities = tf.nn.softmax(logits)
    allowed = tf.ones_like(probabilities, tf.bool)
    if top_p < 1:
        before = tf.cumsum(probabilities, axis=-1, exclusive=True)
        allowed &= before < top_p
    if epsilon:
        highest = tf.reduce_max(probabilities, axis=-1, keepdims=True)
        allowed &= probabilities >= tf.minimum(highest, epsilon)
    if top_p < 1 or epsilon:
        probabilities = tf.where(allowed, probabilities, 0.0)
    cumulative = tf.cumsum(probabilities, axis=-1)
    passed = tf.reduce_sum(tf.cast(cumulative <= random[:, tf.newaxis] * cumulative[:, -1:], tf.int32), axis=-1)
    places = tf.range(tf.shape(logits)[-1])
    last = tf.reduce_max(tf.where(probabilities > 0, places, 0), axis=-1)  # rounding may lead past the end
    place = tf.minimum(passed, last)
    return tf.gather(ranking, place, batch_dims=1) if ranked else place
