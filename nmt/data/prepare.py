"""Preparation, the pipeline from corpus files to a prepared dataset."""

import contextlib
import datetime
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nmt.config.data import TEXT_PAIRS, DataConfig
from nmt.data.cleaning import (
    SAMPLE_BYTES,
    SAMPLE_PAIRS,
    Corpus,
    PairLocator,
    Progress,
    Sources,
    count_translations,
    find_foreign_sides,
    read_corpus,
    resolve_auto,
)
from nmt.data.dataset import DATASETS, Dataset, open_dataset
from nmt.data.directions import (
    Languages,
    PairRanges,
    TrainingCorpus,
    letters_of_directions,
    mirrored,
    tags_of_languages,
    training_corpora,
)
from nmt.data.encoding import RATIO_PAIRS, Encoding, WrittenSplit, median_ratio, open_encoder, write_split
from nmt.data.filters import Score
from nmt.data.languages import resolve_languages
from nmt.data.manifest import (
    MANIFEST_FORMAT,
    SIDES,
    CorpusCounts,
    DataReport,
    Direction,
    Letter,
    Manifest,
    Names,
    Side,
    SourceFile,
    SplitCounts,
    SplitName,
)
from nmt.data.pair_store import PairStore
from nmt.data.repeats import share_of_repeats
from nmt.data.sources.formats import named_columns
from nmt.data.sources.text_file import every_file, reading
from nmt.data.splitting import assign_splits, shuffled_indices
from nmt.data.token_arrays import Sequences
from nmt.errors import ConfigError, ConflictError, printable
from nmt.message import Argument, Settings
from nmt.storage.atomic import atomic_folder, remove_abandoned, sha256
from nmt.storage.json_file import write_json
from nmt.storage.names import check_name
from nmt.storage.outputs import refuse_inputs
from nmt.tokenizers.base import Tokenizer, tag_id
from nmt.tokenizers.names import count_copied, words_of
from nmt.tokenizers.registry import fit_tokenizer, load_tokenizer

FIT_CHARACTERS = 30_000_000  # characters for fitting a subword vocabulary; they take less than 1 GB of memory
# Keys of the section data that the tokenizers of a run fix.
TOKENIZER_KEYS = (
    "tokenizer", "normalization", "vocabulary_size", "min_count", "joint_vocabulary", "subword_model", "byte_fallback",
)  # fmt: skip


class TokenizerSource(NamedTuple):
    """The tokenizers of a run, reused for a dataset on which the run is fine-tuned."""

    run: str
    """Name of the run."""
    folder: Path
    """Folder of the run, with its tokenizers."""
    settings: DataConfig
    """Settings with which the tokenizers were fitted."""

    @property
    def tags(self) -> Sequence[str]:
        """Tags of the source tokenizer."""
        return load_tokenizer(self.folder / "tokenizer.source.json").tags

    @property
    def files(self) -> list[Path]:
        """The tokenizer files, sorted by name."""
        return sorted(self.folder.glob("tokenizer.*"))


def prepare(
    corpus: Path | Sources, config: DataConfig, name: str, *, overwrite: bool = False, report: Progress | None = None,
    tokenizer_source: TokenizerSource | None = None, make_scorer: Callable[[DataConfig], Score] | None = None,
) -> Dataset:  # fmt: skip
    """Prepare a corpus as ``data/<name>``, unless it is already prepared from the same files with the same settings.

    Args:
        corpus: one file of pairs, or all files with their roles.
        config: the section data.
        name: name of the dataset.
        overwrite: whether to replace a different dataset of that name.
        report: progress callback.
        tokenizer_source: tokenizers to use instead of fitting new ones on the training split.
        make_scorer: returns the function that scores pairs with the runs of ``data.score_runs``.

    Raises:
        ConflictError: if a different dataset has that name and ``overwrite`` is false, or appears meanwhile.
        DataError: if a file cannot be used; nothing is written then.
    """
    sources = Sources.of(corpus) if isinstance(corpus, Path) else corpus
    report = report or (lambda step, done, total: None)
    folder = DATASETS / check_name(name, "dataset")
    remove_abandoned(DATASETS)
    files = _source_files(sources)
    settings = config.model_copy(update={"dataset": name})
    if tokenizer_source:
        settings = settings.model_copy(update={key: getattr(tokenizer_source.settings, key) for key in TOKENIZER_KEYS})
    if existing := _already_prepared(folder, files, settings, tokenizer_source, overwrite=overwrite):
        return existing
    refuse_inputs(folder, [file.path for role_files in sources.roles.values() for file in every_file(role_files)])
    settings, named = _resolved(sources, settings, tokenizer_source)
    score = _scorer(sources, settings, make_scorer)
    with contextlib.ExitStack() as stack:
        stack.callback(_remove_if_empty, DATASETS, existed=DATASETS.exists())
        temporary = stack.enter_context(atomic_folder(folder, replace=overwrite))
        manifest = _write_dataset(temporary, sources, files, settings, named, tokenizer_source, score, report)
        write_json(temporary / "manifest.json", manifest.to_json())
    return Dataset(folder, manifest, is_new=True)


def _write_dataset(
    folder: Path, sources: Sources, files: list[SourceFile], settings: DataConfig, named: tuple[str, str] | None,
    tokenizer_source: TokenizerSource | None, score: Score | None, report: Progress,
) -> Manifest:  # fmt: skip
    """Write the tokenizers and the splits of a dataset to an empty folder, and return its manifest."""
    corpora = training_corpora(sources, settings)
    scratch = folder / "pairs"
    scratch.mkdir()
    cleaned = read_corpus(sources, settings, scratch, report, score)
    with PairStore(scratch) as store:
        locate = PairLocator(sources, cleaned.roles, store)
        splits = assign_splits(cleaned, sources, settings, locate)
        report("fitting tokenizers", 0, None)
        train = splits["train"]
        ranges = PairRanges.of(corpora, cleaned)
        settings = _with_sampling(settings, len(train) / len(ranges.languages))
        cleaned = mirrored(cleaned) if settings.both_directions else cleaned
        medians = _median_ratios(train, ranges, store)
        language_tags = tags_of_languages(ranges.languages, tokenizer_source.tags if tokenizer_source else None)
        tags = list(dict.fromkeys([*settings.tags, *language_tags.values()]))
        mixed = _mixed(train, corpora, settings.seed)
        tokenizers = _write_tokenizers(folder, tokenizer_source, store, mixed, settings, tags)
        vocabulary: dict[Side, int] = {side: tokenizer.size for side, tokenizer in tokenizers.items()}
        paths: dict[Side, Path] = {side: folder / f"tokenizer.{side}.json" for side in SIDES}
        encodings = _encodings(ranges, medians, settings.tags, language_tags)
        with open_encoder(scratch, paths, sum(map(len, splits.values())), encodings) as encode:
            written = {
                name: write_split(folder, name, indices, encode, vocabulary, settings, report)
                for name, indices in splits.items()
            }
        _record_dropped(written, cleaned, locate)
        report("comparing languages", 0, None)
        train = written["train"].kept
        compared = _compare_languages(cleaned, _mixed(train, corpora, settings.seed), ranges, store, locate)
        median = medians[0] if len(medians) == 1 else _median_ratio(train, store)
        letters = letters_of_directions(train, written["validation"].kept, ranges, settings.tags, store)
    shutil.rmtree(scratch)
    header = {"header": named is not None} if settings.header == "auto" else {}
    return Manifest(
        format=MANIFEST_FORMAT,
        prepared_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        corpus=files[0],
        more_files=files[1:],
        settings=settings.model_copy(update=header),
        read=cleaned.read,
        dropped=dict(cleaned.dropped.counts),
        vocabulary={side: vocabulary[side] for side in SIDES},
        splits={name: _with_leaks(name, written, cleaned.sources) for name in written},
        corpora=_corpus_counts(train, ranges, settings.tags) if len(corpora) > 1 else {},
        directions=_directions(folder, ranges, written, language_tags, medians, is_single=bool(sources.corpus)),
        repeating_targets=round(share_of_repeats(_training_targets(folder), tokenizers["target"]), 4),
        names=_names(folder) if settings.subword_sampling in (True, "possible") else None,
        report=_data_report(cleaned, written, compared, median, letters),
        tokenizer_of=tokenizer_source.run if tokenizer_source else None,
        unit=tokenizers["source"].unit,
        files={file.name: sha256(file) for file in sorted(folder.iterdir())},
    )


def _data_report(
    corpus: Corpus, written: dict[SplitName, WrittenSplit], compared: int, median_length_ratio: float,
    letters: list[Letter],
) -> DataReport:  # fmt: skip
    """Return what was found in a corpus. The languages of ``compared`` pairs were looked at."""
    ambiguous, most = _count_translations(written, corpus)
    return DataReport(
        facts=[printable(fact) for fact in corpus.facts],
        noticed=dict(corpus.noticed.counts),
        normalized=dict(corpus.normalized.counts),
        places=corpus.dropped.places | corpus.noticed.places | corpus.normalized.places,
        sources_translated_often=ambiguous,
        most_translations=most,
        columns_looked_at=compared,
        median_length_ratio=float(f"{median_length_ratio:.4g}"),
        letters=letters,
    )


def _resolved(
    sources: Sources, settings: DataConfig, tokenizer_source: TokenizerSource | None
) -> tuple[DataConfig, tuple[str, str] | None]:
    """Return the settings without "auto", and the names of the columns that the main corpus has, if it has any."""
    settings = resolve_auto(sources, settings)
    if not sources.corpus and settings.n_sentences is not None:
        raise ConfigError(
            Settings({"data.n_sentences": settings.n_sentences}),
            " cuts the dataset's own files, and there are only further corpora, which are used whole. Leave it out.",
        )
    if not sources.corpus:
        return settings, None
    named = named_columns(sources.corpus, settings)
    fallback = tokenizer_source.settings if tokenizer_source else None
    return resolve_languages(sources.corpus, settings, fallback, named), named


def _with_sampling(settings: DataConfig, pairs: float) -> DataConfig:
    """Return the settings with "auto" of ``subword_sampling`` resolved, given the training pairs of a direction."""
    if settings.subword_sampling != "auto":
        return settings
    is_small = settings.tokenizer == "subword" and pairs < TEXT_PAIRS
    return settings.model_copy(update={"subword_sampling": "possible" if is_small else False})


def _scorer(sources: Sources, settings: DataConfig, make_scorer: Callable[[DataConfig], Score] | None) -> Score | None:
    """Return the function that scores pairs; None if no filter needs one."""
    is_needed = any("score" in settings.filters_of(corpus) for corpus in sources.names)
    return make_scorer(settings) if make_scorer and settings.score_runs and is_needed else None


def _source_files(sources: Sources) -> list[SourceFile]:
    files = []
    for role, role_files in sources.roles.items():
        for file in every_file(role_files):
            with reading(file):
                size, checksum = file.path.stat().st_size, sha256(file.path)
            files.append(SourceFile(name=printable(file.name), bytes=size, sha256=checksum, role=role))
    return files


# --- an existing dataset of that name


def _already_prepared(
    folder: Path, files: list[SourceFile], settings: DataConfig, tokenizer_source: TokenizerSource | None, *,
    overwrite: bool,
) -> Dataset | None:  # fmt: skip
    """Return the dataset in ``folder`` if it is already prepared as requested, or None if it must be written."""
    if folder.exists() and not (folder / "manifest.json").is_file():
        raise ConflictError(
            f"{folder} exists and is not a dataset. nmt prepare writes a folder of its own. Give another ",
            Argument("name"),
            ".",
        )
    if not folder.exists() or overwrite:
        return None
    existing = open_dataset(folder.name)
    differences = _differences(existing.manifest, files, settings, tokenizer_source)
    if differences:
        raise ConflictError(
            f"{folder} was prepared from {existing.manifest.corpus.name} with differences: {'; '.join(differences)}. "
            "A dataset is not overwritten unless you ask for it. Give another ",
            Argument("name"),
            ", or ",
            Argument("overwrite", True),
            ".",
        )
    return existing


def _differences(
    manifest: Manifest, files: list[SourceFile], settings: DataConfig, tokenizer_source: TokenizerSource | None
) -> list[str]:
    """Return the differences of files and settings from the manifest; "auto" equals every value."""
    names: dict[str, Any] = {"corpora": {"__all__": {"files"}}}  # the content of files is compared, not their names
    before = manifest.settings.model_dump(exclude=names)
    now = settings.model_dump(exclude=names)
    differences = [
        f"{key} {value!r} before, {now[key]!r} now" for key, value in before.items() if now[key] not in (value, "auto")
    ]
    taken = {name: hash_ for name, hash_ in manifest.files.items() if name.startswith("tokenizer.")}
    if tokenizer_source:
        same_tokenizers = taken == {file.name: sha256(file) for file in tokenizer_source.files}
    else:
        same_tokenizers = manifest.tokenizer_of is None
    if not same_tokenizers:
        runs = (manifest.tokenizer_of, tokenizer_source.run if tokenizer_source else None)
        earlier, later = (f"of run {run!r}" if run else "fitted on its training split" for run in runs)
        differences.append(f"tokenizers {earlier} before, {later} now")
    existing_files = [(file.role, file.sha256) for file in [manifest.corpus, *manifest.more_files]]
    same_files = existing_files == [(file.role, file.sha256) for file in files]
    return differences if same_files else ["other content", *differences]


# --- the steps


def _mixed(train: np.ndarray, corpora: Sequence[TrainingCorpus], seed: int) -> np.ndarray:
    """Return training pairs in an order in which every prefix is a random sample of all corpora."""
    return train[shuffled_indices(len(train), seed)] if len(corpora) > 1 else train


def _remove_if_empty(folder: Path, *, existed: bool) -> None:
    if not existed:
        with contextlib.suppress(OSError):  # not empty: the dataset is in it
            folder.rmdir()


def _write_tokenizers(
    folder: Path, source: TokenizerSource | None, store: PairStore, train: np.ndarray, config: DataConfig,
    tags: list[str],
) -> dict[Side, Tokenizer]:  # fmt: skip
    """Write and return the tokenizer of each side: copied from a run, or fitted on the training pairs.

    A joint vocabulary is fitted on both sides. Words and characters are counted in all training pairs. Subwords are
    fitted on the first pairs, a random sample.
    """
    if source:
        loaded = {side: load_tokenizer(source.folder / f"tokenizer.{side}.json") for side in SIDES}
        for tag in tags:
            tag_id(loaded["source"], tag)
        for file in source.files:
            shutil.copyfile(file, folder / file.name)
        return loaded
    columns = [(0, 1)] if config.joint_vocabulary else [(0,), (1,)]
    fitted = [fit_tokenizer(_texts(store, train, sides, config), config, len(train)) for sides in columns]
    fitted[0].tags = tags
    tokenizers: dict[Side, Tokenizer] = {"source": fitted[0], "target": fitted[-1]}
    for side, tokenizer in tokenizers.items():
        tokenizer.save(folder / f"tokenizer.{side}.json")
    return tokenizers


def _texts(store: PairStore, train: np.ndarray, columns: tuple[int, ...], config: DataConfig) -> Iterator[str]:
    characters = 0
    for index in train:
        pair = store[int(index)]
        for column in columns:
            yield pair[column]
            characters += len(pair[column])
        if config.tokenizer == "subword" and characters > FIT_CHARACTERS:
            return


def _training_targets(folder: Path) -> Sequences:
    files = [folder / f"train.target.{part}.npy" for part in ("tokens", "offsets")]
    tokens, offsets = (np.load(file, mmap_mode="r") for file in files)
    return Sequences(tokens, offsets)


def _names(folder: Path) -> Names:
    """Return what the texts of a dataset tell about new names."""
    known = words_of(_lines(folder / "train.source.txt"))
    pairs = zip(_lines(folder / "validation.source.txt"), _lines(folder / "validation.target.txt"), strict=True)
    found, copied = count_copied(pairs, known)
    return Names(found=found, copied=copied, known=" ".join(sorted(known)))


def _lines(file: Path) -> list[str]:
    # Not splitlines: a sentence may contain U+2028 and other separators.
    return file.read_text(encoding="utf-8").split("\n")


def _count_translations(written: dict[SplitName, WrittenSplit], corpus: Corpus) -> tuple[int, int]:
    """Return the number of sources with several translations, and the largest number of translations of a source."""
    kept = np.concatenate([split.kept for split in written.values()])
    return count_translations(corpus.sources[kept], corpus.targets[kept])


def _median_ratios(train: np.ndarray, ranges: PairRanges, store: PairStore) -> list[float]:
    """Return the median of target characters per source character in each direction."""
    directions = ranges.directions[train]
    return [_median_ratio(train[directions == number], store) for number in range(len(ranges.languages))]


def _corpus_counts(train: np.ndarray, ranges: PairRanges, corpus_tags: list[str]) -> dict[str, CorpusCounts]:
    """Return the numbers of training pairs of each corpus."""
    is_multilingual = len(ranges.languages) > 1
    return {
        part.corpus.name: CorpusCounts(
            pairs=int(np.isin(train, part.pairs).sum()),
            tag=part.corpus.origin in corpus_tags,
            direction=part.direction if is_multilingual else None,
        )
        for part in ranges.parts
        if part.split == "train"
    }


def _encodings(
    ranges: PairRanges, medians: list[float], corpus_tags: list[str], language_tags: dict[Languages, str]
) -> list[Encoding]:
    """Return how the pairs of each corpus and split are encoded. Training sources may have the tag of their corpus."""
    encodings = []
    for part in ranges.parts:
        corpus = part.corpus
        tags = [corpus.origin] if part.split == "train" and corpus.origin in corpus_tags else []
        if corpus.languages in language_tags:
            tags.append(language_tags[corpus.languages])
        encodings.append(Encoding(part.pairs, tuple(tags), medians[part.direction]))
    return encodings


def _record_dropped(written: dict[SplitName, WrittenSplit], corpus: Corpus, locate: PairLocator) -> None:
    """Add the pairs that were dropped for their length to the findings of a corpus."""
    for split in written.values():
        by_reason: dict[str, list[int]] = {}
        for reason, index in split.dropped:
            by_reason.setdefault(reason, []).append(index)
        for reason, indices in by_reason.items():
            corpus.dropped.add_all(reason, indices, locate)


def _compare_languages(
    corpus: Corpus, train: np.ndarray, ranges: PairRanges, store: PairStore, locate: PairLocator
) -> int:
    """Record training pairs with a side in a foreign language, and return the size of the examined sample.

    Each direction is examined by itself, without reversed pairs.
    """
    as_read, examined = train[train < len(store)], 0
    directions = ranges.directions[as_read]
    for number in range(len(ranges.languages)):
        pairs = as_read[directions == number]
        sample = next(store.chunks(pairs[:SAMPLE_PAIRS], SAMPLE_BYTES), pairs)
        for reason, positions in find_foreign_sides(store.read(sample)).items():
            corpus.noticed.add_all(reason, np.sort(sample[positions]), locate)
        examined += len(sample)
    return examined


def _median_ratio(train: np.ndarray, store: PairStore) -> float:
    """Return the median of target characters per source character in a sample of training pairs."""
    step = 1 + len(train) // RATIO_PAIRS  # the corpus may be sorted by length
    return median_ratio(store.read(train[::step])) or 1.0


def _directions(
    folder: Path, ranges: PairRanges, written: dict[SplitName, WrittenSplit], tags: dict[Languages, str],
    medians: list[float], *, is_single: bool,
) -> list[Direction]:  # fmt: skip
    """Return the directions of the dataset, with the statistics of the files that were written.

    There are none if all pairs have the languages of the main corpus (``is_single``), and no tag.
    """
    if is_single and len(ranges.languages) == 1 and not tags:
        return []
    numbers = {name: ranges.directions[split.kept] for name, split in written.items()}
    offsets = [np.load(folder / f"train.{side}.offsets.npy") for side in SIDES]
    source_lengths, target_lengths = (np.diff(array) + 1 for array in offsets)  # with eos
    directions = []
    for number, (source, target) in enumerate(ranges.languages):
        in_training = numbers["train"] == number
        token_ratio = target_lengths[in_training].sum() / max(1, source_lengths[in_training].sum())
        directions.append(Direction(
            source=source,
            target=target,
            tag=tags.get((source, target)),
            pairs={name: int((split == number).sum()) for name, split in numbers.items()},
            median_length_ratio=float(f"{medians[number]:.4g}"),
            token_ratio=float(f"{token_ratio:.4g}"),
        ))  # fmt: skip
    return directions


def _with_leaks(name: SplitName, written: dict[SplitName, WrittenSplit], sources: np.ndarray) -> SplitCounts:
    """Return the statistics of a split with ``sources_in_training``. ``sources``: hash of every source, uint64."""
    split, train = written[name], written["train"]
    leaked = 0 if split is train else int(np.isin(sources[split.kept], sources[train.kept]).sum())
    return split.counts.model_copy(update={"sources_in_training": leaked})
