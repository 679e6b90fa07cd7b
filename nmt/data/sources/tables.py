"""Readers of tables of text: TSV, and CSV with quotes. The first lines tell the columns, the header and the delimiter.

A tab in a sentence would cut its translation, so lines with more columns than most lines are dropped and counted.
"""

import csv
import itertools
from collections import Counter, deque
from collections.abc import Iterator
from typing import NamedTuple

from nmt.config.data import DataConfig
from nmt.data.sources.columns import choose_columns
from nmt.data.sources.pairs import NumberedPairs, Pair, blank_line
from nmt.data.sources.text_file import TextFile, Unreadable, numbered_lines
from nmt.errors import DataError, counted
from nmt.message import Settings
from nmt.tokenizers.scripts import split_words

CSV = ".csv"
SAMPLE_LINES = 1000  # first lines that tell the layout of a table
SAMPLE_CHARACTERS = 2**20  # the same limit in characters
MOST_CUT = 0.2  # largest share of the first lines that may have more columns than most lines
MOST_LINES = 64  # lines that a row in quotes may have; an unclosed quote would take the rest of the file
LONGEST_NAME = 40  # characters of the name of a column
FEWEST_ROWS = 10  # with fewer rows, the first one is not doubted
MOST_ROWS = 0.95  # share of the other rows with texts of several words, if the first row of words is doubted
_DELIMITERS = (",", ";", "\t")
_NAMES = {",": "comma", ";": "semicolon", "\t": "tab"}

Rows = Iterator[tuple[int, list[str] | Unreadable]]
"""Iterator over (number of the first line of a row, counted from 1; its cells)."""


class Layout(NamedTuple):
    """Layout of a table."""

    delimiter: str
    """Character between two cells."""
    source: int
    """Index of the column with the source, from 0."""
    target: int
    """Index of the column with the target, from 0."""
    columns: int
    """Number of columns of most rows."""
    header: list[str] | None
    """Cells of the first row if it names the columns."""
    is_recognized: bool
    """Whether the header was recognized by its names rather than set."""
    doubtful_header: list[str] | None = None
    """Cells of the first row if it is taken for a pair and may name the columns in another language."""

    def facts(self, file: TextFile) -> list[str]:
        """Return what the data report says about the layout."""
        facts = []
        if self.delimiter != "\t" or file.suffix == CSV:
            facts.append(f"{file.name}: columns are separated by a {_NAMES[self.delimiter]}")
        if self.header is not None and self.is_recognized:
            source, target = self.header[self.source], self.header[self.target]
            facts.append(
                f"{file.name}: the first line names the columns {source!r} (source) and {target!r} (target); if it is "
                "a pair, set data.header=false"
            )
        if self.doubtful_header:
            facts.append(
                f"{file.name}: the first line, {' | '.join(self.doubtful_header)!r}, is a pair; if it names the "
                "columns, set data.header=true"
            )
        return facts


def read_table(file: TextFile, config: DataConfig) -> NumberedPairs:
    """Yield the numbered pairs of a TSV or CSV file.

    Raises:
        DataError: if the columns cannot be told. A single bad row is yielded as ``Unreadable``.
    """
    layout = table_layout(file, config)
    rows = _rows(file, layout.delimiter)
    if layout.header is not None:
        next(rows, None)
    source, target = layout.source, layout.target
    needed = max(source, target) + 1
    for number, cells in rows:
        if isinstance(cells, Unreadable):
            yield number, cells
        elif needed <= len(cells) <= layout.columns and cells != layout.header:
            yield number, Pair(cells[source], cells[target])
        else:
            yield number, _bad_row(file, number, cells, layout)


def _bad_row(file: TextFile, number: int, cells: list[str], layout: Layout) -> Unreadable:
    text = layout.delimiter.join(cells)
    place = f"{file}, line {number}"
    if not text.strip():
        return blank_line(file, number)
    if cells == layout.header:
        message = f"{place} repeats the names of the columns. Remove the line"
        return Unreadable("header repeated", message, text, is_dropped=True)
    if len(cells) > layout.columns:
        return Unreadable(f"more columns than most lines: a {_NAMES[layout.delimiter]} within a sentence?", (
            f"{place} has {counted(len(cells), 'column')}, and most lines have {layout.columns}: {text[:60]!r}. "
            f"Replace the {_NAMES[layout.delimiter]} within a sentence"
        ), text, is_dropped=True)  # fmt: skip
    delimiter = _NAMES[layout.delimiter]
    received = f"no {delimiter}" if len(cells) == 1 else f"{len(cells)} columns"
    return Unreadable("too few columns", (
        f"{place} has {received}: {text[:60]!r}. Each line of a {'CSV' if file.suffix == CSV else 'TSV'} corpus has a "
        f"source sentence in column {layout.source + 1} and its translation in column {layout.target + 1}, separated "
        f"by {delimiter}s.{_guess(text, number)} Correct or remove the line"
    ), text)  # fmt: skip


def _guess(text: str, number: int) -> str:
    """Return what the first line of a file looks like, as a hint; "" if it looks like nothing known."""
    if number > 1:
        return ""
    if text.lstrip().startswith(("{", "[{")):
        return " The file looks like JSON: give it the suffix .jsonl, or .json if it is one list."
    if text.count(";") == 1 or text.startswith('"') or "," in text:
        return " If it is a CSV file, give it the suffix .csv."
    return " A file with the sentences of one language needs a second file with their translations."


# --- the layout


def table_layout(file: TextFile, config: DataConfig) -> Layout:
    """Return the layout of a table, as configured and as its first lines show it.

    Raises:
        DataError: if the header lacks a configured name, or the first lines have differing numbers of columns.
    """
    delimiter = _delimiter(file) if file.suffix == CSV else "\t"
    sample = [cells for _, cells in _sample(_rows(file, delimiter)) if not isinstance(cells, Unreadable)]
    first = sample[0] if sample else []
    configured = [config.source_column, config.target_column]
    named = any(isinstance(column, str) for column in configured)
    header = first if (config.header is True or named) and sample else None
    columns = [configured[0] or 1, configured[1] or 2]
    is_recognized = False
    if header is None and config.header == "auto" and _is_header(first, configured, config):
        header, is_recognized = first, True
    chosen = choose_columns(header, config) if header is not None and configured == [None, None] else None
    columns = list(chosen) if chosen else columns
    source, target = (_index(file, header or first, column) for column in columns)
    rows = [cells for cells in (sample[1:] if header is not None else sample) if any(map(str.strip, cells))]
    if configured == [None, None]:
        _refuse_numbers(file, rows, (source, target))
    most = _columns_of_most(file, rows, header, max(source, target) + 1)
    doubtful = first if header is None and config.header == "auto" and _may_be_header(first, rows) else None
    return Layout(delimiter, source, target, most, header, is_recognized, doubtful)


def _is_header(cells: list[str], configured: list[int | str | None], config: DataConfig) -> bool:
    """Return whether the first row of a table names its columns."""
    if len(cells) < 2 or any(len(cell) > LONGEST_NAME for cell in cells):
        return False
    if configured == [None, None]:
        return choose_columns(cells, config) is not None
    indices = [int(configured[0] or 1) - 1, int(configured[1] or 2) - 1]
    return max(indices) < len(cells) and choose_columns([cells[index] for index in indices], config) is not None


def _may_be_header(cells: list[str], rows: list[list[str]]) -> bool:
    """Return whether the first row has a single word in each cell, and nearly all other rows have longer texts."""
    if len(cells) < 2 or any(len(split_words(cell)) != 1 for cell in cells):
        return False
    texts = sum(any(len(split_words(cell)) > 1 for cell in row) for row in rows[1:])
    return len(rows) > FEWEST_ROWS and texts >= MOST_ROWS * (len(rows) - 1)


def _index(file: TextFile, header: list[str], column: int | str) -> int:
    if isinstance(column, int):
        return column - 1
    if column not in header:
        raise DataError(
            f"{file}, line 1 names the columns {', '.join(header)[:200]!r}, not {column!r}. Set data.source_column and "
            "data.target_column to two of these names, or to numbers from 1."
        )
    return header.index(column)


def _refuse_numbers(file: TextFile, rows: list[list[str]], columns: tuple[int, int]) -> None:
    """Check that two of more than two columns hold text, and not for example the numbers of sentences.

    Raises:
        DataError: if each row after the first, which may name the columns, has a number in one of the two.
    """
    body = [cells for cells in rows[1:] if len(cells) > max(2, *columns)]
    if not body or len(body) < len(rows) // 2:
        return
    numbers = [index for index in columns if all(cells[index].strip().isdecimal() for cells in body)]
    if not numbers:
        return
    width = min(map(len, body))
    lengths = [sum(len(cells[index]) for cells in body) for index in range(width)]
    first, second = sorted(sorted(range(width), key=lengths.__getitem__)[-2:])
    raise DataError(
        f"{file}: column {numbers[0] + 1} holds only numbers, such as {body[0][numbers[0]].strip()!r:.40}. Two columns "
        "must hold the sentences: 1 and 2, unless the first line names them. Say where they are, for example with ",
        Settings({"data.source_column": first + 1, "data.target_column": second + 1}),
        ".",
    )


def _columns_of_most(file: TextFile, rows: list[list[str]], header: list[str] | None, needed: int) -> int:
    """Return the number of columns beyond which a row counts as cut by a delimiter in a sentence."""
    counts = Counter(map(len, rows))
    most = max(counts, key=lambda columns: (counts[columns], -columns)) if counts else needed
    most = max(most, needed, len(header or ()))
    longer = sum(count for columns, count in counts.items() if columns > most)
    if longer > MOST_CUT * len(rows):
        raise DataError(
            f"{file}: {longer:,} of the first {counted(len(rows), 'line')} have more columns than most, {most}. A tab "
            "or another delimiter within a sentence cuts it in two, so a corpus has the same number of columns in "
            "nearly every line. Replace such delimiters within sentences, or write cells in quotes as a CSV file. If "
            f"the further columns hold no sentences, leave them out: cut -f1-{needed} {file} > columns.tsv"
        )
    return most


def _sample(rows: Rows) -> Rows:
    characters = 0
    for number, cells in itertools.islice(rows, SAMPLE_LINES):
        yield number, cells
        characters += 0 if isinstance(cells, Unreadable) else sum(map(len, cells))
        if characters > SAMPLE_CHARACTERS:
            return


def _delimiter(file: TextFile) -> str:
    """Return the delimiter with which most of the first rows have the same number of columns, at least two."""
    best, most = ",", 0
    for delimiter in _DELIMITERS:
        counts = Counter(len(cells) for _, cells in _sample(_rows(file, delimiter)) if isinstance(cells, list))
        alike = max((count for columns, count in counts.items() if columns > 1), default=0)
        if alike > most:
            best, most = delimiter, alike
    return best


# --- rows


def _rows(file: TextFile, delimiter: str) -> Rows:
    if file.suffix == CSV:
        yield from _csv_rows(file, delimiter)
        return
    for number, line in numbered_lines(file):
        yield number, line if isinstance(line, Unreadable) else line.split(delimiter)


class _Lines:
    """Lines of a file for ``csv.reader``, which can be given back."""

    def __init__(self, file: TextFile) -> None:
        self._lines = numbered_lines(file)
        self._returned: deque[tuple[int, str | Unreadable]] = deque()
        self.row: list[tuple[int, str | Unreadable]] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        """Return the next line of a row, until the row is too long or a line is not readable."""
        if len(self.row) == MOST_LINES:
            raise StopIteration
        number, line = self._returned.popleft() if self._returned else next(self._lines)
        self.row.append((number, line))
        if isinstance(line, Unreadable):
            raise StopIteration
        return line.removeprefix("\ufeff") + "\n"

    def give_back(self) -> None:
        """Give back all lines of the row but the first."""
        self._returned.extendleft(reversed(self.row[1:]))


def _csv_rows(file: TextFile, delimiter: str) -> Rows:
    lines = _Lines(file)
    while True:
        lines.row = []
        try:
            cells = next(csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True), None)
            problem = ""
        except csv.Error as error:
            cells, problem = None, str(error)
        if not lines.row:
            return
        number, line = lines.row[0]
        if isinstance(line, Unreadable):
            yield number, line
        elif cells is not None:
            if number > 1 or not line.lower().startswith("sep="):  # a line for Excel
                yield number, cells or [""]
        else:
            yield number, Unreadable("quotes that do not end", (
                f"{file}, line {number} is no row of CSV ({problem or 'a quote is not closed'}): {line[:60]!r}. A cell "
                "that begins with a quote ends with one, and a quote within it is written twice. Correct or remove the "
                "line"
            ), line)  # fmt: skip
            lines.give_back()
