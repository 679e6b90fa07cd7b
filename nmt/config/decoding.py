"""Section ``decoding`` of the configuration: search for translations."""

from typing import Literal

from pydantic import Field

from nmt.config.record import Section


class DecodingConfig(Section):
    """Search for translations."""

    batch_size: int = Field(128, ge=1, le=2**24)
    """Sentences per batch."""
    precision: Literal["auto", "float32", "bfloat16"] = "float32"
    """Floating-point type of the layers, as ``training.precision``. ``bfloat16`` is faster on hardware that has it
    natively. It rounds scores, and so may prefer another of two words with nearly equal scores."""
    beam_size: int = Field(1, ge=1, le=1000)
    """Partial translations kept at each step of beam search; 1: greedy search."""
    length_penalty: float = Field(0.6, ge=0)
    """alpha in Wu et al. 2016, equation 14: beam search divides log-probabilities by ((5 + tokens) / 6)^alpha. Without
    it (0) beam search favours short translations."""
    coverage_penalty: float = Field(0.0, ge=0)
    """beta in Wu et al. 2016, equation 14: weight in beam search of sum_i log min(attention to source token i, 1). The
    attention is that of the last decoder layer, averaged over its heads. 0: no penalty."""
    temperature: float = Field(1.0, gt=0)
    """Divisor of the logits in sampling; below 1 likely words become likelier."""
    top_k: int = Field(0, ge=0, le=2**31 - 1)
    """Sampling draws from the K likeliest words; 0: from all."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Sampling draws from the smallest set of likeliest words whose probabilities add up to P (nucleus sampling)."""
    seed: int = Field(1, ge=0, lt=2**32)
    """Seed of sampling. A sample depends on the seed and the number of its sentence alone."""
    max_length_ratio: float = Field(2.0, gt=0, le=1_000)
    """A translation has at most ``max_length_ratio`` x source tokens + ``max_length_extra`` tokens."""
    max_length_extra: int = Field(10, ge=1, le=1_000_000)
    """Tokens that a translation may have in addition, see ``max_length_ratio``."""
