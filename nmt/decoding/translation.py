"""A translation, and the interface of everything that translates. Loads no TensorFlow."""

from typing import NamedTuple, Protocol

from nmt.config.decoding import DecodingConfig
from nmt.config.schema import Config
from nmt.decoding.alignment import CrossAttention
from nmt.decoding.search_options import GREEDY, SearchOptions
from nmt.runs.metrics import WeightsId
from nmt.tokenizers.base import Tokenizer


class Translation(NamedTuple):
    """Translation of a sentence."""

    text: str
    unknown: list[str]
    """Words of the source that the model does not know; the whole source if normalization leaves nothing of it."""
    finished: bool
    """Whether the model ended the translation, rather than the limit on its length."""
    ids: list[int]
    """Token ids, with eos if the model ended the translation."""
    score: float | None = None
    """Log-probability, with the penalties of beam search; None where scores were not asked for."""


class TextTranslator(Protocol):
    """A trained model with its tokenizers, on any engine: raw text in, raw text out. Several threads may use it."""

    source: Tokenizer
    target: Tokenizer
    config: Config
    """Configuration of the run, with the settings of decoding that are in force."""
    epoch: WeightsId
    """Weights in use."""

    @property
    def precision(self) -> str:
        """Number format that the model computes in."""

    def translate_n_best(
        self, texts: list[str], names: list[str] | None = None, options: SearchOptions = GREEDY, prefix: str = ""
    ) -> list[list[Translation]]:
        """Return at most ``options.n_best`` translations of each raw sentence, the best first.

        Args:
            texts: sentences.
            names: name of each sentence for error messages, such as "line 7".
            options: kind of search.
            prefix: beginning of every translation, raw text.

        Raises:
            DataError: for a sentence longer than the model reads, and for a prefix with unknown words.
        """

    def score(self, sources: list[str], targets: list[str], names: list[str] | None = None) -> list[float]:
        """Return log P(target | source), natural, eos included, of each pair of raw sentences.

        Raises:
            DataError: for a sentence longer than the model reads.
        """

    def attention(self, sources: list[str], translations: list[Translation]) -> list[CrossAttention]:
        """Return the cross-attention of the decoder on these translations of raw sentences.

        Raises:
            DataError: for a model without attention.
        """

    def reconfigured(self, decoding: DecodingConfig) -> "TextTranslator":
        """Return a translator of the same weights with other settings of decoding, prepared for many calls."""
