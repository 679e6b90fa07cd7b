"""Models of the service: opened once, warmed up, found by language pair."""

import enum
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nmt.api import load
from nmt.config.decoding import DecodingConfig
from nmt.config.loading import change_decoding
from nmt.data.manifest import read_manifest
from nmt.decoding.exported import open_export
from nmt.decoding.translation import GREEDY, CrossAttention, SearchOptions, TextTranslator, Translation
from nmt.errors import ConflictError, DataError
from nmt.extras import require
from nmt.runs.directory import Run, find_run
from nmt.runs.metrics import WeightsId
from nmt.tokenizers.base import BOS, EOS, PAD, SPACE_MARK, Tokenizer

EXPORT_FORMAT = "ctranslate2"
MOST_TOKENS = {"characters": 1_000}
"""Most tokens of a sentence by the tokenizer's unit. Longer ones are cut: their translation would be slow and poor."""
MOST_TOKENS_OTHERWISE = 250
MOST_ATTENTION = 128 * 128
"""Largest matrix of attention in an answer."""
WARM_UP = "One two three."
SPECIAL = frozenset({PAD, BOS, EOS})


class Search(enum.Enum):
    """Kind of search that a request needs."""

    BEST = "best"
    """The best translation."""
    SCORED = "scored"
    """The best translation with its score."""
    ALTERNATIVES = "alternatives"
    """The N best translations with their scores."""


class Pair(NamedTuple):
    """Language pair, as codes."""

    source: str
    target: str


class Found(NamedTuple):
    """What a model finds for a sentence."""

    translations: list[Translation]
    """At least one translation, the best first."""
    attention: CrossAttention | None
    """Attention of the best translation, if it was asked for and the model has it."""


class OpenModel(NamedTuple):
    """Model as it is opened."""

    pair: Pair
    translator: TextTranslator
    description: str
    """Name and weights, such as "run base, epoch 7"."""
    positions: int | None = None
    """Most tokens of a sentence that an export reads, bos and eos included; None: as its configuration says."""


def open_model(name: str | None, epoch: str | None, settings: dict[str, Any]) -> OpenModel:
    """Open a model.

    Args:
        name: name of a run, or folder of an export to CTranslate2; None: the run trained last.
        epoch: weights of a run, as for ``nmt.api.load``.
        settings: keys of the section decoding with other values than the model's, None for none.

    Raises:
        NotFoundError: if there is no such model, or the package for it is missing.
        ConflictError: if the folder holds an export of another format.
        DataError: if a file of it is damaged.
        ConfigError: if a setting breaks the schema.
    """
    if name is not None and ("/" in name or Path(name).is_dir()):
        return _open_export(Path(name), settings)
    run = find_run(name)
    decoding = change_decoding(run.config().decoding, settings)
    translator = load(run, epoch, decoding=decoding).translator
    return OpenModel(_pair(run), translator, f"run {run.name}, {_weights(translator.epoch)}")


def _open_export(folder: Path, settings: dict[str, Any]) -> OpenModel:
    exported = open_export(folder)
    description = exported.description
    if description.to != EXPORT_FORMAT:
        raise ConflictError(
            f"{folder} is an export to {description.to}. A service uses runs, and exports to {EXPORT_FORMAT}. Export "
            f"the run with --to {EXPORT_FORMAT}, or name the run."
        )
    require("fast", "ctranslate2")
    from nmt.decoding.ctranslate2_translator import (  # noqa: PLC0415 - of an optional extra
        CTranslate2Translator,
    )

    decoding = change_decoding(exported.run.config().decoding, settings)
    translator = CTranslate2Translator.load(exported, decoding)
    words = f"export {folder}, {_weights(description.epoch)}"
    return OpenModel(_pair(exported.run), translator, words, description.positions)


def _pair(run: Run) -> Pair:
    languages = read_manifest(run.dataset_path).languages
    return Pair(languages["source"], languages["target"])


def _weights(epoch: WeightsId) -> str:
    return f"epoch {epoch}" if isinstance(epoch, int) else str(epoch)


class ServedModel:
    """A model with the searches of the service, compiled at start. Computes in a single thread at a time."""

    def __init__(self, opened: OpenModel, max_alternatives: int) -> None:
        """Take an open model, and the most alternatives of a request."""
        self.pair, self.description, self._positions = opened.pair, opened.description, opened.positions
        decoding = opened.translator.config.decoding
        best = opened.translator.reconfigured(decoding)
        n_best = max_alternatives + 1
        wide = best
        if n_best > decoding.beam_size:
            wide = best.reconfigured(_with_beam(decoding, n_best))
        self._translator = best
        self._searches: dict[Search, tuple[TextTranslator, SearchOptions]] = {
            Search.BEST: (best, GREEDY),
            Search.SCORED: (best, SearchOptions(scored=True)),
            Search.ALTERNATIVES: (wide, SearchOptions(n_best=n_best, scored=True)),
        }
        self._has_attention = True

    def warm_up(self) -> None:
        """Compile all searches, and find out whether the model has attention."""
        for search in Search:
            found = self.find([WARM_UP], search)
        try:
            self._translator.attention([WARM_UP], [found[0].translations[0]])
        except DataError:
            self._has_attention = False

    @property
    def most_tokens(self) -> int:
        """Most tokens of a sentence: fewer than the model has positions."""
        config, unit = self._translator.config, self._translator.source.unit
        most = MOST_TOKENS.get(unit, MOST_TOKENS_OTHERWISE)
        special = 1 + int(config.model.reads_bos)
        limits = [limit - special for limit in (config.model.limits.source, self._positions) if limit is not None]
        return max(1, min([most, *limits]))

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a sentence."""
        return len(self._translator.source.encode(text))

    def find(self, texts: Sequence[str], search: Search, attention: Sequence[bool] = ()) -> list[Found]:
        """Return what the model finds for sentences.

        Args:
            texts: sentences of at most ``most_tokens`` tokens.
            search: kind of search.
            attention: for each sentence, whether its attention is wanted; empty: for none.
        """
        translator, options = self._searches[search]
        n_best = translator.translate_n_best(list(texts), options=options)
        wanted = [
            index for index, is_wanted in enumerate(attention)
            if is_wanted and self._has_attention and n_best[index][0].ids
        ]  # fmt: skip
        attentions: list[CrossAttention | None] = [None] * len(texts)
        if wanted:
            computed = translator.attention([texts[index] for index in wanted], [n_best[index][0] for index in wanted])
            for index, each in zip(wanted, computed, strict=True):
                attentions[index] = each
        return [Found(*each) for each in zip(n_best, attentions, strict=True)]

    def pieces(self, text: str, translation: Translation) -> tuple[list[str], list[str]]:
        """Return the tokens of a sentence and of its translation as text; joined they are readable."""
        source, target = self._translator.source, self._translator.target
        return _readable(source, source.encode(text)), _readable(target, translation.ids)


def _with_beam(decoding: DecodingConfig, size: int) -> DecodingConfig:
    return change_decoding(decoding, {"beam_size": size})


def _readable(tokenizer: Tokenizer, ids: Iterable[int]) -> list[str]:
    """Return tokens without special ones, spaces as spaces. A word after the first has a space before it."""
    pieces = [piece.replace(SPACE_MARK, " ") for piece in tokenizer.pieces(id_ for id_ in ids if id_ not in SPECIAL)]
    if tokenizer.unit == "words":
        return [f" {piece}" if number else piece for number, piece in enumerate(pieces)]
    return pieces


def check_pairs(models: Iterable[OpenModel]) -> None:
    """Check that each language pair has one model.

    Raises:
        ConflictError: names the first two models of the same pair.
    """
    known: dict[Pair, str] = {}
    for model in models:
        if model.pair in known:
            raise ConflictError(
                f"Two models translate {model.pair.source} to {model.pair.target}: {known[model.pair]}, and "
                f"{model.description}. A service has one model for each language pair. Leave one of them out."
            )
        known[model.pair] = model.description
