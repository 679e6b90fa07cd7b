"""Vocabularies for programs that know tokens by their text: lists of different strings, and vocabulary maps.

Shapes: B sentences, S source length, T target length.
"""

from collections import Counter, defaultdict
from typing import Any

import numpy as np

from nmt.data.batch_plan import length_batches, pad_rows
from nmt.data.token_arrays import Split
from nmt.errors import NmtError
from nmt.export.base import TrainedModel
from nmt.runs.weights import WeightsFile
from nmt.tokenizers.base import FIRST_WORD, SPECIAL_PIECES, Tokenizer

MOST_PAIRS = 20_000
BATCH = 256
ALIGNED = 3
"""Source tokens that a target token counts for: those that it attends to most."""
CANDIDATES = 50
"""Most target tokens of a source token."""
FREQUENT = 300
"""Target tokens that every sentence may have: the most frequent ones."""


def unique_pieces(source: Tokenizer, target: Tokenizer) -> tuple[list[str], list[str]]:
    """Return the piece of each id of both sides, each different from the others of its side.

    Special pieces are spelled alike on both sides. A special piece that is also a word of a vocabulary gets underscores
    behind it, and so does a word that looks like an earlier one: characters show a space as ``SPACE_MARK``.
    """
    sides = [tokenizer.pieces(range(FIRST_WORD, tokenizer.size)) for tokenizer in (source, target)]
    words = {word for side in sides for word in side}
    special: list[str] = []
    for piece in SPECIAL_PIECES:
        special.append(_different(piece, words.union(special)))
    found = []
    for side in sides:
        pieces, taken = list(special), words.union(special)
        seen: set[str] = set()
        for word in side:
            pieces.append(_different(word, taken) if word in seen else word)
            seen.add(word)
            taken.add(pieces[-1])
        found.append(pieces)
    return found[0], found[1]


def _different(piece: str, taken: set[str]) -> str:
    """Return a piece with as many underscores behind it as make it different from those taken."""
    while piece in taken:
        piece += "_"
    return piece


def vocabulary_map(model: TrainedModel, train: Split, source: list[str], target: list[str]) -> str:
    """Return the content of CTranslate2's ``vmap.txt``: target tokens among which it chooses, for each source token.

    Search computes logits of these alone, so that the output layer costs less (Jean et al. 2015, section 3). They are
    the tokens that attend to the source token in training pairs. A line is source token TAB target tokens; the first
    is for every sentence.

    Args:
        model: a Transformer.
        train: pairs that it was trained on.
        source: spelling of each source id.
        target: spelling of each target id.

    Raises:
        NmtError: for tokens with white space, which separates tokens in the file.
    """
    if spaced := next((piece for piece in [*source, *target] if piece.split() != [piece]), None):
        raise NmtError(
            f"--vocabulary-map cannot be written: the token {spaced!r} has white space, which separates tokens in the "
            "file. Leave the option out."
        )
    aligned, frequencies = _count(model, train)
    frequent = [id_ for id_, _ in frequencies.most_common(FREQUENT)]
    lines = ["\t" + " ".join(target[id_] for id_ in frequent)]
    for id_, counts in sorted(aligned.items()):
        lines.append(f"{source[id_]}\t{' '.join(target[found] for found, _ in counts.most_common(CANDIDATES))}")
    return "\n".join(lines) + "\n"


def _count(model: TrainedModel, train: Split) -> tuple[dict[int, Counter[int]], Counter[int]]:
    """Return the target tokens that attend to each source token, and all target tokens, with their numbers."""
    from nmt.decoding.tensorflow_engine import TensorFlowEngine  # noqa: PLC0415 - it loads TensorFlow
    from nmt.runtime import tf  # noqa: PLC0415

    weights = WeightsFile(model.run, model.epoch)
    network = TensorFlowEngine.load(model.config, model.source.size, model.target.size, weights).model
    spec = tf.TensorSpec([None, None], tf.int32)

    @tf.function(input_signature=[spec, spec], autograph=False)
    def attention(source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        """Ids [B, S] and [B, T] -> mean over the heads of the last layer, [B, T, S]."""
        weights: Any = network.cross_attention(source, target)  # a Transformer has attention
        return tf.reduce_mean(weights[-1], axis=0)

    aligned: dict[int, Counter[int]] = defaultdict(Counter)
    frequencies: Counter[int] = Counter()
    bos = int(model.config.model.reads_bos)
    count = min(MOST_PAIRS, len(train))
    for batch in length_batches((train.source.lengths[:count] + 1).tolist(), BATCH):
        rows = pad_rows(train.source, batch, bos=bool(bos))
        weights = attention(rows, pad_rows(train.target, batch, bos=True)[:, :-1]).numpy()
        for row, index in enumerate(batch):
            source, target = train.source[int(index)], train.target[int(index)]
            among = weights[row, : len(target), bos : bos + len(source)]
            nearest = np.argsort(-among, axis=1)[:, :ALIGNED]
            for token, places in zip(target.tolist(), nearest, strict=True):
                if token >= FIRST_WORD:
                    frequencies[token] += 1
                    for place in places:
                        aligned[int(source[place])][token] += 1
    return aligned, frequencies
