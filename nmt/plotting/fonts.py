"""Fonts for text in any script, and the characters that no installed font has.

matplotlib joins Arabic letters, places vowel signs and orders text by its direction. It does not look for fonts: text
is drawn in the given families, and a character that none of them has becomes a box.
"""

import contextlib
import logging
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.text import Text

USUAL = "DejaVu Sans"
"""Font that comes with matplotlib. It has Latin, Greek, Cyrillic, Arabic and Hebrew letters."""
EAST_ASIAN = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans JP", "Noto Sans SC", "Source Han Sans", "Source Han Sans SC",
    "Hiragino Sans", "PingFang SC", "Yu Gothic", "Microsoft YaHei", "Malgun Gothic", "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
)  # fmt: skip
"""Families that are tried first for Chinese, Japanese and Korean, since many fonts have some of these characters."""
REGULAR = 400
"""Weight of regular fonts."""
_EAST_ASIAN_NAMES = frozenset(
    {"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH", "HALFWIDTH"}
)
MOST_SCRIPTS = 3
"""Most scripts that a note names."""


def families(text: str) -> list[str]:
    """Return font families for a text: ``USUAL``, and installed families with the characters that it lacks."""
    return [USUAL, *_families_with(_uncommon(text))]


def missing_characters(figure: Figure) -> list[str]:
    """Return the characters of a figure that none of the fonts of their text has, in the order of their codes."""
    missing = set[int]()
    for artist in figure.findobj(Text):
        text = artist.get_text() if isinstance(artist, Text) and artist.get_visible() else ""
        uncommon = _uncommon(text)
        missing |= uncommon.difference(*map(_characters, _families_with(uncommon)))
    return [chr(code) for code in sorted(missing)]


def missing_note(characters: list[str]) -> str:
    """Return a note about characters that no installed font has, with the remedy."""
    examples: dict[str, str] = {}
    for character in sorted(characters, key=lambda character: unicodedata.category(character).startswith("M")):
        examples.setdefault(script(character), character)
    named = [f"{name}, such as {character}" for name, character in [*examples.items()][:MOST_SCRIPTS]]
    more = f"; and {len(examples) - MOST_SCRIPTS} more scripts" if len(examples) > MOST_SCRIPTS else ""
    packages = " ".join(dict.fromkeys("fonts-noto-cjk" if name == "CJK" else "fonts-noto-core" for name in examples))
    fonts = ", ".join(f"Noto Sans {name}" for name in [*examples][:MOST_SCRIPTS])
    return (
        f"no installed font has {len(characters):,} of the figure's characters ({'; '.join(named)}{more}). They are "
        f"drawn as boxes. Install a font that has them, such as {fonts} (Debian, Ubuntu: apt-get install {packages}), "
        "or write an .svg file, which is shown in the fonts of its viewer."
    )


def script(character: str) -> str:
    """Return the script of a character as fonts are named, such as "Ethiopic"; "CJK" for the scripts of East Asia."""
    if unicodedata.category(character).startswith("S"):
        return "Symbols"
    name = unicodedata.name(character, "SYMBOLS").split(" ")[0]
    return "CJK" if name in _EAST_ASIAN_NAMES else name.title()


def _uncommon(text: str) -> frozenset[int]:
    """Return the codes of the visible characters of a text that ``USUAL`` lacks."""
    visible = (character for character in text if not character.isspace() and unicodedata.category(character) != "Cf")
    return frozenset(map(ord, visible)) - _characters(USUAL)


@cache
def _families_with(codes: frozenset[int]) -> tuple[str, ...]:
    """Return the fewest installed families, in the order of preference, that together have these characters."""
    chosen, left = list[str](), set(codes)
    if not left:
        return ()
    scripts = {script(chr(code)) for code in codes}

    def rank(family: str) -> tuple[int, bool, bool, str]:
        preferred = EAST_ASIAN.index(family) if family in EAST_ASIAN and "CJK" in scripts else len(EAST_ASIAN)
        is_of_script = any(name in family for name in scripts)
        return preferred, not is_of_script, "Sans" not in family, family

    for family in sorted(_installed(), key=rank):
        if _characters(family) & left:
            chosen.append(family)
            left -= _characters(family)
        if not left:
            break
    return tuple(chosen)


@cache
def _installed() -> frozenset[str]:
    """Return the families of the system with a regular upright font."""
    # matplotlib's list of fonts is from its first use, so that it lacks the fonts that were installed since then.
    known = {font.fname for font in font_manager.fontManager.ttflist}
    for path in set(font_manager.findSystemFonts()) - known:
        with contextlib.suppress(Exception):  # the readers of fonts raise various errors
            font_manager.fontManager.addfont(path)
    return frozenset(font.name for font in _regular(font_manager.fontManager.ttflist))


def _regular(fonts: Iterable[font_manager.FontEntry]) -> Iterator[font_manager.FontEntry]:
    """Yield the regular upright fonts that do not come with matplotlib; its further fonts are for formulas."""
    for font in fonts:
        is_regular = font.style == "normal" and font.weight == REGULAR
        if is_regular and not Path(font.fname).is_relative_to(mpl.get_data_path()):
            yield font


@cache
def _characters(family: str) -> frozenset[int]:
    """Return the codes of the characters of a family; empty if its file cannot be read."""
    # A family as a string would be a pattern of fontconfig, in which "-" has a meaning.
    path = font_manager.findfont(font_manager.FontProperties(family=[family]))
    try:
        return frozenset(font_manager.get_font(path).get_charmap())
    except (OSError, RuntimeError):
        return frozenset()


@contextlib.contextmanager
def missing_characters_as_boxes() -> Iterator[None]:
    """Silence matplotlib's messages about characters that no font has, and about fonts without a bold face."""
    logger = logging.getLogger("matplotlib.font_manager")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")
            yield
    finally:
        logger.setLevel(level)
