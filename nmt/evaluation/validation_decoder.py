"""Validation by translating: scores and sample translations with the current training weights."""

import itertools
from collections.abc import Callable

from nmt.config.schema import Config
from nmt.data.batch_plan import length_batches
from nmt.data.dataset import Dataset
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


class ValidationDecoder:
    """Greedy decoder of the first N validation sentences, with a float32 model of its own.

    N is the larger of ``training.samples`` and ``training.decode_validation``.
    """

    def __init__(self, config: Config, dataset: Dataset, **changes: float) -> None:
        """Create the decoder.

        Args:
            config: configuration of the run.
            dataset: dataset with the validation text.
            changes: decoding settings that override the configuration.
        """
        self.samples, self.scored = config.training.samples, config.training.decode_validation
        count = max(self.samples, self.scored)
        self.sources, self.references = (
            read_lines(TextFile(dataset.text("validation", side)))[:count] for side in ("source", "target")
        )
        decoding = config.decoding.model_copy(update={"beam_size": 1, "precision": "float32", **changes})
        self.config = config.model_copy(update={"decoding": decoding})
        self.dataset = dataset
        self._translator: tuple[Seq2SeqModel, SentenceTranslator] | None = None

    def __call__(self, weights: Arrays, check: Callable[[], None]) -> DecodedValidation:
        """Translate with weights. ``check`` is called every ``BATCHES_PER_CHECK`` batches, and may raise to stop."""
        if not self.sources:
            return DecodedValidation()
        if self._translator is None:  # created at first use, since it takes as much memory as the weights
            source, target = self.dataset.tokenizers()
            model = build_model(self.config.model, source.size, target.size, "float32", trained=True)
            engine = TensorFlowEngine(model, self.config)
            self._translator = model, SentenceTranslator(engine, source, target, self.config, 0)
        model, translator = self._translator
        set_weights(model, weights)
        translations = self._translate(translator, check)
        rows = list(zip(self.sources, self.references, translations, strict=True))
        scores = {}
        if self.scored:
            scored, references = translations[: self.scored], [self.references[: self.scored]]
            tokenization = tokenization_of(self.dataset.manifest.languages["target"], self.references)
            for field, name in SCORES.items():
                metric = make_metric(name, tokenization, quiet=True)
                scores[field] = float(metric.corpus_score(scored, references).score)
        samples = [
            Sample(source=source, reference=reference, translation=translation)
            for source, reference, translation in rows[: self.samples]
        ]
        return DecodedValidation(scores, samples)

    def _translate(self, translator: SentenceTranslator, check: Callable[[], None]) -> list[str]:
        lengths = [1 + len(source) for source in self.sources]
        batches = list(length_batches(lengths, self.config.decoding.batch_size))
        translations = [""] * len(self.sources)
        for start in range(0, len(batches), BATCHES_PER_CHECK):
            indices = list(itertools.chain(*batches[start : start + BATCHES_PER_CHECK]))
            hypotheses = translator.search([self.sources[index] for index in indices])
            for index, [best, *_] in zip(indices, hypotheses, strict=True):
                translations[index] = best.text
            check()
        return translations
