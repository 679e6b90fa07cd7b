"""Scores of sentence pairs under trained runs, for the corpus filter ``score``.

TensorFlow is loaded when a scorer is made.
"""

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

CHUNK = 4096
"""Pairs that are sorted by length together."""
LONGEST = 200
"""Most tokens of a sentence that is scored."""


def pair_scorer(config: DataConfig) -> Score:
    """Return a function that scores pairs with the runs of ``data.score_runs``; better pairs score higher.

    With one run, the score is -H, the mean log-probability of the target tokens with eos. With a second run, of the
    opposite direction, it is -(H1 + H2) / 2 - abs(H1 - H2): dual conditional cross-entropy (Junczys-Dowmunt 2018).
    Pairs that are not scored, such as pairs with more than 200 tokens on a side, get 0, which passes every threshold.

    Raises:
        NotFoundError: if there is no such run, or it has no weights.
        ConfigError: if the languages of a run are not the languages of the pairs.
    """
    translators = []
    languages = [config.source_language or "source", config.target_language or "target"]
    for name, codes in zip(config.score_runs, (languages, languages[::-1]), strict=False):
        (run, epoch), *members = find_members(name, None)
        manifest, decoding = read_manifest(run.dataset_path), run.config().decoding
        run_languages = manifest.languages
        if any(direction.languages == tuple(codes) for direction in manifest.directions):
            chosen = {"source_language": codes[0], "target_language": codes[1]}
            decoding = decoding.model_copy(update=chosen)
        elif languages_differ(run_languages, dict(zip(SIDES, codes, strict=True))):
            raise ConfigError(
                f"data.score_runs names run {run.name!r}, which translates {' to '.join(run_languages.values())}, but "
                f"the pairs need a run that translates {' to '.join(codes)}. The first run has the direction of the "
                "pairs, a second run the opposite direction. Name other runs, or correct ",
                Argument("languages"),
                ".",
            )
        translators.append(SentenceTranslator.open(run, epoch, decoding, members))

    def score(pairs: Iterable[Pair | None]) -> Iterator[float]:
        lines = iter(pairs)
        while chunk := list(itertools.islice(lines, CHUNK)):
            sides = [[pair[side] if pair else "" for pair in chunk] for side in (0, 1)]
            scores = [
                mean_log_probabilities(translator, *texts)
                for translator, texts in zip(translators, (sides, sides[::-1]), strict=False)
            ]
            for values in zip(*scores, strict=True):
                yield sum(values) / len(values) - (max(values) - min(values))

    return score


def mean_log_probabilities(translator: SentenceTranslator, sources: list[str], targets: list[str]) -> list[float]:
    """Return the mean log-probability of the tokens of each target; 0 for a pair that is not scored."""
    limits = translator.config.model.limits
    longest = min(limit - 2 for limit in (limits.source, limits.target, LONGEST + 2) if limit is not None)
    encoded = [translator.source.encode(text) for text in sources]
    translations = [[*translator.target.encode(text), EOS] for text in targets]
    lengths = zip(map(len, encoded), map(len, translations), strict=True)
    indices = [index for index, (source, target) in enumerate(lengths) if source and max(source, target - 1) <= longest]
    token_scores = translator.engine.token_scores(
        [encoded[index] for index in indices], [translations[index] for index in indices]
    )
    scores = [0.0] * len(encoded)
    for index, values in zip(indices, token_scores, strict=True):
        scores[index] = float(values.mean())
    return scores
