"""Data sets of the Hugging Face Hub by name, as the Parquet files into which the Hub converts every public data set.

The interface is described at https://huggingface.co/docs/dataset-viewer/parquet: a query returns ``{"parquet_files":
[...], "partial": ...}``, with the fields of ``HubFile`` in each entry. No code of a data set runs.
"""

import re
from typing import Any, NamedTuple

from nmt.config.languages import matching_code
from nmt.data.sources.public import PublicFile, check_size, checked_fields, query
from nmt.data.sources.text_file import first_names
from nmt.errors import DataError, NotFoundError
from nmt.storage.names import check_name

PARQUET_FILES = "https://datasets-server.huggingface.co/parquet"
_FIELDS: dict[str, type] = {"config": str, "split": str, "url": str, "filename": str, "size": int}


class HubFile(NamedTuple):
    """A Parquet file of a data set."""

    config: str
    """Subset of the data set, often a language pair such as "de-en"."""
    split: str
    """Such as "train" or "validation"."""
    url: str
    filename: str
    size: int
    """Size in bytes."""


def hub_files(name: str, languages: tuple[str, str], *, large: bool) -> list[tuple[str, PublicFile]]:
    """Return the splits and files of a data set.

    Args:
        name: name of the data set, such as "opus_books", or name and subset with a colon between.
        languages: codes of the two languages, which choose the subset if the name does not.
        large: whether a large download is allowed.

    Raises:
        NotFoundError: if no subset, or more than one, fits the languages.
        DataError: if the Hub cannot be reached or answers otherwise than it is documented, or the files are large and
            ``large`` is false.
    """
    data_set, _, config = name.partition(":")
    answer = query(PARQUET_FILES, {"dataset": data_set})
    entries = answer.get("parquet_files") if isinstance(answer, dict) else None
    if not isinstance(entries, list):
        raise DataError(
            f"{PARQUET_FILES} answers without a list of files. It may have changed. Download the data set yourself."
        )
    if answer.get("partial"):
        raise DataError(
            f"The Hub has converted only a part of {data_set} to Parquet, since it is large. Download the files of the "
            "data set yourself, and give them to nmt prepare."
        )
    files = [_hub_file(entry) for entry in entries]
    config = config or _config_of(data_set, files, languages)
    chosen = [file for file in files if file.config == config]
    if not chosen:
        raise NotFoundError(
            f"{data_set} has no subset {config!r}. It has {first_names(sorted({file.config for file in files}))}."
        )
    card = f"https://huggingface.co/datasets/{data_set}"
    credit = f"data set {data_set}, subset {config}, of the Hugging Face Hub. Its licence is stated at {card}"
    check_size(name, sum(file.size for file in chosen), credit, large=large)
    prefix = f"{data_set.replace('/', '_')}.{config}"
    return [
        (file.split, PublicFile(check_name(f"{prefix}.{file.split}.{file.filename}", "file"), file.url, credit))
        for file in chosen
    ]


def _hub_file(entry: Any) -> HubFile:
    fields = checked_fields(entry, _FIELDS, PARQUET_FILES)
    return HubFile(**{name: fields[name] for name in _FIELDS})


def _config_of(data_set: str, files: list[HubFile], languages: tuple[str, str]) -> str:
    """Return the only subset, or the only one whose name has both languages."""
    configs = sorted({file.config for file in files})
    if len(configs) == 1:
        return configs[0]
    fitting = []
    for config in configs:
        codes = re.split(r"[^A-Za-z]+", config)
        if all(matching_code(language, codes) in codes for language in languages):
            fitting.append(config)
    if len(fitting) != 1:
        reason = "several subsets" if fitting else "no subset"
        raise NotFoundError(
            f"{data_set} has {reason} for {'-'.join(languages)}: {first_names(fitting or configs) or 'none'}. Name "
            f"one: nmt fetch huggingface:{data_set}:SUBSET {'-'.join(languages)}"
        )
    return fitting[0]
