"""Pieces of ordinary text that arrive unchanged: addresses, paths, identifiers, numbers, and marks around a line."""

import re
import unicodedata

from nmt.text.cutting import BRACKETS
from nmt.tokenizers.scripts import HAN, KANA, UNSPACED
from nmt.tokenizers.sentences import MOST_WORD_CHARACTERS

NUMBER = r"\d(?:[.,:/-]?\d)*+"
"""Regular expression of numbers, dates, times and fractions."""
# Chinese and Japanese have no space around an address or a number.
_EAST_ASIAN = f"{HAN}{KANA}\u3000-\u303f\uff01-\uff65"
_LETTER = rf"[^\W{_EAST_ASIAN}]"
_OF_ADDRESS = rf"[^\s<>\"(){_EAST_ASIAN}]"
_ASCII = "(?<![a-zA-Z0-9_])"
# Each part begins at the beginning of a word, so that a long word is searched once, not from each of its letters.
KEPT = re.compile(
    rf"(?i:https?://|www\.)(?:{_OF_ADDRESS}|\({_OF_ADDRESS}*+\))*(?:{_LETTER}|/|(?<=\)))"
    rf"|(?<![.+-])(?<!{_LETTER})(?:{_LETTER}|[.+-])++@(?:{_LETTER}|-)++\.(?:{_LETTER}|[.-])*{_LETTER}"
    rf"|(?<!{_LETTER})[@#](?:{_LETTER}++|\w++)"
    r"|(?<!\S)(?:[a-zA-Z]:\\|(?:~|\.{1,2})?/(?=\w))(?:[\w./\\~-]*[\w/\\])?"  # paths
    r"|(?<![\w/-])[a-zA-Z_][a-zA-Z0-9_-]*+(?:/[a-zA-Z0-9_-]++)*+(?:\.[a-z_][a-z0-9_]++)++(?:\(\))?(?![\w@])"  # a.py
    r"|(?:(?<![\w:+.-])(?::[a-zA-Z][\w+.-]*+)++:)?(?:``(?:[^`]|`(?!`))++``|`[^`]++`_{0,2})"  # :role:`code`
    rf"|{_ASCII}\*{{0,2}}(?:__|[a-zA-Z0-9]++_++)[a-zA-Z0-9][a-zA-Z0-9_]*+(?:\(\))?\*{{0,2}}"  # snake_case
    rf"|{_ASCII}(?:[a-z]++(?:[A-Z][a-z0-9]*+)++(?:\(\))?|[a-zA-Z0-9_]++\(\))(?![a-zA-Z0-9_])"  # camelCase, call()
    r"|(?<!\S)--?[a-zA-Z][\w-]++(?:=\S*[\w/])?|(?<!\S)\.[a-z][\w-]++"  # --option, .selector
    rf"|{_ASCII}[A-Z]++[-/]?\d[A-Z0-9.-]*(?<![.-])(?![a-zA-Z0-9_])"  # AB-123
    rf"|{_ASCII}(?=[a-f]*+\d)(?=\d*+[a-f])[\da-f]{{7,}}+(?:-[\da-f]++)*+(?!\w)"  # hash
    rf"|(?<!\d)(?<!\d[.,:/-])(?<!{_LETTER})v?{NUMBER}(?:\.x)?(?!-?{_LETTER})"  # not 20th
)
"""What the model may copy by itself: addresses, names of programs, numbers."""
SUSPICIOUS = re.compile(r"[^\w\s,.!?'\"-]|[\d_]|[a-z][A-Z]|\.\w|(?<!\w)-")
"""A sign of a tag, a placeholder or a piece: most sentences have none and need no further search."""
LONG_WORD = re.compile(rf"[^\s{_EAST_ASIAN}{UNSPACED}]{{{MOST_WORD_CHARACTERS},}}+")
"""A word that is too long for any language, which the model does not read."""
_BULLETS = "*+»›•◦▪▫‣⁃·●○■□►▸▶→⇒⟶➔➜★☆✓✔✗✘☐☑☒–—-"
_MARKS = re.compile(
    rf"(?:(?:#{{1,6}}|[{_BULLETS}]{{1,3}}|\[[ xX]?\]|\d{{1,3}}[.)]|\(\d{{1,3}}\)|\(?[a-zA-Z]\))\s+"
    r"|\d{1,3}[、．）]\s*|>+\s*)+|[–—-](?=[^\W\d_])"
)
"""Marks at the start of a line: lists, headings, quotes, arrows, dialogues."""


def unwrap(line: str) -> tuple[str, str, str]:
    """Return the marks at the start of a line and what is open around it, the text within, and what is closed."""
    before = after = ""
    while line:
        mark = _MARKS.match(line)
        if mark and mark.end() < len(line):
            before += mark[0]
            line = line[mark.end() :]
            continue
        first, last, inner = line[0], line[-1], line[1:-1]
        if first + last not in BRACKETS or not inner.strip() or first in inner or last in inner:
            break
        line = inner.strip()
        start = inner.index(line)
        before += first + inner[:start]
        after = inner[start + len(line) :] + last + after
    return before, line, after


def is_word(sentence: str, start: int, end: int) -> bool:
    """Return whether a piece may be a word of its sentence: it is no code, and no part of another word."""
    is_within = sentence[start - 1 : start].isalnum() or sentence[end : end + 1].isalnum()
    is_code = sentence.startswith(("<", "{%", "{#", "%%"), start) and not sentence.startswith(("<%=", "<?="), start)
    is_sign = not sentence[start].isascii() and unicodedata.category(sentence[start])[0] == "S"
    return not (is_within or is_code or is_sign)
