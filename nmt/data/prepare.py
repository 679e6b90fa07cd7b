"""The steps from a corpus that was read to a dataset: who is in which split, the vocabulary, the ids, the findings."""

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from nmt.config.data import DataConfig
from nmt.data.cleaning import (
    EXAMPLES,
    SPLITS,
    Corpus,
    Findings,
    Progress,
    Sources,
    SplitName,
    duplicates,
    place_of,
    show,
)
from nmt.data.diagnostics import LOOKED_AT, LOOKED_AT_BYTES, foreign_columns, many_translations
from nmt.data.encoding import SIDES, Side, Written, encoding, write_split
from nmt.data.manifest import Report, SplitCounts, read_manifest
from nmt.data.pair_store import Spool
from nmt.data.splitting import deal_out
from nmt.errors import DataError
from nmt.runs.directory import Run
from nmt.tokenizers.base import Tokenizer
from nmt.tokenizers.registry import fit_tokenizer, load_tokenizer

SAMPLE = 30_000_000  # characters that a subword vocabulary is found in, which takes less than a GB of memory
PERCENTILES = (50, 90, 99)
# Of the section data: what tokenizers are fitted by, and so no choice any more where those of a run are taken.
OF_TOKENIZERS = (
    "tokenizer", "normalization", "vocabulary_size", "min_count", "joint_vocabulary", "subword_model", "byte_fallback",
)  # fmt: skip


@contextlib.contextmanager
def workshop(parent: Path) -> Iterator[Path]:
    """Yield a folder in ``parent`` for what is needed only while preparing.

    Afterwards it is gone, and so is ``parent`` if it was not there and nothing came of it.
    """
    was_there = parent.exists()
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".preparing-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if not was_there:
            with contextlib.suppress(OSError):  # not empty: the dataset is in it
                parent.rmdir()


def _place(sources: Sources, corpus: Corpus, spool: Spool, index: int) -> str:
    """Where a pair of the spool stood, and its text."""
    role = next(role for role, indices in corpus.roles.items() if index in indices)
    return f"{place_of(dict(sources.roles())[role], spool.number(index))}: {show(spool[index])}"


def _add(findings: Findings, reason: str, indices: np.ndarray, place: Callable[[int], str]) -> None:
    if len(indices):
        findings.counts[reason] += len(indices)
        findings.places.setdefault(reason, []).extend(place(int(index)) for index in indices[:EXAMPLES])


def assign(corpus: Corpus, sources: Sources, config: DataConfig, spool: Spool) -> dict[SplitName, np.ndarray]:
    """Return which pairs of the spool are in which split; count in ``corpus`` what rules about several pairs drop.

    Raises:
        DataError: if a split would be empty.
    """

    def place(index: int) -> str:
        return _place(sources, corpus, spool, index)

    given = {role: np.arange(indices.start, indices.stop) for role, indices in corpus.roles.items()}
    rest = given.pop("train")
    again = rest[duplicates(corpus.sources[rest], corpus.targets[rest])]
    _add(corpus.dropped if config.drop_duplicates else corpus.noticed, "duplicates", again, place)
    if config.drop_duplicates:
        rest = np.setdiff1d(rest, again, assume_unique=True)
    if config.split == "by_source":
        if "validation" in given and "test" in given:
            leaking = np.isin(corpus.sources[given["validation"]], corpus.sources[given["test"]])
            _add(corpus.dropped, "validation source that is in the test", given["validation"][leaking], place)
            given["validation"] = given["validation"][~leaking]
        if given:
            held = np.concatenate([corpus.sources[indices] for indices in given.values()])
            leaking = np.isin(corpus.sources[rest], held)
            _add(corpus.dropped, "training source that is in validation or test", rest[leaking], place)
            rest = rest[~leaking]
    names = tuple(name for name in SPLITS if name not in given)
    if len(rest) < len(names):
        raise DataError(
            f"A corpus needs at least {len(names)} pairs, one for each of {', '.join(names)}; "
            f"{' and '.join(map(str, sources.corpus))} holds {len(rest)}. Give a file with more."
        )
    for name, indices in given.items():
        if not len(indices):
            raise DataError(
                f"Each of {', '.join(SPLITS)} needs a pair; of {' and '.join(map(str, dict(sources.roles())[name]))}, "
                f"given for {name}, none is left. Give another file."
            )
    dealt = {name: rest[indices] for name, indices in deal_out(corpus.sources[rest], config, names).items()}
    return {name: dealt[name] if name in dealt else given[name] for name in SPLITS}


def fit_tokenizers(spool: Spool, train: np.ndarray, config: DataConfig) -> dict[Side, Tokenizer]:
    """Return the tokenizer of each side, one for both if the vocabulary is joint.

    Words and characters are counted in all training pairs; subwords are found in the first, which are a random sample.
    """
    columns = [(0, 1)] if config.joint_vocabulary else [(0,), (1,)]
    fitted = [fit_tokenizer(_texts(spool, train, wanted, config), config, len(train)) for wanted in columns]
    return {"source": fitted[0], "target": fitted[-1]}


def settings_of_tokenizers(run: Run, config: DataConfig) -> DataConfig:
    """Return the configuration with the settings that a run's tokenizers were fitted with.

    Raises:
        DataError: if the run's copy of its dataset's manifest is damaged.
    """
    theirs = read_manifest(run.dataset_path).settings
    return config.model_copy(update={key: getattr(theirs, key) for key in OF_TOKENIZERS})


def copy_tokenizers(run: Run, folder: Path) -> dict[Side, Tokenizer]:
    """Copy the tokenizers of a run to ``folder``, byte for byte, so that its weights know the ids they give.

    Raises:
        NotFoundError, DataError: if one is missing or damaged.
    """
    tokenizers: dict[Side, Tokenizer] = {side: load_tokenizer(run.tokenizer_path(side)) for side in SIDES}
    for file in run.tokenizer_files:
        shutil.copyfile(file, folder / file.name)
    return tokenizers


def _texts(spool: Spool, train: np.ndarray, columns: tuple[int, ...], config: DataConfig) -> Iterator[str]:
    characters = 0
    for index in train:
        pair = spool[int(index)]
        for column in columns:
            yield pair[column]
            characters += len(pair[column])
        if config.tokenizer == "subword" and characters > SAMPLE:
            return


def write_splits(
    folder: Path, spool: Path, splits: dict[SplitName, np.ndarray], tokenizers: dict[Side, Tokenizer],
    config: DataConfig, report: Progress,
) -> dict[SplitName, Written]:  # fmt: skip
    """Encode and write every split with the tokenizers saved in ``folder``.

    Raises:
        DataError: if the limits on length leave a split empty.
    """
    paths: dict[Side, Path] = {side: folder / f"tokenizer.{side}.json" for side in SIDES}
    vocabulary: dict[Side, int] = {side: tokenizer.size for side, tokenizer in tokenizers.items()}
    with encoding(spool, paths, sum(map(len, splits.values()))) as encode:
        written = {
            name: write_split(folder, name, indices, encode, vocabulary, config, report)
            for name, indices in splits.items()
        }
    for name, one in written.items():
        if not len(one.kept):
            raise DataError(
                f"Each of {', '.join(SPLITS)} needs a pair; all of {name} are longer than data.max_tokens "
                f"{config.max_tokens} or more uneven than data.max_length_ratio {config.max_length_ratio} allows. "
                "Raise them, or set them to null."
            )
    return written


def examine(
    corpus: Corpus, sources: Sources, written: dict[SplitName, Written], spool: Spool, report: Progress
) -> Report:
    """Count what was left out for its length, and look for what is odd in the rest."""

    def place(index: int) -> str:
        return _place(sources, corpus, spool, index)

    for one in written.values():
        for reason in dict.fromkeys(reason for reason, _ in one.left_out):
            _add(corpus.dropped, reason, np.array([index for said, index in one.left_out if said == reason]), place)
    report("looking at the languages", 0, None)
    train = written["train"].kept
    looked_at = next(spool.portions(train[:LOOKED_AT], LOOKED_AT_BYTES), train)
    for reason, positions in foreign_columns(spool.read(looked_at)).items():
        _add(corpus.noticed, reason, np.sort(looked_at[positions]), place)
    kept = np.concatenate([one.kept for one in written.values()])
    often, most = many_translations(corpus.sources[kept], corpus.targets[kept])
    return Report(
        noticed=dict(corpus.noticed.counts),
        places=corpus.dropped.places | corpus.noticed.places,
        sources_translated_often=often,
        most_translations=most,
        columns_looked_at=len(looked_at),
    )


def count(name: SplitName, written: dict[SplitName, Written], sources: np.ndarray) -> SplitCounts:
    """Return the counts of a split for the manifest. ``sources``: the hash of each pair's source in the spool."""
    one = written[name]
    seen = 0 if name == "train" else int(np.isin(sources[one.kept], sources[written["train"].kept]).sum())
    return SplitCounts(
        pairs=len(one.kept),
        tokens={side: int(lengths.sum(dtype=np.int64)) for side, lengths in one.lengths.items()},
        longest={side: int(lengths.max()) for side, lengths in one.lengths.items()},
        unknown={side: one.unknown[side] for side in SIDES},
        sources_in_training=seen,
        characters={side: one.characters[side] for side in SIDES},
        percentiles={
            side: {str(percent): int(np.percentile(lengths, percent, method="higher")) for percent in PERCENTILES}
            for side, lengths in one.lengths.items()
        },
    )
