"""Languages of a corpus, from file names, columns or a memory, and how sentencex splits their sentences."""

import re
from collections.abc import Mapping

import sentencex

from nmt.config.data import DataConfig
from nmt.config.languages import (
    ENGLISH_WORDS,
    MOST_PARTS,
    code_in_name,
    language_name,
    pair_of_codes,
    refusal_of,
    same_language,
    standard_code,
)
from nmt.data.manifest import SIDES, Side
from nmt.data.sources.formats import PICKLES
from nmt.data.sources.memories.reading import is_memory, memory_languages
from nmt.data.sources.text_file import TextFile
from nmt.errors import ConfigError, NmtError
from nmt.message import Argument

# Codes of a language with its region in lower case, as in "pt-br.tsv", which do not name a language pair.
_REGIONAL = frozenset({"de-ch", "fr-be", "fr-ca", "fr-ch", "it-ch", "nl-be", "pt-br", "zh-tw"})

Codes = tuple[str | None, str | None]
"""Language codes of source and target; None if unknown."""


def language_pair(text: str) -> tuple[str, str]:
    """Return the two codes in ``text``, such as "en-de", or "en,pt-BR" if a code has a region.

    Raises:
        NmtError: if ``text`` is not a pair of codes.
    """
    if pair := pair_of_codes(text):
        return pair
    parts = text.split("," if "," in text else "-")
    unknown = [part for part in parts if part.strip() and not standard_code(part)]
    reason = f"{refusal_of(unknown[0])}. " if unknown and len(parts) == len(SIDES) else ""
    raise NmtError(
        Argument("languages"),
        f" is {text[:60]!r}. {reason}It takes the codes of source and target, such as en-de; a code with a region or "
        "a script is separated by a comma, as in en,pt-BR. Give two such codes.",
    )


def resolve_languages(
    files: list[TextFile], config: DataConfig, fallback: DataConfig | None = None, named: tuple[str, str] | None = None
) -> DataConfig:
    """Return the configuration with "auto" resolved in the language codes; None if the language is unknown.

    Detected codes are used only if they do not contradict a code that is set for the opposite side.

    Args:
        files: one file of pairs, or two files with one side each.
        config: the section data.
        fallback: settings whose languages are used if the files show none.
        named: names of the source and the target column that the file itself has.

    Raises:
        ConfigError: for a code of the configuration that is none.
        DataError: for a translation memory that cannot be read.
    """
    configured = (config.source_language, config.target_language)
    for side, code in zip(SIDES, configured, strict=True):
        if code not in {"auto", None} and not standard_code(str(code)):
            raise ConfigError(f"data.{side}_language: {refusal_of(str(code))}. Give such a code, or null.")
    if "auto" not in configured:
        return config
    detected = _codes_of_two_files(*files) if len(files) == 2 else _codes_of_file(files[0], config, named)
    if detected == (None, None) and fallback:
        detected = fallback.source_language, fallback.target_language
    sides = list(zip(configured, detected, strict=True))
    if any(code not in {"auto", None} and not same_language(str(code), guess or "") for code, guess in sides):
        sides = [(code, None) for code in configured]
    source, target = (code if code != "auto" else None if guess == "auto" else guess for code, guess in sides)
    return config.model_copy(update={"source_language": source, "target_language": target})


def _codes_of_file(file: TextFile, config: DataConfig, named: tuple[str, str] | None) -> Codes:
    """Return the codes in a memory or catalogue, in the names of columns, or in the name of a file of pairs."""
    columns = (config.source_column, config.target_column)
    if is_memory(file):
        stated = memory_languages(file, config) or ("", "")
        first, second = map(standard_code, stated)
        return first, second
    source, target = _pair_in_name(file.own_name)
    if file.suffix in PICKLES:  # their columns are fixed
        return source, target
    are_configured = any(isinstance(column, str) for column in columns)
    names = named or columns
    if named or are_configured:
        codes = code_in_name(str(names[0])), code_in_name(str(names[1]))
        if are_configured or codes != (None, None):
            return codes
    in_order = int(columns[0] or 1) < int(columns[1] or 2)
    return (source, target) if in_order else (target, source)


def _codes_of_two_files(first: TextFile, second: TextFile) -> Codes:
    """Return the last codes in which the names of two files differ, or None for both.

    Names of archive members are tried before names of archives. A code is at the end of a part between dots:
    "train.en.gz", "train-en.txt", "corpus.en-de.en".
    """
    for names in ((first.own_name, second.own_name), (first.path.name, second.path.name)):
        codes = [list(filter(None, map(_code_at_end, reversed(name.split("."))))) for name in names]
        for source, target in zip(*codes, strict=False):
            if source != target:
                return source, target
    return None, None


def _code_at_end(text: str) -> str | None:
    """Return the longest code at the end of a text, after a hyphen or underscore: pt-BR for "train-pt-br"."""
    parts = re.split("[-_]", text)[-MOST_PARTS:]
    for start in range(len(parts)):
        code = code_in_name("-".join(parts[start:]))
        if code:
            return code
    return None


def _pair_in_name(name: str) -> Codes:
    """Return two adjacent codes that are the only ones between dots: "wmt14.en-de.tsv", "english-german-both.pkl".

    Three-letter codes and names of archives do not count: "deu-eng.zip" of manythings.org has English first.
    """
    for dotted in reversed(name.split(".")):
        parts = re.split("[-_]", dotted.lower())
        codes = [code_in_name(part) if len(part) != 3 else None for part in parts]
        match [place for place, code in enumerate(codes) if code]:
            case [first, second] if second == first + 1 and codes[first] != codes[second]:
                pair = parts[first : second + 1]
                if "-".join(pair) not in _REGIONAL and not ENGLISH_WORDS.issuperset(pair):
                    return codes[first], codes[second]
    return None, None


def languages_differ(first: Mapping[Side, str], second: Mapping[Side, str]) -> bool:
    """Return whether the languages of two datasets differ on a side where both are known; regions do not count.

    Args:
        first, second: ``Manifest.languages`` of the two datasets.
    """
    known = [side for side in SIDES if side not in {first[side], second[side]}]
    return any(not same_language(first[side], second[side]) for side in known)


_TITLES = "Gov. He went. Capt. Smith went. Jan. 3"
"""Text that sentencex splits in another way with the abbreviations of any language other than English."""


def sentence_note(code: str) -> str:
    """Return a note that sentences of a language are split by the rules of English; "" if sentencex has rules for it.

    Sentencex does not say which languages it knows. Chinese and its like need no rules, since they have no
    abbreviations with a full stop.
    """
    base = code.partition("-")[0]
    if base in {"en", "zh", "yue", "ko", "th", "lo", "km", "bo", "dz", "source", "target"}:
        return ""
    if sentencex.segment(base, _TITLES) != sentencex.segment("en", _TITLES):
        return ""
    return (
        f"sentences of {language_name(base)} ({base}) are split by the rules of English, so a sentence may end after "
        "an abbreviation: sentencex has no rules for the language"
    )
