"""Translation with a run, for the Python interface."""

from collections.abc import Sequence

from nmt.config.decoding import DecodingConfig
from nmt.decoding.alignment import CrossAttention
from nmt.decoding.search_options import SearchOptions
from nmt.decoding.translation import TextTranslator, Translation
from nmt.errors import NmtError
from nmt.runs.directory import Run


class RunTranslator:
    """A trained model with its tokenizers: raw text in, raw text out. ``load`` makes it.

    Shapes: T target length, S source length, both in tokens.
    """

    def __init__(self, run: Run, translator: TextTranslator) -> None:
        """Take a run and the translator of its weights."""
        self.run, self.translator = run, translator

    @property
    def epoch(self) -> int | str:
        """Weights in use: an epoch number, "average", or a name such as "step-1500"."""
        return self.translator.epoch

    def translate(
        self, texts: Sequence[str], *, prefix: str = "", sample: bool = False, names: Sequence[str] | None = None
    ) -> list[str]:
        """Return the translations of raw sentences, in their order. An empty sentence has an empty translation.

        Args:
            texts: sentences.
            prefix: text that every translation begins with.
            sample: draw words by their probabilities, instead of searching for the most probable translation.
            names: name of each sentence in error messages, such as "line 7".

        Raises:
            DataError: if a sentence exceeds the learned positions, or the prefix has an unknown word.

        >>> nmt.load("base").translate(["im thirsty"])
        ['ich bin durstig']
        """
        details = self.translate_details(texts, prefix=prefix, sample=sample, names=names, scored=False)
        return [translation.text for translation in details]

    def translate_details(
        self,
        texts: Sequence[str],
        *,
        prefix: str = "",
        sample: bool = False,
        names: Sequence[str] | None = None,
        scored: bool = True,
    ) -> list[Translation]:
        """Return the translations of raw sentences with their scores, token ids and unknown words.

        Args, Raises: as for ``translate``, and
            scored: compute the scores. They are None otherwise.

        >>> [details] = nmt.load("base").translate_details(["im thirsty xylophone"])
        >>> details.unknown, details.score < 0
        (['xylophone'], True)
        """
        options = SearchOptions(sampled=sample, scored=scored)
        found = self.translator.translate_n_best(_texts(texts), _names(names), options, prefix)
        return [translations[0] for translations in found]

    def translate_n_best(
        self, texts: Sequence[str], n: int, *, prefix: str = "", names: Sequence[str] | None = None
    ) -> list[list[Translation]]:
        """Return the ``n`` best translations of each raw sentence with their scores, best first.

        A sentence with fewer translations than ``n`` has all of them.

        Args, Raises: as for ``translate``, and
            NmtError: if ``n`` exceeds the beam size.

        >>> translator = nmt.load("base", decoding={"beam_size": 5})
        >>> [[best, second]] = translator.translate_n_best(["im thirsty"], 2)
        >>> best.text, best.score > second.score
        ('ich bin durstig', True)
        """
        check_n_best(n, self.translator.config.decoding)
        options = SearchOptions(n_best=n, scored=True)
        return self.translator.translate_n_best(_texts(texts), _names(names), options, prefix)

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, names: Sequence[str] | None = None
    ) -> list[float]:
        """Return log P(target | source) of each pair of raw sentences, natural logarithm, eos included.

        Raises:
            DataError: if a source exceeds the learned positions.
            ValueError: if there are more sources than targets, or fewer.

        >>> good, bad = nmt.load("base").score(["im thirsty"] * 2, ["ich bin durstig", "sieben"])
        >>> 0 > good > bad
        True
        """
        if len(sources) != len(targets):
            raise ValueError(f"received {len(sources)} sources and {len(targets)} targets")
        return self.translator.score(_texts(sources), _texts(targets), _names(names))

    def attention(self, sources: Sequence[str], translations: Sequence[Translation]) -> list[CrossAttention]:
        """Return the decoder's attention to the source while it writes translations of raw sentences.

        Each has weights, float32 [layers, heads, T, S], and ``alignment()``, pairs (source token, target token).

        Raises:
            DataError: for a model without attention.

        >>> translator = nmt.load("base")
        >>> [attention] = translator.attention(["im thirsty"], translator.translate_details(["im thirsty"]))
        >>> attention.weights.shape
        (1, 4, 4, 4)
        >>> attention.alignment()
        [(0, 0), (0, 1), (1, 2)]
        """
        return self.translator.attention(_texts(sources), list(translations))


def check_n_best(n: int, decoding: DecodingConfig) -> None:
    """Check that beam search can find N translations of a sentence.

    Raises:
        NmtError: if N exceeds the beam size.
    """
    if n > decoding.beam_size:
        raise NmtError(
            f"--n-best {n} needs a beam of at least {n}; received a beam of {decoding.beam_size}. Give --beam {n} or "
            "more."
        )


def _texts(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise TypeError(f"a list of sentences is needed, such as [{texts[:40]!r}]; received a string")
    return list(texts)


def _names(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else list(names)
