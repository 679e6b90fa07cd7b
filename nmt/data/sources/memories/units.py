"""Translation units of memories and catalogues: their record, the choice of two languages, and the pairs of a unit."""

from collections.abc import Iterator
from typing import NamedTuple

from nmt.config.data import DataConfig
from nmt.config.languages import standard_code
from nmt.data.sources.text_file import Unreadable, first_names
from nmt.errors import DataError
from nmt.message import Settings

SOURCE_TEXT = "msgid"
"""Stands for the language of a catalogue's source texts, which most catalogues do not name. It may be any language."""
UNNAMED = "msgstr"
"""Stands for the language of translations if a catalogue does not name it. It may be any language."""


class Unit(NamedTuple):
    """A translation unit, or an entry of a catalogue."""

    segments: list[tuple[str, str]]
    """(Language code in lower case, text) of each segment. A language may occur several times."""
    fault: Unreadable | None = None
    """Why the unit holds no pair."""
    line: int = 0
    """Number of its line in a catalogue; 0 in XML, where units are counted."""


def without_pair(reason: str, name: str, line: int, text: str) -> Unit:
    """Return a unit that holds no pair, as many files have it. It is dropped and counted without a setting.

    Args:
        reason: why it holds no pair, such as "untranslated".
        name: name of the file.
        line: number of its line.
        text: text of the unit.
    """
    message = f"{name}, line {line} is {reason}: {text[:60]!r}"
    return Unit([], Unreadable(reason, message, text, is_dropped=True), line)


class ReadUnit(NamedTuple):
    """A unit with what is known of its file so far."""

    unit: Unit
    file: str
    """Name of the file."""
    source_language: str
    """Source language that the file declares, or ""."""


class Languages(NamedTuple):
    """The two languages of a corpus."""

    source: str
    target: str
    are_broad: bool
    """Whether varieties of the languages count too, such as en-gb for en-us."""

    def pairs(self, unit: Unit) -> list[tuple[str, str]]:
        """Return the pairs of a unit: each further segment in a language is a pair with the first opposite segment."""
        sources = [text for language, text in unit.segments if self._matches(self.source, language)]
        targets = [text for language, text in unit.segments if self._matches(self.target, language)]
        if not sources or not targets:
            return []
        return [(sources[0], target) for target in targets] + [(source, targets[0]) for source in sources[1:]]

    def _matches(self, wanted: str, language: str) -> bool:
        if language == wanted:
            return True
        if language == SOURCE_TEXT:
            return wanted == self.source and self.target != SOURCE_TEXT
        if language == UNNAMED:
            return wanted == (self.source if self.target == SOURCE_TEXT else self.target)
        if base_of(self.source) == base_of(self.target):  # such as simplified and traditional Chinese
            return False
        is_broad = self.are_broad or wanted == base_of(wanted)
        return base_of(language) == base_of(wanted) if is_broad else language == base_of(wanted)


def language_key(code: str) -> str:
    """Return a language code as units have it: its standard form in lower case, "pt-br" for "pt_BR", "de" for "deu".

    A text that is no language code stays as it is.
    """
    code, _, variant = code.strip().lower().replace("_", "-").partition("@")
    script = {"latin": "-latn", "cyrillic": "-cyrl"}  # of locales such as sr@latin
    code += script.get(variant, "")
    return (standard_code(code) or code).lower()


def base_of(language: str) -> str:
    """Return the language without script and region: "en" for "en-us"."""
    return language.partition("-")[0]


def choose_languages(name: str, units: Iterator[ReadUnit], config: DataConfig) -> Languages | None:
    """Return the configured languages, or else the two languages of the first unit that has more than one.

    Args:
        name: name of the file.
        units: the units.
        config: the section data.

    Returns:
        The languages; None if there are no units.

    Raises:
        DataError: if no languages are configured, and there is no such unit or it has more than two languages.
    """
    configured = (config.source_column, config.target_column)
    if all(isinstance(language, str) for language in configured):
        return Languages(language_key(str(configured[0])), language_key(str(configured[1])), False)
    rule = (
        "Without the names of two languages, the first unit with several languages must have exactly two. Name them, "
        "for example with "
    )
    remedy = Settings({"data.source_column": "en", "data.target_column": "de"})
    seen: dict[str, None] = {}
    has_units = False
    for unit, _, declared in units:
        has_units = True
        languages = list(dict.fromkeys(language for language, _ in unit.segments))
        seen |= dict.fromkeys(languages[: 20 - len(seen)])
        if len(languages) < 2:
            continue
        if configured != (None, None) or len(languages) > 2:
            shown = first_names(sorted(languages))
            raise DataError(f"{name} has segments in {shown} in one unit. {rule}", remedy)
        first, second = languages
        is_second = base_of(declared) == base_of(second) != base_of(first) or declared == second
        return Languages(second, first, True) if is_second else Languages(first, second, True)
    if not has_units or not seen:
        return None
    raise DataError(
        f"{name} has segments in {first_names(sorted(seen))}, and no unit has two languages. A pair needs a segment in "
        "each of two languages. Export the memory with its translations."
    )
