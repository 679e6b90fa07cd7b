"""TODO."""

from typing import Literal

from pydantic import Field

from nmt.config.record import DocumentedRecord


class DecodingConfig(DocumentedRecord):
    """How translations are searched for."""

    batch_size: int = Field(128, ge=1, le=2**24)
    """Sentences translated at a time."""
    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    """What is computed in, as ``training.precision``. ``bfloat16`` is faster where the hardware has it natively, but
    rounds the scores that words are compared by, and so may choose another of two that score nearly the same."""
    beam_size: int = Field(1, ge=1, le=1000)
    """Beginnings of a translation that are kept at each step; 1 is greedy search."""
    length_penalty: float = Field(0.6, ge=0)
    """alpha in Wu et al. 2016, equation 14: log-probabilities are divided by ((5 + tokens) / 6)^alpha, so that long
    translations are not at a disadvantage in beam search; 0 compares them as they are."""
    coverage_penalty: float = Field(0.0, ge=0)
    """beta in Wu et al. 2016, equation 14: weight in beam search of sum_i log min(attention to source token i, 1), the
    last decoder layer's, averaged over its heads; 0 leaves it out."""
    temperature: float = Field(1.0, gt=0)
    """Sampling divides logits by it: below 1 likely words become likelier."""
    top_k: int = Field(0, ge=0, le=2**31 - 1)
    """Sampling draws from the so many likeliest words; 0: from all."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Sampling draws from the fewest likeliest words that have this probability together."""
    seed: int = Field(1, ge=0, lt=2**32)
    """Seed of sampling; what is drawn for a sentence hangs on it and on the sentence's number alone."""
    max_length_ratio: float = Field(2.0, gt=0, le=1_000)
    """A translation may have ``max_length_ratio`` x source tokens + ``max_length_extra`` tokens."""
    max_length_extra: int = Field(10, ge=1, le=1_000_000)
    """See ``max_length_ratio``."""
