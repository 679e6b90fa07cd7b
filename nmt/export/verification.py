"""Comparison of an export with nmt's own translations. An export that differs too much is refused.

Shapes: N sentences.
"""

from typing import NamedTuple

from nmt.data.dataset import Dataset
from nmt.data.manifest import SplitName
from nmt.data.sources.text_file import TextFile, read_lines
from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.errors import DataError, NotFoundError, counted
from nmt.evaluation.metrics import tokenization_of
from nmt.evaluation.scoring import Scores, score_systems
from nmt.export.base import Exporter, TrainedModel
from nmt.message import Argument, Part
from nmt.runs.origin import read_origin

MOST_SENTENCES, MOST_BEAM_SENTENCES = 2_000, 200
"""Most sentences of a split that are compared with greedy search, and with beam search."""
OURS = "nmt"
"""Name of nmt's translations among the scores."""
SHOWN = 3
"""Number of differences that a message shows."""


class Comparison(NamedTuple):
    """Comparison of greedy translations of the validation split by an export and by nmt."""

    sentences: int
    """Number of sentences, N."""
    different: int
    """Number of translations with a different text."""
    scores: Scores
    """BLEU and chrF by system: ``OURS`` and the name of the consumer."""


class Tolerance(NamedTuple):
    """Differences that a comparison accepts."""

    different: int = 0
    """Number of translations that may differ in float32."""
    bleu: float = 0.5
    """Largest loss of BLEU if weights are quantized."""
    agreement: float = 50.0
    """Least chrF of a quantized export with the run's translations as references. It also covers a run that has hardly
    learned, and so has no BLEU to lose."""


def sentences_of(dataset: Dataset | None, split: SplitName, model: TrainedModel, most: int | None) -> list[list[str]]:
    """Return the first N sources of a split and their references, without sources of more than ``most`` tokens.

    An imported run has no dataset. Its sources are the texts of its comparison, and its references are the original's
    translations.

    Raises:
        NotFoundError: if an imported run was not compared with its original.
    """
    if dataset is None:
        origin = read_origin(model.run.origin_path)
        expected = origin.expected if origin else []
        if not expected:
            raise NotFoundError(
                f"Run {model.run.name!r} was imported without a comparison with its original. An export is compared on "
                "the sentences of that comparison. Import the model where transformers is installed, or with ",
                Argument("expected", "FILE"),
                ".",
            )
        sources = [result.text for result in expected]
        references = [model.target.decode(result.greedy) for result in expected]
    else:
        files = (TextFile(dataset.text(split, side)) for side in ("source", "target"))
        sources, references = (read_lines(file)[:MOST_SENTENCES] for file in files)
    if most is None:
        return [sources, references]
    longest = most - 1 - int(model.config.model.reads_bos)
    readable = [index for index, source in enumerate(sources) if len(model.source.encode(source)) <= longest]
    return [[side[index] for index in readable] for side in (sources, references)]


def translate_ourselves(model: TrainedModel, sources: list[str], beams: int = 1) -> list[str]:
    """Return nmt's translations with K beams (1: greedy) in float32."""
    decoding = model.config.decoding.model_copy(update={"beam_size": beams, "precision": "float32"})
    translator = SentenceTranslator.open(model.run, str(model.epoch), decoding)
    return [best.text for best, *_ in translator.search(sources)]


def compare(
    exporter: Exporter, model: TrainedModel, sources: list[str], references: list[str], ours: list[str],
    theirs: list[str], tolerance: Tolerance,
) -> Comparison:  # fmt: skip
    """Compare the translations of N validation sentences by an export (theirs) and by nmt (ours).

    Raises:
        DataError: if they differ more than the tolerance accepts. The message shows the first differences.
    """
    consumer = exporter.consumer
    tokenization = tokenization_of(model.manifest.languages["target"], references)
    scores = score_systems({OURS: ours, consumer: theirs}, [references], ["bleu", "chrf"], tokenization)
    rows = list(zip(sources, ours, theirs, strict=True))
    different = [number for number, (_, our_text, their_text) in enumerate(rows, start=1) if our_text != their_text]
    before, after = (scores.systems[name]["BLEU"].score for name in (OURS, consumer))
    agreement = score_systems({consumer: theirs}, [ours], ["chrf"])
    chrf = agreement.systems[consumer]["chrF2"].score
    problem, remedy = "", list[Part]()
    if exporter.is_exact and len(different) > tolerance.different:
        problem = (
            f"The export is not equal to the run: {len(different):,} of {counted(len(ours), 'validation sentence')} "
            "are translated differently."
        )
        remedy = [
            f"In float32 at most {tolerance.different:,} may differ. Nothing was written. Read the differences; ",
            Argument("allow_different", len(different)),
            " accepts them.",
        ]
    elif not exporter.is_exact and before - after > tolerance.bleu:
        problem = (
            f"The export in {exporter.quantization} loses {before - after:.2f} BLEU on the validation split: "
            f"{before:.2f} before, {after:.2f} after."
        )
        remedy = [
            f"At most {tolerance.bleu:g} are accepted. Nothing was written. Choose another ",
            Argument("quantization"),
            ", or accept the loss with ",
            Argument("tolerance", round(before - after + 0.05, 1)),
            ".",
        ]
    elif different and not exporter.is_exact and chrf < tolerance.agreement:
        problem = (
            f"The export in {exporter.quantization} does not translate as the run does: with the run's translations of "
            f"the validation split as references, its chrF is {chrf:.1f}."
        )
        remedy = [
            f"At least {tolerance.agreement:g} is required. Nothing was written. Choose another ",
            Argument("quantization"),
            ", or train the run longer: small errors change much in a model that has hardly learned.",
        ]
    if problem:
        width = max(len(consumer), len("source"))
        lines = [problem]
        for number in different[:SHOWN]:
            lines.append(f"  sentence {number}")
            for name, text in zip(("source", OURS, consumer), rows[number - 1], strict=True):
                lines.append(f"    {name:<{width}}  {text}")
        if len(different) > SHOWN:
            lines.append(f"  and {len(different) - SHOWN:,} more")
        raise DataError("\n".join([*lines, ""]), *remedy)
    return Comparison(len(ours), len(different), scores)
