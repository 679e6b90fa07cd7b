"""Text of any script is drawn in an installed font, and characters that no font has are named once."""

import unicodedata
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import matplotlib as mpl
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import font_manager
from typer.testing import CliRunner

from nmt.cli.app import app
from nmt.plotting import fonts, style
from nmt.plotting.attention import draw_attention

TEXTS = {
    "Arabic": "مرحبا بالعالم", "Hebrew": "שלום עולם", "Devanagari": "हिन्दी", "Thai": "ภาษาไทย", "Ethiopic": "ሰላም",
    "Khmer": "ភាសាខ្មែរ", "CJK": "日本語、カタカナ", "Turkish": "ışık İzmir", "German": "größer",
}  # fmt: skip
IN_EVERY_INSTALLATION = ("Arabic", "Hebrew", "Turkish", "German")


def make_font(path: Path, family: str, characters: str) -> Path:
    """Write a font whose glyphs are boxes."""
    names = {ord(character): f"u{ord(character):x}" for character in characters}
    builder = FontBuilder(1000)
    builder.setupGlyphOrder([".notdef", *names.values()])
    builder.setupCharacterMap(names)
    pen = TTGlyphPen(None)
    for corner in ((0, 0), (0, 500), (500, 500), (500, 0)):
        (pen.lineTo if corner != (0, 0) else pen.moveTo)(corner)
    pen.closePath()
    glyph = pen.glyph()
    builder.setupGlyf(dict.fromkeys([".notdef", *names.values()], glyph))
    builder.setupHorizontalMetrics(dict.fromkeys([".notdef", *names.values()], (600, 0)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=800, usWeightClass=400)
    builder.setupPost()
    builder.save(path)
    return path


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A computer without fonts but those of matplotlib. ``install`` installs a font while nmt does not run."""
    own = [font for font in font_manager.fontManager.ttflist if Path(font.fname).is_relative_to(mpl.get_data_path())]
    installed: list[str] = []
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: installed)

    def forget() -> None:
        for function in (fonts._installed, fonts._families_with, fonts._characters):
            function.cache_clear()

    def install(family: str, characters: str) -> None:
        installed.append(str(make_font(tmp_path / f"{family}.ttf", family, characters)))
        forget()

    forget()
    yield SimpleNamespace(install=install, files=installed)
    forget()


def test_a_font_that_was_installed_later_is_found_and_the_usual_one_comes_first(system: SimpleNamespace) -> None:
    assert fonts.families(TEXTS["Ethiopic"]) == [fonts.USUAL]
    system.install("A Serif", "ሰላም")
    system.install("Some Sans Ethiopic", "ሰላም")
    system.install("Letters of Khmer", TEXTS["Khmer"])
    assert fonts.families(TEXTS["Ethiopic"]) == [fonts.USUAL, "Some Sans Ethiopic"]
    assert fonts.families("ሰ ភ a") == [fonts.USUAL, "Some Sans Ethiopic", "Letters of Khmer"]
    system.files.append(__file__)
    fonts._installed.cache_clear()
    assert fonts.families("größer")[1:] == [], "a file that is no font is no obstacle"


def test_east_asian_families_have_an_order(system: SimpleNamespace) -> None:
    for family in ("A Sans with few", "Noto Sans CJK SC", "Noto Sans CJK JP"):
        system.install(family, "日本語")
    assert fonts.families("日本") == [fonts.USUAL, "Noto Sans CJK JP"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_figure_of_a_script_is_drawn_without_warnings_and_missing_characters_are_known(
    system: SimpleNamespace, name: str, tmp_path: Path
) -> None:
    def draw() -> list[str]:
        figure = style.empty_figure()
        tokens = TEXTS[name].split()
        weights = [[1 / len(tokens)] * len(tokens)] * len(tokens)
        draw_attention(figure, [("", style.np.array(weights))], ("target", tokens), ("source", tokens), "a", "b")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            style.save(figure, style.output_figure(tmp_path / "a.png"))
        return fonts.missing_characters(figure)

    missing = draw()
    assert missing == ([] if name in IN_EVERY_INSTALLATION else sorted(set(TEXTS[name].replace(" ", ""))))
    system.install(f"Noto Sans {name}", TEXTS[name])
    assert draw() == []
    if missing:
        assert f"({name}, such as " in fonts.missing_note(missing)


def test_letters_are_joined_and_written_from_right_to_left() -> None:
    figure = style.empty_figure()

    def width(text: str) -> float:
        artist = figure.text(0, 0, text, fontsize=40)
        style.show_literally(artist)
        return artist.get_window_extent().width

    assert width("ببب") < 2 * width("ب"), "joined letters are narrower"


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_the_command_says_once_which_characters_no_font_has(
    system: SimpleNamespace, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"a.{suffix}"
    done = CliRunner().invoke(app, ["plot", "masks", "ሰላም ሰላም हिन्दी größer שלום 日本", "--output", str(path)])
    assert done.exit_code == 0 and path.exists()
    assert done.stdout == f"{path}\n"
    if suffix == "svg":
        assert done.stderr == ""
        assert "ሰላም" in path.read_text(), "the viewer has its own fonts"
        return
    [message] = done.stderr.splitlines()
    assert message.startswith(f"nmt: {path}: no installed font has 11 of the figure's characters")
    for part in (
        "Devanagari, such as",
        "Ethiopic, such as",
        "CJK, such as",
        "fonts-noto-cjk",
        "fonts-noto-core",
        ".svg",
    ):
        assert part in message
    system.install("All", "ሰላምहिन्दी日本")
    done = CliRunner().invoke(app, ["plot", "masks", "ሰላም हिन्दी 日本", "--output", str(path)])
    assert (done.exit_code, done.stderr) == (0, "")


@given(st.text(st.sampled_from("abनिीขน้ำ́ᅡ\u200d\u200c字")).map("a{}".format), st.integers(3, 12))
def test_a_cut_does_not_part_a_letter_from_its_signs(text: str, longest: int) -> None:
    cut = style.shortened(text, longest)
    assert len(cut) <= longest
    if cut == text:
        return
    start, end = cut.split("…")
    assert text.startswith(start) and text.endswith(end)
    for following in (text[len(start) :], end):
        assert not unicodedata.category(following[:1] or "a").startswith("M")
