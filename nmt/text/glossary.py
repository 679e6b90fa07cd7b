"""Glossaries: files of terms, and the terms of a sentence. Loads no TensorFlow."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nmt.data.sources.text_file import find_text_file, read_lines
from nmt.errors import DataError, counted
from nmt.tokenizers.base import Tokenizer

MOST_CHARACTERS = 200
"""Characters of the longest term, and of the longest form: a search for more words takes minutes."""
_TOKEN = re.compile(r"\w+|[^\w\s]")

Words = tuple[str, ...]
"""Words and marks in lower case."""


class Term(NamedTuple):
    """Term of the source language with the forms of its translation."""

    source: Words
    forms: dict[str, str]
    """Forms as the model writes them, each with its words and marks in lower case, between spaces."""


class Found(NamedTuple):
    """Term in a source text."""

    term: Term
    words: range
    """Its words, by white space."""


class _Phrases:
    """Phrases to look for in a text."""

    def __init__(self, phrases: Iterable[Words]) -> None:
        self._phrases = set(phrases)
        sizes: dict[str, set[int]] = {}
        for phrase in self._phrases:
            sizes.setdefault(phrase[0], set()).add(len(phrase))
        self._sizes = {word: sorted(of_word, reverse=True) for word, of_word in sizes.items()}

    def find(self, words: Sequence[str]) -> Iterator[tuple[int, Words]]:
        """Yield the phrases in a text with their places; of those that overlap the first, and of these the longest."""
        place = 0
        while place < len(words):
            keys = (tuple(words[place : place + size]) for size in self._sizes.get(words[place], ()))
            phrase = next((key for key in keys if key in self._phrases), None)
            if phrase is not None:
                yield place, phrase
            place += len(phrase) if phrase else 1


class Glossary:
    """Terms for a model."""

    def __init__(self, terms: Sequence[Term]) -> None:
        """Take terms with different sources."""
        self._terms = {term.source: term for term in terms}
        self._sources = _Phrases(self._terms)

    def terms_of(self, text: str) -> list[Found]:
        """Return the terms of a source text in order; of terms that overlap the first, and of these the longest."""
        tokens = _tokens(text)
        found = []
        for place, phrase in self._sources.find([token for token, _ in tokens]):
            first, last = tokens[place][1], tokens[place + len(phrase) - 1][1]
            found.append(Found(self._terms[phrase], range(first, last + 1)))
        return found

    def missing(self, text: str, translation: str) -> list[Found]:
        """Return the terms of a source text of which a translation has no form; a term that stands twice needs two."""
        terms = self.terms_of(text)
        forms = _Phrases(tuple(form.split()) for each in terms for form in each.term.forms.values())
        written = Counter(phrase for _, phrase in forms.find([token for token, _ in _tokens(translation)]))
        missing = []
        for each in terms:
            kept = next((key for form in each.term.forms.values() if written[key := tuple(form.split())]), None)
            if kept is None:
                missing.append(each)
            else:
                written[kept] -= 1
        return missing

    def words_of(self, text: str) -> set[str]:
        """Return the words and marks, in lower case, of all forms of the terms of a source text."""
        return {word for each in self.terms_of(text) for form in each.term.forms.values() for word in form.split()}

    def share_kept(self, sources: Sequence[str], translations: Sequence[str]) -> float:
        """Return the share of the terms of sources that their translations keep; 1 if there is none."""
        terms = sum(len(self.terms_of(source)) for source in sources)
        return 1 - sum(len(self.missing(*each)) for each in zip(sources, translations, strict=True)) / max(1, terms)


def _tokens(text: str) -> list[tuple[str, int]]:
    """Return the words and marks of a text in lower case, each with the number of its word by white space."""
    words = unicodedata.normalize("NFKC", text).casefold().split()
    return [(token, number) for number, word in enumerate(words) for token in _TOKEN.findall(word)]


def _between_spaces(text: str) -> str:
    return " ".join(["", *(token for token, _ in _tokens(text)), ""])


def read_glossary(file: str, target: Tokenizer) -> Glossary:
    """Return the glossary of a file: lines of a source term, a TAB, its translation, and TABs with other forms of it.

    Raises:
        NotFoundError: if the file does not exist.
        DataError: if it is not UTF-8, or a line breaks a rule; names file and line.
    """
    terms, lines = list[Term](), dict[tuple[str, ...], int]()
    for number, line in enumerate(read_lines(find_text_file(file, [])), 1):
        if not line.strip():
            continue
        source, *forms = (cell.strip() for cell in line.split("\t"))
        if longest := next((cell for cell in (source, *forms) if len(cell) > MOST_CHARACTERS), None):
            raise DataError(
                f"{file}, line {number} has a term or a form of {counted(len(longest), 'character')}: "
                f"{longest[:30]!r}... It has at most {MOST_CHARACTERS}. Shorten it, or leave the line out."
            )
        forms, key = [form for form in forms if form], tuple(token for token, _ in _tokens(source))
        unknown = next((word for form in forms for word in target.unknown(form)), None)
        problem = ""
        if not key or not (forms and all(_tokens(target.decode(target.encode(form))) for form in forms)):
            problem = (
                "has no term with a translation. A line is a term, a TAB and a translation, other forms after TABs"
            )
        elif key in lines:
            problem = f"has the term {source!r} of line {lines[key]} again. A term has one line, with all of its forms"
        elif unknown is not None:
            problem = f"has the word {unknown!r}, which the model never saw in training, so that it cannot write it"
        if problem:
            raise DataError(f"{file}, line {number} {problem}. Correct the line, or leave it out.")
        lines[key] = number
        written = [target.decode(target.encode(form)) for form in forms]
        terms.append(Term(key, {form: _between_spaces(form) for form in written}))
    return Glossary(terms)
