"""Weights and arithmetic of a recurrent encoder-decoder, from its configuration.

A product of an [m, k] with a [k, n] matrix counts 2 m n k floating-point operations. The count has the products of real
tokens and leaves out embedding look-ups, softmax, tanh, dropout, biases, the loss and the optimizer.

For a sentence of s source and t target positions, with G gates, d and n widths of the states of an encoder direction
and of the decoder, E annotation width, A width of scores, M embedding width, O width of the output layer's input, V
target vocabulary:

    an encoder direction    2 s G d (I + d)      I: width of the layer's input
    a decoder layer         2 t G n (I + n)      I: M, and E for the context or n for input feeding; n above
    attention               2 s E A + 2 t n A    keys and queries of additive and concat scores; 2 s E n of general
                            2 s t (A or n) + 2 s t E    scores and contexts
    attentional state       2 t (E + n) n        step of Luong
    maxout                  4 t (n + E + M) O    step of Bahdanau
    the first state         2 I n                a linear map, for each layer and part of the state
    local-p                 2 t (n + 1) A
    the output layer        2 t O V

Scores and contexts count all source tokens, for local windows too: so they are computed. In training the products of
words with the lowest cells are computed once for each different word of a batch, but count for each token.
"""

import numpy as np

from nmt.config.model import RecurrentConfig
from nmt.models.accounting import Flops, Part

GATES = {"lstm": 4, "gru": 3, "simple": 1}
STATES = {"lstm": 2, "gru": 1, "simple": 1}
ADDITIVE = ("additive", "concat")


def flops(
    config: RecurrentConfig, source_lengths: np.ndarray, target_lengths: np.ndarray, target_vocabulary: int
) -> Flops:
    """Count the operations of a forward pass over B sentence pairs, by the formula above.

    Args:
        config: layers and widths.
        source_lengths: source positions of each sentence, eos included: integers [B].
        target_lengths: target positions of each sentence, that of eos included: integers [B].
        target_vocabulary: V.
    """
    s, t = np.asarray(source_lengths, np.int64), np.asarray(target_lengths, np.int64)
    source, target, pairs = int(s.sum()), int(t.sum()), int(s @ t)
    gates, width, direction, annotation = (
        GATES[config.cell], config.width, config.direction_width, config.annotation_width
    )  # fmt: skip
    attends = config.attention != "none"
    cells = sum(
        2 * source * gates * annotation * ((annotation if layer else config.input_width) + direction)
        for layer in range(config.layers)
    )
    for layer in range(config.layers):
        cells += 2 * target * gates * width * ((width if layer else _lowest_input(config)) + width)
    cells += 2 * len(s) * sum(inputs * width for inputs in _first_state_inputs(config))
    attention = 0
    if attends:
        inner = config.score_width if config.attention in ADDITIVE else width
        attention = 2 * pairs * (inner + annotation)
        if config.attention in ADDITIVE:
            attention += 2 * (source * annotation + target * width) * inner
        elif config.attention == "general":
            attention += 2 * source * annotation * width
        if config.window == "local-p":
            attention += 2 * target * (width + 1) * config.score_width
    readout = 0
    if config.step == "bahdanau":
        readout = 4 * target * (width + annotation * attends + config.input_width) * config.output_width
    elif attends:
        readout = 2 * target * (annotation + width) * width
    return Flops(
        projections=cells,
        attention=attention,
        feed_forward=readout,
        output_layer=2 * target * config.output_width * target_vocabulary,
    )


def _lowest_input(config: RecurrentConfig) -> int:
    """Return the width of what the lowest cell of the decoder reads besides its state."""
    context = config.annotation_width if config.step == "bahdanau" and config.attention != "none" else 0
    return config.input_width + context + config.width * config.input_feeding


def parts(config: RecurrentConfig, source_vocabulary: int, target_vocabulary: int) -> list[Part]:
    """Return the parts with their output shapes and weights, in the order of the data's way through the model."""
    embedding, width, annotation = config.input_width, config.width, config.annotation_width
    shared, tied = config.tie_embeddings in ("shared", "all"), config.tie_embeddings in ("output", "all")
    rows = [
        Part(
            "embedding" if shared else "source_embedding", f"[B, S, {embedding}]", source_vocabulary * embedding,
            "TokenEmbedding",
        )
    ]  # fmt: skip
    directions = (
        ["forward", "backward"] if config.bidirectional else ["backward" if config.reverse_source else "forward"]
    )
    for layer in range(config.layers):
        below = annotation if layer else embedding
        for direction in directions:
            weights = _cell(config, below, config.direction_width)
            rows.append(
                Part(f"{direction}_{layer + 1}", f"[B, S, {config.direction_width}]", weights, _kind(config, below))
            )
    rows += _first_state(config)
    rows.append(
        Part("embedding", f"[B, T, {embedding}]", 0, "TokenEmbedding, the same matrix")
        if shared
        else Part("target_embedding", f"[B, T, {embedding}]", target_vocabulary * embedding, "TokenEmbedding")
    )
    for layer in range(config.layers):
        below = width if layer else _lowest_input(config)
        weights = _cell(config, below, width)
        rows.append(Part(f"decoder_{layer + 1}", f"[B, T, {width}]", weights, _kind(config, below)))
    rows += _attention(config)
    if config.step == "bahdanau":
        inputs = width + embedding + annotation * (config.attention != "none")
        kind = f"maxout of {'s, c and' if config.attention != 'none' else 's and'} the embedding"
        rows.append(Part("maxout", f"[B, T, {config.output_width}]", 2 * inputs * config.output_width, kind))
    elif config.attention != "none":
        rows.append(Part("attentional", f"[B, T, {width}]", (annotation + width) * width, "tanh(W [c; s])"))
    output = Part(
        "output_layer", f"[B, T, {target_vocabulary}]", 0 if tied else (config.output_width + 1) * target_vocabulary,
        "the embedding's matrix" if tied else "Linear",
    )  # fmt: skip
    return [*rows, output]


def _cell(config: RecurrentConfig, inputs: int, width: int) -> int:
    biases = 2 if config.reset_after else 1
    return GATES[config.cell] * width * (inputs + width + biases)


def _kind(config: RecurrentConfig, inputs: int) -> str:
    name = {"lstm": "LSTM", "gru": "GRU", "simple": "simple"}[config.cell]
    return f"{name} cell, reads {inputs}" + (", reset after the product" if config.reset_after else "")


def _first_state_inputs(config: RecurrentConfig) -> list[int]:
    """Return the input width of each linear map from a state of the encoder to one of the decoder."""
    if config.first_state not in ("linear", "backward"):
        return []
    inputs = config.annotation_width if config.first_state == "linear" else config.direction_width
    return [inputs] * config.layers * STATES[config.cell]


def _first_state(config: RecurrentConfig) -> list[Part]:
    inputs = _first_state_inputs(config)
    states = "last states" if config.first_state == "linear" else "last backward state"
    weights = sum((width + 1) * config.width for width in inputs)
    return [Part("first_state", f"[B, {config.width}]", weights, f"tanh of a Linear of the {states}")] if inputs else []


def _attention(config: RecurrentConfig) -> list[Part]:
    if config.attention == "none":
        return []
    width, annotation, inner = config.width, config.annotation_width, config.score_width
    weights = {
        "additive": (annotation + width + 1) * inner,
        "concat": (annotation + width + 1) * inner,
        "dot": 0,
        "general": annotation * width,
        "scaled-dot": 1,
    }[config.attention]
    kind = f"{config.attention}, {config.window}"
    if config.window != "global":
        kind += f", D = {config.window_half_width}"
    if config.window == "local-p":
        weights += (width + 1) * inner
    return [Part("attention", f"[B, T, {annotation}]", weights, kind)]
