"""The numbers of recipes: a table by the number of training pairs, and constants for all sizes."""

from typing import NamedTuple


class Size(NamedTuple):
    """Row of the table: settings for a corpus of at least ``pairs`` training pairs."""

    pairs: int
    """Least number of training pairs."""
    layers: int
    """Number of encoder layers, and of decoder layers."""
    width: int
    """Width D of the model."""
    batch_tokens: int
    """Target tokens of a batch."""
    epochs: int
    """Number of epochs without a time budget."""
    dropout: tuple[tuple[int, float], ...]
    """(most epochs, dropout rate) in ascending order: more epochs need more dropout. The last number of epochs is the
    most that a time budget uses."""


SIZES = (
    Size(0, 2, 128, 1024, 100, ((100, 0.3), (300, 0.4))),
    Size(1_000, 2, 256, 1024, 60, ((80, 0.3), (200, 0.4))),
    Size(5_000, 2, 256, 1024, 30, ((20, 0.2), (60, 0.3), (100, 0.4))),
    Size(15_000, 2, 256, 1024, 16, ((12, 0.1), (24, 0.2), (60, 0.3))),
    Size(20_000, 2, 256, 1024, 14, ((10, 0.1), (20, 0.2), (50, 0.3))),
    Size(60_000, 3, 256, 2048, 10, ((12, 0.1), (30, 0.2))),
    Size(120_000, 3, 256, 2048, 8, ((20, 0.1), (30, 0.2))),
    Size(200_000, 4, 384, 4096, 8, ((30, 0.1),)),
    Size(1_000_000, 6, 512, 4096, 5, ((30, 0.1),)),
)
"""Rows by ascending number of training pairs."""

PEAKS = ((512, 0.001), (384, 0.0012), (0, 0.0015))  # (least width D, peak of Adam's learning rate)
MUON_PEAK = 2.0  # peak of Muon's learning rate, in peaks of Adam's
FINE_TUNING_PEAK = 0.3  # factor on the peak of a run that starts from the weights of another run
FINE_TUNING_EPOCHS = 0.3  # factor on the number of epochs of such a run
HEAD_SIZE = 64
WIDE = 384  # width from which feed-forward blocks are four times as wide, below it twice
WARMUP_STEPS = 400
WARMUP_SHARE = 0.15  # largest share of a run's steps that are warm-up

PAIRS_FOR_GPU, GPU_BATCH = 1_000_000, 16_384  # from this number of pairs on, GPU_BATCH leaves enough steps
PAIRS_OF_LONG_RUNS = 60_000  # from this number of pairs on, a run takes all epochs of its row
MOST_TOKENS = 8_000_000  # target tokens that the epochs of a smaller corpus have together
# Beam search with a weak model finds translations that are too short, above all for long sentences. A larger penalty
# lengthens them. The second value is for small corpora, with sampled subwords, and for fewer pairs than
# PAIRS_OF_LONG_RUNS with a median of at least LONG_SENTENCE target tokens.
LENGTH_PENALTY, LARGER_LENGTH_PENALTY = 1.4, 2.0
LONG_SENTENCE = 25
NO_REPEAT = 4  # tokens of a sequence that translations with the larger penalty never repeat
JOINED_PAIRS = 0.3  # share of pairs that become two joined pairs, for small corpora with sampled subwords
LEAST_STEPS = 1_000  # steps of a run below which batches become smaller, down to LEAST_BATCH
LEAST_BATCH = 256
LEAST_SENTENCES = 32  # sentences of median length that a batch has room for
MOST_BATCH = 8192
SENTENCES_FOR_BLEU = 100  # validation pairs below which BLEU does not tell the best epoch

# A time budget with room for fewer epochs and fewer steps than these gets a smaller model.
LEAST_EPOCHS, ENOUGH_STEPS = 4, 5_000
OVERTIME = 0.1  # share of an epoch by which a run may exceed its budget


def size_for(pairs: int) -> Size:
    """Return the row for a number of training pairs."""
    return next(size for size in reversed(SIZES) if pairs >= size.pairs)


def smaller(size: Size) -> Size | None:
    """Return the row with the next smaller model, otherwise unchanged; None for the smallest model."""
    models = [(row.layers, row.width) for row in SIZES if (row.layers, row.width) < (size.layers, size.width)]
    return size._replace(layers=models[-1][0], width=models[-1][1]) if models else None


def dropout_for(size: Size, epochs: int) -> float:
    """Return the dropout rate for a number of epochs."""
    return next((rate for most, rate in size.dropout if epochs <= most), size.dropout[-1][1])


def most_epochs(size: Size) -> int:
    """Return the largest number of epochs that a time budget uses."""
    return size.dropout[-1][0]
