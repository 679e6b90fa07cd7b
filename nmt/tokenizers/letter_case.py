"""Upper and lower case by the rules of a language, which differ from Python's for some letters.

The rules are those of Unicode's ``SpecialCasing.txt`` and of CLDR: Turkish and Azeri have two letters i, Greek capitals
have no accents, and a Dutch sentence begins with IJ. Scripts without case stay as they are. So does Georgian, whose
capitals are for headlines alone.
"""

import re
import unicodedata

_DOTTED_I = frozenset({"tr", "az", "crh", "gag"})
_GEORGIAN = re.compile("[\u10d0-\u10ff]+")
# Accents, breathings and iota subscript of Greek vowels. The dialytika stays.
_GREEK_ACCENTS = dict.fromkeys((0x300, 0x301, 0x313, 0x314, 0x342, 0x345))


def _base(language: str) -> str:
    return language.partition("-")[0].lower()


def upper(text: str, language: str) -> str:
    """Return a text in capitals.

    >>> upper("izmir", "tr"), upper("straße", "de"), upper("Αθήνα", "el"), upper("საქართველო", "ka")
    ('İZMİR', 'STRASSE', 'ΑΘΗΝΑ', 'საქართველო')
    """
    base = _base(language)
    if base in _DOTTED_I:
        text = text.replace("i", "İ")
    if base == "el":
        text = unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).translate(_GREEK_ACCENTS))
    parts, end = list[str](), 0
    for match in _GEORGIAN.finditer(text):
        parts += [text[end : match.start()].upper(), match[0]]
        end = match.end()
    return "".join([*parts, text[end:].upper()])


def lower(text: str, language: str) -> str:
    """Return a text in lower case.

    >>> lower("İZMİR", "tr"), lower("ΟΔΟΣ", "el")
    ('izmir', 'οδος')
    """
    if _base(language) in _DOTTED_I:
        text = text.replace("İ", "i").replace("I", "\N{LATIN SMALL LETTER DOTLESS I}")
    return text.lower()


def capitalize(text: str, language: str) -> str:
    """Return a text with its first letter in upper case; the rest stays as it is.

    >>> capitalize("ijs", "nl"), capitalize("istanbul", "tr"), capitalize("“hello”", "en")
    ('IJs', 'İstanbul', '“Hello”')
    """
    start = next((index for index, character in enumerate(text) if character.isalnum()), 0)
    size = 2 if _base(language) == "nl" and text[start : start + 2] == "ij" else 1
    first = text[start : start + size]
    if size == 2:
        first = first.upper()
    elif first == "i" and _base(language) in _DOTTED_I:
        first = "İ"
    else:
        first = first.title()  # of a letter such as ǆ, only the first part becomes a capital: ǅ
    return text[:start] + first + text[start + size :]


def has_case(text: str) -> bool:
    """Return whether a text has letters in upper or lower case."""
    return any(letter.lower() != letter.upper() for letter in _GEORGIAN.sub("", text))
