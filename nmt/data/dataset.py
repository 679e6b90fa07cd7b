"""The prepared form of a corpus on disk: made from files of sentence pairs, found again, opened memory-mapped."""

import contextlib
import datetime
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmt.config.data import DataConfig
from nmt.data.cleaning import Progress, Sources, SplitName, read_corpus, resolve_auto
from nmt.data.encoding import SIDES, Side, resample
from nmt.data.manifest import Manifest, SourceFile, SplitCounts, read_manifest
from nmt.data.pair_store import Spool
from nmt.data.prepare import (
    assign,
    copy_tokenizers,
    count,
    examine,
    fit_tokenizers,
    settings_of_tokenizers,
    workshop,
    write_splits,
)
from nmt.data.sources.text_file import TextFile
from nmt.data.token_arrays import Sequences, Split
from nmt.errors import ConflictError, DataError, NotFoundError, printable
from nmt.runs.directory import Run
from nmt.storage.atomic import atomic_folder, sha256
from nmt.storage.json_file import write_json
from nmt.storage.names import check_name, did_you_mean
from nmt.tokenizers.base import Tokenizer
from nmt.tokenizers.registry import load_tokenizer

__all__ = [
    "DATASETS", "Dataset", "Manifest", "Sequences", "SourceFile", "Split", "SplitCounts", "find_dataset",
    "open_dataset", "prepare", "read_manifest",
]  # fmt: skip

DATASETS = Path("data")


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
        """Return the ids of a split, memory-mapped, once they are found to be what was prepared.

        Raises:
            DataError: if a file is missing or damaged, or does not fit what the manifest says of it.
        """
        return Split(self._sequences(name, "source"), self._sequences(name, "target"))

    def _sequences(self, name: SplitName, side: Side) -> Sequences:
        paths = [self._verified(f"{name}.{side}.{part}.npy") for part in ("tokens", "offsets")]
        counts = self.manifest.splits[name]
        try:
            sequences = Sequences(*(np.lib.format.open_memmap(path, mode="r") for path in paths))
            sequences.check(counts.pairs, counts.tokens[side], counts.longest[side], self.manifest.vocabulary[side])
        except Exception as error:  # a header is a Python expression, and fails in every way that one can
            raise self._damage(f"{paths[0]} and {paths[1].name} hold no sentences ({str(error)[:200]})") from error
        return sequences

    def _verified(self, file: str) -> Path:
        """Return the path of a file, once its content is found to be what was prepared."""
        path = self.folder / file
        try:
            if self.manifest.files.get(file) == sha256(path):
                return path
        except OSError as error:
            raise self._damage(f"{path} cannot be read: {error.strerror}") from error
        raise self._damage(f"the SHA-256 of {path} is not the one in its manifest")

    def _damage(self, what: str) -> DataError:
        return DataError(f"Dataset {self.name!r} is damaged: {what}. Prepare it again with nmt prepare --overwrite.")

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """Return the tokenizers of source and target.

        Raises:
            DataError: if a file is missing or damaged, or does not fit what the manifest says of it.
        """
        for path in self.tokenizer_files:
            if path.name in self.manifest.files:  # a backup beside them is nobody's business
                self._verified(path.name)
        source, target = (load_tokenizer(self.folder / f"tokenizer.{side}.json") for side in SIDES)
        sizes = {"source": source.size, "target": target.size}
        if sizes != self.manifest.vocabulary:
            raise self._damage(f"its tokenizers have {sizes} ids, its manifest says {self.manifest.vocabulary}")
        return source, target

    def resampled(self, seed: int, epoch: int) -> Split:
        """Return the training split cut into subwords anew, a pure function of (seed, epoch); its ids are in memory.

        A sentence that would become longer than the longest as prepared stays as it was prepared.

        Raises:
            DataError: if the dataset was prepared without ``subword_sampling``.
        """
        if not self.manifest.settings.subword_sampling:
            raise DataError(
                f"Subwords are sampled from the training text; dataset {self.name!r} was prepared without it. Prepare "
                "it again with --set data.subword_sampling=true"
            )
        prepared = self.split("train")
        sides = zip(SIDES, (prepared.source, prepared.target), self.tokenizers(), strict=True)
        return Split(*(
            resample(TextFile(self._verified(f"train.{side}.txt")), tokenizer, sequences, [seed, epoch, number])
            for number, (side, sequences, tokenizer) in enumerate(sides)
        ))  # fmt: skip

    @property
    def tokenizer_files(self) -> list[Path]:
        """The files that ``tokenizers`` are made of, to be copied wherever they are to be loaded."""
        return sorted(self.folder.glob("tokenizer.*"))

    def text(self, name: SplitName, side: str) -> Path:
        """Return the path of the raw sentences of a split, one a line; of training only with ``subword_sampling``."""
        return self.folder / f"{name}.{side}.txt"


def prepare(
    corpus: Path | Sources, config: DataConfig, name: str, *, overwrite: bool = False, report: Progress | None = None,
    tokenizer_of: Run | None = None,
) -> tuple[Dataset, bool]:  # fmt: skip
    """Write ``data/<name>`` from a file of pairs, or from several. Returns the dataset, and whether it had to be made.

    The same files with the same settings are not prepared twice. ``report`` is told how far it is. With
    ``tokenizer_of`` the tokenizers are those of a run, whatever ``config`` says of them.

    Raises:
        ConflictError: if a different dataset stands under that name and ``overwrite`` is false.
        DataError: if a file cannot be used; nothing is written then.
    """
    sources = Sources.of(corpus) if isinstance(corpus, Path) else corpus
    report = report or _silent
    folder = DATASETS / check_name(name, "dataset")
    files = [
        SourceFile(name=printable(file.name), bytes=file.path.stat().st_size, sha256=sha256(file.path), role=role)
        for role, role_files in sources.roles()
        for file in role_files
    ]
    settings = config.model_copy(update={"dataset": name})
    if tokenizer_of:
        settings = settings_of_tokenizers(tokenizer_of, settings)
    if folder.exists() and not (folder / "manifest.json").is_file():
        raise ConflictError(
            f"A dataset is written to a folder of its own; {folder} exists and is no dataset. Give another --name."
        )
    if folder.exists() and not overwrite:
        existing = open_dataset(name)
        different = _differences(existing.manifest, files, settings, tokenizer_of)
        if not different:
            return existing, False
        raise ConflictError(
            f"A dataset is never overwritten unasked; {folder} was made from {existing.manifest.corpus.name} "
            f"({'; '.join(different)}). Give another --name, or --overwrite."
        )
    settings = resolve_auto(sources, settings)
    with contextlib.ExitStack() as opened:
        desk = opened.enter_context(workshop(DATASETS))
        read = read_corpus(sources, settings, desk, report)
        spool = opened.enter_context(Spool(desk))
        splits = assign(read, sources, settings, spool)
        if not tokenizer_of:
            report("finding the vocabulary", 0, None)
            tokenizers = fit_tokenizers(spool, splits["train"], settings)
        with atomic_folder(folder, replace=overwrite) as aside:
            if tokenizer_of:
                tokenizers = copy_tokenizers(tokenizer_of, aside)
            else:
                for side, tokenizer in tokenizers.items():
                    tokenizer.save(aside / f"tokenizer.{side}.json")
            written = write_splits(aside, desk, splits, tokenizers, settings, report)
            findings = examine(read, sources, written, spool, report)
            manifest = Manifest(
                format=1,
                prepared_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                corpus=files[0],
                more_files=files[1:],
                settings=settings,
                read=read.read,
                dropped=dict(read.dropped.counts),
                vocabulary={side: tokenizer.size for side, tokenizer in tokenizers.items()},
                splits={name: count(name, written, read.sources) for name in written},
                report=findings,
                tokenizer_of=tokenizer_of.name if tokenizer_of else None,
                unit=tokenizers["source"].unit,
                files={file.name: sha256(file) for file in sorted(aside.iterdir())},
            )
            write_json(aside / "manifest.json", manifest.model_dump())
    return Dataset(folder, manifest), True


def _silent(what: str, done: int, total: int | None) -> None:
    """Progress to nobody."""


def _differences(
    manifest: Manifest, files: list[SourceFile], settings: DataConfig, tokenizer_of: Run | None
) -> list[str]:
    """What of the files and settings is not as the manifest has it; "auto" is as it was decided then."""
    different = [
        f"{key} {before!r} there, {getattr(settings, key)!r} here"
        for key, before in manifest.settings.model_dump().items()
        if getattr(settings, key) not in {before, "auto"}
    ]
    theirs = {name: hash_ for name, hash_ in manifest.files.items() if name.startswith("tokenizer.")}
    if tokenizer_of and theirs != {file.name: sha256(file) for file in tokenizer_of.tokenizer_files}:
        different.append(f"tokenizers {_origin(manifest.tokenizer_of)} there, {_origin(tokenizer_of.name)} here")
    elif manifest.tokenizer_of and not tokenizer_of:
        different.append(f"tokenizers {_origin(manifest.tokenizer_of)} there, {_origin(None)} here")
    there, here = (
        [(file.role, file.sha256) for file in some] for some in ([manifest.corpus, *manifest.more_files], files)
    )
    return different if there == here else ["other content", *different]


def _origin(run: str | None) -> str:
    return f"of run {run!r}" if run else "fitted on its training split"


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
            f"There is no prepared dataset {name!r}{did_you_mean(name, known)}. "
            + (f"Prepared: {', '.join(known)}." if known else "Make one with: nmt prepare FILE")
        )
    return Dataset(folder, read_manifest(folder / "manifest.json"))


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
