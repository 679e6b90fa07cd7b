"""Choice of the columns or fields that hold source and target, by their names in the file."""

import re
from collections.abc import Iterator, Sequence

from nmt.config.data import DataConfig
from nmt.config.languages import ENGLISH_WORDS, code_in_name, matching_code

_SOURCE = re.compile(r"(source|src)([ _-]?\w*)")
_TARGETS = {"source": ("target",), "src": ("tgt", "trg")}
_NO_TEXT = ("lang", "code", "id", "url", "name", "file")  # in names such as source_lang and src_id
_ROW_NUMBER = "id"  # also the code of Indonesian


def choose_columns(names: Sequence[str], config: DataConfig) -> tuple[str, str] | None:
    """Return the names of the source and the target among the names of columns; None if the names do not tell.

    They are a pair of usual names, such as source and target, src and tgt, or sourceString and targetString, or two
    names of languages: those of ``config.source_language`` and ``config.target_language`` if they are set, else in the
    order of the file.
    """
    by_lower = {name.strip().lower(): name for name in names}
    usual = [pair for name in by_lower for pair in _usual_pairs(name) if pair[1] in by_lower]
    if usual:
        source, target = min(usual, key=lambda pair: len(pair[0]))  # source before source_tokenized
        return by_lower[source], by_lower[target]
    codes = {name: code_in_name(name.strip().rpartition(".")[2]) for name in names}
    by_code = {code: name for name, code in codes.items() if code is not None}
    if len(by_code) > 2 and by_code.get(_ROW_NUMBER, "").lower() == _ROW_NUMBER:
        del by_code[_ROW_NUMBER]
    asked = [matching_code(code or "", list(by_code)) for code in (config.source_language, config.target_language)]
    if asked[0] != asked[1] and asked[0] in by_code and asked[1] in by_code:
        return by_code[asked[0]], by_code[asked[1]]
    if len(by_code) != 2:
        return None
    first, second = by_code.values()
    return None if {first.strip().lower(), second.strip().lower()} <= ENGLISH_WORDS else (first, second)


def _usual_pairs(name: str) -> Iterator[tuple[str, str]]:
    """Yield the name of a source column in lower case with each usual name of its target column."""
    match = _SOURCE.fullmatch(name)
    if match is None or match[2].strip(" _-").startswith(_NO_TEXT):
        return
    for target in _TARGETS[match[1]]:
        yield name, target + match[2]
