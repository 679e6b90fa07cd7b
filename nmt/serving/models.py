"""Models of the service, which are opened and compiled once at start."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from nmt.config.loading import change_decoding
from nmt.data.manifest import Direction, read_manifest
from nmt.decoding.exported import ExportedModel, choose_export
from nmt.decoding.translation import BEST, CrossAttention, SearchOptions, Translation
from nmt.errors import DataError
from nmt.runs.directory import Run, find_run
from nmt.runs.weights import find_members
from nmt.text.glossary import Entry, Glossary, glossary_of, read_glossary
from nmt.text.translator import USUAL, TextOptions, Translator
from nmt.tokenizers.base import BOS, EOS, PAD, SPACE_MARK, Tokenizer

MOST_ATTENTION = 128 * 128
"""Most entries of an attention matrix in an answer."""
SPECIAL = frozenset({PAD, BOS, EOS})
SCORED = TextOptions(SearchOptions(scored=True))


class Pair(NamedTuple):
    """Language pair, as language codes."""

    source: str
    target: str


class SentenceResult(NamedTuple):
    """Result of a model for a sentence."""

    translations: list[Translation]
    """At least one translation, best first."""
    attention: CrossAttention | None
    """Attention of the best translation, if it was requested and the model has attention."""


class ServedModel:
    """A model as the translator of a language pair, with its searches compiled at start. Several threads may use it."""

    def __init__(
        self, pair: Pair, translator: Translator, description: str, max_alternatives: int,
        glossaries: Mapping[str, str] = {},
    ) -> None:  # fmt: skip
        """Prepare a translator for the service.

        Args:
            pair: language pair.
            translator: translator of the pair.
            description: name and weights of the model. The pairs of a model have the same description, and one queue.
            max_alternatives: most alternatives of a request.
            glossaries: glossary files by name.
        """
        self.pair, self.description = pair, description
        decoding, n_best = translator.config.decoding, max_alternatives + 1
        if decoding.ordinary_text != "none":  # the service itself splits texts into sentences
            decoding = change_decoding(decoding, {"ordinary_text": "lines"})
        narrow = wide = translator.reconfigured(decoding)
        self._only_greedy = translator.engine.only_greedy
        if n_best > decoding.beam_size and not self._only_greedy:
            wide = narrow.reconfigured(change_decoding(decoding, {"beam_size": n_best}))
        self._translator, self._wide = narrow, wide
        self.alternatives = TextOptions(SearchOptions(n_best=n_best, scored=True))
        """Search for the N best translations with their scores."""
        self.has_attention = True
        """Whether the model has attention, as ``warm_up`` finds out."""
        self.glossaries = {
            name: read_glossary(file, translator.target, translator.languages) for name, file in glossaries.items()
        }
        """Glossaries by name."""
        self.is_calibrated = narrow.is_calibrated
        """Whether the run has been calibrated."""

    def glossary(self, name: str | None, keep: Sequence[str]) -> Glossary | None:
        """Return the glossary of a request; None for a request without terms.

        Args:
            name: name of a glossary of the service; None for no glossary.
            keep: further terms, which stay as they are.

        Raises:
            DataError: if a term breaks a rule.
        """
        given = self.glossaries[name] if name else None
        if not keep:
            return given
        translator = self._translator
        entries = [Entry(f"keep {word[:50]!r}", word, [word]) for word in dict.fromkeys(keep)]
        kept = glossary_of(entries, translator.target, self.pair)
        return Glossary([*given.terms, *kept.terms], kept.languages) if given else kept

    def warm_up(self) -> None:
        """Compile all searches, and test whether the model has attention."""
        text = ["One two three."]
        for options in (USUAL, SCORED, self.alternatives):
            [result] = self.translate(text, options)
        try:
            self._translator.attention(text, [result.translations[0]])
        except DataError:
            self.has_attention = False

    @property
    def tags(self) -> int:
        """Number of tags before each source."""
        return len(self._translator.tags)

    @property
    def most_tokens(self) -> int:
        """Most tokens of a sentence that the service translates."""
        return self._translator.most_tokens

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a sentence."""
        return self._translator.count_tokens(text)

    def translate(
        self, texts: Sequence[str], options: TextOptions, attention: Sequence[bool] = ()
    ) -> list[SentenceResult]:
        """Translate sentences.

        Args:
            texts: sentences of at most ``most_tokens`` tokens.
            options: ``USUAL``, ``SCORED``, or ``alternatives`` of this model; also with a glossary or confidence. A
                model that only gives greedy translations gives them without scores.
            attention: whether to return attention, for each sentence; empty for no attention.
        """
        if self._only_greedy:
            options = options._replace(search=BEST)
        translator = self._wide if options.search.n_best > 1 else self._translator
        n_best = translator.find(texts, options)
        indices = [
            index for index, is_requested in enumerate(attention)
            if is_requested and self.has_attention and n_best[index][0].ids
        ]  # fmt: skip
        attentions: dict[int, CrossAttention] = {}
        if indices:
            best = [n_best[index][0] for index in indices]
            computed = translator.attention([texts[index] for index in indices], best)
            attentions = dict(zip(indices, computed, strict=True))
        return [SentenceResult(translations, attentions.get(index)) for index, translations in enumerate(n_best)]

    def pieces(self, text: str, translation: Translation) -> tuple[list[str], list[str]]:
        """Return the tokens of a sentence and of its translation; joined, they are readable text."""
        source, target = self._translator.source, self._translator.target
        model_input = text if translation.read is None else translation.read
        return _readable(source, source.encode(model_input)), _readable(target, translation.ids)


def _readable(tokenizer: Tokenizer, ids: Iterable[int]) -> list[str]:
    """Return the tokens without special tokens and space marks. Words after the first begin with a space."""
    pieces = [piece.replace(SPACE_MARK, " ") for piece in tokenizer.pieces(id_ for id_ in ids if id_ not in SPECIAL)]
    if tokenizer.unit == "words":
        return [f" {piece}" if number else piece for number, piece in enumerate(pieces)]
    return pieces


def warm_up(models: Iterable[ServedModel]) -> None:
    """Compile all searches. The language pairs of a model share them, so that its first pair compiles them for all."""
    first = dict[str, ServedModel]()
    for model in models:
        if model.description not in first:
            model.warm_up()
        model.has_attention = first.setdefault(model.description, model).has_attention


def open_models(
    name: str | None, epoch: str | None, settings: dict[str, Any], max_alternatives: int,
    glossaries: Mapping[str, str] = {},
) -> list[ServedModel]:  # fmt: skip
    """Open a model for the service, and return it for each of its language pairs. Its weights are loaded once.

    Args:
        name: RUN, RUN:EPOCH, RUN+RUN for an ensemble, or folder of an export to CTranslate2 (with a slash); None for
            the run trained last.
        epoch: weights, as in ``nmt.load``.
        settings: values for keys of section decoding; keys with the value None keep the model's own. Languages limit
            the service to their pairs; source and target together may be a pair that was not trained (zero-shot).
        max_alternatives: most alternatives of a request.
        glossaries: glossary files by name.

    Raises: the errors of ``nmt.load`` and ``read_glossary``.
    """
    export = name if name is not None and "/" in name else None
    members: list[tuple[Run, str | None]] = []
    trained: Run | ExportedModel
    if export:
        _, trained = choose_export(None, epoch, export)
        run = trained.run
    else:
        (run, epoch), *members = [(find_run(None), epoch)] if name is None else find_members(name, epoch)
        trained = run
    models = list[ServedModel]()
    loaded: Translator | None = None
    for direction in _directions(run, settings):
        source, target = direction.languages
        languages = {"source_language": source, "target_language": target}
        if loaded is None:
            loaded = Translator.open(trained, epoch, settings | languages, members)
        weights = f"epoch {loaded.epoch}" if isinstance(loaded.epoch, int) else loaded.epoch
        names = "+".join([run.name, *(member.name for member, _ in members)])
        description = f"{f'export {export}' if export else f'run {names}'}, {weights}"
        translator = loaded.reconfigured(loaded.config.decoding.model_copy(update=languages))
        models.append(ServedModel(Pair(source, target), translator, description, max_alternatives, glossaries))
    return models


def _directions(run: Run, settings: Mapping[str, Any]) -> list[Direction]:
    """Return the language pairs that a run was trained on, or the pair that the settings name."""
    manifest = read_manifest(run.dataset_path)
    source, target = settings.get("source_language"), settings.get("target_language")
    trained = [
        direction for direction in manifest.all_directions
        if source in (None, direction.source) and target in (None, direction.target)
    ]  # fmt: skip
    return trained or [manifest.direction(source, target)]
