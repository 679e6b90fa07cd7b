"""nmt translate says once, on standard error, that sentences are split by the rules of another language."""

import pytest

from nmt.cli.commands.translate import _Notes
from nmt.decoding.translation import Translation
from nmt.tokenizers.base import EOS


@pytest.mark.parametrize(("language", "line", "count"), [
    ("tr", "Bir gün. İki gün.", 1), ("shp", "Joshin. Joi.", 1), ("tr", "Bir gün.", 0), ("de", "Ein Tag. Zwei Tage.", 0),
    ("pt-BR", "Um dia. Dois dias.", 0), ("zh-Hans", "一天。两天。", 0), ("source", "One day. Two days.", 0),
])  # fmt: skip
def test_the_note_comes_once(capsys: pytest.CaptureFixture[str], language: str, line: str, count: int) -> None:
    for is_split in (True, False):
        notes = _Notes((language, "en"), is_split=is_split, is_whole=False)
        for name in ("line 1", "line 2"):
            notes.add([line, line], [name, name], [[Translation("One.", [], True, [7, EOS])]] * 2)
        notes.write()
        output = capsys.readouterr()
        assert output.out == ""
        assert output.err.count("are split by the rules of English") == (count if is_split else 0)
