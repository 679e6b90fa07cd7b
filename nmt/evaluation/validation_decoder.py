"""Validation by translating: BLEU, chrF and sentences to look at, with the weights that training has just now."""

from collections.abc import Callable

from sacrebleu.metrics import BLEU, CHRF

from nmt.config.schema import Config
from nmt.data.dataset import Dataset
from nmt.decoding.translator import Translator
from nmt.models.build import build_model
from nmt.models.weights import set_weights
from nmt.runs.metrics import Sample
from nmt.storage.arrays import Arrays
from nmt.storage.text import read_lines
from nmt.training.trainer import Decoded


class ValidationDecoder:
    """Translates the first validation sentences greedily, in a float32 model of its own."""

    def __init__(self, config: Config, dataset: Dataset) -> None:
        """Take the configuration, of which ``training.samples`` and ``training.decode_validation`` say how many."""
        self.sampled, self.scored = config.training.samples, config.training.decode_validation
        count = max(self.sampled, self.scored)
        self.sources, self.references = (
            read_lines(dataset.text("validation", side))[:count] for side in ("source", "target")
        )
        self.settings = config.model_copy(
            update={"decoding": config.decoding.model_copy(update={"beam_size": 1, "precision": "float32"})}
        )
        self.dataset = dataset
        self.translator: Translator | None = None

    def __call__(self, weights: Arrays, check: Callable[[], None]) -> Decoded:
        """Translate with these weights; ``check`` is called between batches, and may raise to break off."""
        if not self.sources:
            return Decoded(None, None, [])
        if self.translator is None:  # when it is needed: it takes as much memory as the weights
            source, target = self.dataset.tokenizers()
            model = build_model(self.settings.model, source.size, target.size, "float32", trained=True)
            self.translator = Translator(model, source, target, self.settings, 0)
        set_weights(self.translator.model, weights)
        translations = self._translate(self.translator, check)
        bleu = chrf = None
        if self.scored:
            scored, references = translations[: self.scored], [self.references[: self.scored]]
            bleu = float(BLEU(force=True).corpus_score(scored, references).score)
            chrf = float(CHRF().corpus_score(scored, references).score)
        rows = zip(self.sources, self.references, translations, strict=True)
        samples = [
            Sample(source=source, reference=reference, translation=translation)
            for source, reference, translation in list(rows)[: self.sampled]
        ]
        return Decoded(bleu, chrf, samples)

    def _translate(self, translator: Translator, check: Callable[[], None]) -> list[str]:
        order = sorted(range(len(self.sources)), key=lambda number: len(self.sources[number]))
        translations = [""] * len(order)
        size = self.settings.decoding.batch_size
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            found = translator.translate([self.sources[number] for number in batch])
            for number, one in zip(batch, found, strict=True):
                translations[number] = one.text
            check()
        return translations
