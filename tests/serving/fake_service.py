"""A service with fake models that need no training, as a process or as parts for tests in the same process.

A fake model translates to upper case, with the target language in front. It takes 0.3 s for a sentence with "slow",
and fails for a sentence with "poison".
"""

import copy
import json
import sys
import time
from types import SimpleNamespace

import numpy as np

from nmt.config.data import DataConfig
from nmt.config.schema import Config, DecodingConfig
from nmt.decoding.translation import CrossAttention, Translation
from nmt.documents import isolation
from nmt.errors import DataError
from nmt.serving import server
from nmt.serving.app import make_application
from nmt.serving.guard import Access, digest
from nmt.serving.models import Pair, ServedModel
from nmt.serving.server import address, bind, run
from nmt.serving.service import Service, ServiceSettings
from nmt.text.glossary import Glossary, Term
from nmt.text.translator import USUAL, TextOptions, Translator
from nmt.tokenizers.base import EOS
from nmt.tokenizers.word import WordTokenizer


class FakeTranslator:
    """Translator that records its batches."""

    def __init__(self, mark: str = "de", *, has_attention: bool = True) -> None:
        self.source = self.target = WordTokenizer.fit(["one two three"], DataConfig(normalization="none"))
        self.config, self.mark, self.has_attention = Config(), mark, has_attention
        self.batches: list[list[str]] = []

    @property
    def is_calibrated(self) -> bool:
        return True

    most_tokens = Translator.most_tokens
    engine = SimpleNamespace(positions=None, only_greedy=False)
    tags = ()

    def count_tokens(self, text: str) -> int:
        return len(self.source.encode(text))

    def reconfigured(self, decoding: DecodingConfig) -> "FakeTranslator":
        new = copy.copy(self)
        new.config = self.config.model_copy(update={"decoding": decoding})
        return new

    def find(self, texts: list[str], options: TextOptions = USUAL) -> list[list[Translation]]:
        self.batches.append(list(texts))
        if any("slow" in text for text in texts):
            time.sleep(0.3)
        if any("poison" in text for text in texts):
            raise ValueError("poison")
        assert options.search.n_best <= self.config.decoding.beam_size
        return [[self._translation(text, rank, options) for rank in range(options.search.n_best)] for text in texts]

    def _translation(self, text: str, rank: int, options: TextOptions) -> Translation:
        rendered = f"{self.mark}:{text.upper()}" + (f" {rank + 1}" if rank else "")
        rendered += " terms" if options.glossary and options.glossary.terms_of(text) else ""
        ids = [*self.source.encode(text), EOS]
        translation = Translation(
            rendered, self.source.unknown(text), True, ids, -float(rank) if options.search.scored else None
        )
        confidence = 0.25 if "two" in text else 0.75
        if not options.confident:
            return translation
        return translation._replace(confidence=confidence, words=((rendered, 0.5),))

    def attention(self, sources: list[str], translations: list[Translation]) -> list[CrossAttention]:
        if not self.has_attention:
            raise DataError("no attention")
        attention = []
        for text, translation in zip(sources, translations, strict=True):
            ids = [*self.source.encode(text), EOS]
            weights = np.full([2, 2, len(translation.ids), len(ids)], 1 / len(ids), np.float32)
            attention.append(CrossAttention(ids, translation.ids, weights))
        return attention


def fake_model(source: str = "en", target: str = "de", max_alternatives: int = 3, **options: bool) -> ServedModel:
    translator = FakeTranslator(target, **options)
    model = ServedModel(Pair(source, target), translator, f"fake {source}-{target}", max_alternatives)  # type: ignore[arg-type]
    model.glossaries["numbers"] = Glossary([Term(("one",), {"terms": " terms "})])
    model.warm_up()
    translator.batches.clear()
    return model


def main() -> None:
    """Serve on a free port. The argument has settings, keys, hosts, origins and limits as JSON."""
    options = json.loads(sys.argv[1])
    access = Access(
        api_keys=frozenset(map(digest, options.pop("api_keys"))) if "api_keys" in options else None,
        hosts=frozenset(options.pop("hosts", [])),
        origins=frozenset(options.pop("origins", [])),
    )
    server.MAX_CONNECTIONS = options.pop("max_connections", server.MAX_CONNECTIONS)
    isolation.MOST_SECONDS = options.pop("most_seconds", isolation.MOST_SECONDS)
    settings = ServiceSettings(**options)
    models = [fake_model("en", "de", settings.max_alternatives), fake_model("fr", "de"), fake_model("en", "fr")]
    service = Service(models, settings)
    bound = bind("127.0.0.1", 0)
    run(make_application(service, access, lambda: print(f"Ready at {address(bound)}", flush=True)), bound)


if __name__ == "__main__":
    main()
