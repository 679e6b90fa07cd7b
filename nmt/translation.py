"""Text to ids, search, ids to text: what a run directory needs to translate, and nothing of ``data/``."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from nmt.batches import pad_rows
from nmt.checkpoint import choose_epoch, load_weights
from nmt.config import Config
from nmt.dataset import Sequences
from nmt.errors import DataError
from nmt.models import build_model
from nmt.run import Run
from nmt.search import greedy
from nmt.tokenizer import BOS, EOS, PAD, Tokenizer, load_tokenizer
from nmt.transformer import Transformer


class Translation(NamedTuple):
    """A translated sentence."""

    text: str
    unknown: list[str]
    """Words of the source that the model does not know; the whole of it if normalisation leaves nothing."""
    is_whole: bool
    """Whether the model ended it, rather than the limit on its length."""


class Translator:
    """A trained model with its tokenizers: raw text in, raw text out."""

    def __init__(self, model: Transformer, source: Tokenizer, target: Tokenizer, config: Config, epoch: int) -> None:
        """Take the parts; ``load`` gets them from a run."""
        self.model, self.source, self.target, self.config, self.epoch = model, source, target, config, epoch

    @classmethod
    def load(cls, run: Run, epoch: str | None = None) -> "Translator":
        """Return the translator of a run at an epoch: a number, "last", or by default the best.

        Raises:
            NotFoundError: if that epoch's weights are not there.
            DataError: if a part of the run is damaged.
        """
        chosen = choose_epoch(run, epoch)
        config = run.config()
        source, target = (load_tokenizer(run.tokenizer_path(side)) for side in ("source", "target"))
        model = build_model(config.model, source.size, target.size)
        load_weights(run, model, chosen)
        return cls(model, source, target, config, chosen)

    def translate(self, texts: list[str], names: list[str] | None = None) -> list[Translation]:
        """Return the translations of raw sentences, in their order; an empty sentence has an empty one.

        Args:
            texts: sentences, one each.
            names: what an error calls each of them, such as "line 7".

        Raises:
            DataError: for a sentence longer than learned positions reach.
        """
        encoded = [self.source.encode(text) for text in texts]
        self._check_lengths(encoded, names or [f"sentence {n}" for n in range(1, len(texts) + 1)])
        found: list[list[int]] = [[] for _ in texts]
        for indices in self._batches(encoded):
            rows = Sequences.pack((encoded[index] for index in indices), self.source.size)
            source = pad_rows(rows, np.arange(len(indices)), bos=self.config.model.source_bos)
            for index, ids in zip(indices, self._search(tf.constant(source)).numpy().tolist(), strict=True):
                found[index] = ids
        return [
            Translation(self.target.decode(ids), self._unknown(text, encoded_ids), not encoded_ids or EOS in ids)
            for text, ids, encoded_ids in zip(texts, found, encoded, strict=True)
        ]

    def _unknown(self, text: str, ids: list[int]) -> list[str]:
        return self.source.unknown(text) if ids or not text.strip() else [text.strip()]

    def _check_lengths(self, encoded: list[list[int]], names: list[str]) -> None:
        if self.config.model.positions != "learned":
            return
        longest = self.config.model.max_positions - 1 - int(self.config.model.source_bos)
        for ids, name in zip(encoded, names, strict=True):
            if len(ids) > longest:
                raise DataError(
                    f"This model was trained with learned positions for at most {longest} tokens of source; {name} "
                    f"has {len(ids)}. Split it, or train with model.positions=sinusoidal."
                )

    def _batches(self, encoded: list[list[int]]) -> Iterator[list[int]]:
        """Indices of sentences that have words, those of like length together."""
        order = sorted((index for index, ids in enumerate(encoded) if ids), key=lambda index: len(encoded[index]))
        size = self.config.decoding.batch_size
        for start in range(0, len(order), size):
            yield order[start : start + size]

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
    def _search(self, source: tf.Tensor) -> tf.Tensor:
        """Greedy search for int32 [B, S] -> int32 [B, N]."""
        settings = self.config.decoding
        lengths = tf.reduce_sum(tf.cast(tf.not_equal(source, PAD), tf.int32), axis=1)
        limits = tf.cast(settings.max_length_ratio * tf.cast(lengths, tf.float32), tf.int32) + settings.max_length_extra
        if self.config.model.positions == "learned":
            limits = tf.minimum(limits, self.config.model.max_positions)
        batch = tf.shape(source)[0]
        memory = self.model.encode(source)
        cache = self.model.new_cache(batch, tf.reduce_max(limits))
        return greedy(
            lambda tokens, cache: self.model.decode(tokens, memory, cache),
            cache, batch, bos=BOS, eos=EOS, pad=PAD, limits=limits,
        )  # fmt: skip
