"""The files of a corpus: one file of pairs, two files with one side each, or shards (names, a pattern, a folder)."""

import itertools
import os
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from nmt.config.data import DataConfig
from nmt.config.languages import code_in_name, matching_code
from nmt.data.sources.columnar import ARROW
from nmt.data.sources.formats import PICKLES, RECORDS
from nmt.data.sources.memories.reading import is_memory
from nmt.data.sources.tables import CSV
from nmt.data.sources.text_file import (
    MEMORIES,
    TextFile,
    find_text_file,
    first_names,
    is_note,
    numbered_lines,
    reading,
)
from nmt.errors import DataError, counted
from nmt.message import Argument
from nmt.storage.names import find_file

ONLY_PAIRS = PICKLES | RECORDS | MEMORIES | {CSV}
"""Suffixes of formats in which a file holds both sides."""
LOOKED_AT = 100  # first lines of a file that tell whether it holds pairs
LEAST_WITH_TAB = 0.9  # share of them with a tab in a file of pairs
# Files of Hugging Face datasets in a folder that save_to_disk wrote.
_DATA_SET, _DATA_SETS = "dataset_info.json", "dataset_dict.json"
_WITH_PATTERN = re.compile(r"[*?\[]")


def find_corpus(names: Sequence[str], folders: Iterable[Path], argument: str, config: DataConfig) -> list[TextFile]:
    """Return the files of a corpus: one file of pairs, whose ``shards`` are all files of pairs, or two sides.

    A name is a file, a member of an archive, an archive, a folder, or a pattern such as "part-*.tsv".

    Args:
        names: names as the user gave them.
        folders: folders in which a bare name is looked for.
        argument: name of the argument, for messages.
        config: section data, whose languages order the two sides of an archive or a folder.

    Raises:
        NotFoundError: if a file does not exist.
        DataError: if the files cannot be one corpus.
    """
    folders = list(folders)
    files = [file for name in names for file in _files_of(name, folders, config)]
    if len(files) < 2:
        return files
    with_pairs = [holds_pairs(file) for file in files]
    if len(files) == 2 and not any(with_pairs):
        return files
    if not all(with_pairs):
        some = files[with_pairs.index(True)] if any(with_pairs) else None
        single = files[with_pairs.index(False)]
        received = (
            f"{some} holds pairs, and {single} does not"
            if some
            else f"received {counted(len(files), 'file')} without tabs"
        )
        raise DataError(
            Argument(argument),
            f": {received}. A corpus is one or more files of pairs, or two files with one side each. Give one or the "
            "other. To join the parts of a side, use cat, in the same order for both sides.",
        )
    repeated, times = Counter(map(str, files)).most_common(1)[0]
    if times > 1:
        raise DataError(Argument(argument), f" names {repeated} {times} times. Name each file once.")
    if len({file.suffix if file.suffix in ONLY_PAIRS or is_memory(file) else "" for file in files}) > 1:
        raise DataError(
            Argument(argument),
            f" received {first_names([str(file) for file in files])}. The files of one corpus have the same format. "
            "Prepare one of them, and add the others as further corpora.",
        )
    return [replace(files[0], shards=tuple(files))]


def holds_pairs(file: TextFile) -> bool:
    """Return whether a file holds both sides: by its format, or by a tab in nearly all of its first lines."""
    if file.suffix in ONLY_PAIRS or is_memory(file):
        return True
    lines = [line for _, line in itertools.islice(numbered_lines(file), LOOKED_AT) if isinstance(line, str)]
    texts = [line for line in lines if line.strip()]
    with_tab = sum("\t" in line.strip() for line in texts)
    return bool(texts) and with_tab >= LEAST_WITH_TAB * len(texts)


def _files_of(name: str, folders: list[Path], config: DataConfig) -> list[TextFile]:
    """Return the files that a name stands for."""
    path = Path(os.path.expanduser(name))  # noqa: PTH111 - Path.expanduser raises for an unknown user
    if _WITH_PATTERN.search(name) and not path.exists():
        places = [path] if path.name != name else [path, *(folder / name for folder in folders)]
        for place in places:
            matches = sorted(match for match in place.parent.glob(place.name) if match.is_file())
            if matches:
                return [find_text_file(str(match), []) for match in matches]
    for place in [path] if path.name != name else [path, *(folder / name for folder in folders)]:
        if place.is_dir():
            return _files_of_folder(place, config)
    if path.suffix.lower() == ".zip":
        archive = find_file(name, folders, "file")
        with reading(archive), zipfile.ZipFile(archive) as opened:
            members = [entry.filename for entry in opened.infolist() if entry.filename and not entry.is_dir()]
        texts = [TextFile(archive, member) for member in members if member.isprintable() and not is_note(member)]
        if len(texts) > 1 and not all(text.suffix in MEMORIES for text in texts):
            return _corpus_among(texts, str(archive), config) or [find_text_file(name, folders)]
    return [find_text_file(name, folders)]


def _files_of_folder(folder: Path, config: DataConfig) -> list[TextFile]:
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file() and not is_note(entry.name))
    if _DATA_SETS in names:
        splits = [entry for entry in sorted(folder.iterdir()) if entry.is_dir()]
        training = next((split for split in splits if split.name == "train"), folder / "SPLIT")
        options = [f"--{split.name} {split}" for split in splits if split.name in ("validation", "test")]
        raise DataError(
            f"{folder} holds the splits {first_names([split.name for split in splits])} of a data set that Hugging "
            f"Face datasets saved. A split is a corpus. Give {' '.join([str(training), *options])}."
        )
    if _DATA_SET in names:
        names = [name for name in names if name.endswith(ARROW)]
    files = [TextFile(folder / name) for name in names]
    chosen = files if len(files) == 1 else _corpus_among(files, str(folder), config)
    if not chosen:
        raise DataError(
            f"{folder} is a folder with {first_names(names) or 'no files'}. A folder is a corpus if all its files are "
            "of one format, or if it has two files with one side each, such as train.de and train.en. Name the files, "
            "for example with a pattern in quotes."
        )
    return chosen


def _corpus_among(files: list[TextFile], name: str, config: DataConfig) -> list[TextFile]:
    """Return two sides, or shards of one format, among the files of a folder or archive; [] if it is neither."""
    sides = _sides_among(files, config)
    if len(sides) == 1:
        return sides[0]
    if len(sides) > 1:
        pairs = [" ".join(map(str, pair)) for pair in sides]
        raise DataError(
            f"{name} holds several pairs of files: {first_names(pairs)}. Give the two files of one pair: {pairs[0]}"
        )
    if len({file.suffix for file in files}) == 1 and all(map(holds_pairs, files)):
        return sorted(files, key=str)
    return []


def _sides_among(files: list[TextFile], config: DataConfig) -> list[list[TextFile]]:
    """Return the pairs of files whose names differ in the language code at their ends, as in Moses corpora."""
    by_stem: dict[str, dict[str, TextFile]] = defaultdict(dict)
    for file in files:
        name = file.own_name[: -len(".gz")] if file.own_name.lower().endswith(".gz") else file.own_name
        stem, _, code = name.rpartition(".")
        if code.lower() == "txt":  # train-en.txt
            stem, _, code = stem.replace("-", ".").replace("_", ".").rpartition(".")
        if stem and code_in_name(code):
            by_stem[stem][code] = file
    return [
        [sides[code] for code in _ordered(list(sides), stem, config)]
        for stem, sides in by_stem.items()
        if len(sides) == 2
    ]


def _ordered(codes: list[str], stem: str, config: DataConfig) -> list[str]:
    """Order two codes as the configured languages, else as in the name of the files, as in "Toy.de-en"."""
    by_code = {code_in_name(code) or code: code for code in codes}
    asked = [matching_code(code or "", list(by_code)) for code in (config.source_language, config.target_language)]
    for position, code in enumerate(asked):
        if code in by_code:
            first = by_code[code]
            second = next(name for name in codes if name != first)
            return [first, second] if position == 0 else [second, first]
    parts = re.split(r"[^A-Za-z]+", stem)
    if all(code in parts for code in codes):
        return sorted(codes, key=parts.index)
    return sorted(codes)
