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
from nmt.models.accounting import Flops, Part, count_weights

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
    embedding, annotation = config.input_width, config.annotation_width
    shared, tied = config.tie_embeddings in ("shared", "all"), config.tie_embeddings in ("output", "all")
    rows = [
        Part(
            "embedding" if shared else "source_embedding", f"[B, S, {embedding}]", source_vocabulary * embedding,
            "TokenEmbedding", ("source",),
        )
    ]  # fmt: skip
    directions = (
        ["forward", "backward"] if config.bidirectional else ["backward" if config.reverse_source else "forward"]
    )
    below: tuple[str, ...] = (rows[0].name,)
    for layer in range(1, config.layers + 1):
        width = annotation if layer > 1 else embedding
        rows += [
            _cell(config, f"{direction}_{layer}", ("S", config.direction_width), (below, width))
            for direction in directions
        ]
        below = tuple(f"{direction}_{layer}" for direction in directions)
    start = _first_state(config, directions)
    rows += start
    # The names from which the state of each decoder layer starts.
    firsts = [
        tuple(part.name for part in start) if start
        else tuple(f"{direction}_{layer}" for direction in directions) if config.first_state == "final"
        else ()
        for layer in range(1, config.layers + 1)
    ]  # fmt: skip
    words = (
        Part("embedding", f"[B, T, {embedding}]", 0, "TokenEmbedding, the same matrix", ("target",))
        if shared
        else Part(
            "target_embedding", f"[B, T, {embedding}]", target_vocabulary * embedding, "TokenEmbedding", ("target",)
        )
    )
    decoder = _decoder(config, words.name, below, firsts)
    output = Part(
        "output_layer", f"[B, T, {target_vocabulary}]", 0 if tied else (config.output_width + 1) * target_vocabulary,
        "the embedding's matrix" if tied else "Linear", (decoder[-1].name,),
    )  # fmt: skip
    return [*rows, words, *decoder, output]


def _decoder(
    config: RecurrentConfig, words: str, annotations: tuple[str, ...], firsts: list[tuple[str, ...]]
) -> list[Part]:
    """Return the parts of a decoder step."""
    width, attends, luong = config.width, config.attention != "none", config.step == "luong"
    top = f"decoder_{config.layers}"
    cells, below = [], words
    for layer, first in enumerate(firsts, start=1):
        lowest = layer == 1
        fed = (
            (("attention", config.annotation_width, "context_kernel"),) if lowest and attends and not luong
            else (("(attentional)", width, "feeding_kernel"),) if lowest and config.input_feeding
            else ()
        )  # fmt: skip
        inputs = config.input_width if lowest else width
        cells.append(_cell(config, f"decoder_{layer}", ("T", width), ((below,), inputs), first, fed))
        below = f"decoder_{layer}"
    if not luong:
        return _bahdanau(config, words, annotations, cells)
    if not attends:
        return cells
    attentional = Part(
        "attentional", f"[B, T, {width}]", (config.annotation_width + width) * width, "tanh(W [c; s])",
        ("attention", top),
    )  # fmt: skip
    return [*cells, _attention(config, (top, *annotations)), attentional]


def _bahdanau(config: RecurrentConfig, words: str, annotations: tuple[str, ...], cells: list[Part]) -> list[Part]:
    attends, top = config.attention != "none", cells[-1].name
    inputs = config.width + config.input_width + config.annotation_width * attends
    maxout = Part(
        "maxout", f"[B, T, {config.output_width}]", 2 * inputs * config.output_width,
        f"maxout of {'s, c and' if attends else 's and'} the embedding", (top, *["attention"] * attends, words),
    )  # fmt: skip
    return [*([_attention(config, (f"({top})", *annotations))] if attends else []), *cells, maxout]


def _cell(
    config: RecurrentConfig, name: str, states: tuple[str, int], inputs: tuple[tuple[str, ...], int],
    first: tuple[str, ...] = (), fed: tuple[tuple[str, int, str], ...] = (),
) -> Part:  # fmt: skip
    """Return a layer of cells with its matrices.

    Args:
        config: section model.
        name: name of the layer.
        states: length of the sequence, "S" or "T", and width of the state.
        inputs: names of what it reads from below, and their width.
        first: names of what its state starts from.
        fed: what it reads besides: name, width and name of the matrix.
    """
    (length, width), (below, size_below) = states, inputs
    columns, shape = GATES[config.cell] * width, f"[B, {length}, {width}]"
    gates = f"[B, {length}, {columns}]"
    matrices = [
        Part("kernel", gates, size_below * columns, f"products with {size_below} inputs", below),
        *(
            Part(matrix, gates, size * columns, f"products with {size} further inputs", (read,))
            for read, size, matrix in fed
        ),
        Part("recurrent_kernel", gates, width * columns, "products with the state of the step before", (f"({name})",)),
        Part("bias", gates, columns, "added to the products"),
    ]
    if config.reset_after:
        matrices.append(Part("recurrent_bias", gates, columns, "added to the products with the state"))
    kind = {"lstm": "LSTM", "gru": "GRU", "simple": "simple"}[config.cell] + " cell"
    total = size_below + sum(size for _, size, _ in fed)
    kind += f", reads {total}" + (", reset after the product" if config.reset_after else "")
    names = (*below, *first, *(read for read, _, _ in fed))
    return Part(name, shape, count_weights(matrices), kind, names, tuple(matrices))


def _first_state_inputs(config: RecurrentConfig) -> list[int]:
    """Return the input width of each linear map from a state of the encoder to one of the decoder."""
    if config.first_state not in ("linear", "backward"):
        return []
    inputs = config.annotation_width if config.first_state == "linear" else config.direction_width
    return [inputs] * config.layers * STATES[config.cell]


def _first_state(config: RecurrentConfig, directions: list[str]) -> list[Part]:
    inputs = _first_state_inputs(config)
    states = "last states" if config.first_state == "linear" else "last backward state"
    used = directions if config.first_state == "linear" else directions[-1:]
    reads = tuple(f"{direction}_{layer}" for layer in range(1, config.layers + 1) for direction in used)
    weights = sum((width + 1) * config.width for width in inputs)
    kind = f"tanh of a Linear of the {states}"
    return [Part("first_state", f"[B, {config.width}]", weights, kind, reads)] if inputs else []


def _attention(config: RecurrentConfig, reads: tuple[str, ...]) -> Part:
    width, annotation, inner = config.width, config.annotation_width, config.score_width
    states, annotations = reads[:1], reads[1:]
    scores: list[Part] = []
    if config.attention in ADDITIVE:
        scores = [
            Part("key_kernel", f"[B, S, {inner}]", annotation * inner, "keys of the annotations", annotations),
            Part("query_kernel", f"[B, T, {inner}]", width * inner, "queries of the states", states),
            Part("score_kernel", "[B, T, S]", inner, "scores", ("key_kernel", "query_kernel")),
        ]
    elif config.attention == "general":
        scores = [Part("key_kernel", f"[B, S, {width}]", annotation * width, "keys of the annotations", annotations)]
    elif config.attention == "scaled-dot":
        scores = [Part("scale", "[B, T, S]", 1, "factor of the scores", reads)]
    if config.window == "local-p":
        scores += [
            Part("position_kernel", f"[B, T, {inner}]", width * inner, "prediction of the position", states),
            Part("position_score_kernel", "[B, T, 1]", inner, "predicted position", ("position_kernel",)),
        ]
    kind = f"{config.attention}, {config.window}"
    if config.window != "global":
        kind += f", D = {config.window_half_width}"
    return Part("attention", f"[B, T, {annotation}]", count_weights(scores), kind, reads, tuple(scores))
