"""Subword tokenizers, which are sentencepiece models (Kudo and Richardson 2018) trained on the corpus."""

import functools
import io
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from nmt.config.data import DataConfig
from nmt.errors import DataError
from nmt.storage.atomic import atomic_file, sha256
from nmt.storage.json_file import write_json
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD, PAD, SPACE_MARK, UNK, UNKNOWN, file_header, ids_of_text
from nmt.tokenizers.normalization import NORMALIZERS
from nmt.tokenizers.sampling import SubwordSampler

# The number is fixed, since the trainer's rounding, and thus the vocabulary, depends on the number of threads.
TRAINER_THREADS = 4
# For a unigram model, alpha smooths the distribution over all segmentations. Kudo 2018 uses 0.2 for small corpora (and
# 0.1 among the 64 best segmentations). On the English of Multi30k, 0.2 gives 1.3 times as many subwords, and 0.1 gives
# 1.9 times as many. For BPE, alpha is the rate of skipped merges (Provilkov 2020), which gives 1.4 times as many.
SAMPLING_ALPHA = {"unigram": 0.2, "bpe": 0.1}
DEFAULT_LONGEST = 4192  # bytes of the longest text that sentencepiece trains on by default
# (least number of training pairs, vocabulary size). With 8,000 ids for Tatoeba most words are whole, and each piece is
# frequent enough to be learned. Multi30k learns faster with 4,000 ids (configs/MEASUREMENTS.md).
VOCABULARY_SIZES = (
    (5_000_000, 32_000), (1_000_000, 16_000), (60_000, 8_000), (5_000, 4_000), (1_000, 2_000), (0, 1_000),
)  # fmt: skip


def default_vocabulary_size(pairs: int, characters: int) -> int:
    """Return the default number of ids for a corpus, given its numbers of training pairs and distinct characters."""
    return max(2 * characters, next(size for least, size in VOCABULARY_SIZES if pairs >= least))


@functools.lru_cache(maxsize=4)
def sampler_of(model: bytes, algorithm: str) -> SubwordSampler:
    """Return the sampler of a serialized model.

    Tokenizers with the same model share it, since it remembers words: both sides of a joint vocabulary, and the dataset
    of a run after the same dataset was read to measure the speed.
    """
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    return SubwordSampler(pieces, algorithm, SAMPLING_ALPHA[algorithm])


class SubwordTokenizer:
    """Tokenizer with a sentencepiece model. Control strings such as "</s>" in a text are plain text."""

    unit = "subwords"
    tags: Sequence[str] = ()

    def __init__(self, model: bytes, normalization: str, algorithm: str) -> None:
        """Take a serialized model with the special ids of ``nmt.tokenizers.base``.

        Raises:
            DataError: if the model is damaged or has other special ids.
        """
        self.model, self.normalization, self.algorithm = model, normalization, algorithm
        try:
            self._pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (RuntimeError, ValueError, OSError) as error:
            raise DataError(f"The sentencepiece model is damaged: {error}.") from None
        pieces = self._pieces
        if (pieces.pad_id(), pieces.unk_id(), pieces.bos_id(), pieces.eos_id()) != (PAD, UNK, BOS, EOS):
            raise DataError("The sentencepiece model has other special ids than a model that nmt prepare trained.")
        try:
            pieces.id_to_piece(list(range(pieces.get_piece_size())))
            pieces.decode([UNK])
        except UnicodeDecodeError:
            raise DataError("The sentencepiece model has pieces that are not UTF-8.") from None
        self._normalize = NORMALIZERS[normalization]
        # Imported models of several target languages have a code for each language behind their pieces.
        self._codes, last = {}, int(pieces.get_piece_size()) - 1
        while last > EOS and pieces.is_control(last):
            self._codes[pieces.id_to_piece(last)] = last
            last -= 1
        self._end = last + 1

    def normalize(self, text: str) -> str:
        """Return normalized text, with half surrogates and sentencepiece's space character replaced."""
        normalized = self._normalize(text)
        if SPACE_MARK in normalized:  # sentencepiece would decode it to a space
            normalized = self._normalize(normalized.replace(SPACE_MARK, "_"))
        return normalized if normalized.isascii() else normalized.encode("utf-8", "replace").decode("utf-8")

    @classmethod
    def fit(cls, texts: Iterable[str], config: DataConfig, pairs: int | None = None) -> "SubwordTokenizer":
        """Train a model of ``config.vocabulary_size`` ids, or fewer if the texts have fewer pieces.

        Args:
            texts: sentences. sentencepiece takes about 24 bytes of memory per byte of text.
            config: algorithm, vocabulary size and normalization.
            pairs: number of training pairs that ``texts`` are a sample of; by default the number of texts.

        Raises:
            DataError: if the characters of the texts alone need more ids.
        """
        normalize = NORMALIZERS[config.normalization]
        sentences = [text for text in map(normalize, texts) if text]
        characters = len(set().union(*sentences))
        size = config.vocabulary_size or default_vocabulary_size(len(sentences) if pairs is None else pairs, characters)
        characters += FIRST_WORD + 1 + (256 if config.byte_fallback else 0)
        # With many characters for the size of the vocabulary, the rarest 0.05% of them become bytes.
        coverage = 1.0 if 4 * characters <= size or not config.byte_fallback else 0.9995
        longest = max((len(text.encode()) for text in sentences), default=0)
        # sentencepiece leaves longer texts out without a word. It stores a limit that is set, even to the default.
        limit: dict[str, Any] = {"max_sentence_length": longest} if longest > DEFAULT_LONGEST else {}
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences), model_writer=model, model_type=config.subword_model, vocab_size=size,
                hard_vocab_limit=False, character_coverage=coverage, byte_fallback=config.byte_fallback,
                normalization_rule_name="identity", remove_extra_whitespaces=False,
                pad_id=PAD, unk_id=UNK, bos_id=BOS, eos_id=EOS, unk_surface=UNKNOWN,
                num_threads=TRAINER_THREADS, minloglevel=2, **limit,
            )  # fmt: skip
        except (RuntimeError, OSError) as error:
            reason = "is too small" if size <= characters else f"cannot be trained ({str(error)[-99:]!r})"
            raise DataError(
                f"A subword vocabulary of {size:,} ids {reason}. It must hold every character of the corpus"
                f"{' and the 256 bytes' if config.byte_fallback else ''}: {characters:,} ids with the special ones. "
                f"Set data.vocabulary_size={2 * (characters + 1)} or more, or data.tokenizer=char."
            ) from None
        return cls(model.getvalue(), config.normalization, config.subword_model)

    @property
    def size(self) -> int:
        """Number of ids, the special ones included."""
        return self._end + len(self.tags)

    def encode(self, text: str) -> list[int]:
        """Return the ids of raw text, without bos and eos; unk only for unseen characters without byte fallback.

        For models of several target languages, text may begin with the code of a language, such as ">>deu<<".
        """
        if self._codes:
            before, end, after = text.partition("<<")
            if before + end in self._codes:
                return [self._codes[before + end], *self.encode(after)]
        return self._pieces.encode(self.normalize(text))

    def sample(self, texts: Sequence[str], seed: int) -> list[list[int]]:
        """Return a random segmentation of each raw text (Kudo 2018; BPE-dropout, Provilkov 2020)."""
        dice, sampler = random.Random(seed), sampler_of(self.model, self.algorithm)
        return [sampler.sample(self.normalize(text), dice) for text in texts]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids up to the first eos, without pad and bos."""
        return self._pieces.decode(list(ids_of_text(ids, self._end)))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the piece of each id, special ids included. A piece shows a space as ``SPACE_MARK``."""
        end = self._end
        tags = sorted(self._codes, key=self._codes.__getitem__) or [f"<{tag}>" for tag in self.tags]
        return [self._pieces.id_to_piece(int(id_)) if id_ < end else tags[id_ - end] for id_ in ids]

    def byte_of(self, id_: int) -> int | None:
        """Return the byte that an id stands for; None if the id stands for no byte."""
        is_byte = id_ < self._end and self._pieces.is_byte(id_)
        return int(self._pieces.id_to_piece(id_)[1:-1], 16) if is_byte else None

    def unknown(self, text: str) -> list[str]:
        """Return the pieces of raw text that become unk, in order."""
        pieces = self._pieces.encode(self.normalize(text), out_type=str)
        return [piece.removeprefix(SPACE_MARK) for piece in pieces if self._pieces.piece_to_id(piece) == UNK]

    def save(self, path: Path) -> None:
        """Write the description as JSON at ``path``, and the model beside it with the suffix ".model"."""
        with atomic_file(path.with_suffix(".model")) as temporary:
            temporary.write_bytes(self.model)
        write_json(path, {
            **file_header("subword", self.normalization, self.tags),
            "algorithm": self.algorithm, "model_sha256": sha256(path.with_suffix(".model")),
        })  # fmt: skip
