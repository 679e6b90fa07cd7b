"""Detection of a corpus's languages from file names, columns or a TMX file, and pairs of language codes."""

import re
from collections.abc import Mapping

from nmt.config.data import LANGUAGE, DataConfig
from nmt.data.manifest import SIDES, Side
from nmt.data.sources.formats import PICKLES, tmx_languages
from nmt.data.sources.language_codes import language_code
from nmt.data.sources.text_file import TextFile
from nmt.errors import NmtError
from nmt.message import Argument

# Codes that do not name a language pair: English words, as in "how-to-be.tsv", and a language with its region in lower
# case, as in "pt-br.tsv".
_WORDS = frozenset({"am", "an", "as", "be", "he", "ho", "id", "is", "it", "la", "lo", "my", "no", "or", "so", "to"})
_REGIONAL = frozenset({"de-ch", "fr-be", "fr-ca", "fr-ch", "it-ch", "nl-be", "pt-br", "zh-tw"})

MOST_PARTS = 3
"""Number of parts of the longest code: language, script and region."""

Codes = tuple[str | None, str | None]
"""Language codes of source and target; None if unknown."""


def language_pair(text: str) -> tuple[str, str]:
    """Return the two codes in ``text``, such as "en-de", or "en,pt-BR" if a code has a region.

    Raises:
        NmtError: if ``text`` is not a pair of codes.
    """
    codes = [code.strip().partition("-") for code in text.split("," if "," in text else "-")]
    match [f"{language.lower()}{hyphen}{variety}" for language, hyphen, variety in codes]:
        case [source, target] if re.fullmatch(LANGUAGE, source) and re.fullmatch(LANGUAGE, target):
            return source, target
    raise NmtError(
        Argument("languages"),
        f" is {text[:60]!r}. It takes the codes of source and target, two or three letters each, such as "
        "en-de; a code with a region is separated by a comma, as in en,pt-BR. Give two such codes.",
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
        DataError: for a TMX file that cannot be read.
    """
    configured = (config.source_language, config.target_language)
    if "auto" not in configured:
        return config
    detected = _codes_of_two_files(*files) if len(files) == 2 else _codes_of_file(files[0], config, named)
    if detected == (None, None) and fallback:
        detected = fallback.source_language, fallback.target_language
    sides = list(zip(configured, detected, strict=True))
    if any(code not in {"auto", None} and not _same_language(code, guess) for code, guess in sides):
        sides = [(code, None) for code in configured]
    source, target = (code if code != "auto" else None if guess == "auto" else guess for code, guess in sides)
    return config.model_copy(update={"source_language": source, "target_language": target})


def _same_language(first: str | None, second: str | None) -> bool:
    """Return whether two codes have the same language; script and region do not count."""
    first, second = (str(language_code(code or "") or code).partition("-")[0] for code in (first, second))
    return first == second


def _codes_of_file(file: TextFile, config: DataConfig, named: tuple[str, str] | None) -> Codes:
    """Return the codes in a TMX file, in the names of columns, or in the name of a file of pairs."""
    columns: tuple[int | str | None, int | str | None] = (config.source_column, config.target_column)
    if file.suffix == ".tmx":  # TMX states its languages, so unknown codes are accepted
        stated = tmx_languages(file, config) or ("", "")
        first, second = (language_code(code) or (code if re.fullmatch(LANGUAGE, code) else None) for code in stated)
        return first, second
    source, target = _pair_in_name(file.own_name)
    if file.suffix in PICKLES:  # their columns are fixed
        return source, target
    columns = named or columns
    if any(isinstance(column, str) for column in columns):
        return language_code(str(columns[0])), language_code(str(columns[1]))
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
        code = language_code("-".join(parts[start:]))
        if code:
            return code
    return None


def _pair_in_name(name: str) -> Codes:
    """Return two adjacent codes that are the only ones between dots: "wmt14.en-de.tsv", "english-german-both.pkl".

    Three-letter codes and names of archives do not count: "deu-eng.zip" of manythings.org has English first.
    """
    for dotted in reversed(name.split(".")):
        parts = re.split("[-_]", dotted.lower())
        codes = [language_code(part) if len(part) != 3 else None for part in parts]
        match [place for place, code in enumerate(codes) if code]:
            case [first, second] if second == first + 1 and codes[first] != codes[second]:
                pair = parts[first : second + 1]
                if "-".join(pair) not in _REGIONAL and not _WORDS.issuperset(pair):
                    return codes[first], codes[second]
    return None, None


def languages_differ(first: Mapping[Side, str], second: Mapping[Side, str]) -> bool:
    """Return whether the languages of two datasets differ on a side where both are known; regions do not count.

    Args:
        first, second: ``Manifest.languages`` of the two datasets.
    """
    known = [side for side in SIDES if side not in {first[side], second[side]}]
    return any(not _same_language(first[side], second[side]) for side in known)
