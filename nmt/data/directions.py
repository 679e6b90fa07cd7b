"""Directions of a dataset: the language pairs that it trains, and the corpora and pairs of each.

A dataset of several directions trains one model for all of them. If they have several target languages, a tag such as
``<2gn>`` before each source says which one is wanted (Johnson et al. 2017, "Google's Multilingual Neural Machine
Translation System").
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nmt.config.data import ORIGINAL, DataConfig
from nmt.config.languages import matching_code, pair_of_codes, standard_code
from nmt.data.cleaning import Corpus, Sources, role_of
from nmt.data.manifest import SIDES, SPLITS, Letter, SplitName
from nmt.data.pair_store import PairStore
from nmt.data.sources.pairs import Pair
from nmt.data.variants import Languages
from nmt.errors import ConfigError, DataError
from nmt.message import Argument, Settings
from nmt.tokenizers.spelling import differing_letters

LETTER_PAIRS = 20_000  # largest sample of a split whose letters are counted, in pairs


class TrainingCorpus(NamedTuple):
    """Corpus as training sees it: the pairs of files, or the same pairs with source and target exchanged."""

    name: str
    """Name in the dataset."""
    origin: str
    """Name of the corpus whose files it has."""
    languages: Languages
    """Codes of the languages that it translates between."""
    is_reversed: bool
    """Whether source and target of the pairs are exchanged."""


def training_corpora(sources: Sources, config: DataConfig) -> list[TrainingCorpus]:
    """Return the corpora of a dataset in their order in training; the reversed ones follow all others.

    Args:
        sources: the files.
        config: section data, with the languages of the dataset resolved.

    Raises:
        DataError: if the languages of a corpus are unknown and other corpora have other languages.
        ConfigError: if two corpora would have the same name.
    """
    corpora = [TrainingCorpus(name, name, _languages_in_training(name, config), False) for name in sources.names]
    if config.both_directions:
        for corpus in [corpus for corpus in corpora if corpus.name not in config.tags]:
            name, (source, target) = _reversed_name(corpus.name), corpus.languages
            if name in sources.names:
                raise ConfigError(
                    Settings({"data.both_directions": True}),
                    f" trains corpus {corpus.name!r} in the opposite direction too, as {name!r}. A corpus has this "
                    "name already. Leave it out, or give the corpora other names and say their languages.",
                )
            corpora.append(TrainingCorpus(name, corpus.name, (target, source), True))
    if len(directions_of(corpora)) > 1:
        for corpus in corpora:
            if set(corpus.languages) & set(SIDES):
                raise DataError(
                    f"The languages of corpus {corpus.origin!r} are unknown. Where a model translates in several "
                    "directions, each corpus needs its languages. Give them with ",
                    Argument("languages", "XX-YY")
                    if corpus.origin == ORIGINAL
                    else Argument("corpora", f"XX-YY_{corpus.origin}"),
                    ".",
                )
    return corpora


def _languages_in_training(name: str, config: DataConfig) -> Languages:
    """Return the languages of the pairs of a corpus after ``reverse``.

    Languages in its configuration or its name are those of its files. The languages of the dataset are those of the
    pairs.
    """
    own = config.own_languages_of(name)
    if own and name in config.corpora and config.corpora[name].reverse:
        return own[1], own[0]
    return own or config.languages_of(name)


def _reversed_name(name: str) -> str:
    """Return the name of a corpus with source and target exchanged, such as "gn-es" for "es-gn"."""
    languages, separator, rest = name.partition("_")
    if languages.count("-") == 1 and pair_of_codes(languages):
        return "-".join(reversed(languages.split("-"))) + separator + rest
    return f"{name}-reversed"


def directions_of(corpora: Iterable[TrainingCorpus]) -> list[Languages]:
    """Return the language pairs of corpora, in order."""
    return list(dict.fromkeys(corpus.languages for corpus in corpora))


def first_corpora(corpora: Sequence[TrainingCorpus]) -> list[str]:
    """Return the first corpus of each direction that has files of its own. The splits without files take its pairs."""
    first: dict[Languages, str] = {}
    for corpus in corpora:
        if not corpus.is_reversed:
            first.setdefault(corpus.languages, corpus.name)
    return list(first.values())


def tags_of_languages(directions: Sequence[Languages], known: Iterable[str] | None) -> dict[Languages, str]:
    """Return the tag of each direction that has one.

    Sources get a tag if there are several target languages, or if the tokenizers of a run have a tag of the target
    language.

    Args:
        directions: the language pairs.
        known: tags of given tokenizers; None: the tokenizers are still to be fitted.
    """
    if known is None:
        tags = {languages: f"2{languages[1]}" for languages in directions}
        return tags if len(set(tags.values())) > 1 else {}
    by_code = tags_by_code(known)
    codes = {languages: matching_code(languages[1], [*by_code]) for languages in directions}
    return {languages: by_code[code] for languages, code in codes.items() if code in by_code}


def tags_by_code(tags: Iterable[str]) -> dict[str, str]:
    """Return the tags that name a language, by its code: tags of nmt, such as "2gn", or of an imported model.

    A tag is its own code if another tag has the standard code, or if it is no code.

    >>> tags_by_code(["fra", "zho_Hans", "cmn_Hans"])
    {'fr': 'fra', 'zh-Hans': 'zho_Hans', 'cmn_Hans': 'cmn_Hans'}
    """
    names = list(tags)
    ours = {tag[1:]: tag for tag in names if tag.startswith("2") and standard_code(tag[1:])}
    if ours:
        return ours
    by_code = dict[str, str]()
    for tag in names:
        code = standard_code(tag) or tag
        by_code[tag if code in by_code else code] = tag
    return by_code


class PairRange(NamedTuple):
    """Consecutive pairs of a pair store that come from the same files."""

    corpus: TrainingCorpus
    """Corpus that has them."""
    split: SplitName
    """Split for which the files were given."""
    pairs: range
    """Indices of the pairs."""
    direction: int
    """Number of their direction."""


class PairRanges(NamedTuple):
    """Pairs of a dataset by corpus and by direction, as indices into the pair store."""

    languages: list[Languages]
    """Language pair of each direction."""
    parts: list[PairRange]
    """All pairs, by corpus and split."""
    directions: np.ndarray
    """Number of the direction of each pair, int16 [N], or [2 N] with both directions; -1 for a reversed pair that no
    direction uses."""

    @classmethod
    def of(cls, corpora: Sequence[TrainingCorpus], cleaned: Corpus) -> "PairRanges":
        """Return the ranges of the corpora of a dataset; reversed pairs follow the N pairs that were read."""
        languages, count = directions_of(corpora), len(cleaned.sources)
        is_mirrored = any(corpus.is_reversed for corpus in corpora)
        numbers, parts = np.full(2 * count if is_mirrored else count, -1, np.int16), []
        for corpus in corpora:
            first, number = count if corpus.is_reversed else 0, languages.index(corpus.languages)
            for split in SPLITS:
                read = cleaned.roles.get(role_of(corpus.origin, split), range(0))
                pairs = range(first + read.start, first + read.stop)
                numbers[pairs.start : pairs.stop] = number
                parts.append(PairRange(corpus, split, pairs, number))
        return cls(languages, parts, numbers)


def mirrored(cleaned: Corpus) -> Corpus:
    """Return a corpus in which the reversed pairs follow the N pairs that were read: pair N + i is pair i reversed."""
    sources, targets = cleaned.sources, cleaned.targets
    return replace(cleaned, sources=np.concatenate([sources, targets]), targets=np.concatenate([targets, sources]))


def letters_of_directions(
    train: np.ndarray, validation: np.ndarray, ranges: PairRanges, corpus_tags: list[str], store: PairStore
) -> list[Letter]:
    """Return the letters that differ between training and validation, by direction; see ``nmt.tokenizers.spelling``.

    Reversed pairs are left out, and corpora with a tag too, since a tag may be there to tell spellings apart.

    Args:
        train: indices of the training pairs, int64 [N].
        validation: indices of the validation pairs, int64 [N].
        ranges: the pairs by direction.
        corpus_tags: names of the corpora with a tag.
        store: the pairs.
    """
    for part in ranges.parts:
        if part.split == "train" and part.corpus.origin in corpus_tags:
            train = train[~np.isin(train, part.pairs)]
    letters = []
    for number, languages in enumerate(ranges.languages):
        in_training, in_validation = (
            _sample(split[ranges.directions[split] == number], store) for split in (train, validation)
        )
        for column, language in enumerate(languages):
            differing = differing_letters(
                [pair[column] for pair in in_training], [pair[column] for pair in in_validation]
            )
            for letter, training_share, validation_share in differing:
                letters.append(Letter(
                    language=language,
                    letter=letter,
                    training=round(training_share, 5),
                    validation=round(validation_share, 5),
                ))  # fmt: skip
    return letters


def _sample(indices: np.ndarray, store: PairStore) -> list[Pair]:
    """Return up to ``LETTER_PAIRS`` pairs at even distances, without reversed pairs."""
    as_read = indices[indices < len(store)]
    step = 1 + len(as_read) // LETTER_PAIRS
    return store.read(as_read[::step])
