"""Readers of sentence pairs for each file format, chosen by the suffix of the file."""

import itertools
from collections.abc import Iterator, Sequence

from nmt.config.data import DataConfig
from nmt.data.sources.columnar import COLUMNAR
from nmt.data.sources.memories.reading import is_memory, languages_of_memories, read_memory, unit_name
from nmt.data.sources.pairs import NumberedPairs, Pair, blank_line
from nmt.data.sources.pickled_array import MAX_BYTES, read_string_array
from nmt.data.sources.records import is_json_list, read_records, record_fields
from nmt.data.sources.tables import read_table, table_layout
from nmt.data.sources.text_file import (
    SHARD,
    TextFile,
    Unreadable,
    numbered_lines,
    open_bytes,
    refuse_foreign,
    text_facts,
)
from nmt.errors import DataError, counted
from nmt.message import Settings
from nmt.storage.json_file import parse_json

PICKLES = {".pkl", ".pickle"}
JSON_LINES = {".jsonl", ".ndjson"}
RECORDS = JSON_LINES | COLUMNAR | {".json"}


def unit_of(files: list[TextFile]) -> str:
    """Return the unit that ``read_pairs`` numbers: "line", "row", "item" of a list, "unit" or "entry" of a memory."""
    file = files[0]
    if file.suffix in PICKLES | COLUMNAR:
        return "row"
    if is_memory(file):
        return unit_name(file)
    return "item" if file.suffix == ".json" and is_json_list(file) else "line"


def read_pairs(files: list[TextFile], config: DataConfig) -> NumberedPairs:
    """Yield the numbered pairs of one file, of its shards, or of two line-aligned files.

    The suffix determines the format: .pkl and .pickle for a NumPy array of str, [N, 2], .jsonl and .ndjson for JSON
    Lines, .json for a list or lines, .parquet for Parquet, .arrow for Arrow, .tmx, .xlf, .xliff and .po for memories
    and catalogues, .csv for CSV, any other for TSV. A file may be packed or a member of a zip archive. The numbers of
    shard K begin at K times ``SHARD``.

    Raises:
        DataError: if a file as a whole breaks its format. A single bad pair is yielded as ``Unreadable``.
    """
    if len(files) == 2:
        for file in files:
            refuse_foreign(file)
        return _read_two_files(*files)
    file = files[0]
    if file.shards and is_memory(file):
        return _read_memories(file.shards, config)
    if file.shards:
        return _read_shards(file.shards, config)
    return _read_file(file, config)


def _read_file(file: TextFile, config: DataConfig) -> NumberedPairs:
    if file.suffix in PICKLES:
        return _read_pickle(file)
    if is_memory(file):
        return _read_memories([file], config)
    if file.suffix in COLUMNAR:
        return read_records(file, config, "row")
    refuse_foreign(file)
    if file.suffix in RECORDS:
        return read_records(file, config, unit_of([file]))
    return read_table(file, config)


def _read_shards(shards: tuple[TextFile, ...], config: DataConfig) -> NumberedPairs:
    for index, shard in enumerate(shards):
        for number, item in read_pairs([shard], config):
            yield index * SHARD + number, item


def named_columns(files: list[TextFile], config: DataConfig) -> tuple[str, str] | None:
    """Return the names of the source and the target column or field that a file shows; None if it shows none."""
    file = files[0].shards[0] if files[0].shards else files[0]
    if len(files) == 2 or file.suffix in PICKLES or is_memory(file):
        return None
    if file.suffix in RECORDS:
        fields = record_fields(file, config)
        # The last part of "translation.en" is the name.
        names = [name.rpartition(".")[2] for name in (fields.source, fields.target)]
        return (names[0], names[1]) if fields.is_recognized else None
    layout = table_layout(file, config)
    if layout.header is None or max(layout.source, layout.target) >= len(layout.header):
        return None
    return layout.header[layout.source], layout.header[layout.target]


def facts_of(files: list[TextFile], config: DataConfig) -> list[str]:
    """Return what was recognized in files rather than set, for the data report: encoding, header, delimiter, fields."""
    facts = []
    for file in files[0].shards or files:
        if file.suffix in PICKLES or is_memory(file):
            continue
        if file.suffix not in COLUMNAR:
            facts += text_facts(file)
        if len(files) == 2:
            continue
        if file.suffix in RECORDS:
            fields = record_fields(file, config)
            if fields.is_recognized:
                facts.append(
                    f"{file.name}: the source is in the field {fields.source!r}, the target in {fields.target!r}"
                )
        else:
            facts += table_layout(file, config).facts(file)
    return facts


def _read_pickle(file: TextFile) -> NumberedPairs:
    with open_bytes(file) as stream:
        rows = read_string_array(stream.read(MAX_BYTES + 1), str(file))
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise DataError(
            f"{file} holds an array of shape {rows.shape}. A pickled corpus is an array of shape (N, 2), with a pair "
            "in each row. Keep only the two columns with the sentences."
        )
    for number, (source, target) in enumerate(rows, start=1):
        yield number, Pair(str(source), str(target))


def _read_two_files(source_file: TextFile, target_file: TextFile) -> NumberedPairs:
    sides = (numbered_lines(source_file), numbered_lines(target_file))
    for number, (source, target) in enumerate(itertools.zip_longest(*sides), start=1):
        if source is None or target is None:
            short, long = (source_file, target_file) if source is None else (target_file, source_file)
            unread, all_blank = 0, True
            for _, line in itertools.chain([target if source is None else source], sides[source is None]):
                unread += 1
                all_blank = all_blank and isinstance(line, str) and not line.strip()
            if not all_blank:
                raise DataError(
                    f"{short} has {counted(number - 1, 'line')}, {long} has {number - 1 + unread:,}. Two files are "
                    "paired line by line, so they need the same number of lines. Give two files that belong together."
                )
            for place in range(number, number + unread):
                yield place, blank_line(long, place)
            return
        source_line, target_line = source[1], target[1]
        if isinstance(source_line, Unreadable):
            yield number, source_line
        elif isinstance(target_line, Unreadable):
            yield number, target_line
        else:
            yield number, Pair(source_line, target_line)


def read_scores(files: list[TextFile]) -> Iterator[float]:
    """Yield the field ``score`` of each line of JSON Lines; 0 for a line that is not JSON (see ``read_pairs``).

    Raises:
        DataError: if the file is not JSON Lines, or a line has no number in this field.
    """
    if files[0].shards:
        for shard in files[0].shards:
            yield from read_scores([shard])
        return
    if files[0].suffix not in JSON_LINES:
        raise DataError(
            f"{' and '.join(map(str, files))} has no scores. The filter score reads the field score of JSON Lines, as "
            "nmt synthesize writes it, or scores with runs. Name a run with ",
            Settings({"data.score_runs": ["RUN"]}),
            ", or leave the filter out.",
        )
    for number, line in numbered_lines(files[0]):
        try:
            score = parse_json(line)["score"] if isinstance(line, str) else 0.0
        except ValueError:
            score = 0.0
        except (KeyError, TypeError, IndexError):
            score = None
        if not isinstance(score, int | float):
            raise DataError(
                f"{files[0]}, line {number} has no number in the field score, which the filter score reads. Correct "
                "the line, or name a run that scores with ",
                Settings({"data.score_runs": ["RUN"]}),
                ".",
            )
        yield score


def _read_memories(files: Sequence[TextFile], config: DataConfig) -> NumberedPairs:
    """Yield the pairs of the shards of a corpus, all in the same two languages."""
    languages = languages_of_memories(files, config)
    for index, file in enumerate(files):
        for number, item in read_memory(file, languages):
            yield index * SHARD + number, item if isinstance(item, Unreadable) else Pair(*item)
