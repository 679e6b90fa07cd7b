"""Glossaries: files of terms, and the terms that occur in a sentence. Loads no TensorFlow."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nmt.data.sources.text_file import find_text_file, read_lines
from nmt.errors import DataError, counted
from nmt.tokenizers.base import Tokenizer

MOST_CHARACTERS = 200
"""Most characters of a term or of a form. A search for a longer form would take minutes."""
_TOKEN = re.compile(r"\w+|[^\w\s]")

Words = tuple[str, ...]
"""Words and punctuation marks in lower case."""


class Term(NamedTuple):
    """A term of the source language with the accepted forms of its translation."""

    source: Words
    """Words and marks of the term."""
    forms: dict[str, str]
    """Forms as the model writes them, and their words and marks in lower case, with a space around each of them."""

    @property
    def phrases(self) -> list[Words]:
        """Words and marks of each form."""
        return [tuple(form.split()) for form in self.forms.values()]


class TermMatch(NamedTuple):
    """An occurrence of a term in a source text."""

    term: Term
    words: range
    """Indices of the words of the text, split at white space, that the term covers."""


class _PhraseIndex:
    """Phrases by their first words, to find them in a text."""

    def __init__(self, phrases: Iterable[Words]) -> None:
        self._phrases = set(phrases)
        sizes: dict[str, set[int]] = {}
        for phrase in self._phrases:
            sizes.setdefault(phrase[0], set()).add(len(phrase))
        self._sizes = {word: sorted(lengths, reverse=True) for word, lengths in sizes.items()}

    def find(self, words: Sequence[str]) -> Iterator[tuple[int, Words]]:
        """Yield the start and the words of each phrase in a text, without overlaps.

        The leftmost phrase wins, and among phrases with the same start the longest.
        """
        start = 0
        while start < len(words):
            phrase = self._longest_at(start, words)
            if phrase is None:
                start += 1
            else:
                yield start, phrase
                start += len(phrase)

    def _longest_at(self, start: int, words: Sequence[str]) -> Words | None:
        for size in self._sizes.get(words[start], ()):
            phrase = tuple(words[start : start + size])
            if phrase in self._phrases:
                return phrase
        return None


class Glossary:
    """Terms whose translations are prescribed."""

    def __init__(self, terms: Sequence[Term]) -> None:
        """Create a glossary of terms with different sources."""
        self._terms = {term.source: term for term in terms}
        self._sources = _PhraseIndex(self._terms)

    def terms_of(self, text: str) -> list[TermMatch]:
        """Return the terms in a source text, in order and without overlaps.

        The leftmost term wins, and among terms with the same start the longest.
        """
        tokens = _tokens(text)
        matches = []
        for start, phrase in self._sources.find([token for token, _ in tokens]):
            _, first_word = tokens[start]
            _, last_word = tokens[start + len(phrase) - 1]
            matches.append(TermMatch(self._terms[phrase], range(first_word, last_word + 1)))
        return matches

    def missing(self, text: str, translation: str) -> list[TermMatch]:
        """Return the terms in a source text that a translation lacks. A term that occurs twice needs two forms."""
        matches = self.terms_of(text)
        forms = _PhraseIndex(phrase for match in matches for phrase in match.term.phrases)
        tokens = [token for token, _ in _tokens(translation)]
        unused = Counter(phrase for _, phrase in forms.find(tokens))
        missing = []
        for match in matches:
            phrase = next((phrase for phrase in match.term.phrases if unused[phrase]), None)
            if phrase is None:
                missing.append(match)
            else:
                unused[phrase] -= 1
        return missing

    def form_words(self, text: str) -> set[str]:
        """Return the words and marks, in lower case, of all forms of the terms in a source text."""
        phrases = [phrase for match in self.terms_of(text) for phrase in match.term.phrases]
        return {word for phrase in phrases for word in phrase}

    def share_kept(self, sources: Sequence[str], translations: Sequence[str]) -> float:
        """Return the share of the terms in sources that their translations keep; 1 if the sources have no terms."""
        count = sum(len(self.terms_of(source)) for source in sources)
        pairs = zip(sources, translations, strict=True)
        missing = sum(len(self.missing(source, translation)) for source, translation in pairs)
        return 1 - missing / max(1, count)


def _tokens(text: str) -> list[tuple[str, int]]:
    """Return the words and marks of a text in lower case, with the indices of their words as split at white space."""
    words = unicodedata.normalize("NFKC", text).casefold().split()
    return [(token, index) for index, word in enumerate(words) for token in _TOKEN.findall(word)]


def _between_spaces(text: str) -> str:
    """Return the words and marks of a text in lower case, with a space around each of them."""
    return " ".join(["", *(token for token, _ in _tokens(text)), ""])


def read_glossary(file: str, target: Tokenizer) -> Glossary:
    """Return the glossary of a file. A line has a source term, a TAB, its translation, and other forms after TABs.

    Raises:
        NotFoundError: if the file does not exist.
        DataError: if the file is not UTF-8, or a line breaks a rule. The message names file and line.
    """
    terms, lines = list[Term](), dict[Words, int]()
    for number, line in enumerate(read_lines(find_text_file(file, [])), 1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        too_long = next((cell for cell in cells if len(cell) > MOST_CHARACTERS), None)
        if too_long is not None:
            raise DataError(
                f"{file}, line {number} has a term or a form of {counted(len(too_long), 'character')}: "
                f"{too_long[:30]!r}... A term or a form has at most {MOST_CHARACTERS}. Shorten it, or leave the line "
                "out."
            )
        source, forms = cells[0], [form for form in cells[1:] if form]
        key = tuple(token for token, _ in _tokens(source))
        decoded = [target.decode(target.encode(form)) for form in forms]
        unknown = next((word for form in forms for word in target.unknown(form)), None)
        problem = ""
        if not key or not forms or not all(map(_tokens, decoded)):
            problem = (
                "has no term with a translation. A line has a term, a TAB and a translation; other forms follow "
                "after TABs"
            )
        elif key in lines:
            problem = f"repeats the term {source!r} of line {lines[key]}. Every term has one line with all of its forms"
        elif unknown is not None:
            problem = f"has the word {unknown!r}, which the model never saw in training and cannot generate"
        if problem:
            raise DataError(f"{file}, line {number} {problem}. Correct the line, or leave it out.")
        lines[key] = number
        terms.append(Term(key, {form: _between_spaces(form) for form in decoded}))
    return Glossary(terms)
