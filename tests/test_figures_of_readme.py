"""Figures of the front page: each cell of its table is backed by one row of the page of measurements."""

import re

import pytest
from conftest import ROOT

PAGE = (ROOT / "configs" / "MEASUREMENTS.md").read_text()
FRONT = (ROOT / "README.md").read_text().split("## Quality and speed")[1].split("\n## ")[0]
PROCESSOR = re.compile(r"Zen \d|Xeon")
PRECISION = re.compile(r"bfloat16|float32|int8")
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w.]*\d)")
SYSTEMS = ["nmt", "PyTorch 2.13", "Marian 1.12"]


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


HEAD, _, *ROWS = [cells(line) for line in FRONT.splitlines() if line.startswith("|")]
CASES = [
    pytest.param(title, where, cell, id=f"{title.partition(']')[0].strip('[')}-{where}-{system}")
    for title, where, *results in ROWS
    for system, cell in zip(SYSTEMS, results, strict=True)
    if cell
]


def numbers(text: str) -> set[str]:
    return {number.rstrip(",") for number in NUMBER.findall(text)}


def section(anchor: str) -> str:
    """Return the section of the measurements with this anchor, of any level, up to the next heading."""
    places = [*re.finditer(r"^#+ (.*)$", PAGE, re.MULTILINE)]
    ends = [place.start() for place in places[1:]] + [len(PAGE)]
    for place, end in zip(places, ends, strict=True):
        if re.sub(r"[^\w -]", "", place[1].lower()).replace(" ", "-") == anchor:
            return PAGE[place.end() : end]
    raise AssertionError(f"no section #{anchor}")


def measured_rows(found: str) -> list[str]:
    """Return the rows of the tables of a section, each after the head of its table."""
    tables = re.findall(r"^(\|.*)\n\|[-| ]+\|\n((?:\|.*\n?)+)", found, re.MULTILINE)
    return [f"{head}{row}" for head, rows in tables for row in rows.splitlines()]


def results(row: str, *, averaged: bool) -> set[str]:
    """Return the figures of a row. If averaged, the values of three seeds are replaced by their mean."""
    found = set()
    for cell in cells(row):
        if averaged and re.fullmatch(r"\d+\.\d, \d+\.\d, \d+\.\d", cell):
            found.add(f"{sum(map(float, cell.split(', '))) / 3:.1f}")
        else:
            found |= numbers(cell)
    return found


def backs(measured: str, where: str, cell: str) -> bool:
    """Return whether a row of measurements has the figures of a cell, the processor, and no other precision."""
    is_same_processor = set(PROCESSOR.findall(measured)) == set(PROCESSOR.findall(where))
    is_same_precision = set(PRECISION.findall(measured)) <= set(PRECISION.findall(where))
    figures = numbers(re.sub(r"beam \d", "", cell))
    has_figures = figures <= results(measured, averaged="mean" in cell)
    return is_same_processor and is_same_precision and has_figures


def test_the_table_is_found() -> None:
    assert HEAD[2:] == SYSTEMS
    assert len(CASES) > len(ROWS) > 5


@pytest.mark.parametrize(("title", "where", "cell"), CASES)
def test_a_cell_of_the_front_page_is_backed_by_one_row_of_measurements(title: str, where: str, cell: str) -> None:
    assert numbers(cell)
    found = section(title.split("#")[1].partition(")")[0])
    assert any(backs(row, where, cell) for row in measured_rows(found)), f"no row of the section has {where}: {cell}"


def test_wrong_figures_would_be_found() -> None:
    rows = measured_rows(section("multi30k-in-minutes"))
    right = "2.4, BLEU 37.5 (mean of three seeds)"
    assert any(backs(row, "Zen 5, bfloat16", right) for row in rows)
    for wrong in ("2.4, BLEU 37.4 (mean of three seeds)", "2.4, BLEU 37.8", "2.0, BLEU 37.5 (mean of three seeds)"):
        assert not any(backs(row, "Zen 5, bfloat16", wrong) for row in rows)
    rows = measured_rows(section("training-speed"))
    assert any(backs(row, "Zen 5, bfloat16", "9,907") for row in rows)
    for wrong in ("Zen 4, bfloat16", "Zen 5, float32"):
        assert not any(backs(row, wrong, "9,907") for row in rows)
    rows = measured_rows(section("translation-speed"))
    assert any(backs(row, "Zen 5, int8", "2,213; beam 5: 678") for row in rows)
    assert not any(backs(row, "Zen 4, int8", "2,213; beam 5: 678") for row in rows)
