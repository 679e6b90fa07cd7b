"""Subwords: pieces of words, frequent words whole, found by sentencepiece (Kudo and Richardson 2018) on the corpus."""

import io
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import sentencepiece

from nmt.config.data import DataConfig
from nmt.errors import DataError
from nmt.storage.atomic import atomic_file, sha256
from nmt.storage.json_file import write_json
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD, PAD, UNK, UNKNOWN
from nmt.tokenizers.normalization import NORMALIZERS

# Fixed, not the machine's: partial sums over other shares of the text would round to another vocabulary.
TRAINER_THREADS = 4
SAMPLING_ALPHA = 0.1  # of Kudo 2018, where it was best; smaller is more varied. For BPE, the share of merges left out.
# By training pairs. With 8,000 on Multi30k or Tatoeba most words are whole, and each piece comes often enough to be
# learnt.
SIZES = ((5_000_000, 32_000), (1_000_000, 16_000), (20_000, 8_000), (5_000, 4_000), (1_000, 2_000), (0, 1_000))
_SEEDING = threading.Lock()  # the seed is the whole process's
_SPACE = "\u2581"  # what sentencepiece writes for a space, so that the character itself would come back as one


def choose_size(pairs: int, characters: int) -> int:
    """Return the number of ids that suits so many training pairs with so many different characters."""
    return max(2 * characters, next(size for least, size in SIZES if pairs >= least))


class SubwordTokenizer:
    """A sentencepiece model with a normalization of its own. Control strings in a text, "</s>", are text to it."""

    unit = "subwords"

    def __init__(self, model: bytes, normalization: str, algorithm: str) -> None:
        """Take a serialized model whose special ids are ours.

        Raises:
            DataError: if it is not such a model.
        """
        self.model, self.normalization, self.algorithm = model, normalization, algorithm
        try:
            self._pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (RuntimeError, ValueError, OSError) as error:
            raise DataError(f"A subword tokenizer is a sentencepiece model; this one is damaged: {error}.") from None
        pieces = self._pieces
        if (pieces.pad_id(), pieces.unk_id(), pieces.bos_id(), pieces.eos_id()) != (PAD, UNK, BOS, EOS):
            raise DataError("A subword tokenizer is one that nmt prepare trained; this model has other special ids.")
        try:
            pieces.id_to_piece(list(range(pieces.get_piece_size())))
            pieces.decode([UNK])
        except UnicodeDecodeError:
            raise DataError("The pieces of a subword tokenizer are UTF-8; this model has some that are not.") from None
        self._normalize = NORMALIZERS[normalization]

    def normalize(self, text: str) -> str:
        """Return what is encoded: the configured form, without half surrogates and the character that marks spaces."""
        normal = self._normalize(text)
        if _SPACE in normal:
            normal = self._normalize(normal.replace(_SPACE, "_"))
        return normal if normal.isascii() else normal.encode("utf-8", "replace").decode("utf-8")

    @classmethod
    def fit(cls, texts: Iterable[str], config: DataConfig, pairs: int | None = None) -> "SubwordTokenizer":
        """Train a model of ``config.vocabulary_size`` ids, or fewer if the texts have no more pieces.

        Args:
            texts: sentences; sentencepiece needs some 24 bytes of memory for each byte.
            config: says algorithm, size and normalization.
            pairs: how many training pairs the texts are a sample of; by default as many as there are texts.

        Raises:
            DataError: if the characters of the texts alone need more ids than that.
        """
        normalize = NORMALIZERS[config.normalization]
        normal = [text for text in map(normalize, texts) if text]
        characters = len(set().union(*normal))
        size = config.vocabulary_size or choose_size(len(normal) if pairs is None else pairs, characters)
        characters += FIRST_WORD + 1 + (256 if config.byte_fallback else 0)
        # All characters where they are few against the pieces, else the rarest five in ten thousand become bytes.
        coverage = 1.0 if 4 * characters <= size or not config.byte_fallback else 0.9995
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(normal), model_writer=model, model_type=config.subword_model, vocab_size=size,
                hard_vocab_limit=False, character_coverage=coverage, byte_fallback=config.byte_fallback,
                normalization_rule_name="identity", remove_extra_whitespaces=False,
                pad_id=PAD, unk_id=UNK, bos_id=BOS, eos_id=EOS, unk_surface=UNKNOWN,
                num_threads=TRAINER_THREADS, minloglevel=2,
            )  # fmt: skip
        except (RuntimeError, OSError) as error:
            reason = "are too few" if size <= characters else f"could not be trained ({_end(str(error))})"
            raise DataError(
                f"A subword vocabulary holds at least every character of the corpus{_with_bytes(config)}, here "
                f"{characters:,} ids with the special ones; {size:,} {reason}. Set "
                f"data.vocabulary_size={2 * (characters + 1)} or so, or data.tokenizer=char."
            ) from None
        return cls(model.getvalue(), config.normalization, config.subword_model)

    @property
    def size(self) -> int:
        """Number of ids, the special ones included."""
        return int(self._pieces.get_piece_size())

    def encode(self, text: str) -> list[int]:
        """Return the ids of raw text, without bos and eos; unk only for unseen characters without byte fallback."""
        return self._pieces.encode(self.normalize(text))

    def sample(self, texts: Sequence[str], seed: int) -> list[list[int]]:
        """Return for each text the ids of a segmentation drawn at random (Kudo 2018; BPE-dropout, Provilkov 2020)."""
        # sentencepiece seeds a generator once, when a thread first draws from it: a new thread is a new seed.
        with _SEEDING, ThreadPoolExecutor(1) as thread:
            sentencepiece.set_random_generator_seed(seed)
            return list(thread.map(self._draw, texts))

    def _draw(self, text: str) -> list[int]:
        return self._pieces.encode(self.normalize(text), enable_sampling=True, alpha=SAMPLING_ALPHA, nbest_size=-1)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids, up to the first eos; pad and bos are left out."""
        kept = []
        for id_ in ids:
            if id_ == EOS:
                break
            if id_ not in {PAD, BOS}:
                kept.append(int(id_))
        return self._pieces.decode(kept)

    def unknown(self, text: str) -> list[str]:
        """Return the pieces of ``text`` that become unk, in order."""
        pieces = self._pieces.encode(self.normalize(text), out_type=str)
        return [piece.removeprefix(_SPACE) for piece in pieces if self._pieces.piece_to_id(piece) == UNK]

    def save(self, path: Path) -> None:
        """Write the model beside ``path``, and at ``path`` a JSON that says what it is."""
        with atomic_file(path.with_suffix(".model")) as aside:
            aside.write_bytes(self.model)
        write_json(path, {
            "kind": "subword", "normalization": self.normalization, "algorithm": self.algorithm,
            "model_sha256": sha256(path.with_suffix(".model")),
        })  # fmt: skip


def _with_bytes(config: DataConfig) -> str:
    return " and the 256 bytes" if config.byte_fallback else ""


def _end(text: str) -> str:
    return " ".join(text.split())[-120:]
