"""Keys of section ``decoding`` of the configuration: search for translations. Each is declared here and nowhere else.

Options of the command line, their checks, engines and exports are made from these declarations. Loads no pydantic, so
that help pages appear at once; ``nmt.config.schema.DecodingConfig`` checks the values.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

from annotated_types import Ge, Gt, Le, Lt

GREEDY, BEAM, SAMPLING = "greedy", "beam", "sampling"
"""Kinds of search."""


class Key(NamedTuple):
    """What a key is to users and to the programs that translate, beside its type, range and default."""

    help: str
    """What it does, as the command line says it."""
    searches: tuple[str, ...] = (GREEDY, BEAM, SAMPLING)
    """Kinds of search that it changes; none: it changes how a search is computed."""
    names: Mapping[str, str] = {}
    """Its name in each program that takes it as a plain value: the argument of our searches (``tensorflow``) and of
    ``translate_batch`` (``ctranslate2``), the key of ``generation_config.json`` (``huggingface``), the signatures that
    hold it (``saved-model``). The card of an export names the keys that its program does not take."""
    not_exported: str = ""
    """Why an export to CTranslate2 cannot follow it, and the remedy."""


class DecodingKeys:
    """Search for translations."""

    beam_size: Annotated[int, Ge(1), Le(1000), Key(
        "Beam size: translations kept at each step. 1: greedy search.", (BEAM,),
        {"tensorflow": "beams", "ctranslate2": "beam_size", "huggingface": "num_beams", "saved-model": "beam"},
    )] = 1  # fmt: skip
    length_penalty: Annotated[float, Ge(0), Key(
        "Divide log-probabilities by ((5 + tokens) / 6)^X. 0: off.", (BEAM,),
        {"tensorflow": "alpha", "ctranslate2": "length_penalty", "huggingface": "length_penalty",
         "saved-model": "beam"},
    )] = 0.6  # fmt: skip
    """alpha in Wu et al. 2016, equation 14."""
    coverage_penalty: Annotated[float, Ge(0), Key(
        "Weight of the penalty for source words left out. 0: off.", (BEAM,),
        {"tensorflow": "beta", "ctranslate2": "coverage_penalty", "saved-model": "beam"},
    )] = 0.0  # fmt: skip
    """beta in Wu et al. 2016, equation 14. The attention is that of the last decoder layer, averaged over its heads."""
    no_repeat_ngram_size: Annotated[int, Ge(0), Le(100), Key(
        "No N tokens in a row come twice in a translation. 0: off.",
        names={"tensorflow": "no_repeat_ngram_size", "ctranslate2": "no_repeat_ngram_size",
               "huggingface": "no_repeat_ngram_size", "saved-model": "greedy, beam"},
    )] = 0  # fmt: skip
    """Log-probabilities stay those among all tokens, as in fairseq and transformers; with a coverage penalty, those of
    CTranslate2 are of the tokens that repeat nothing."""
    max_length_ratio: Annotated[float, Gt(0), Le(1_000), Key(
        "Most tokens of a translation for each source token.",
        names={"saved-model": "greedy, beam"},
    )] = 2.0  # fmt: skip
    max_length_extra: Annotated[int, Ge(1), Le(1_000_000), Key(
        "Tokens that a translation may have beyond that.", names={"saved-model": "greedy, beam"}
    )] = 10  # fmt: skip
    batch_size: Annotated[int, Ge(1), Le(2**24), Key("Sentences translated at a time.", ())] = 128
    precision: Annotated[Literal["auto", "float32", "bfloat16"], Key(
        "Number format: float32, bfloat16 (may be faster) or auto.", (),
        not_exported="An export has the number format that it was written in. Leave it out, or export the run in "
        "another.",
    )] = "float32"  # fmt: skip
    """Of the layers. bfloat16 rounds scores, and so may prefer another of two words with nearly equal scores."""
    ordinary_text: Annotated[Literal["auto", "sentences", "lines", "none"], Key(
        "Capitals, quotes, emoji: sentences, lines (unsplit) or none.", (),
    )] = "auto"  # fmt: skip
    """What is done for text unlike that of training. ``sentences``: sentences of a line are translated one by one; text
    in capitals or title case is read in the case that the model knows; quotes around a sentence, emoji, addresses and
    long numbers are carried over; an unknown word is replaced by its source word; a translation that repeats itself is
    searched for again. ``lines``: all but the first. ``none``: nothing. ``auto``: lines for a corpus with several
    sentences in a line, else sentences. Repeats stay in a list of the N best, with a beam wider than 5, and where the
    training targets repeat phrases too."""
    temperature: Annotated[float, Gt(0), Key(
        "Sampling: divide logits by X. Below 1: rare words are rarer.", (SAMPLING,),
        {"tensorflow": "temperature", "ctranslate2": "sampling_temperature"},
    )] = 1.0  # fmt: skip
    top_k: Annotated[int, Ge(0), Le(2**31 - 1), Key(
        "Sampling: from the N likeliest words. 0: from all.", (SAMPLING,),
        {"tensorflow": "top_k", "ctranslate2": "sampling_topk"},
    )] = 0  # fmt: skip
    top_p: Annotated[float, Gt(0), Le(1), Key(
        "Sampling: from the likeliest words, of probability X in all.", (SAMPLING,),
        {"tensorflow": "top_p", "ctranslate2": "sampling_topp"},
    )] = 1.0  # fmt: skip
    seed: Annotated[int, Ge(0), Lt(2**32), Key("Sampling: seed of the random numbers.", (SAMPLING,))] = 1
    """A sample depends on the seed and the number of its sentence alone."""

    tag: Annotated[str | None, Key("Tag of a corpus, put before each source.")] = None
    """Name of a corpus that was prepared with a tag; null: none. Validation by translating has it too."""

    def search(self, *, sampled: bool = False) -> str:
        """Return the kind of search by these settings."""
        return SAMPLING if sampled else BEAM if self.beam_size > 1 else GREEDY

    def arguments(self, program: str, search: str) -> dict[str, Any]:
        """Return what a program is given for a kind of search: values by the program's own names of the keys."""
        return {
            key.names[program]: getattr(self, name) for name, key in KEYS.items()
            if search in key.searches and program in key.names
        }  # fmt: skip


TYPES: dict[str, Any] = get_type_hints(DecodingKeys, include_extras=True)
"""Type of each key, annotated with its range and its ``Key``."""
KEYS: dict[str, Key] = {name: hint.__metadata__[-1] for name, hint in TYPES.items()}
