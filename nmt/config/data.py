"""Section ``data`` of the configuration: cleaning, split and tokenizers of sentence pairs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field

from nmt.config.languages import code_in_name, pair_of_codes, refusal_of, standard_code
from nmt.config.record import Contradiction, DocumentedRecord, Section
from nmt.errors import ConfigError, NmtError
from nmt.message import Argument
from nmt.storage.names import check_name, did_you_mean

# Training pairs of a language pair below which sampled subwords give better translations: configs/MEASUREMENTS.md.
SAMPLED_PAIRS = 15_000
# Training pairs of a language pair below which a dataset of subwords keeps its training text, and new names are copied.
TEXT_PAIRS = 30_000
# Codes that older datasets may have, although no language has them.
_OLDER_LANGUAGE = r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*"


def _check_language(code: str) -> str:
    if code == "auto":
        return code
    if standard := standard_code(code):
        return standard
    if re.fullmatch(_OLDER_LANGUAGE, code):
        return code
    raise ValueError(f"{refusal_of(code)}. Give such a code, or null for an unknown language")


def _check_dataset(name: str) -> str:
    try:
        return check_name(name, "dataset")
    except NmtError as error:  # pydantic collects ValueErrors, and the loader adds file and line
        raise ValueError(str(error).removesuffix(".")) from None


FILTERS = {
    "letters": 0.3, "numbers": 0.3, "punctuation": 3.0, "repetition": 3.0, "copies": 0.8, "entities": 1.0,
    "tokenized": 1.0, "chatter": 1.0, "placeholders": 1.0, "untranslated": 0.3, "language": 0.1, "shifted": 8.0,
    "score": -4.0, "near_duplicates": 1.0,
}  # fmt: skip
"""Default thresholds of the filters, in the order in which they apply. A share is below 1, a logarithm below 0."""


def _with_thresholds(filters: Any) -> Any:
    """Return filters with default thresholds in place of null and true, after a check of names and ranges."""
    if not isinstance(filters, dict):
        return filters
    for name, threshold in filters.items():
        if name not in FILTERS:
            suggestion = did_you_mean(str(name), FILTERS)
            raise ValueError(f"there is no filter {str(name)[:60]!r}{suggestion}. Filters are {', '.join(FILTERS)}")
        if FILTERS[name] < 0:
            low, high, rule = -(2**40), 0, "0 or less"
        elif FILTERS[name] < 1:
            low, high, rule = 0, 1, "from 0 to 1"
        else:
            low, high, rule = 1, 2**40, "1 or more"
        if isinstance(threshold, int | float) and not low <= threshold <= high:
            raise ValueError(
                f"filter {name} has the threshold {threshold:g}. A threshold is {rule}, or null for the default, "
                f"{FILTERS[name]:g}"
            )
    return {name: FILTERS[name] if value is None or value is True else value for name, value in filters.items()}


Language = Annotated[str, AfterValidator(_check_language)]
"""A language code, or "auto"."""


def with_filters(config: "DataConfig", names: Sequence[str]) -> "DataConfig":
    """Return the section with further filters at their default thresholds.

    "all" stands for all filters, but for "score" only if ``score_runs`` names runs.

    Raises:
        ConfigError: if there is no filter of a name.
    """
    possible = [name for name in FILTERS if name != "score" or config.score_runs]
    try:
        further = _with_thresholds(dict.fromkeys(possible if list(names) == ["all"] else names))
    except ValueError as error:
        raise ConfigError(Argument("filters"), f": {error}.") from None
    return config.model_copy(update={"filters": further | config.filters})


ORIGINAL = "original"
"""Name of the corpus from which the validation and test splits are taken."""
RESERVED = (ORIGINAL, "train", "validation", "test")
"""Names that a further corpus cannot have."""


def check_corpus_name(name: str) -> str:
    """Return ``name`` if a further corpus can have it.

    Raises:
        ValueError: if it is reserved, too long, or needs quotes in a shell.
    """
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", name) and name not in RESERVED:
        return name
    raise ValueError(
        f"{name[:60]!r} cannot be the name of a further corpus. A name has at most 40 letters, digits, _ and -, and "
        f"is not {', '.join(RESERVED[:-1])} or {RESERVED[-1]}. Choose another name"
    )


def _check_pair(languages: str | None) -> str | None:
    if languages is None or pair_of_codes(languages):
        return languages
    raise ValueError(
        f"{languages[:60]!r} is not a pair of language codes. A pair is for example es-gn, or en,pt-BR if a code has a "
        "region. Correct it, or leave it out"
    )


def _corpus_filters(filters: Any) -> Any:
    """Return the filters of a single corpus with thresholds, after refusing ``near_duplicates``."""
    if isinstance(filters, dict) and "near_duplicates" in filters:
        raise ValueError("filter near_duplicates compares the pairs of all corpora. Set it in data.filters")
    return _with_thresholds(filters)


def known_codes(source: str | None, target: str | None) -> tuple[str, str]:
    """Return two language codes, with "source" or "target" for a code that is unknown."""
    sides = ("source", source), ("target", target)
    codes = [side if code in (None, "auto") else str(code) for side, code in sides]
    return codes[0], codes[1]


class CorpusConfig(DocumentedRecord):
    """A further corpus. A TSV has the sentences in columns 1 and 2, JSON in "source" and "target"."""

    files: list[str] = Field(default_factory=list)
    """Files of pairs, or a source file and a target file; none: NAME.jsonl.gz or NAME.tsv.gz in ``data/``."""
    languages: Annotated[str | None, AfterValidator(_check_pair)] = None
    """Language codes of its source and target side, such as ``es-gn``. null: the codes in its name, if the name is or
    begins with such a pair (``es-gn``, ``es-gn_news``), else the languages of the dataset. A dataset may have corpora
    of several language pairs, for a model that translates between all of them."""
    validation: list[str] = Field(default_factory=list)
    """Files of validation pairs, as in ``files``. Empty: the first corpus of a language pair gives a share of its
    pairs."""
    test: list[str] = Field(default_factory=list)
    """Files of test pairs, likewise."""
    tag: bool = False
    """Put a token ``<NAME>`` before each source, for example to mark synthetic sources (Caswell et al. 2019)."""
    reverse: bool = False
    """Swap source and target of its pairs."""
    filters: Annotated[dict[str, float] | None, BeforeValidator(_corpus_filters)] = None
    """Filters of this corpus; null: ``data.filters``. Only ``data.filters`` can have ``near_duplicates``, since it
    compares the pairs of all corpora."""


class DataConfig(Section):
    """Section ``data``: how ``nmt prepare`` cleans, splits and tokenizes sentence pairs."""

    section: ClassVar = "data"

    dataset: Annotated[str, AfterValidator(_check_dataset)] | None = None
    """Name of the prepared dataset, which ``prepare`` writes and ``train`` reads. null: ``prepare`` takes the name of
    the file, ``train`` the dataset prepared last."""
    n_sentences: int | None = Field(None, ge=3, le=2**40)
    """Use only the first N pairs of the corpus; null: all pairs. Files of validation, test and further corpora are
    always used whole."""
    split: Literal["by_source", "random"] = "by_source"
    """``by_source`` puts all pairs with the same source sentence into the same split, so that training never sees a
    test sentence. It also removes training pairs whose source is in a given validation or test file. ``random`` assigns
    pairs regardless of their source."""
    train_share: float = Field(0.8, gt=0, lt=1)
    """Share of the pairs for training; the three shares add up to 1."""
    validation_share: float = Field(0.1, gt=0, lt=1)
    """Share of the pairs for validation."""
    test_share: float = Field(0.1, gt=0, lt=1)
    """Share of the pairs for the final test."""
    seed: int = Field(73, ge=0, lt=2**32)
    """Seed of the shuffle before the split. With the default, "im thirsty", the example sentence of the README, is in
    the training split of the lesson's corpus."""
    corpora: dict[Annotated[str, AfterValidator(check_corpus_name)], CorpusConfig] = Field({})
    """Further corpora by name. Those of the dataset's own languages are for training only. The corpus that the splits
    are taken from is named "original"."""
    both_directions: bool = False
    """Train the opposite direction of every corpus without a tag too, in the same model: its pairs are used a second
    time, with source and target exchanged. A tag marks synthetic sources, which nothing should learn to write."""
    source_column: Annotated[int, Field(ge=1, le=2**20)] | str | None = None
    """Where a file has the source sentences: the number of a TSV or CSV column, from 1, or its name in the first line;
    a field of JSON or Parquet, such as ``source`` or ``translation.en``; a language of a TMX, XLIFF or catalogue. null:
    as the names in the file show it, else column 1, field "source", first language."""
    target_column: Annotated[int, Field(ge=1, le=2**20)] | str | None = None
    """Where a file has the target sentences, likewise. null: by names, else column 2, field "target", second
    language."""
    source_language: Language | None = "auto"
    """Language code of the source side, such as ``en``, ``pt-BR`` or ``zh-Hans`` (BCP 47). Other spellings are
    understood. ``auto``: the code in the names of files or columns, such as ``train.en.gz`` or ``en-de.tsv``, or in a
    memory; else the code of the run with the tokenizers. null: unknown, as when ``auto`` finds no code."""
    target_language: Language | None = "auto"
    """Language code of the target side, likewise."""
    header: bool | Literal["auto"] = "auto"
    """Whether the first line of a TSV or CSV names its columns. A column that is set by name implies it. ``auto``: if
    two of its cells are names or codes of languages, or names such as source and target; the report says so."""
    tokenizer: Literal["auto", "word", "char", "subword"] = "auto"
    """Unit of a token. ``word``: words separated by white space. ``char``: characters. ``subword``: pieces of a
    vocabulary trained on the corpus (sentencepiece). ``auto``: words if the text consists of lower-case ASCII words
    without punctuation, else subwords."""
    normalization: Literal["auto", "none", "nfc", "nfkc", "ascii-words"] = "auto"
    """Normalization of text before the tokenizer, in training and in translation. ``none``: only collapses white space.
    ``nfc``: also applies Unicode NFC, which keeps the look of every character, and removes soft hyphens and other
    invisible characters. ``nfkc``: also applies Unicode NFKC, which replaces characters such as ² and the fullwidth
    comma by plain ones. ``ascii-words``: lower-cases, strips accents, keeps only ASCII letters, and drops words with
    digits. ``auto``: ascii-words for text that already has this form, else nfc."""
    vocabulary_size: int | None = Field(None, ge=8, le=1_000_000)
    """Number of ids, including the four special ids. For words and characters it is an upper limit, and the most
    frequent are kept; null: no limit. For subwords, null chooses it by the size of the corpus, such as 4,000 for 5,000
    to 60,000 training pairs."""
    min_count: int = Field(1, ge=1, le=2**40)
    """Lowest count in the training split; rarer words and characters become unk."""
    joint_vocabulary: bool | Literal["auto"] = "auto"
    """One vocabulary for both sides instead of a vocabulary per side; ``model.tie_embeddings: all`` needs it. ``auto``:
    joint only for subwords."""
    subword_model: Literal["unigram", "bpe"] = "unigram"
    """Subword algorithm: ``unigram`` language model (Kudo 2018) or byte-pair encoding (Sennrich et al. 2016)."""
    byte_fallback: bool = True
    """Whether subword models write a character that training has not seen as its UTF-8 bytes, so that nothing is
    unk."""
    subword_sampling: bool | Literal["possible", "auto"] = "auto"
    """Keep the raw training text in the dataset, so that training can segment it into different subwords in every epoch
    (Kudo 2018). true: training does so, unless ``training.subword_sampling`` is false. ``possible``: training does so
    only if ``training.subword_sampling`` is true. ``auto``: ``possible`` for subwords if a language pair has fewer than
    30,000 training pairs on average, else false."""
    max_tokens: int | None = Field(500, ge=1, le=2**40)
    """Length limit for each side of a pair, in tokens. Longer pairs are dropped from training and validation, never
    from the test split. null: no limit."""
    max_length_ratio: float | None = Field(9.0, gt=1)
    """Largest ratio between the lengths of the two sides, in characters, relative to the median ratio of the training
    pairs. Pairs beyond it are dropped from training and validation. null: no limit."""
    drop_empty: bool = False
    """Drop pairs with a side that is empty after normalization from a given test set, too. Training and validation
    never have such pairs: they are dropped and counted."""
    drop_unreadable: bool = False
    """Drop and count lines that are not UTF-8 or hold no pair, instead of refusing the file."""
    drop_control: bool = True
    """Drop pairs with control characters, such as NUL, which are signs of a broken encoding."""
    drop_identical: bool = False
    """Drop pairs with identical sides."""
    drop_duplicates: bool = False
    """Drop repetitions of a pair."""
    filters: Annotated[dict[str, float], BeforeValidator(_with_thresholds)] = Field({})
    """Thresholds of the corpus filters by name; null: the default threshold. Given validation and test files are not
    filtered."""
    score_runs: list[str] = Field([], max_length=2)
    """Runs that score pairs for the filter ``score``, as ``RUN`` or ``RUN:EPOCH``: a run that translates from source to
    target, and optionally a run of the opposite direction. Empty: the scores are in field ``score`` of JSON Lines."""
    repair: list[Literal["entities", "tokenized", "mojibake", "quotes"]] = Field([])
    """Repairs of the corpus before the filters: ``entities`` decodes HTML entities, such as ``&amp;``; ``tokenized``
    removes the spaces of a tokenizer, as in ``do n't , he said``; ``mojibake`` undoes a wrong decoding, as in
    ``lÃ¤chelt`` for ``lächelt``, with the package ftfy; ``quotes`` undoes the quotes that
    pandas puts around a cell and doubles within it."""

    @property
    def tags(self) -> list[str]:
        """Names of the corpora with a tag."""
        return [name for name, corpus in self.corpora.items() if corpus.tag]

    def own_languages_of(self, corpus: str) -> tuple[str, str] | None:
        """Return the language codes of the files of a corpus, from its configuration or its name; None if neither says.

        They are the codes of source and target.
        """
        own = self.corpora.get(corpus, CorpusConfig())
        if own.languages and (pair := pair_of_codes(own.languages)):
            return pair
        # There are 8,000 codes of three letters, so a name like "raw-all" would be a pair of codes too.
        pair = pair_of_codes(corpus.partition("_")[0])
        return pair if pair and any(map(code_in_name, pair)) else None

    def languages_of(self, corpus: str) -> tuple[str, str]:
        """Return the language codes of a corpus: its own, or else the languages of the dataset.

        They are the codes of source and target; "source" and "target" if they are unknown.
        """
        return self.own_languages_of(corpus) or known_codes(self.source_language, self.target_language)

    def filters_of(self, corpus: str) -> dict[str, float]:
        """Return the filters of a corpus: its own, or else ``data.filters``."""
        own = self.corpora.get(corpus, CorpusConfig()).filters
        return self.filters if own is None else own

    def with_corpora(
        self,
        files: Mapping[str, list[str]],
        tags: Iterable[str],
        held_out: Mapping[str, Mapping[str, list[str]]] = {},
    ) -> Self:
        """Return the section with further corpora, or with other files for its corpora, and with tags switched on.

        Args:
            files: files of each corpus to add or change; an empty list keeps the files it has.
            tags: names of the corpora that get a tag.
            held_out: validation and test files of each corpus, by split.

        Raises:
            NmtError: for a name that a corpus cannot have, and for a tag or a file whose corpus does not exist.
        """
        corpora = dict(self.corpora)
        for name, given in files.items():
            try:
                before = corpora.get(check_corpus_name(name), CorpusConfig())
            except ValueError as error:
                raise NmtError(f"{error}.") from None
            corpora[name] = before.model_copy(update={"files": given or before.files})
        for name in tags:
            if name not in corpora:
                raise NmtError(
                    f"There is no further corpus for tag {name!r}{did_you_mean(name, corpora)}. A tag marks the pairs "
                    "of the further corpus with its name. Add that corpus, or leave the tag out."
                )
            corpora[name] = corpora[name].model_copy(update={"tag": True})
        for split, given_files in held_out.items():
            for name, given in given_files.items():
                if name not in corpora:
                    raise NmtError(
                        Argument(split),
                        f" has files for corpus {name!r}, which does not exist{did_you_mean(name, corpora)}. Add that "
                        "corpus too, or correct its name.",
                    )
                corpora[name] = corpora[name].model_copy(update={split: given})
        return self.model_copy(update={"corpora": corpora})

    def contradictions(self) -> list[Contradiction]:
        """Return the rules about several keys."""
        total = self.train_share + self.validation_share + self.test_share
        return [
            (abs(total - 1) > 1e-6, "train_share validation_share test_share",
             f"The three shares must add up to 1; these add up to {total:g}. Change another share too"),
        ]  # fmt: skip
