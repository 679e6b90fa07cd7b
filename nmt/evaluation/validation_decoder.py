"""Validation by translating: scores and sample translations with the current training weights."""

import itertools
import math
import statistics
from collections.abc import Callable
from typing import NamedTuple

from nmt.config.schema import Config
from nmt.data.batch_plan import length_batches
from nmt.data.dataset import Dataset
from nmt.data.manifest import SIDES, Direction
from nmt.data.sources.text_file import TextFile, read_lines
from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.evaluation.metrics import METRICS, make_metric, tokenization_of
from nmt.models.base import Seq2SeqModel
from nmt.models.build import build_model
from nmt.models.weights import set_weights
from nmt.runs.metrics import DecodedValidation, Quality, Sample
from nmt.storage.arrays import Arrays

BATCHES_PER_CHECK = 4
"""Number of batches translated between two checks; they run in parallel on several cores."""
SCORES = {f"validation_{name}": name for name in METRICS if f"validation_{name}" in Quality.model_fields}
"""Metric of each field of the metrics file."""


class _Sentences(NamedTuple):
    """Validation sentences of a language pair."""

    direction: Direction
    sources: list[str]
    references: list[str]
    sampled: int
    """Number of the first sentences that are shown."""
    scored: int
    """Number of the first sentences that are scored."""


class ValidationDecoder:
    """Greedy decoder of the first N validation sentences, with a float32 model of its own.

    N is the larger of ``training.samples`` and ``training.decode_validation``. Several language pairs share the
    sentences, and the scores are the means of theirs.
    """

    def __init__(self, config: Config, dataset: Dataset, **changes: float) -> None:
        """Create the decoder.

        Args:
            config: configuration of the run.
            dataset: dataset with the validation text.
            changes: decoding settings that override the configuration.
        """
        texts = [read_lines(TextFile(dataset.text("validation", side))) for side in SIDES]
        rows = dataset.manifest.rows("validation")
        samples, scored = config.training.samples, config.training.decode_validation
        self.parts: list[_Sentences] = []
        for number, (direction, indices) in enumerate(rows):
            sampled = len(range(number, samples, len(rows)))
            share = math.ceil(scored / len(rows))
            first = slice(indices.start, min(indices.stop, indices.start + max(sampled, share)))
            self.parts.append(_Sentences(direction, texts[0][first], texts[1][first], sampled, share))
        settings = {"beam_size": 1, "mbr_candidates": 0, "precision": "float32", **changes}
        decoding = config.decoding.model_copy(update=settings)
        self.config = config.model_copy(update={"decoding": decoding})
        self.dataset = dataset
        self._model: Seq2SeqModel | None = None
        self._translators: list[SentenceTranslator] = []

    def __call__(self, weights: Arrays, check: Callable[[], None]) -> DecodedValidation:
        """Translate with weights. ``check`` is called every ``BATCHES_PER_CHECK`` batches, and may raise to stop."""
        if not any(part.sources for part in self.parts):
            return DecodedValidation()
        if self._model is None:  # created at first use, since it takes as much memory as the weights
            self._open()
        set_weights(self._model, weights)
        scores: dict[str, list[float]] = {field: [] for field in SCORES}
        samples, chrf = [], {}
        for part, translator in zip(self.parts, self._translators, strict=True):
            translations = self._translate(translator, part.sources, check)
            rows = zip(part.sources, part.references, translations, strict=True)
            samples.append([
                Sample(source=source, reference=reference, translation=translation)
                for source, reference, translation in itertools.islice(rows, part.sampled)
            ])  # fmt: skip
            if part.scored and part.sources:
                of_part = _scores(part, translations)
                for field, score in of_part.items():
                    scores[field].append(score)
                chrf[part.direction.name] = of_part["validation_chrf"]
        means = {field: statistics.fmean(values) for field, values in scores.items() if values}
        in_turns = [
            sample for samples_of_rank in itertools.zip_longest(*samples) for sample in samples_of_rank if sample
        ]
        return DecodedValidation(means, in_turns, chrf if len(self.parts) > 1 and chrf else None)

    def _open(self) -> None:
        """Create the model, and a translator for each language pair."""
        source, target = self.dataset.tokenizers()
        self._model = build_model(self.config.model, source.size, target.size, "float32", trained=True)
        engine = TensorFlowEngine(self._model, self.config)
        for part in self.parts:
            chosen = {"source_language": part.direction.source, "target_language": part.direction.target}
            decoding = self.config.decoding.model_copy(update=chosen if self.dataset.manifest.directions else {})
            config = self.config.model_copy(update={"decoding": decoding})
            manifest = self.dataset.manifest
            self._translators.append(SentenceTranslator(engine, source, target, config, 0, manifest))

    def _translate(self, translator: SentenceTranslator, sources: list[str], check: Callable[[], None]) -> list[str]:
        lengths = [1 + len(source) for source in sources]
        batches = list(length_batches(lengths, self.config.decoding.batch_size))
        translations = [""] * len(sources)
        for start in range(0, len(batches), BATCHES_PER_CHECK):
            indices = list(itertools.chain(*batches[start : start + BATCHES_PER_CHECK]))
            hypotheses = translator.search([sources[index] for index in indices])
            for index, [best, *_] in zip(indices, hypotheses, strict=True):
                translations[index] = best.text
            check()
        return translations


def _scores(part: _Sentences, translations: list[str]) -> dict[str, float]:
    """Return the scores of a language pair by field of the metrics file."""
    tokenization = tokenization_of(part.direction.target, part.references)
    scores = {}
    for field, name in SCORES.items():
        metric = make_metric(name, tokenization, quiet=True)
        result = metric.corpus_score(translations[: part.scored], [part.references[: part.scored]])
        scores[field] = float(result.score)
    return scores
