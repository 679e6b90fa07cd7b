"""Vocabulary maps of CTranslate2: the target tokens among which it chooses, for each source token.

Search computes logits of these alone, so that the output layer costs less (Jean et al. 2015, section 3). The tokens
are those that attend to the source token in training pairs.

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
from nmt.tokenizers.base import FIRST_WORD

MOST_PAIRS = 20_000
BATCH = 256
ALIGNED = 3
"""Source tokens that a target token counts for: those that it attends to most."""
CANDIDATES = 50
"""Most target tokens of a source token."""
FREQUENT = 300
"""Target tokens that every sentence may have: the most frequent ones."""


def vocabulary_map(model: TrainedModel, train: Split, source: list[str], target: list[str]) -> str:
    """Return the content of ``vmap.txt``: lines of source token TAB target tokens; the first is for every sentence.

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
