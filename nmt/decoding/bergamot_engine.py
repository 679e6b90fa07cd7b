"""Bergamot engine: translates with an export to Bergamot by fxtranslate, without TensorFlow."""

import copy
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn

import fxtranslate
import numpy as np
import sentencepiece

from nmt.config.schema import Config, DecodingConfig
from nmt.decoding.translation import AttentionMaps, Hypothesis, SearchOptions
from nmt.errors import DataError, NmtError, counted
from nmt.message import Part, Settings
from nmt.tokenizers.base import EOS, Tokenizer

USE_THE_RUN = "Use the weights of the run."
WHOLE = 16_000
"""Size of a vocabulary up to which fxtranslate scores all words. It takes longer to pick those of a shortlist."""
_Request = tuple[list[str], "Future[list[str]]"]
"""Texts, and their translations when they are ready."""
_BYTES = re.compile("(?:<0x[0-9A-F]{2}>)+")


def load_translator(folder: Path) -> Callable[[str], str]:
    """Return the function that translates a sentence with the files in a folder.

    Only the thread that has called ``load_translator`` may call or release the function.

    Raises:
        DataError: if a file is missing, or fxtranslate cannot read it.
    """

    def read(pattern: str) -> bytes:
        files = list(folder.glob(pattern))
        if len(files) != 1:
            raise DataError(
                f"{folder} has {counted(len(files), 'file')} {pattern}, and an export has one. Export the run again."
            )
        return files[0].read_bytes()

    model, vocabulary, shortlist = read("model.*.bin"), read("vocab.*.spm"), read("lex.*.bin")
    try:
        size = sentencepiece.SentencePieceProcessor(model_proto=vocabulary).get_piece_size()
        translator = fxtranslate.Translator(model, vocabulary, vocabulary, shortlist if size > WHOLE else None)
    except (ValueError, RuntimeError) as error:
        raise DataError(f"fxtranslate cannot load {folder}: {error}. Export the run again.") from None
    return lambda text: with_characters(translator.translate(text))


def with_characters(text: str) -> str:
    """Return text with characters for pieces such as "<0xC3><0x9F>", their bytes, which fxtranslate does not join."""

    def character(match: re.Match[str]) -> str:
        return bytes.fromhex(match[0].replace("<0x", "").replace(">", "")).decode("utf-8", "replace")

    return _BYTES.sub(character, text)


class _Worker:
    """A thread that has loaded an export, and so may translate with it; see ``load_translator``."""

    def __init__(self, folder: Path) -> None:
        """Start the thread, and load the files in a folder; raises DataError if that fails."""
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        loaded = Future[list[str]]()
        threading.Thread(target=_serve, args=(folder, loaded, self._requests), daemon=True).start()
        weakref.finalize(self, self._requests.put, None)
        loaded.result()

    def translate(self, texts: list[str]) -> list[str]:
        """Return the translations of texts. Calls of several threads wait for each other."""
        answer = Future[list[str]]()
        self._requests.put((texts, answer))
        return answer.result()


def _serve(folder: Path, loaded: Future[list[str]], requests: "SimpleQueue[_Request | None]") -> None:
    """Load the files in a folder, then answer requests until one is None."""
    try:
        translate = load_translator(folder)
    except BaseException as error:  # also a panic in Rust, so that nobody waits for ever
        loaded.set_exception(error)
        return
    loaded.set_result([])
    while (request := requests.get()) is not None:
        texts, answer = request
        try:
            answer.set_result([translate(text) for text in texts])
        except BaseException as error:
            answer.set_exception(error)


class BergamotEngine:
    """Engine of an export to Bergamot. See ``nmt.decoding.translation.Engine``.

    fxtranslate takes a text and returns the text of a greedy translation, so it gives neither scores nor attention nor
    further hypotheses.
    """

    positions: int | None = None
    only_greedy: bool = True
    precision: str = "int8"

    def __init__(self, folder: Path, config: Config, source: Tokenizer, target: Tokenizer) -> None:
        """Load the model.

        Raises:
            NmtError: for decoding settings that it cannot follow.
            DataError: if fxtranslate cannot load the model.
        """
        self.config, self._folder, self._source, self._target = config, folder, source, target
        self._check(SearchOptions())
        self._worker = _Worker(folder)

    def reconfigured(self, decoding: DecodingConfig, *, prepared: bool = True) -> "BergamotEngine":
        """Return an engine of the same loaded model with other decoding settings; nothing needs preparing."""
        engine = copy.copy(self)
        engine.config = self.config.model_copy(update={"decoding": decoding})
        engine._check(SearchOptions())
        return engine

    def search(
        self, rows: list[list[int]], limits: np.ndarray, options: SearchOptions, prefixes: Sequence[list[int]] = ()
    ) -> list[list[Hypothesis]]:
        """See ``nmt.decoding.translation.Engine``. Ids become text for fxtranslate, and its text becomes ids again."""
        self._check(options, prefixes)
        filled = [index for index, ids in enumerate(rows) if ids]
        translations = self._worker.translate([self._source.decode(rows[index]) for index in filled])
        found: list[list[Hypothesis]] = [[] for _ in rows]
        for index, translation in zip(filled, translations, strict=True):
            ids = [*self._target.encode(translation), EOS]
            found[index] = [Hypothesis(ids[: limits[index]], 0.0)]
        return found

    def _check(self, options: SearchOptions, prefixes: Sequence[list[int]] = ()) -> None:
        """Refuse what fxtranslate cannot do."""
        decoding = self.config.decoding
        for key in ("beam_size", "mbr_candidates"):
            if (value := getattr(decoding, key)) > 1:
                self._refuse(Settings({f"decoding.{key}": value}))
        if options.sampled:
            self._refuse("Sampling")
        if options.n_best > 1 or any(prefixes):
            self._refuse("A request for several translations, or for given first words,")
        if options.scored:
            self._refuse("A request for scores")

    def _refuse(self, request: Part) -> NoReturn:
        raise NmtError(
            request, f" cannot be followed: {self._folder} is an export to Bergamot, which translates greedily and "
            "without scores. Leave it out, or use the weights of the run.",
        )  # fmt: skip

    def token_scores(self, sources: list[list[int]], targets: list[list[int]]) -> list[np.ndarray]:
        """Refuse the request: fxtranslate gives no scores."""
        raise DataError(f"{self._folder} is an export to Bergamot, which gives no scores. {USE_THE_RUN}")

    def cross_attention(self, sources: list[list[int]], targets: list[list[int]]) -> None:
        """Return None: fxtranslate gives no attention."""

    def attention_maps(self, source: list[int], target: list[int]) -> AttentionMaps | None:
        """Refuse the request: fxtranslate gives no attention."""
        raise DataError(f"{self._folder} is an export to Bergamot, which gives no attention. {USE_THE_RUN}")
