"""Scores of corpus pairs by trained runs, for the filter ``score``. Loads TensorFlow when a scorer is made."""

import itertools
from collections.abc import Iterable, Iterator

from nmt.config.data import DataConfig
from nmt.data.filters import Score
from nmt.data.languages import languages_differ
from nmt.data.manifest import SIDES, read_manifest
from nmt.data.sources.formats import Pair
from nmt.decoding.sentence_translator import SentenceTranslator
from nmt.errors import ConfigError
from nmt.message import Argument
from nmt.runs.weights import find_members
from nmt.tokenizers.base import EOS

CHUNK = 4096  # pairs that are sorted by length together
LONGEST = 200  # tokens of a side that is judged


def pair_scorer(config: DataConfig) -> Score:
    """Return a function that scores pairs by the runs of ``data.score_runs``, higher for better ones.

    A run gives the mean log-probability of the target's tokens with eos, -H. With a second run, of the opposite
    direction, a score is -(H1 + H2) / 2 - abs(H1 - H2): dual conditional cross-entropy (Junczys-Dowmunt 2018). A pair
    that is not read, as one with a side of more than 200 tokens, has 0, which no threshold drops.

    Raises:
        NotFoundError: if there is no such run, or it has no weights.
        ConfigError: if a run translates between other languages.
    """
    translators = []
    languages = [config.source_language or "source", config.target_language or "target"]
    for name, codes in zip(config.score_runs, (languages, languages[::-1]), strict=False):
        (run, epoch), *others = find_members(name, None)
        reads = read_manifest(run.dataset_path).languages
        if languages_differ(reads, dict(zip(SIDES, codes, strict=True))):
            raise ConfigError(
                f"data.score_runs names run {run.name!r}, which translates {' to '.join(reads.values())}, where one of "
                f"{' to '.join(codes)} belongs. The first run has the direction of the pairs, a second the opposite "
                "one. Name other runs, or correct ",
                Argument("languages"),
                ".",
            )
        translators.append(SentenceTranslator.open(run, epoch, others=others))

    def score(pairs: Iterable[Pair | None]) -> Iterator[float]:
        lines = iter(pairs)
        while chunk := list(itertools.islice(lines, CHUNK)):
            sides = [[pair[side] if pair else "" for pair in chunk] for side in (0, 1)]
            scores = [
                _log_probabilities(each, *texts) for each, texts in zip(translators, (sides, sides[::-1]), strict=False)
            ]
            for values in zip(*scores, strict=True):
                yield sum(values) / len(values) - (max(values) - min(values))

    return score


def _log_probabilities(translator: SentenceTranslator, sources: list[str], targets: list[str]) -> list[float]:
    """Return the mean log-probability of each target's tokens; 0 for a pair that is not read."""
    limits = translator.config.model.limits
    most = min(limit - 2 for limit in (limits.source, limits.target, LONGEST + 2) if limit is not None)
    encoded = [translator.source.encode(text) for text in sources]
    translations = [[*translator.target.encode(text), EOS] for text in targets]
    lengths = zip(map(len, encoded), map(len, translations), strict=True)
    read = [index for index, (source, target) in enumerate(lengths) if source and max(source, target - 1) <= most]
    found = translator.engine.token_scores([encoded[index] for index in read], [translations[index] for index in read])
    scores = [0.0] * len(encoded)
    for index, value in zip(read, found, strict=True):
        scores[index] = float(value.mean())
    return scores
