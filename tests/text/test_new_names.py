"""Names that the training text lacks reach the translation, in every language and with both engines."""

from pathlib import Path

import pytest
from conftest import MakeRun, nmt, write_tsv

from nmt.decoding.ctranslate2_engine import CTranslate2Engine
from nmt.export.base import TrainedModel
from nmt.export.ctranslate2 import CTranslate2Exporter
from nmt.text.translator import Translator

SAW = {
    "de": ("wir", "sahen", "gestern"), "zh": ("我们", "看见了", "昨天"), "ar": ("نحن", "رأينا", "أمس"),
    "hi": ("हमने", "देखा", "कल"), "tr": ("biz", "gördük", "dün"),
}  # fmt: skip
NAMES = [
    first + second for first in ("Zor", "Kel", "Mip", "Dra", "Lun") for second in ("bla", "vin", "tok", "gur", "sem")
]
LINES = ["We saw Zorbla.", "Yesterday we saw Kelvin and <b>Mipgur</b> 15 times.", "We saw Drasem. We saw Luntok, too."]
COPIED = [["Zorbla"], ["Kelvin", "<b>", "Mipgur", "15"], ["Drasem", "Luntok"]]


@pytest.fixture
def prepare_names(prepared: Path) -> None:
    """Prepare a dataset of each language beside those of ``make_run``, whose validation pairs copy names."""
    for language, (we, saw, yesterday) in SAW.items():
        words = [(f"we saw {number} times", f"{we} {saw} {number}") for number in range(40)]
        words += [("yesterday we saw them and left, too", f"{yesterday} {we} {saw}")] * 9
        write_tsv(prepared / f"{language}.tsv", words)
        write_tsv(prepared / "dev.tsv", [(f"we saw {name}", f"{we} {saw} {name}") for name in NAMES])
        keys = [f"data.{key}" for key in ("tokenizer=subword", "vocabulary_size=70", "byte_fallback=false")]
        settings = [part for key in keys for part in ("--set", key)]
        files = [f"{language}.tsv", "--validation", "dev.tsv", "--languages", f"en-{language}"]
        nmt("prepare", *files, *settings, "--name", f"names-{language}", cwd=prepared)


@pytest.mark.slow
@pytest.mark.parametrize("language", SAW)
def test_both_engines_copy_names_that_the_training_text_lacks(
    prepare_names: None, make_run: MakeRun, language: str, tmp_path: Path
) -> None:
    run = make_run(f"names-{language}")
    ours = Translator.open(run)
    (tmp_path / "export").mkdir()
    CTranslate2Exporter().write(TrainedModel.of(run, None), tmp_path / "export")
    engine = CTranslate2Engine(tmp_path / "export", ours.config)
    theirs = Translator(engine, ours.source, ours.target, ours.config, 1, ours._manifest)
    for translator in (ours, theirs):
        for translation, pieces in zip(translator.translate(LINES), COPIED, strict=True):
            assert all(translation.count(piece) == 1 for piece in pieces), translation
    decoding = ours.config.decoding.model_copy(update={"ordinary_text": "none"})
    untouched = ours.reconfigured(decoding).translate(LINES)
    assert not any(piece in text for text, pieces in zip(untouched, COPIED, strict=True) for piece in pieces)
