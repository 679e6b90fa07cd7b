"""Number of weights and of multiplications of a model, by arithmetic: nothing is built, TensorFlow is not loaded.

Products of real tokens count. Padding, embedding look-ups, norms, softmax, dropout, biases, the loss and the optimizer
do not.
"""

from typing import NamedTuple

from nmt.config.schema import RecurrentConfig, TransformerConfig

GATES = {"lstm": 4, "gru": 3, "simple": 1}
STATES = {"lstm": 2, "gru": 1, "simple": 1}
ADDITIVE = ("additive", "concat")


class Count(NamedTuple):
    """Weights of a model, and multiplications of a forward pass."""

    weights: int
    source: int = 0
    """Multiplications for each source token."""
    target: int = 0
    """Multiplications for each target token, those of the output layer included."""
    sentence: int = 0
    """Multiplications for each sentence."""
    source_pairs: int = 0
    """Multiplications for each pair of source tokens."""
    target_pairs: int = 0
    """Multiplications for each pair of target tokens, those behind the causal mask too (Chowdhery et al. 2022)."""
    cross_pairs: int = 0
    """Multiplications for each source with each target token, those outside a local window too."""


def transformer(config: TransformerConfig, source_vocabulary: int, target_vocabulary: int) -> Count:
    """Return the size of a Transformer for vocabularies of these numbers of ids."""
    d_model, inner = config.d_model, config.heads * config.size_per_head
    layers, decoder_layers, blocks = config.encoder_layers, config.decoder_layers, config.encoder_feed_forward
    projection, feed_forward = d_model * inner, 2 * d_model * config.d_ff
    # Of the four projections of cross-attention two read the source: keys and values.
    source = layers * (4 * projection + blocks * feed_forward) + decoder_layers * 2 * projection
    target = decoder_layers * (6 * projection + feed_forward)
    biases = (layers + 2 * decoder_layers) * (3 * inner + d_model)
    biases += (layers * blocks + decoder_layers) * (config.d_ff + d_model)
    norms = layers * config.encoder_norm * (1 + blocks) + decoder_layers * (2 if config.share_decoder_norm else 3)
    norms += (config.encoder_norm + 1) * (config.norm == "pre")
    words = target_vocabulary + source_vocabulary * (config.tie_embeddings != "all")
    vectors = words * (config.word_embedding != "sinusoidal") + 2 * config.max_positions * (
        config.positions == "learned"
    )
    output = (d_model + 1) * target_vocabulary * (config.tie_embeddings == "none")
    return Count(
        weights=source + target + biases + 2 * norms * d_model + vectors * d_model + output,
        source=source,
        target=target + d_model * target_vocabulary,
        source_pairs=2 * inner * layers,
        target_pairs=2 * inner * decoder_layers,
        cross_pairs=2 * inner * decoder_layers,
    )


def recurrent(config: RecurrentConfig, source_vocabulary: int, target_vocabulary: int) -> Count:
    """Return the size of a recurrent model for vocabularies of these numbers of ids."""
    gates, width, direction, annotation = (
        GATES[config.cell], config.width, config.direction_width, config.annotation_width
    )  # fmt: skip
    attends, bahdanau, inner = config.attention != "none", config.step == "bahdanau", config.score_width
    # An encoder layer reads all directions of the layer below.
    source = config.layers * gates * annotation * direction
    source += gates * annotation * (config.input_width + (config.layers - 1) * annotation)
    lowest = config.input_width + annotation * (bahdanau and attends) + width * config.input_feeding
    target = gates * width * (lowest + (2 * config.layers - 1) * width)
    bias = (1 + config.reset_after) * gates * config.layers * (annotation + width)
    if config.attention in ADDITIVE:
        source, target, bias = source + annotation * inner, target + width * inner, bias + inner
    elif config.attention == "general":
        source += annotation * width
    bias += config.attention == "scaled-dot"
    if config.window == "local-p":
        target += (width + 1) * inner
    if bahdanau:  # maxout of state, context and embedding
        target += 2 * (width + annotation * attends + config.input_width) * config.output_width
    elif attends:
        target += (annotation + width) * width
    start = {"linear": annotation, "backward": direction}.get(config.first_state)
    states = config.layers * STATES[config.cell] if start else 0
    sentence = states * (start or 0) * width
    words = source_vocabulary + target_vocabulary * (config.tie_embeddings not in ("shared", "all"))
    output = (config.output_width + 1) * target_vocabulary * (config.tie_embeddings not in ("output", "all"))
    return Count(
        weights=source + target + bias + sentence + states * width + words * config.input_width + output,
        source=source,
        target=target + config.output_width * target_vocabulary,
        sentence=sentence,
        cross_pairs=((inner if config.attention in ADDITIVE else width) + annotation) * attends,
    )
