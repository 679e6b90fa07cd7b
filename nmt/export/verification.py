"""Comparison of an export with nmt's own translations. An export that differs too much is refused.

Shapes: N sentences.
"""

from collections.abc import Iterable
from typing import NamedTuple

from nmt.data.dataset import Dataset
from nmt.data.manifest import SIDES, Direction, SplitName
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


class Sentences(NamedTuple):
    """N sentences of a language pair in a split."""

    direction: Direction
    tags: list[int]
    """Ids of the tags before each source."""
    sources: list[str]
    references: list[str]

    def chosen(self, indices: Iterable[int]) -> "Sentences":
        """Return the sentences with these indices."""
        chosen = list(indices)
        sources, references = ([side[index] for index in chosen] for side in (self.sources, self.references))
        return self._replace(sources=sources, references=references)


def with_tags(parts: list[Sentences]) -> tuple[list[str], list[list[int]]]:
    """Return the sources of all language pairs, and the tags before each."""
    sources = [source for part in parts for source in part.sources]
    return sources, [part.tags for part in parts for _ in part.sources]


def score_parts(parts: list[Sentences], systems: dict[str, list[str]]) -> dict[str, Scores]:
    """Return BLEU and chrF by language pair, such as "en to de", of systems that have translated all of them."""
    scores, start = dict[str, Scores](), 0
    for part in parts:
        rows = slice(start, start + len(part.sources))
        start = rows.stop
        tokenization = tokenization_of(part.direction.target, part.references)
        own = {name: translations[rows] for name, translations in systems.items()}
        pair = " to ".join(part.direction.languages)
        scores[pair] = score_systems(own, [part.references], ["bleu", "chrf"], tokenization)
    return scores


class Comparison(NamedTuple):
    """Comparison of greedy translations of the validation split by an export and by nmt."""

    sentences: int
    """Number of sentences, N."""
    different: int
    """Number of translations with a different text."""
    scores: dict[str, Scores]
    """BLEU and chrF by language pair, such as "en to de". The systems are ``OURS`` and the name of the consumer."""


class Tolerance(NamedTuple):
    """Differences that a comparison accepts."""

    different: int = 0
    """Number of translations that may differ in float32."""
    bleu: float = 0.5
    """Largest loss of BLEU if weights are quantized, in each language pair."""
    agreement: float = 50.0
    """Least chrF of a quantized export with the run's translations as references. It also covers a run that has hardly
    learned, and so has no BLEU to lose."""


def sentences_of(dataset: Dataset | None, split: SplitName, model: TrainedModel, most: int | None) -> list[Sentences]:
    """Return the first sentences of each language pair in a split, without sources of more than ``most`` tokens.

    An imported run has no dataset. Its sources are the texts of its comparison, which begin with the code of a target
    language if the model has any. Its references are the original's translations.

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
        parts = [Sentences(model.directions[0], [], sources, references)]
    else:
        sources, references = (read_lines(TextFile(dataset.text(split, side))) for side in SIDES)
        every, parts = Sentences(model.directions[0], [], sources, references), []
        for direction, rows in model.manifest.rows(split):
            if direction in model.directions:
                part = every.chosen(rows[: MOST_SENTENCES // len(model.directions)])
                parts.append(part._replace(direction=direction, tags=model.tags(direction)))
    if most is not None:
        longest = most - 1 - int(model.config.model.reads_bos)
        for number, part in enumerate(parts):
            lengths = [len(part.tags) + len(model.source.encode(source)) for source in part.sources]
            parts[number] = part.chosen(index for index, length in enumerate(lengths) if length <= longest)
    return [part for part in parts if part.sources] or parts[:1]


def translate_ourselves(exporter: Exporter, model: TrainedModel, parts: list[Sentences], beams: int = 1) -> list[str]:
    """Return nmt's translations with K beams (1: greedy) in float32.

    They may repeat phrases if the consumer has no setting that forbids it.
    """
    settings = {"beam_size": beams, "mbr_candidates": 0, "precision": "float32"}
    if "no_repeat_ngram_size" not in exporter.exported_keys(model.config.decoding):
        settings["no_repeat_ngram_size"] = 0
    translator, translations = None, []
    for part in parts:
        source, target = part.direction.languages
        settings |= {"source_language": source, "target_language": target}
        decoding = model.config.decoding.model_copy(update=settings)
        if translator is None:
            translator = SentenceTranslator.open(model.run, str(model.epoch), decoding)
        else:
            translator = translator.reconfigured(decoding)
        translator.tags = part.tags
        translations += [best.text for best, *_ in translator.search(part.sources)]
    return translations


def compare(
    exporter: Exporter, parts: list[Sentences], ours: list[str], theirs: list[str], tolerance: Tolerance
) -> Comparison:
    """Compare the translations of N validation sentences by an export (theirs) and by nmt (ours).

    Raises:
        DataError: if they differ more than the tolerance accepts. The message shows the first differences.
    """
    consumer = exporter.consumer
    scores = score_parts(parts, {OURS: ours, consumer: theirs})
    rows = list(zip(with_tags(parts)[0], ours, theirs, strict=True))
    different = [number for number, (_, our_text, their_text) in enumerate(rows, start=1) if our_text != their_text]
    by_pair = [[pair.systems[name]["BLEU"].score for name in (OURS, consumer)] for pair in scores.values()]
    before, after = max(by_pair, key=lambda bleu: bleu[0] - bleu[1])
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
