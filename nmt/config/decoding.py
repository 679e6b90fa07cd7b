"""Keys of section ``decoding`` of the configuration: settings of the search for translations.

A key is declared only here: command-line options, their checks, engines and exports follow from the declaration. This
module does not load pydantic, so that help pages appear at once; ``nmt.config.schema.DecodingConfig`` checks values.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

from annotated_types import Ge, Gt, Le, Lt

GREEDY, BEAM, SAMPLING = "greedy", "beam", "sampling"
"""Kinds of search."""
LENGTH_RATIO = 2.0
"""Least value of ``max_length_ratio`` for "auto"."""


class Key(NamedTuple):
    """Declaration of a key beyond its type, range and default: its help, and its names in programs that translate."""

    help: str
    """Help text of its command-line option."""
    searches: tuple[str, ...] = (GREEDY, BEAM, SAMPLING)
    """Kinds of search whose result it changes; none: it only changes how a search is computed."""
    names: Mapping[str, str] = {}
    """Name of the key in each program that takes it as a plain value: the argument of our searches (``tensorflow``) and
    of ``translate_batch`` (``ctranslate2``), the key of ``generation_config.json`` (``huggingface``), the signatures
    that have it (``saved-model``). The card of an export names the keys that its program does not take."""
    not_exported: str = ""
    """Reason why an export to CTranslate2 cannot follow the key, and the remedy; empty if it can."""


class DecodingKeys:
    """Section ``decoding``: how translations are searched for."""

    beam_size: Annotated[int, Ge(1), Le(1000), Key(
        "Beam size: hypotheses kept at each step. 1: greedy search.", (BEAM,),
        {"tensorflow": "beams", "ctranslate2": "beam_size", "huggingface": "num_beams", "saved-model": "beam"},
    )] = 1  # fmt: skip
    length_penalty: Annotated[float, Ge(0), Key(
        "Divide log-probabilities by ((5 + tokens) / 6)^X. 0: off.", (BEAM,),
        {"tensorflow": "alpha", "ctranslate2": "length_penalty", "huggingface": "length_penalty",
         "saved-model": "beam"},
    )] = 0.6  # fmt: skip
    """alpha in Wu et al. 2016, equation 14."""
    coverage_penalty: Annotated[float, Ge(0), Key(
        "Weight of the penalty for untranslated source words. 0: off.", (BEAM,),
        {"tensorflow": "beta", "ctranslate2": "coverage_penalty", "saved-model": "beam"},
    )] = 0.0  # fmt: skip
    """beta in Wu et al. 2016, equation 14, with the attention of the last decoder layer, averaged over its heads."""
    no_repeat_ngram_size: Annotated[int, Ge(0), Le(100), Key(
        "A translation never repeats a sequence of N tokens. 0: off.",
        names={"tensorflow": "no_repeat_ngram_size", "ctranslate2": "no_repeat_ngram_size",
               "huggingface": "no_repeat_ngram_size", "saved-model": "greedy, beam"},
    )] = 0  # fmt: skip
    """Log-probabilities are normalized over all tokens, as in fairseq and transformers. CTranslate2 with a coverage
    penalty normalizes them over the tokens that repeat nothing."""
    mbr_candidates: Annotated[int, Ge(0), Le(100), Key(
        "Of N translations choose the one most like the others (chrF). 0: off.",
    )] = 0  # fmt: skip
    """Minimum Bayes risk decoding (Eikema and Aziz 2020). The N translations are the best of a beam of at least N
    hypotheses, or samples. The choice among five takes a millisecond per sentence, among 32 seven."""
    mbr_sampled: Annotated[bool, Key(
        "Whether these N translations are samples, not the best of a beam.",
    )] = False  # fmt: skip
    """Samples suit weak models, whose most probable translations are too short (configs/MEASUREMENTS.md). ``epsilon``
    0.02 is usual for them (Freitag et al. 2023). N samples take the time of N searches."""
    max_length_ratio: Annotated[Literal["auto"] | Annotated[float, Gt(0), Le(1_000)], Key(
        "Maximum tokens of a translation per source token.",
        names={"saved-model": "greedy, beam"},
    )] = "auto"  # fmt: skip
    """``auto``: twice the ratio of the training corpus, and at least 2. A run stores the number."""
    max_length_extra: Annotated[int, Ge(1), Le(1_000_000), Key(
        "Tokens added to this maximum.", names={"saved-model": "greedy, beam"}
    )] = 10  # fmt: skip
    batch_size: Annotated[int, Ge(1), Le(2**24), Key("Sentences per batch.", ())] = 128
    precision: Annotated[Literal["auto", "float32", "bfloat16"], Key(
        "Number format: float32, bfloat16 (may be faster) or auto.", (),
        not_exported="An export has the number format that it was written in. Leave it out, or export the run in "
        "another.",
    )] = "float32"  # fmt: skip
    """Number format of the layers. bfloat16 rounds scores, so of two words with nearly equal scores it may choose the
    other."""
    ordinary_text: Annotated[Literal["auto", "sentences", "lines", "none"], Key(
        "Capitals, quotes, emoji: sentences, lines (unsplit) or none.", (),
    )] = "auto"  # fmt: skip
    """Treatment of text that differs from the training text. ``sentences``: the sentences of a line are translated one
    by one; text in capitals or title case is read in the case that the model knows; quotes and brackets around a
    sentence, emoji, addresses and numbers are copied, and names that a small corpus lacks; a sentence ends as its
    source does; the source word replaces an unknown word; a translation that repeats itself is searched for again.
    ``lines``: the same, but lines are not split into sentences. ``none``: no treatment. ``auto``: ``lines`` if lines
    of the corpus have several sentences, else ``sentences``. Repeats stay in a list of the N best, with a beam wider
    than 5, and where the training targets repeat phrases too."""
    temperature: Annotated[float, Gt(0), Key(
        "Sampling: divide logits by X. Below 1: rare words are rarer.", (SAMPLING,),
        {"tensorflow": "temperature", "ctranslate2": "sampling_temperature"},
    )] = 1.0  # fmt: skip
    top_k: Annotated[int, Ge(0), Le(2**31 - 1), Key(
        "Sampling: draw from the N likeliest words. 0: from all.", (SAMPLING,),
        {"tensorflow": "top_k", "ctranslate2": "sampling_topk"},
    )] = 0  # fmt: skip
    top_p: Annotated[float, Gt(0), Le(1), Key(
        "Sampling: draw from the top words of total probability X.", (SAMPLING,),
        {"tensorflow": "top_p", "ctranslate2": "sampling_topp"},
    )] = 1.0  # fmt: skip
    epsilon: Annotated[float, Ge(0), Lt(1), Key(
        "Sampling: draw from words with a probability of at least X. 0: off.", (SAMPLING,), {"tensorflow": "epsilon"},
        not_exported="CTranslate2 samples without it. Leave it out.",
    )] = 0.0  # fmt: skip
    """Truncation of Hewitt et al. 2022, section 4. The likeliest word is always kept."""
    seed: Annotated[int, Ge(0), Lt(2**32), Key("Sampling: seed of the random numbers.", (SAMPLING,))] = 1
    """A sample depends only on the seed and on the number of its sentence."""

    tag: Annotated[str | None, Key("Corpus whose tag is put before each source.")] = None
    """Name of a corpus that was prepared with a tag; null: no tag. It also applies to validation by translating."""

    target_language: Annotated[str | None, Key(
        "Target language, of a model that has several.", (),
    )] = None  # fmt: skip
    """Code of the target language. null: the only one; of several, each translation has to choose."""
    source_language: Annotated[str | None, Key(
        "Source language, of a model that has several.", (),
    )] = None  # fmt: skip
    """Code of the source language. It changes how lines are split into sentences. null: the only one, or unknown."""

    def search(self, *, sampled: bool = False) -> str:
        """Return the kind of search by these settings."""
        return SAMPLING if sampled else BEAM if self.beam_size > 1 else GREEDY

    @property
    def length_ratio(self) -> float:
        """``max_length_ratio`` as a number. Without a corpus, "auto" is 2."""
        return LENGTH_RATIO if self.max_length_ratio == "auto" else self.max_length_ratio

    def arguments(self, program: str, search: str) -> dict[str, Any]:
        """Return the arguments of a program for a kind of search: values by the program's names of the keys."""
        return {
            key.names[program]: getattr(self, name) for name, key in KEYS.items()
            if search in key.searches and program in key.names
        }  # fmt: skip


TYPES: dict[str, Any] = get_type_hints(DecodingKeys, include_extras=True)
"""Type of each key, annotated with its range and its ``Key``."""
KEYS: dict[str, Key] = {name: hint.__metadata__[-1] for name, hint in TYPES.items()}
