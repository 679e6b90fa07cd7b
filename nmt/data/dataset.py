"""Prepared datasets on disk: finding one by name, and opening its arrays memory-mapped, checked by its manifest."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nmt.data.encoding import sample_subwords
from nmt.data.manifest import SIDES, Manifest, Side, SplitName, read_manifest
from nmt.data.sources.text_file import TextFile
from nmt.data.token_arrays import Sequences, Split
from nmt.errors import ConflictError, DataError, NotFoundError
from nmt.message import Argument, Command, Part, Settings
from nmt.storage.atomic import sha256
from nmt.storage.names import check_name, did_you_mean
from nmt.tokenizers.base import Tokenizer
from nmt.tokenizers.registry import load_tokenizer

DATASETS = Path("data")
PREPARE_AGAIN = Command("prepare", Argument("overwrite", True))


@dataclass(frozen=True)
class Dataset:
    """A prepared dataset on disk."""

    folder: Path
    manifest: Manifest
    is_new: bool = field(default=False, compare=False)
    """Whether ``prepare`` has just written it; False for an existing dataset."""
    _splits: dict[SplitName, Split] = field(default_factory=dict, compare=False, repr=False)
    """Splits that have been read and checked."""

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.folder.name

    def split(self, name: SplitName) -> Split:
        """Return the token ids of a split, memory-mapped, after checking them against the manifest.

        Raises:
            DataError: if a file is missing or damaged, or contradicts the manifest.
        """
        if name not in self._splits:
            self._splits[name] = Split(self._sequences(name, "source"), self._sequences(name, "target"))
        return self._splits[name]

    def _sequences(self, name: SplitName, side: Side) -> Sequences:
        if f"{name}.{side}.tokens.1.npy" in self.manifest.files:
            raise DataError(
                f"Dataset {self.name!r} has several token files per side, as earlier versions wrote large datasets. "
                "This version reads one. Prepare it again with ",
                PREPARE_AGAIN,
                ".",
            )
        counts = self.manifest.splits[name]
        tokens, offsets = (self._verified(f"{name}.{side}.{part}.npy") for part in ("tokens", "offsets"))
        try:
            sequences = Sequences(*(np.lib.format.open_memmap(path, mode="r") for path in (tokens, offsets)))
            sequences.check(counts.pairs, counts.tokens[side], counts.longest[side], self.manifest.vocabulary[side])
        except Exception as error:  # a .npy header is a Python literal, so a forged one fails in many ways
            raise self._damage(f"{tokens} and {offsets.name} hold no sentences ({str(error)[:200]})") from error
        return sequences

    def _verified(self, file: str) -> Path:
        """Return the path of a file, after checking its SHA-256."""
        path = self.folder / file
        try:
            if self.manifest.files.get(file) == sha256(path):
                return path
        except OSError as error:
            raise self._damage(f"{path} cannot be read: {error.strerror}") from error
        raise self._damage(f"the SHA-256 of {path} differs from the one in its manifest")

    def _damage(self, finding: str) -> DataError:
        return DataError(f"Dataset {self.name!r} is damaged: {finding}. Prepare it again with ", PREPARE_AGAIN, ".")

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Return the tokenizers of source and target.

        Raises:
            DataError: if a file is missing or damaged, or contradicts the manifest.
        """
        for path in self.tokenizer_files:
            if path.name in self.manifest.files:  # a user may have put a backup in the folder
                self._verified(path.name)
        source, target = (load_tokenizer(self.folder / f"tokenizer.{side}.json") for side in SIDES)
        sizes = {"source": source.size, "target": target.size}
        if sizes != self.manifest.vocabulary:
            raise self._damage(f"its tokenizers have {sizes} ids, its manifest states {self.manifest.vocabulary}")
        return source, target

    def check_training_text(self) -> None:
        """Check that the dataset has its raw training text.

        Raises:
            DataError: if it was prepared without ``data.subword_sampling``.
        """
        if not self.manifest.keeps_training_text:
            raise DataError(
                f"Dataset {self.name!r} was prepared without its training text, which subword sampling needs. Prepare "
                "it again with ",
                Settings({"data.subword_sampling": "possible"}),
            )

    def resample_subwords(self, seed: int, epoch: int) -> Split:
        """Return the training split with sampled subword segmentations (Kudo 2018), in memory.

        The result depends on (seed, epoch) alone. A sentence keeps its prepared tokens if it would become longer than
        the longest sentence of the prepared split.

        Raises:
            DataError: if the dataset was prepared without its training text.
        """
        self.check_training_text()
        prepared = self.split("train")
        sides = zip(SIDES, (prepared.source, prepared.target), self.tokenizers(), strict=True)
        return Split(*(
            sample_subwords(TextFile(self._verified(f"train.{side}.txt")), tokenizer, sequences, [seed, epoch, number])
            for number, (side, sequences, tokenizer) in enumerate(sides)
        ))  # fmt: skip

    @property
    def tokenizer_files(self) -> list[Path]:
        """The tokenizer files, sorted by name; a run keeps copies of them."""
        return sorted(self.folder.glob("tokenizer.*"))

    def text(self, name: SplitName, side: str) -> Path:
        """Return the path of the raw sentences of a split, one per line.

        The training split has this file only if ``Manifest.keeps_training_text``.
        """
        return self.folder / f"{name}.{side}.txt"


def open_dataset(name: str) -> Dataset:
    """Return the prepared dataset ``data/<name>``.

    Raises:
        NotFoundError: if there is no dataset of that name; the message suggests the most similar name.
        DataError: if its manifest is damaged.
    """
    folder = DATASETS / check_name(name, "dataset")
    known = [dataset.name for dataset in _dataset_folders()]
    if name not in known:
        raise NotFoundError(
            f"There is no prepared dataset {name!r}{did_you_mean(name, known)}. "
            + (f"Prepared: {', '.join(known)}." if known else "Make one with: nmt prepare FILE")
        )
    return Dataset(folder, read_manifest(folder / "manifest.json"))


def find_dataset(name: str | None) -> Dataset:
    """Return the named dataset, or without a name the dataset prepared last.

    Raises:
        NotFoundError: if there is no such dataset.
    """
    if name is not None:
        return open_dataset(name)
    folders = _dataset_folders()
    if not folders:
        raise NotFoundError(f"No dataset is prepared in {DATASETS}/ yet. Make one with: nmt prepare FILE")
    return open_dataset(max(folders, key=lambda folder: (folder / "manifest.json").stat().st_mtime_ns).name)


def dataset_of_run(run_name: str, manifest: Manifest, alternative: Sequence[Part] = ()) -> Dataset:
    """Return the dataset that a run was trained on.

    Args:
        run_name: name of the run.
        manifest: the run's copy of the dataset's manifest.
        alternative: parts of the last sentence of an error message: what the user can do without the dataset.

    Raises:
        NotFoundError: if the dataset is not in ``data/``.
        ConflictError: if ``data/`` holds another dataset of that name.
    """
    name = str(manifest.settings.dataset)
    ending = (" ", *alternative) if alternative else ()
    if manifest.is_imported:
        raise NotFoundError(
            f"Run {run_name!r} was imported and has no dataset. Give files, or start another run from it on a dataset "
            "of ",
            Command("prepare", Argument("tokenizer_of", run_name)),
        )
    try:
        dataset = open_dataset(name)
    except NotFoundError:
        raise NotFoundError(
            f"Dataset {name!r}, which run {run_name!r} was trained on, is not in {DATASETS}/. Restore it, or prepare "
            "it again with the same settings: ",
            Command(f"prepare {manifest.corpus.name}", Argument("name", name), Argument("tokenizer_of", run_name)),
            "." if ending else "",
            *ending,
        ) from None
    if dataset.manifest.fingerprint != manifest.fingerprint:
        raise ConflictError(
            f"{dataset.folder} is not the dataset that run {run_name!r} was trained on: it holds other sentences, "
            "tokens or another split, so its test sentences may have been trained on. Restore the dataset of the "
            "run.",
            *ending,
        )
    return dataset


def _dataset_folders() -> list[Path]:
    return sorted(path.parent for path in DATASETS.glob("*/manifest.json") if not path.parent.name.startswith("."))
