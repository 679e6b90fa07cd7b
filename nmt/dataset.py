"""The prepared form of a corpus: token ids of every split in memory-mapped files, and a manifest that says whence."""

import datetime
import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import ValidationError

from nmt.config import DataConfig, Section
from nmt.corpus import Pair, SplitName, clean_pairs, split_pairs
from nmt.errors import ConflictError, DataError, NotFoundError
from nmt.files import check_name, nearest, read_json, sha256, whole_folder, write_json
from nmt.normalisation import NORMALISERS
from nmt.tokenizer import UNK, Tokenizer, fit_tokenizer, load_tokenizer

DATASETS = Path("data")
SIDES = ("source", "target")
_LINE_BREAK = re.compile(r"[\r\n]+")


class SourceFile(Section):
    """The file that was prepared."""

    name: str
    bytes: int
    sha256: str


class SplitCounts(Section):
    """What a split holds. Tokens are counted without bos and eos."""

    pairs: int
    tokens: dict[str, int]
    """By side."""
    longest: dict[str, int]
    """Tokens of the longest sentence, by side."""
    unknown: dict[str, int]
    """Tokens that are unk, by side."""
    sources_in_training: int
    """Pairs whose source sentence stands in the training split too (the training split itself: 0)."""


class Manifest(Section):
    """What ``prepare`` read, decided and wrote: ``manifest.json``."""

    format: Literal[1]
    prepared_at: str
    corpus: SourceFile
    settings: DataConfig
    read: int
    dropped: dict[str, int]
    vocabulary: dict[str, int]
    """Ids by side, the four special ones included."""
    splits: dict[str, SplitCounts]
    files: dict[str, str]
    """SHA-256 of every other file of the dataset, by its path in it."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 that two datasets share if and only if they hold the same tokens, tokenizers and texts."""
        return hashlib.sha256(json.dumps(self.files, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Sequences:
    """Sequences of different lengths end to end: sequence i is ``tokens[offsets[i]:offsets[i + 1]]``."""

    tokens: np.ndarray
    """Unsigned integers, the smallest kind that holds the vocabulary [total tokens]."""
    offsets: np.ndarray
    """int64 [N + 1]."""

    @property
    def lengths(self) -> np.ndarray:
        """Tokens in each sequence, int64 [N]."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        """Return the tokens of one sequence."""
        return self.tokens[self.offsets[index] : self.offsets[index + 1]]

    @classmethod
    def pack(cls, rows: Iterable[list[int]], vocabulary: int) -> "Sequences":
        """Lay rows of ids below ``vocabulary`` end to end."""
        rows = list(rows)
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        tokens = np.fromiter((id_ for row in rows for id_ in row), np.min_scalar_type(vocabulary - 1), offsets[-1])
        return cls(tokens, offsets)


@dataclass(frozen=True)
class Split:
    """The token ids of one split, pair i being ``source[i]`` and ``target[i]``."""

    source: Sequences
    target: Sequences

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.source)


@dataclass(frozen=True)
class Dataset:
    """A prepared dataset on disk."""

    folder: Path
    manifest: Manifest

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.name

    def split(self, name: SplitName) -> Split:
        """Return the ids of a split, memory-mapped.

        Raises:
            DataError: if a file is missing or damaged.
        """
        try:
            arrays = [
                np.load(self.folder / f"{name}.{side}.{part}.npy", mmap_mode="r", allow_pickle=False)
                for side in SIDES
                for part in ("tokens", "offsets")
            ]
        except (OSError, ValueError, EOFError) as error:
            raise DataError(
                f"Dataset {self.name!r} is damaged: {error}. Prepare it again with nmt prepare --overwrite."
            ) from error
        return Split(Sequences(*arrays[:2]), Sequences(*arrays[2:]))

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Return the tokenizers of source and target."""
        return load_tokenizer(self.folder / "tokenizer.source.json"), load_tokenizer(
            self.folder / "tokenizer.target.json"
        )

    def text(self, name: SplitName, side: str) -> Path:
        """Return the path of the raw sentences of the validation or test split, one a line."""
        return self.folder / f"{name}.{side}.txt"


def prepare(path: Path, config: DataConfig, name: str, *, overwrite: bool = False) -> tuple[Dataset, bool]:
    """Write ``data/<name>`` from a file of pairs. Returns the dataset, and whether it had to be made.

    The same file with the same settings is not prepared twice.

    Raises:
        ConflictError: if a different dataset stands under that name and ``overwrite`` is false.
        DataError: if the file cannot be used; nothing is written then.
    """
    folder = DATASETS / check_name(name, "dataset")
    corpus_file = SourceFile(name=path.name, bytes=path.stat().st_size, sha256=sha256(path))
    settings = config.model_copy(update={"dataset": name})
    if folder.exists() and not (folder / "manifest.json").is_file():
        raise ConflictError(
            f"A dataset is written to a folder of its own; {folder} exists and is no dataset. Give another --name."
        )
    if folder.exists() and not overwrite:
        existing = open_dataset(name)
        if existing.manifest.corpus.sha256 == corpus_file.sha256 and existing.manifest.settings == settings:
            return existing, False
        raise ConflictError(
            f"A dataset is never overwritten unasked; {folder} was made from {existing.manifest.corpus.name}"
            f"{_differences(existing.manifest, corpus_file, settings)}. Give another --name, or --overwrite."
        )
    normalise = NORMALISERS[config.normalisation]
    corpus = clean_pairs(path, config, normalise)
    splits = split_pairs(corpus.pairs, config, normalise)
    tokenizers = _fit_tokenizers(splits["train"], config)
    with whole_folder(folder, replace=overwrite) as aside:
        counts = _write_splits(aside, splits, tokenizers)
        for side, tokenizer in tokenizers.items():
            tokenizer.save(aside / f"tokenizer.{side}.json")
        manifest = Manifest(
            format=1,
            prepared_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            corpus=corpus_file,
            settings=settings,
            read=len(corpus.pairs) + sum(corpus.dropped.values()),
            dropped=corpus.dropped,
            vocabulary={side: tokenizer.size for side, tokenizer in tokenizers.items()},
            splits=counts,
            files={file.name: sha256(file) for file in sorted(aside.iterdir())},
        )
        write_json(aside / "manifest.json", manifest.model_dump())
    return Dataset(folder, manifest), True


def _differences(manifest: Manifest, corpus_file: SourceFile, settings: DataConfig) -> str:
    different = [
        f"{key} {before!r} there, {getattr(settings, key)!r} here"
        for key, before in manifest.settings.model_dump().items()
        if before != getattr(settings, key)
    ]
    if manifest.corpus.sha256 != corpus_file.sha256:
        different.insert(0, "other content")
    return f" ({'; '.join(different)})"


def _fit_tokenizers(train: list[Pair], config: DataConfig) -> dict[str, Tokenizer]:
    if config.joint_vocabulary:
        joint = fit_tokenizer((text for pair in train for text in pair), config)
        return {"source": joint, "target": joint}
    return {
        "source": fit_tokenizer((pair.source for pair in train), config),
        "target": fit_tokenizer((pair.target for pair in train), config),
    }


def _write_splits(
    folder: Path, splits: dict[SplitName, list[Pair]], tokenizers: dict[str, Tokenizer]
) -> dict[str, SplitCounts]:
    normalise = {side: tokenizer.normalise for side, tokenizer in tokenizers.items()}
    trained_sources = {normalise["source"](pair.source) for pair in splits["train"]}
    counts: dict[str, SplitCounts] = {}
    for name, pairs in splits.items():
        packed = {}
        for column, side in enumerate(SIDES):
            tokenizer = tokenizers[side]
            packed[side] = Sequences.pack((tokenizer.encode(pair[column]) for pair in pairs), tokenizer.size)
            np.save(folder / f"{name}.{side}.tokens.npy", packed[side].tokens, allow_pickle=False)
            np.save(folder / f"{name}.{side}.offsets.npy", packed[side].offsets, allow_pickle=False)
            if name != "train":
                text = "".join(_LINE_BREAK.sub(" ", pair[column]) + "\n" for pair in pairs)
                (folder / f"{name}.{side}.txt").write_bytes(text.encode("utf-8"))
        seen = 0 if name == "train" else sum(normalise["source"](pair.source) in trained_sources for pair in pairs)
        counts[name] = SplitCounts(
            pairs=len(pairs),
            tokens={side: len(sequences.tokens) for side, sequences in packed.items()},
            longest={side: int(sequences.lengths.max()) for side, sequences in packed.items()},
            unknown={side: int((sequences.tokens == UNK).sum()) for side, sequences in packed.items()},
            sources_in_training=seen,
        )
    return counts


def open_dataset(name: str) -> Dataset:
    """Return the prepared dataset ``data/<name>``.

    Raises:
        NotFoundError: if there is none of that name; the nearest is named.
        DataError: if its manifest is damaged.
    """
    folder = DATASETS / check_name(name, "dataset")
    known = [dataset.name for dataset in _dataset_folders()]
    if name not in known:
        raise NotFoundError(
            f"There is no prepared dataset {name!r}{nearest(name, known)}. "
            + (f"Prepared: {', '.join(known)}." if known else "Make one with: nmt prepare FILE")
        )
    return Dataset(folder, read_manifest(folder / "manifest.json"))


def read_manifest(path: Path) -> Manifest:
    """Return the manifest in a file.

    Raises:
        DataError: if it is not a manifest of this format.
    """
    try:
        return Manifest.model_validate(read_json(path, "A dataset's manifest"))
    except ValidationError as error:
        problem = error.errors()[0]
        raise DataError(
            f"A dataset's manifest is as nmt prepare writes it; {path} is damaged: "
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}. Prepare the corpus again with --overwrite."
        ) from None


def find_dataset(name: str | None) -> Dataset:
    """Return the named dataset, or without a name the one prepared last.

    Raises:
        NotFoundError: if there is none.
    """
    if name is not None:
        return open_dataset(name)
    folders = _dataset_folders()
    if not folders:
        raise NotFoundError(f"No dataset is prepared in {DATASETS}/ yet. Make one with: nmt prepare FILE")
    return open_dataset(max(folders, key=lambda folder: (folder / "manifest.json").stat().st_mtime_ns).name)


def _dataset_folders() -> list[Path]:
    return sorted(path.parent for path in DATASETS.glob("*/manifest.json") if not path.parent.name.startswith("."))
