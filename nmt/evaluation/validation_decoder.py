"""Validation by translating: scores and sample translations with the current weights of training."""

import itertools
from collections.abc import Callable

from nmt.config.schema import Config
from nmt.data.batch_plan import length_batches
from nmt.data.dataset import Dataset
from nmt.data.sources.text_file import TextFile, read_lines
from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.evaluation.metrics import METRICS, make_metric
from nmt.models.base import Seq2SeqModel
from nmt.models.build import build_model
from nmt.models.weights import set_weights
from nmt.runs.metrics import DecodedValidation, Quality, Sample
from nmt.storage.arrays import Arrays

CHECKED = 4
"""Batches translated between two checks, side by side on several cores."""
SCORES = {f"validation_{name}": name for name in METRICS if f"validation_{name}" in Quality.model_fields}
"""Fields of the metrics file and their metrics."""


class ValidationDecoder:
    """Translates the first N validation sentences greedily, in a float32 model of its own.

    N is the larger of ``training.samples`` and ``training.decode_validation``.
    """

    def __init__(self, config: Config, dataset: Dataset, **changes: float) -> None:
        """Take the configuration, the dataset with the validation text, and settings of decoding that differ."""
        self.samples, self.scored = config.training.samples, config.training.decode_validation
        count = max(self.samples, self.scored)
        self.sources, self.references = (
            read_lines(TextFile(dataset.text("validation", side)))[:count] for side in ("source", "target")
        )
        decoding = config.decoding.model_copy(update={"beam_size": 1, "precision": "float32", **changes})
        self.config = config.model_copy(update={"decoding": decoding})
        self.dataset = dataset
        self._made: tuple[Seq2SeqModel, SentenceTranslator] | None = None

    def __call__(self, weights: Arrays, check: Callable[[], None]) -> DecodedValidation:
        """Translate with weights; ``check`` is called every ``CHECKED`` batches, and may raise to break off."""
        if not self.sources:
            return DecodedValidation()
        if self._made is None:  # at first use: it takes as much memory as the weights
            source, target = self.dataset.tokenizers()
            model = build_model(self.config.model, source.size, target.size, "float32", trained=True)
            engine = TensorFlowEngine(model, self.config)
            self._made = model, SentenceTranslator(engine, source, target, self.config, 0)
        model, translator = self._made
        set_weights(model, weights)
        translations = self._translate(translator, check)
        rows = list(zip(self.sources, self.references, translations, strict=True))
        scores = {}
        if self.scored:
            scored, references = translations[: self.scored], [self.references[: self.scored]]
            for field, name in SCORES.items():
                scores[field] = float(make_metric(name, quiet=True).corpus_score(scored, references).score)
        samples = [
            Sample(source=source, reference=reference, translation=translation)
            for source, reference, translation in rows[: self.samples]
        ]
        return DecodedValidation(scores, samples)

    def _translate(self, translator: SentenceTranslator, check: Callable[[], None]) -> list[str]:
        lengths = [1 + len(source) for source in self.sources]
        batches = list(length_batches(lengths, self.config.decoding.batch_size))
        translations = [""] * len(self.sources)
        for start in range(0, len(batches), CHECKED):
            indices = list(itertools.chain(*batches[start : start + CHECKED]))
            found = translator.search([self.sources[index] for index in indices])
            for index, [best, *_] in zip(indices, found, strict=True):
                translations[index] = best.text
            check()
        return translations
