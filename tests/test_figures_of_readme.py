"""Figures of the front page: each result of its table is that of one row of the page of measurements."""

import re

import pytest
from conftest import ROOT

PAGE = (ROOT / "configs" / "MEASUREMENTS.md").read_text()
FRONT = (ROOT / "README.md").read_text().split("## Quality and speed")[1].split("\n## ")[0]
ROWS = [line for line in FRONT.splitlines() if line.startswith("| ")][1:]  # without its head
MACHINE = re.compile(r"Zen \d|Xeon|AMX|AVX2|int8|bfloat16")
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w.]*\d)")


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


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


def means(row: str) -> set[str]:
    """Return the means of the cells that list a score of each of three seeds."""
    lists = [cell.split(", ") for cell in cells(row) if re.fullmatch(r"\d+\.\d, \d+\.\d, \d+\.\d", cell)]
    return {f"{sum(map(float, scores)) / len(scores):.1f}" for scores in lists}


def backs(measured: str, time: str, result: str) -> bool:
    """Return whether a row of measurements states time and result."""
    results = means(measured) if "mean" in result else numbers(measured)
    return numbers(time) <= numbers(measured) and numbers(result.replace("beam 5", "beam")) <= results


def test_the_table_is_found() -> None:
    assert len(ROWS) > 5
    assert all(len(cells(row)) == 4 for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: cells(row)[0][:40])
def test_a_row_of_the_front_page_is_backed_by_one_row_of_measurements(row: str) -> None:
    _, time, result, link = cells(row)
    assert numbers(result)
    lines = section(link.split("#")[1].rstrip(")")).splitlines()
    measured = [line for line in lines if line.startswith("| ")]
    for part in result.split("; "):
        named = MACHINE.findall(part)
        backed = any(
            backs(line, time, MACHINE.sub("", part)) for line in measured if all(word in line for word in named)
        )
        assert backed, f"no row of the section has {time} {part}"


def test_wrong_figures_would_be_found() -> None:
    rows = section("multi30k-in-minutes").splitlines()
    assert any(backs(row, "7.0 minutes", "BLEU 38.3 (mean of three seeds)") for row in rows)
    for time, mean in (("7.0 minutes", "38.7"), ("", "38.8"), ("6.9 minutes", "38.3")):
        assert not any(backs(row, time, f"BLEU {mean} (mean of three seeds)") for row in rows)
