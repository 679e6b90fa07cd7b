"""CTranslate2 engine: translates with an exported model, without TensorFlow.

Shapes: B sentences, S source length, T target length.
"""

import contextlib
import copy
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from nmt.config.decoding import BEAM
from nmt.config.schema import Config, DecodingConfig
from nmt.data.batch_plan import length_batches
from nmt.data.encoding import available_processors
from nmt.decoding.exported import VOCABULARY_MAP
from nmt.decoding.translation import AttentionMaps, Hypothesis, SearchOptions
from nmt.errors import DataError
from nmt.storage.json_file import read_json
from nmt.tokenizers.base import EOS, UNK

_SEEDING = threading.Lock()
"""Held while a call samples, since the seed belongs to the process."""
NO_SEED = 2**32 - 1
"""Seed that makes CTranslate2 draw a random seed of its own."""
SHARED, SOURCE, TARGET = (f"{name}_vocabulary.json" for name in ("shared", "source", "target"))


class CTranslate2Engine:
    """Engine of an exported model. See ``nmt.decoding.translation.Engine``."""

    only_greedy: bool = False

    def __init__(self, folder: Path, config: Config, positions: int | None = None) -> None:
        """Load the model.

        Args:
            folder: CTranslate2 model directory.
            config: configuration of the run, with the decoding settings to use.
            positions: most tokens of a sentence that the export reads; None without a limit.

        Raises:
            DataError: if CTranslate2 cannot load the model.
        """
        self.config, self.positions = config, positions
        names = (SHARED, SHARED) if (folder / SHARED).exists() else (SOURCE, TARGET)
        self._source_tokens, self._target_tokens = (read_json(folder / name, "A vocabulary") for name in names)
        self._target_ids = {token: id_ for id_, token in enumerate(self._target_tokens)}
        self._folder, self._has_map = folder, (folder / VOCABULARY_MAP).exists()
        # Several batches at a time, one per core, are faster than one batch on all cores.
        self._engine = self._load(available_processors())

    def _load(self, batches: int) -> ctranslate2.Translator:
        """Return a CTranslate2 translator that computes this many batches at a time."""
        try:
            return ctranslate2.Translator(str(self._folder), inter_threads=batches, intra_threads=1)
        except (RuntimeError, ValueError, IndexError, MemoryError) as error:
            raise DataError(f"CTranslate2 cannot load {self._folder}: {error}. Export the run again.") from None

    def reconfigured(self, decoding: DecodingConfig, *, prepared: bool = True) -> "CTranslate2Engine":
        """Return an engine of the same loaded model with other decoding settings; nothing needs preparing."""
        engine = copy.copy(self)
        engine.config = self.config.model_copy(update={"decoding": decoding})
        return engine

    @property
    def precision(self) -> str:
        """Number format that CTranslate2 computes in."""
        return str(self._engine.compute_type)

    def search(
        self, rows: list[list[int]], limits: np.ndarray, options: SearchOptions, prefixes: Sequence[list[int]] = ()
    ) -> list[list[Hypothesis]]:
        """See ``nmt.decoding.translation.Engine``.

        The tokens that sampling draws depend on the seed and on all sentences of the call.
        """
        if not options.sampled:
            return self._search(self._engine, rows, limits, options, prefixes)
        with seeded(self.config.decoding.seed + options.first):
            return self._search(self._load(1), rows, limits, options, prefixes)

    def _search(
        self, engine: ctranslate2.Translator, rows: list[list[int]], limits: np.ndarray, options: SearchOptions,
        prefixes: Sequence[list[int]],
    ) -> list[list[Hypothesis]]:  # fmt: skip
        decoding = self.config.decoding
        kind = decoding.search(sampled=options.sampled)
        settings = {"beam_size": 1, "length_penalty": 0, **decoding.arguments("ctranslate2", kind)}
        batches = [batch.tolist() for batch in length_batches([len(ids) for ids in rows], self._batch_size(rows))]
        results = translate_batches(
            engine, [*map(self._pieces, rows)], [*map(self._target_pieces, prefixes)], limits, batches,
            num_hypotheses=settings["beam_size"], use_vmap=self._has_map, return_scores=True, **settings,
        )  # fmt: skip
        n_best: list[list[Hypothesis]] = [[] for _ in rows]
        for index, result in results:
            hypotheses = list(zip(result.hypotheses, result.scores, strict=True))
            if kind == BEAM and not decoding.coverage_penalty:
                hypotheses = _rerank(hypotheses, decoding.length_penalty)
            n_best[index] = [
                Hypothesis([self._target_ids.get(token, UNK) for token in tokens][: limits[index]], score)
                for tokens, score in hypotheses[: options.n_best]
            ]
        if options.scored and decoding.no_repeat_ngram_size and not settings.get("coverage_penalty"):
            return self._rescore(rows, n_best, settings["length_penalty"])
        return n_best

    def _rescore(self, rows: list[list[int]], n_best: list[list[Hypothesis]], alpha: float) -> list[list[Hypothesis]]:
        """Return hypotheses, best first, with probabilities normalized over all tokens, as in our own searches.

        CTranslate2 normalizes over the tokens that repeat no phrase. It cannot score a hypothesis without eos again,
        which keeps its score.
        """
        sources, targets = list[list[int]](), list[list[int]]()
        for ids, hypotheses in zip(rows, n_best, strict=True):
            for hypothesis in hypotheses:
                if ids and EOS in hypothesis.ids:
                    sources.append(ids)
                    targets.append(hypothesis.ids)
        scores = iter(self.token_scores(sources, targets) if sources else [])
        rescored = []
        for ids, hypotheses in zip(rows, n_best, strict=True):
            scored = [
                hypothesis._replace(score=float(next(scores).sum()) / _penalty(hypothesis.ids, alpha))
                if ids and EOS in hypothesis.ids else hypothesis
                for hypothesis in hypotheses
            ]  # fmt: skip
            rescored.append(sorted(scored, key=lambda hypothesis: -hypothesis.score))
        return rescored

    def token_scores(self, sources: list[list[int]], targets: list[list[int]]) -> list[np.ndarray]:
        """See ``nmt.decoding.translation.Engine``. CTranslate2 adds eos itself."""
        results = self._engine.score_batch(
            [self._pieces(ids) for ids in sources],
            [self._target_pieces(id_ for id_ in ids if id_ != EOS) for ids in targets],
            max_batch_size=self.config.decoding.batch_size,
            max_input_length=0,
        )
        return [np.array(result.log_probs[: len(ids)]) for result, ids in zip(results, targets, strict=True)]

    def cross_attention(self, sources: list[list[int]], targets: list[list[int]]) -> list[np.ndarray]:
        """Return the attention of the decoder's last layer, averaged over heads: float32 [1, 1, T, S] for each pair.

        CTranslate2 leaves out the attention to bos and eos, which is 0 in the result.
        """
        bos = int(self.config.model.reads_bos)
        attention = [
            np.zeros([1, 1, len(target), bos + len(ids) + 1], np.float32)
            for ids, target in zip(sources, targets, strict=True)
        ]
        rows = [target if ids else [] for ids, target in zip(sources, targets, strict=True)]
        batches = [batch.tolist() for batch in length_batches([len(ids) for ids in rows], self._batch_size(rows))]
        prefixes = [self._target_pieces(id_ for id_ in ids if id_ != EOS) for ids in targets]
        limits = np.array([len(ids) + 1 for ids in targets])
        results = translate_batches(
            self._engine, [*map(self._pieces, sources)], prefixes, limits, batches, beam_size=1, return_attention=True
        )
        for index, result in results:
            weights = np.array(result.attention[0], np.float32)[: len(targets[index])]
            attention[index][0, 0, : len(weights), bos : bos + len(sources[index])] = weights
        return attention

    def attention_maps(self, source: list[int], target: list[int]) -> AttentionMaps | None:
        """Refuse the request, since CTranslate2 gives no attention of single heads and layers."""
        raise DataError(f"{self._folder} is an export, which gives only cross-attention. Use the weights of its run.")

    def _batch_size(self, rows: list[list[int]]) -> int:
        """Return the sentences per batch: at most ``decoding.batch_size``, and few enough for a batch on each core."""
        sentences = sum(bool(ids) for ids in rows)
        return max(1, min(self.config.decoding.batch_size, -(-sentences // available_processors())))

    def _pieces(self, ids: list[int]) -> list[str]:
        return [self._source_tokens[id_] for id_ in ids]

    def _target_pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._target_tokens[id_] for id_ in ids]


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Give CTranslate2's sampling a seed, one call at a time.

    The seed belongs to the process and only affects threads that start later, each with its own random numbers. So the
    block loads a translator of its own.
    """
    with _SEEDING:
        ctranslate2.set_random_seed(seed % 2**32)
        try:
            yield
        finally:
            ctranslate2.set_random_seed(NO_SEED)


def translate_batches(
    translator: ctranslate2.Translator, sources: Sequence[list[str]], prefixes: Sequence[list[str]],
    limits: np.ndarray, batches: Sequence[list[int]], **settings: Any,
) -> Iterator[tuple[int, Any]]:  # fmt: skip
    """Translate batches, as many at a time as the translator computes, and yield the index and result of each sentence.

    Args:
        translator: translator of CTranslate2.
        sources: source tokens of B sentences.
        prefixes: tokens that the translations begin with; empty without prefixes.
        limits: most tokens of each translation: int [B]. The longest of a batch counts.
        batches: indices of the sentences of each batch.
        settings: further arguments of ``translate_batch``.
    """
    running = [
        translator.translate_batch(
            [sources[index] for index in batch],
            [prefixes[index] for index in batch] if prefixes else None,
            max_decoding_length=int(limits[batch].max()),
            min_decoding_length=0,
            max_input_length=0,
            return_end_token=True,
            asynchronous=True,
            **settings,
        )
        for batch in batches
    ]
    for batch, results in zip(batches, running, strict=True):
        for index, pending in zip(batch, results, strict=True):
            yield index, pending.result()


def _rerank(hypotheses: list[tuple[list[str], float]], alpha: float) -> list[tuple[list[str], float]]:
    """Return the tokens and scores of hypotheses, best first, with the length penalty of our beam search.

    CTranslate2 divides a log-probability by length^alpha; our beam search divides it by lp(Y). With a coverage penalty
    the log-probability cannot be recovered from the score, so the score stays as it is.
    """
    scored = [(tokens, score * len(tokens) ** alpha / _penalty(tokens, alpha)) for tokens, score in hypotheses]
    return sorted(scored, key=lambda hypothesis: -hypothesis[1])


def _penalty(tokens: Sequence[object], alpha: float) -> float:
    """Return lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al. 2016, equation 14)."""
    return float(((5 + len(tokens)) / 6) ** alpha)
