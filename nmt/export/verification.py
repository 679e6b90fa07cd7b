"""Comparison of an export with our own translations: what makes an export done.

N sentences.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.data.dataset import Dataset
from nmt.data.manifest import SplitName
from nmt.decoding.translator import Translator
from nmt.errors import DataError
from nmt.evaluation.scoring import DEFAULT_TOKENIZATION, Scores, score_systems
from nmt.export.base import Exporter, TrainedModel
from nmt.storage.text import read_lines

MOST_SENTENCES = 2_000
"""Most sentences of a split that are translated."""
OURS = "nmt"
SHOWN = 3
"""Number of differences in a message."""


class Sentences(NamedTuple):
    """Sentences of a split that both programs read."""

    sources: list[str]
    """N sources."""
    references: list[str]
    """N references."""


class Comparison(NamedTuple):
    """An export beside our own translations of the validation split, greedy both."""

    sentences: int
    """Number of sentences, N."""
    different: int
    """Number of translations that differ in their text."""
    scores: Scores
    """BLEU and chrF of both, by the names ``OURS`` and that of the consumer."""


class Tolerance(NamedTuple):
    """What a comparison accepts."""

    different: int = 0
    """Most translations that may differ in float32."""
    bleu: float = 0.5
    """Largest loss of BLEU where weights are quantized."""


def sentences_of(dataset: Dataset, split: SplitName, model: TrainedModel, exporter: Exporter) -> Sentences:
    """Return the first sentences of a split, without those that are longer than the model or its export reads."""
    sources, references = (read_lines(dataset.text(split, side))[:MOST_SENTENCES] for side in ("source", "target"))
    limits = [limit for limit in (model.config.model.limits.source, exporter.positions(model)) if limit is not None]
    most = min(limits, default=None)
    kept = [
        index
        for index, source in enumerate(sources)
        if most is None or len(model.source.encode(source)) + 1 + int(model.config.model.reads_bos) <= most
    ]
    return Sentences([sources[index] for index in kept], [references[index] for index in kept])


def translate_ourselves(model: TrainedModel, sources: list[str]) -> list[str]:
    """Return our own translations, greedy and in float32."""
    decoding = model.config.decoding.model_copy(update={"beam_size": 1, "precision": "float32"})
    return Translator.open(model.run, str(model.epoch), decoding).translate(sources)


def compare(
    exporter: Exporter,
    model: TrainedModel,
    folder: Path,
    sentences: Sentences,
    ours: list[str],
    tolerance: Tolerance,
) -> Comparison:
    """Translate with an export and compare.

    Args:
        exporter: the format.
        model: what was exported.
        folder: folder of the export.
        sentences: sentences of the validation split.
        ours: our own translations of them.
        tolerance: what is accepted.

    Raises:
        DataError: if translations differ more than that; shows where.
    """
    theirs = exporter.translate(model, folder, sentences.sources)
    scores = score_systems(
        {OURS: ours, exporter.consumer: theirs}, [sentences.references], ["bleu", "chrf"], DEFAULT_TOKENIZATION, 0
    )
    differences = [number for number, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1]]
    if exporter.is_exact:
        if len(differences) > tolerance.different:
            raise DataError(
                f"The export is not equal to the run: {len(differences):,} of {len(ours):,} validation sentences are "
                f"translated differently.\n{_shown(differences, sentences.sources, ours, theirs, exporter.consumer)}\n"
                f"In float32 at most {tolerance.different:,} may differ. Nothing was written. Read the differences; "
                f"--allow-different {len(differences)} accepts them."
            )
    else:
        bleu = {name: system["BLEU"].score for name, system in scores.systems.items()}
        loss = bleu[OURS] - bleu[exporter.consumer]
        if loss > tolerance.bleu:
            raise DataError(
                f"The export in {exporter.quantization} loses {loss:.2f} BLEU on the validation split: "
                f"{bleu[OURS]:.2f} before, {bleu[exporter.consumer]:.2f} after.\n"
                f"{_shown(differences, sentences.sources, ours, theirs, exporter.consumer)}\n"
                f"At most {tolerance.bleu:g} are accepted. Nothing was written. Choose another --quantization, or "
                f"accept the loss with --tolerance {loss + 0.05:.1f}."
            )
    return Comparison(len(ours), len(differences), scores)


def _shown(
    differences: Sequence[int], sources: Sequence[str], ours: Sequence[str], theirs: Sequence[str], consumer: str
) -> str:
    width = max(len(consumer), len("source"))
    lines = []
    for index in differences[:SHOWN]:
        rows = (("source", sources[index]), (OURS, ours[index]), (consumer, theirs[index]))
        lines += [f"  sentence {index + 1}", *(f"    {name:<{width}}  {text}" for name, text in rows)]
    if len(differences) > SHOWN:
        lines.append(f"  and {len(differences) - SHOWN:,} more")
    return "\n".join(lines)
