"""Teacher in a folder that CTranslate2 has converted from a public model: NLLB, M2M-100, MADLAD or OPUS-MT.

Such a folder has no code of the model's tokenizer. Its sentencepiece model cuts text into pieces, and the vocabulary
shows where the model expects the token of a language.
"""

import contextlib
import math
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sentencepiece
from pydantic import JsonValue

from nmt.config.languages import same_language, standard_code
from nmt.config.schema import DecodingConfig
from nmt.config.teacher import TeacherConfig
from nmt.data.batch_plan import length_batches
from nmt.data.encoding import available_processors
from nmt.errors import DataError
from nmt.extras import require
from nmt.storage.atomic import sha256
from nmt.storage.json_file import read_json
from nmt.storage.names import did_you_mean
from nmt.storage.text import as_cell
from nmt.teachers.teacher import CUT_OFF, EMPTY, TOO_LONG, Candidate

DEFAULTS = {"eos_token": "</s>", "add_source_bos": False, "add_source_eos": False}
"""Values of the keys that a folder's config.json may lack. Old versions of CTranslate2 write no such file."""
SPECIAL = {"<s>", "</s>", "<unk>", "<pad>", "<mask>"}
"""Tokens that stand for no text."""
SHOWN = 8
"""Number of language tokens that a message shows."""
_POSITIONS = re.compile(r"No position encodings are defined for positions >= (\d+)")
"""Error of CTranslate2 if a sentence has more tokens than the model has positions."""
_SCRIPT = re.compile(r"-([A-Z][a-z]{3})\b")


class Family(NamedTuple):
    """Models with the same kind of language tokens, in the same places."""

    pattern: re.Pattern[str]
    """Form of a language token. Its group is the code of the language."""
    has_prefix: bool
    """Whether a source begins with the token of the source language, and a translation with that of the target
    language. Otherwise a source begins with the token of the target language."""

    def tokens(self, vocabulary: Collection[str]) -> dict[str, str]:
        """Return the language tokens in a vocabulary, with the codes in them."""
        matches = map(self.pattern.fullmatch, vocabulary)
        return {match[0]: match[1] for match in matches if match}


FAMILIES = (
    Family(re.compile(r"__([a-z]{2,3})__"), True),  # M2M-100
    Family(re.compile(r"([a-z]{3}_[A-Z][a-z]{3})"), True),  # NLLB
    Family(re.compile(r"<2(\w+)>"), False),  # MADLAD
    Family(re.compile(r">>([\w-]+)<<"), False),  # OPUS-MT
)


class Layout(NamedTuple):
    """Tokens that a model reads besides the pieces of a text."""

    begin: list[str]
    """Tokens before the pieces of a source."""
    prefix: list[str]
    """Tokens that every translation begins with. They are no part of its text."""
    special: set[str]
    """Tokens that are left out of the text of a translation."""


class FolderTeacher:
    """A converted model as a teacher. See ``nmt.teachers.teacher.Teacher``."""

    def __init__(
        self, config: TeacherConfig, decoding: DecodingConfig, languages: tuple[str | None, str | None],
        candidates: int, sampled: bool,
    ) -> None:  # fmt: skip
        """Load the model.

        Args:
            config: description of the teacher; ``where`` is the folder.
            decoding: settings of the search. A beam has at least as many hypotheses as there are candidates.
            languages: codes of the source and the target language; None if one is unknown.
            candidates: number of translations of each line.
            sampled: whether words are drawn by their probabilities instead of searched for.

        Raises:
            NotFoundError: if CTranslate2 is not installed.
            DataError: if a file of the folder is missing or damaged, or the model has no token for a language.
        """
        require("fast", "ctranslate2")
        self.name, self._compute_type = config.where, config.compute_type
        self._translator = self._load(available_processors())
        folder = Path(config.where)
        files = sentencepiece_files(folder)
        self._source, self._target = map(_load_sentencepiece, files)
        self._layout = find_layout(config, languages)

        description = folder / "config.json"
        stored = read_json(description, "The description of a model") if description.exists() else {}
        keys = DEFAULTS | stored
        self._eos = keys["eos_token"]
        self._end = [] if keys["add_source_eos"] else [self._eos]
        self._added = keys["add_source_bos"] + keys["add_source_eos"]  # by CTranslate2
        self._positions = math.inf  # unknown until a sentence is too long

        beams = 1 if sampled else candidates
        self._decoding = decoding.model_copy(update={"beam_size": max(decoding.beam_size, beams)})
        self._sampled = sampled
        arguments = self._decoding.arguments("ctranslate2", self._decoding.search(sampled=sampled))
        self._settings = {"beam_size": 1, "length_penalty": 0, **arguments, "num_hypotheses": candidates}
        self.identity: dict[str, JsonValue] = {
            "kind": config.kind,
            "files": {path.name: sha256(path) for path in (folder / "model.bin", *files)},
            "tokens": [*self._layout.begin, *self._layout.prefix],
            "compute_type": config.compute_type,
            "candidates": candidates,
            "sampled": sampled,
            "decoding": self._decoding.model_dump(),
        }

    def translate(self, lines: Sequence[str], first: int, journal: Path) -> list[list[Candidate]]:
        """See ``nmt.teachers.teacher.Teacher``. The model needs no journal.

        Raises:
            DataError: if CTranslate2 refuses a setting, or cannot compute.
        """
        rows = [self._tokens(line) for line in lines]
        while True:
            try:
                return self._search(rows, first)
            except (RuntimeError, ValueError) as error:
                limit = _POSITIONS.search(str(error))
                if limit is None:
                    raise DataError(f"CTranslate2 cannot translate with {self.name}: {error}.") from None
                self._positions = min(self._positions, int(limit[1]))

    def summary(self) -> str:
        """Return an empty text, since the model costs nothing."""
        return ""

    def close(self) -> None:
        """Release the model."""
        self._translator.unload_model()

    def _load(self, batches: int) -> Any:
        """Return a CTranslate2 translator that computes this many batches at a time."""
        import ctranslate2  # noqa: PLC0415 - an extra

        options = {"compute_type": self._compute_type, "inter_threads": batches, "intra_threads": 1}
        try:
            return ctranslate2.Translator(self.name, **options)
        except (RuntimeError, ValueError, IndexError, MemoryError) as error:
            raise DataError(
                f"CTranslate2 cannot load {self.name}: {error}. Give the folder of a converted model, or convert the "
                "model again."
            ) from None

    def _tokens(self, text: str) -> list[str]:
        """Return the source tokens of a text; none if it has no pieces."""
        pieces = self._source.encode(text, out_type=str)
        if not pieces:
            return []
        begin = self._layout.begin
        # MADLAD's sentencepiece model knows the language token, and cuts the text behind it in another way.
        marked = self._source.encode(" ".join([*begin, text]), out_type=str)
        for token in begin:
            if token in marked:
                pieces = marked[marked.index(token) + 1 :]
        return [*begin, *pieces, *self._end]

    def _search(self, rows: list[list[str]], first: int) -> list[list[Candidate]]:
        """Return the candidates of each row of source tokens."""
        prefix, decoding = self._layout.prefix, self._decoding
        lengths = np.array([len(row) + self._added if row else 0 for row in rows])
        extra = decoding.max_length_extra + len(prefix)
        limits = np.minimum(decoding.length_ratio * lengths + extra, self._positions).astype(int)
        problems = np.where(lengths > self._positions, TOO_LONG, EMPTY)
        candidates = [[Candidate("", problem=str(problem))] for problem in problems]
        lengths[lengths > self._positions] = 0
        # A batch on each processor at a time, as in nmt.decoding.ctranslate2_engine.
        size = max(1, min(decoding.batch_size, -(-int(sum(lengths > 0)) // available_processors())))
        batches = [batch.tolist() for batch in length_batches(lengths, size)]
        from nmt.decoding.ctranslate2_engine import seeded, translate_batches  # noqa: PLC0415 - an extra

        prefixes = [prefix] * len(rows)
        with seeded(decoding.seed + first) if self._sampled else contextlib.nullcontext():
            translator = self._load(1) if self._sampled else self._translator
            results = translate_batches(
                translator, rows, prefixes, limits, batches, return_scores=True, **self._settings
            )
            for index, result in results:
                hypotheses = zip(result.hypotheses, result.scores, strict=True)
                candidates[index] = [self._candidate(*hypothesis, limits[index]) for hypothesis in hypotheses]
        return candidates

    def _candidate(self, tokens: list[str], score: float, limit: int) -> Candidate:
        """Return a hypothesis of CTranslate2 as a candidate.

        Args:
            tokens: tokens with the prefix, and with eos if the model has ended the translation.
            score: log-probability, divided by the length penalty. The prefix has probability 1.
            limit: most tokens of the translation, prefix and eos included.
        """
        prefix, special = len(self._layout.prefix), self._layout.special
        text = self._target.decode([token for token in tokens[prefix:limit] if token not in special])
        problem = "" if tokens[-1] == self._eos and len(tokens) <= limit else CUT_OFF
        if self._settings.get("coverage_penalty"):  # which cannot be taken out of the score
            return Candidate(as_cell(text), None, problem)
        log_probability = score * len(tokens) ** self._settings["length_penalty"]
        return Candidate(as_cell(text), round(log_probability / max(1, len(tokens) - prefix), 4), problem)


def sentencepiece_files(folder: Path) -> tuple[Path, Path]:
    """Return the sentencepiece models of source and target; raises DataError if there is none, or it is unclear."""
    pair = folder / "source.spm", folder / "target.spm"
    if all(path.is_file() for path in pair):
        return pair
    files = sorted([*folder.glob("*.spm"), *folder.glob("*.model")])
    if len(files) == 1:
        return files[0], files[0]
    names = ", ".join(path.name for path in files) or "none"
    raise DataError(
        f"{folder} needs the sentencepiece model of its tokenizer: source.spm and target.spm, or one file *.spm or "
        f"*.model. It has: {names}. Copy the file from the original model, for example sentencepiece.bpe.model (option "
        "copy_files of ct2-transformers-converter), and move others away."
    )


def _load_sentencepiece(path: Path) -> Any:
    try:
        return sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError) as error:
        raise DataError(f"{path} is no sentencepiece model: {error}. Copy it from the original model again.") from None


def read_vocabulary(folder: Path) -> list[str]:
    """Return the source and target tokens of a converted model."""
    tokens = list[str]()
    for side in ("shared", "source", "target"):
        path = folder / f"{side}_vocabulary.json"
        if path.exists():
            tokens += read_json(path, "A vocabulary")
        elif (lines := path.with_suffix(".txt")).exists():  # of old versions
            tokens += lines.read_text("utf-8").split("\n")
    return tokens


def find_layout(config: TeacherConfig, languages: tuple[str | None, str | None]) -> Layout:
    """Return the layout of a converted model for two languages.

    Args:
        config: description of the teacher. Its tokens take the place of those that the languages would have.
        languages: codes of the source and the target language.

    Raises:
        DataError: if the model needs a token for a language, and no token or several fit.
    """
    vocabulary = read_vocabulary(Path(config.where))
    family = max(FAMILIES, key=lambda family: len(family.tokens(vocabulary)))
    known = family.tokens(vocabulary)
    given = {"source": config.source_token, "target": config.target_token}
    has_prefix = family.has_prefix if known else given["source"] is not None
    chosen = dict[str, list[str]]()
    for (side, token), code in zip(given.items(), languages, strict=True):
        chosen[side] = [token] if token in vocabulary else []
        if token is None and known and (has_prefix or side == "target"):
            chosen[side] = fitting_tokens(code, known)
        elif token is None:
            continue
        if len(chosen[side]) != 1:
            wanted = token or code or "unknown"
            number, listed = ("several tokens", "They are") if chosen[side] else ("no token", "It knows for example")
            raise DataError(
                f"{config.where}: the {side} language is {wanted}, and the model has {number} for it"
                f"{did_you_mean(wanted, [*known, *known.values()])}. {listed} "
                f"{', '.join((chosen[side] or [*known])[:SHOWN])}. Choose one with the key {side}_token in the "
                "teacher's YAML file."
            )
    begin, prefix = (chosen["source"], chosen["target"]) if has_prefix else (chosen["target"], [])
    return Layout(begin, prefix, SPECIAL | {*known, *begin, *prefix})


def fitting_tokens(code: str | None, known: dict[str, str]) -> list[str]:
    """Return the tokens of a language: the one with exactly its code, or all that differ only in script or region.

    Args:
        code: code of the language; None if it is unknown.
        known: code in each token.

    >>> fitting_tokens("zh", {"zho_Hans": "zho_Hans", "zho_Hant": "zho_Hant", "deu_Latn": "deu_Latn"})
    ['zho_Hans', 'zho_Hant']
    """
    wanted = standard_code(code or "") or code or ""
    fitting = {}
    for token, own in known.items():
        standard = standard_code(own) or own
        scripts = {*_SCRIPT.findall(wanted), *_SCRIPT.findall(standard)}
        if same_language(standard, wanted) and len(scripts) < 2:
            fitting[token] = standard
    exact = [token for token, standard in fitting.items() if standard == wanted]
    return exact if len(exact) == 1 else [*fitting]
