"""Translation with a model exported to CTranslate2, without TensorFlow.

Shapes: B sentences, S source length, T target length.
"""

import copy
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from nmt.config.decoding import DecodingConfig
from nmt.config.schema import Config
from nmt.data.batch_plan import length_batches
from nmt.decoding.alignment import CrossAttention
from nmt.decoding.exported import VOCABULARY_MAP, ExportedModel
from nmt.decoding.search_options import GREEDY, SearchOptions
from nmt.decoding.text_ids import check_lengths, encode_prefix, encode_sources, max_lengths, unknown_words
from nmt.decoding.translation import Translation
from nmt.errors import DataError
from nmt.runs.metrics import WeightsId
from nmt.storage.json_file import read_json
from nmt.tokenizers.base import BOS, EOS, UNK, Tokenizer
from nmt.tokenizers.registry import load_tokenizer

SHARED, SOURCE, TARGET = (f"{name}_vocabulary.json" for name in ("shared", "source", "target"))


class CTranslate2Translator:
    """An exported model with its tokenizers: raw text in, raw text out. Several threads may use it."""

    def __init__(
        self,
        folder: Path,
        source: Tokenizer,
        target: Tokenizer,
        config: Config,
        epoch: WeightsId,
        positions: int | None = None,
    ) -> None:
        """Load the model.

        Args:
            folder: CTranslate2 model directory.
            source: tokenizer of the source side.
            target: tokenizer of the target side.
            config: configuration of the run, with the settings of decoding to use.
            epoch: weights that were exported.
            positions: most tokens of a sentence that the export reads; None: any number.

        Raises:
            DataError: if CTranslate2 cannot load the model.
        """
        self.source, self.target, self.config, self.epoch, self.positions = source, target, config, epoch, positions
        names = (SHARED, SHARED) if (folder / SHARED).exists() else (SOURCE, TARGET)
        self._source_tokens, self._target_tokens = (read_json(folder / name, "A vocabulary") for name in names)
        self._target_ids = {token: id_ for id_, token in enumerate(self._target_tokens)}
        self._folder, self._has_map = folder, (folder / VOCABULARY_MAP).exists()
        # Several batches at a time, each on a core: that is faster than a batch on all cores.
        self._engine = self._load(_cores())

    @classmethod
    def load(cls, exported: ExportedModel, decoding: DecodingConfig | None = None) -> "CTranslate2Translator":
        """Return the translator of an export; ``decoding`` replaces the settings of its run.

        Raises:
            DataError: if a part of it is damaged.
        """
        run, description = exported.run, exported.description
        config = run.config()
        if decoding is not None:
            config = config.model_copy(update={"decoding": decoding})
        source, target = (load_tokenizer(run.tokenizer_path(side)) for side in ("source", "target"))
        return cls(exported.folder, source, target, config, description.epoch, description.positions)

    def _load(self, batches: int) -> ctranslate2.Translator:
        """Return an engine that translates a number of batches at a time."""
        try:
            return ctranslate2.Translator(str(self._folder), inter_threads=batches, intra_threads=1)
        except (RuntimeError, ValueError, IndexError, MemoryError) as error:
            raise DataError(f"CTranslate2 cannot load {self._folder}: {error}. Export the run again.") from None

    def reconfigured(self, decoding: DecodingConfig) -> "CTranslate2Translator":
        """Return a translator of the same loaded model with other settings of decoding."""
        translator = copy.copy(self)
        translator.config = self.config.model_copy(update={"decoding": decoding})
        return translator

    @property
    def precision(self) -> str:
        """Number format that CTranslate2 computes in."""
        return str(self._engine.compute_type)

    def encode(self, texts: list[str], names: list[str] | None = None) -> list[list[int]]:
        """Return the ids of raw sentences. Args, Raises: as of ``translate_n_best``."""
        encoded = encode_sources(self.source, self.config, texts, names)
        self._check_positions(encoded, names)
        return encoded

    def translate_n_best(
        self, texts: list[str], names: list[str] | None = None, options: SearchOptions = GREEDY, prefix: str = ""
    ) -> list[list[Translation]]:
        """Return at most ``options.n_best`` translations of each raw sentence; see ``TextTranslator``.

        What sampling draws depends on the seed and on all sentences of the call.
        """
        encoded = self.encode(texts, names)
        unknown = [unknown_words(self.source, text, ids) for text, ids in zip(texts, encoded, strict=True)]
        forced = encode_prefix(self.target, prefix)
        found = [[Translation("", words, True, [], 0.0 if options.scored else None)] for words in unknown]
        lengths = np.array([len(ids) for ids in encoded])
        limits = max_lengths(self.config, lengths + 1 + int(self.config.model.reads_bos), len(forced))
        if self.positions is not None:
            limits = np.minimum(limits, self.positions)
        settings = self._settings(options)
        batches = [batch.tolist() for batch in length_batches(lengths, self._batch_size(encoded))]
        engine = self._engine
        if options.sampled:
            # A seed holds for threads that start after it, and each thread draws its own numbers.
            ctranslate2.set_random_seed(self.config.decoding.seed)
            engine = self._load(1)
        running = [
            engine.translate_batch(
                [self._pieces(encoded[index]) for index in batch],
                [[self._target_tokens[id_] for id_ in forced]] * len(batch) if forced else None,
                max_decoding_length=int(limits[batch].max()),
                min_decoding_length=0,
                max_input_length=0,
                use_vmap=self._has_map,
                return_end_token=True,
                return_scores=True,
                asynchronous=True,
                **settings,
            )
            for batch in batches
        ]
        for batch, results in zip(batches, running, strict=True):
            for index, pending in zip(batch, results, strict=True):
                result = pending.result()
                hypotheses = self._ranked(zip(result.hypotheses, result.scores, strict=True), options)
                found[index] = [
                    self._translation(tokens, int(limits[index]), unknown[index], score if options.scored else None)
                    for tokens, score in hypotheses[: options.n_best]
                ]
        return found

    def score(self, sources: list[str], targets: list[str], names: list[str] | None = None) -> list[float]:
        """Return log P(target | source), natural, eos included, of each pair of raw sentences."""
        encoded = [self.source.encode(text) for text in sources]
        names = names or [f"pair {n}" for n in range(1, len(sources) + 1)]
        check_lengths(self.config, encoded, names)
        self._check_positions(encoded, names)
        translations = [self.target.encode(text) for text in targets]
        self._check_positions(translations, names)
        results = self._engine.score_batch(
            [self._pieces(ids) for ids in encoded],
            [[self._target_tokens[id_] for id_ in ids] for ids in translations],
            max_batch_size=self.config.decoding.batch_size,
            max_input_length=0,
        )
        return [float(sum(result.log_probs)) for result in results]

    def attention(self, sources: list[str], translations: list[Translation]) -> list[CrossAttention]:
        """Return the cross-attention of the decoder: the mean over the heads of its last layer, float32 [1, 1, T, S].

        CTranslate2 leaves out the attention to bos and eos, which is 0 here.
        """
        encoded = self.encode(sources)
        bos = [BOS] if self.config.model.reads_bos else []
        found = []
        for ids, translation in zip(encoded, translations, strict=True):
            words = [id_ for id_ in translation.ids if id_ != EOS]
            weights = np.zeros([1, 1, len(translation.ids), len(bos) + len(ids) + 1], np.float32)
            if ids and words:
                [result] = self._engine.translate_batch(
                    [self._pieces(ids)],
                    [[self._target_tokens[id_] for id_ in words]],
                    beam_size=1,
                    max_decoding_length=len(words) + 1,
                    min_decoding_length=0,
                    max_input_length=0,
                    return_attention=True,
                    return_end_token=True,
                )
                rows = np.array(result.attention[0], np.float32)[: len(translation.ids)]
                weights[0, 0, : len(rows), len(bos) : len(bos) + len(ids)] = rows
            found.append(CrossAttention([*bos, *ids, EOS], translation.ids, weights))
        return found

    def _check_positions(self, encoded: list[list[int]], names: list[str] | None) -> None:
        if self.positions is None:
            return
        most = self.positions - 1 - int(self.config.model.reads_bos)
        for number, ids in enumerate(encoded):
            if len(ids) > most:
                name = names[number] if names else f"sentence {number + 1}"
                raise DataError(
                    f"Too long: {name} has {len(ids)} tokens. The exported model reads at most {most}. Split the "
                    "sentence, or translate with --backend tensorflow."
                )

    def _batch_size(self, encoded: list[list[int]]) -> int:
        """Return the sentences of a batch: at most the configured ones, and a batch for each core."""
        sentences = sum(bool(ids) for ids in encoded)
        return max(1, min(self.config.decoding.batch_size, -(-sentences // _cores())))

    def _settings(self, options: SearchOptions) -> dict[str, Any]:
        """Return the keyword arguments of CTranslate2 for a kind of search."""
        config = self.config.decoding
        if options.sampled:
            return {
                "beam_size": 1, "sampling_topk": config.top_k, "sampling_topp": config.top_p,
                "sampling_temperature": config.temperature, "length_penalty": 0,
            }  # fmt: skip
        if config.beam_size == 1:
            return {"beam_size": 1, "length_penalty": 0}
        return {
            "beam_size": config.beam_size, "num_hypotheses": config.beam_size,
            "length_penalty": config.length_penalty, "coverage_penalty": config.coverage_penalty,
        }  # fmt: skip

    def _ranked(
        self, hypotheses: Iterable[tuple[list[str], float]], options: SearchOptions
    ) -> list[tuple[list[str], float]]:
        """Return the tokens and scores of hypotheses, the best first, with the length penalty of our beam search.

        CTranslate2 divides a log-probability by length^alpha, we by ((5 + length) / 6)^alpha (Wu et al. 2016, equation
        14). With a coverage penalty the log-probability cannot be told from the score, which stays as it is.
        """
        config = self.config.decoding
        if options.sampled or config.beam_size == 1 or config.coverage_penalty:
            return list(hypotheses)
        alpha = config.length_penalty
        scored = [(tokens, score * (6 * len(tokens) / (5 + len(tokens))) ** alpha) for tokens, score in hypotheses]
        return sorted(scored, key=lambda hypothesis: -hypothesis[1])

    def _pieces(self, ids: list[int]) -> list[str]:
        return [self._source_tokens[id_] for id_ in ids]

    def _translation(self, tokens: list[str], limit: int, unknown: list[str], score: float | None) -> Translation:
        ids = [self._target_ids.get(token, UNK) for token in tokens][:limit]
        return Translation(self.target.decode(ids), unknown, EOS in ids, ids, score)


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
