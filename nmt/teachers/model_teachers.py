"""Teachers that nmt's own translator translates with: runs, ensembles and exports, and folders of Marian models.

The module loads no TensorFlow before a model is opened.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from nmt.config.decoding import BEAM
from nmt.config.schema import DecodingConfig
from nmt.decoding.translation import SearchOptions, Translation
from nmt.runs.directory import Run
from nmt.storage.atomic import scratch_folder
from nmt.storage.text import as_cell
from nmt.teachers.teacher import CUT_OFF, EMPTY, TOO_LONG, Candidate
from nmt.text.translator import TextOptions, Translator

OF_MODEL = ("ordinary_text", "max_length_ratio")
"""Search settings that an imported model brings along. Other values than "auto" replace them."""


class TranslatorTeacher:
    """A translator as a teacher. See ``nmt.teachers.teacher.Teacher``."""

    def __init__(
        self, name: str, translator: Translator, identity: dict[str, JsonValue], *, sampled: bool, candidates: int,
        confident: bool = False, median: float | None = None,
    ) -> None:  # fmt: skip
        """Store the translator.

        Args:
            name: name in messages.
            translator: translator. Unless words are sampled, its beam needs as many hypotheses as ``candidates``.
            identity: what its translations depend on.
            sampled: whether words are drawn by their probabilities instead of searched for.
            candidates: most translations of a line.
            confident: whether the score of a candidate is its confidence, the probability that it is good.
            median: median of target characters per source character in its training corpus; None if it is unknown.
        """
        self.name, self.identity, self.median = name, identity, median
        self.languages = translator.languages
        """Codes of its languages."""
        self._translator, self._sampled, self._confident = translator, sampled, confident
        self._n_best = 1 if sampled else candidates
        self._samples = candidates if sampled else 1

    def translate(self, lines: Sequence[str], first: int, journal: Path) -> list[list[Candidate]]:
        """See ``nmt.teachers.teacher.Teacher``. A translator needs no journal.

        Raises: the errors of ``Translator.find``.
        """
        # A line is repeated for each of its samples, since the number of a sentence selects its random numbers.
        texts = [line for line in lines for _ in range(self._samples)]
        search = SearchOptions(self._sampled, self._n_best, scored=True, first=first * self._samples)
        found = self._translator.find(texts, TextOptions(search, confident=self._confident), skip_too_long=True)
        scores = iter(self._scores(texts, found))
        candidates: list[list[Candidate]] = [[] for _ in lines]
        for number, translations in enumerate(found):
            for translation in translations:
                problem = _problem(texts[number], translation)
                candidate = Candidate(as_cell(translation.text), next(scores), problem)
                candidates[number // self._samples].append(candidate)
        return candidates

    def summary(self) -> str:
        """Return an empty text, since a translator costs nothing."""
        return ""

    def close(self) -> None:
        """Release the model and its threads."""
        self._translator.close()

    def _scores(self, texts: list[str], found: list[list[Translation]]) -> list[float | None]:
        """Return the scores of all translations of texts; None from an engine that gives none."""
        translator = self._translator
        best = list(itertools.chain(*found))
        if self._confident:
            return [translation.confidence for translation in best]
        if translator.engine.only_greedy:
            return [None] * len(best)
        totals = [translation.score or 0.0 for translation in best]
        if translator.config.decoding.search(sampled=self._sampled) == BEAM:  # its scores include penalties
            sources = [
                [*translator.tags, *translator.source.encode(text)] if translation.ids else []
                for text, translations in zip(texts, found, strict=True) for translation in translations
            ]  # fmt: skip
            token_scores = translator.engine.token_scores(sources, [translation.ids for translation in best])
            totals = [float(scores.sum()) for scores in token_scores]
        return [
            round(total / len(translation.ids), 4) if translation.ids else 0.0
            for total, translation in zip(totals, best, strict=True)
        ]


def _problem(text: str, translation: Translation) -> str:
    """Return the problem of a translation of a text."""
    if not text.strip():
        return EMPTY
    if translation.is_skipped:
        return TOO_LONG
    return "" if translation.finished else CUT_OFF


def open_marian(
    folder: Path, decoding: DecodingConfig, languages: tuple[str | None, str | None], *, sampled: bool, candidates: int
) -> TranslatorTeacher:
    """Return a Marian model, in the files of Marian or of transformers, as a teacher. No run of the project is made.

    Args:
        folder: folder of the model.
        decoding: settings of the search. The model reads lines as they stand unless ``ordinary_text`` says otherwise.
        languages: codes of the source and the target language; None if one is unknown.
        sampled, candidates: as for ``TranslatorTeacher``. A beam has at least as many hypotheses as candidates.

    Raises:
        NotFoundError: if the folder or a file is missing.
        DataError: for a model that is damaged, or of another kind.
        NmtError: if the model has several target languages, and the target is none of them.
    """
    from nmt.importing.importing import convert_model, fill_run  # noqa: PLC0415 - loads TensorFlow

    model = convert_model(folder)
    with scratch_folder() as temporary:  # an open translator needs no files
        own = fill_run(Run(temporary), model, "teacher", languages).decoding
        changes: dict[str, JsonValue] = {"target_language": decoding.target_language or languages[1]}
        changes |= {key: getattr(own, key) for key in OF_MODEL if getattr(decoding, key) == "auto"}
        if not sampled:
            changes["beam_size"] = max(decoding.beam_size, candidates)
        settings = decoding.model_copy(update=changes)
        translator = Translator.open(Run(temporary), decoding=settings)
    identity: dict[str, JsonValue] = {
        "kind": "marian",
        "files": {**model.checksums},
        "languages": [*languages],
        "candidates": candidates,
        "sampled": sampled,
        "decoding": settings.model_dump(),
    }
    return TranslatorTeacher(str(folder), translator, identity, sampled=sampled, candidates=candidates)
