"""Tables on the console stay aligned with wide, combining and right-to-left characters; files get the bare text."""

import io
import re
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from nmt.cli.inspection import tokens
from nmt.errors import printable
from nmt.evaluation.evaluate import evaluate
from nmt.evaluation.result import print_evaluation
from nmt.tokenizers.base import Token

NAMES = ["模型", "かな", "हिन्दी", "ภาษาไทยน้ำ", "مرحبا", "größe", "ışık", "base"]


def test_columns_of_scores_begin_at_the_same_place_whatever_the_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "这是一本书。\nهذا كتاب (NMT) جديد.\nयह किताब है।\nนี่คือหนังสือ\n"
    for name in [*NAMES, "s", "r"]:
        Path(name).write_text(lines)
    record = evaluate(hypotheses=NAMES, source="s", references=["r"], metrics=["bleu", "chrf"], resamples=0).record
    console = Console(file=io.StringIO(), width=120, highlight=False, markup=False, emoji=False)
    print_evaluation(record, console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    rows = [line for line in shown.splitlines() if re.match(rf"({'|'.join(NAMES)})\s+\d", line)]
    ends = {tuple(cell_len(row[: number.end()]) for number in re.finditer(r"\d+\.\d", row)) for row in rows}
    assert len(rows) == len(NAMES) and len(ends) == 1
    for text in lines.splitlines():
        assert text in shown, "no marks of direction are added"


def test_tokens_stand_above_their_ids_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class TerminalFile(io.StringIO):
        def isatty(self) -> bool:
            return True

    row = [Token(number, piece, "piece") for number, piece in enumerate(["▁这是", "หนังสือ", "किताब", "مرحبا", "x"], 10)]
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "dumb")
    file = TerminalFile()
    monkeypatch.setattr("sys.stdout", file)
    tokens._show(row)
    pieces, ids = file.getvalue().splitlines()[:2]
    starts = [cell_len(pieces[: pieces.index(token.piece)]) for token in row]
    assert starts == [ids.index(str(token.id)) for token in row]


@pytest.mark.parametrize("text", ["می‌شود", "क्‍ष", "Quoi\u202f?", "l\u00a0a", "日本\u3000語", "👨‍👩‍👧", "a\nb"])
def test_ordinary_text_is_shown_as_it_is(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[1m", r"a\x1b[1m"),
        ("\u202eab", r"\u202eab"),
        ("a\u200bb\u2028", r"a\u200bb\u2028"),
        ("\u2066", r"\u2066"),
    ],
)
def test_controls_and_marks_of_direction_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
