"""Validation by translating: BLEU, chrF and sample translations with the current weights of training."""

import itertools
from collections.abc import Callable

from sacrebleu.metrics import BLEU, CHRF

from nmt.cluster.workers import Workers
from nmt.config.schema import Config
from nmt.data.batch_plan import length_batches
from nmt.data.dataset import Dataset
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.decoding.translator import Translator
from nmt.models.build import build_model
from nmt.models.weights import set_weights
from nmt.runs.metrics import DecodedValidation, Sample
from nmt.storage.arrays import Arrays
from nmt.storage.text import read_lines

TURNS = 4
"""Batches that a worker translates between two checks, side by side where it has several cores."""


class ValidationDecoder:
    """Translates the first N validation sentences greedily, in a float32 model of its own.

    N is the larger of ``training.samples`` and ``training.decode_validation``. Workers take turns at the batches.
    """

    def __init__(self, config: Config, dataset: Dataset, workers: Workers | None = None) -> None:
        """Take the configuration, the dataset with the validation text, and the workers (None: this process alone)."""
        self.workers = workers or Workers()
        self.samples, self.scored = config.training.samples, config.training.decode_validation
        count = max(self.samples, self.scored)
        self.sources, self.references = (
            read_lines(dataset.text("validation", side))[:count] for side in ("source", "target")
        )
        decoding = config.decoding.model_copy(update={"beam_size": 1, "precision": "float32"})
        self.config = config.model_copy(update={"decoding": decoding})
        self.dataset = dataset
        self._engine: TensorFlowEngine | None = None

    def __call__(self, weights: Arrays, check: Callable[[], None]) -> DecodedValidation:
        """Translate with weights; ``check`` is called every ``TURNS`` batches, and may raise to break off."""
        if not self.sources:
            return DecodedValidation()
        source, target = self.dataset.tokenizers()
        if self._engine is None:  # at first use: it takes as much memory as the weights
            model = build_model(self.config.model, source.size, target.size, "float32", trained=True)
            self._engine = TensorFlowEngine(model, self.config)
        set_weights(self._engine.model, weights)
        translations = self._translate(Translator(self._engine, source, target, self.config, 0), check)
        bleu = chrf = None
        if self.scored:
            scored, references = translations[: self.scored], [self.references[: self.scored]]
            bleu = float(BLEU(force=True).corpus_score(scored, references).score)
            chrf = float(CHRF().corpus_score(scored, references).score)
        rows = zip(self.sources, self.references, translations, strict=True)
        samples = [
            Sample(source=source, reference=reference, translation=translation)
            for source, reference, translation in list(rows)[: self.samples]
        ]
        return DecodedValidation(bleu, chrf, samples)

    def _translate(self, translator: Translator, check: Callable[[], None]) -> list[str]:
        lengths = [1 + len(source) for source in self.sources]
        batches = list(length_batches(lengths, self.config.decoding.batch_size))
        own = self.workers.turns(batches)
        found: list[str] = []
        for turn in range(0, -(-len(batches) // self.workers.count), TURNS):
            indices = itertools.chain(*own[turn : turn + TURNS])
            found += translator.translate([self.sources[index] for index in indices])
            check()
        translations = [""] * len(self.sources)
        for rank, texts in enumerate(self.workers.gather_texts(found)):
            indices = itertools.chain(*batches[rank :: self.workers.count])
            for index, text in zip(indices, texts, strict=True):
                translations[index] = text
        return translations
