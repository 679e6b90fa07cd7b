"""Glossaries: files of terms, and the terms that occur in a sentence. Loads no TensorFlow."""

import functools
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nmt.data.sources.text_file import find_text_file, read_lines
from nmt.errors import DataError, counted
from nmt.tokenizers.base import Tokenizer
from nmt.tokenizers.letter_case import lower, upper
from nmt.tokenizers.scripts import split_words

ZERO_WIDTH_JOINERS = "\u200c\u200d"
"""Invisible characters within words of Persian and of Indic scripts."""
MOST_CHARACTERS = 200
"""Most characters of a term or of a form. A search for a longer form would take minutes."""
MOST_WORDS = 2**16
"""Most words whose form without case is remembered."""
_TOKEN = re.compile(r"\w+|[^\w\s]")

Words = tuple[str, ...]
"""Words and punctuation marks without case. In scripts without spaces, a word is a character."""


class Term(NamedTuple):
    """A term of the source language with the accepted forms of its translation."""

    source: Words
    """Words and marks of the term."""
    forms: dict[str, str]
    """Forms as the model writes them, and their words and marks without case, with a space around each of them."""
    has_capitals: bool = False
    """Whether the term was given with a capital. Its forms then keep their case."""

    @property
    def first_form(self) -> str:
        """The form that is written where a translation has none of the forms."""
        return next(iter(self.forms))

    @property
    def phrases(self) -> list[Words]:
        """Words and marks of each form."""
        return [tuple(form.split()) for form in self.forms.values()]


class Entry(NamedTuple):
    """A term as its author writes it."""

    name: str
    """Name of the entry in messages, such as "terms.tsv, line 7"."""
    source: str
    """The term."""
    forms: Sequence[str]
    """Its translation, and other forms of it."""


class TermMatch(NamedTuple):
    """An occurrence of a term in a source text."""

    term: Term
    words: range
    """Indices of the words of the text, as ``split_words`` returns them, that the term covers."""


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

    def __init__(self, terms: Sequence[Term], languages: tuple[str, str] = ("source", "target")) -> None:
        """Create a glossary of terms with different sources, for the codes of a source and a target language."""
        self.languages = self._source, self._target = languages
        self._terms = {term.source: term for term in terms}
        self._sources = _PhraseIndex(self._terms)

    @property
    def terms(self) -> list[Term]:
        """All terms."""
        return [*self._terms.values()]

    def terms_of(self, text: str) -> list[TermMatch]:
        """Return the terms in a source text, in order and without overlaps.

        The leftmost term wins, and among terms with the same start the longest.
        """
        tokens = _tokens(text, self._source)
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
        tokens = [token for token, _ in _tokens(translation, self._target)]
        unused = Counter(phrase for _, phrase in forms.find(tokens))
        missing = []
        for match in matches:
            phrase = next((phrase for phrase in match.term.phrases if unused[phrase]), None)
            if phrase is None:
                missing.append(match)
            else:
                unused[phrase] -= 1
        return missing

    def form_words(self, text: str, translation: str) -> set[int]:
        """Return the indices of the words of a translation that are in forms of the terms in a source text."""
        forms = _PhraseIndex(phrase for match in self.terms_of(text) for phrase in match.term.phrases)
        tokens = _tokens(translation, self._target)
        words = set[int]()
        for start, phrase in forms.find([token for token, _ in tokens]):
            words.update(word for _, word in tokens[start : start + len(phrase)])
        return words

    def share_kept(self, sources: Sequence[str], translations: Sequence[str]) -> float:
        """Return the share of the terms in sources that their translations keep; 1 if the sources have no terms."""
        count = sum(len(self.terms_of(source)) for source in sources)
        pairs = zip(sources, translations, strict=True)
        missing = sum(len(self.missing(source, translation)) for source, translation in pairs)
        return 1 - missing / max(1, count)


def _tokens(text: str, language: str) -> list[tuple[str, int]]:
    """Return the words and marks of a text without case, with the indices of their words."""
    words = [word.text for word in split_words(text)]
    return [(token, index) for index, word in enumerate(words) for token in _parts(_without_case(word, language))]


@functools.lru_cache(MOST_WORDS)
def _without_case(word: str, language: str) -> str:
    """Return a word in a form that is equal for all cases: straße and STRASSE."""
    return upper(unicodedata.normalize("NFKC", word), language).casefold()


def _parts(word: str) -> Iterator[str]:
    """Yield the runs of letters and digits of a word, with their combining marks, and its punctuation marks."""
    if word.isascii():
        yield from _TOKEN.findall(word)
        return
    for is_run, characters in itertools.groupby(word, _is_in_word):
        if is_run:
            yield "".join(characters)
        else:
            yield from (character for character in characters if not character.isspace())


def _is_in_word(character: str) -> bool:
    is_mark = unicodedata.category(character).startswith("M") or character in ZERO_WIDTH_JOINERS
    return character.isalnum() or character == "_" or is_mark


def read_glossary(
    file: str, target: Tokenizer, languages: tuple[str, str] = ("source", "target")
) -> Glossary:  # fmt: skip
    """Return the glossary of a file. A line has a source term, a TAB, its translation, and other forms after TABs.

    Args:
        file: name of the file.
        target: tokenizer of the target side.
        languages: codes of the source and the target language, for upper and lower case.

    Raises:
        NotFoundError: if the file does not exist.
        DataError: if the file is not UTF-8, or a line breaks a rule. The message names file and line.
    """
    lines = [line.split("\t") for line in read_lines(find_text_file(file, []))]
    entries = [
        Entry(f"{file}, line {number}", source, forms)
        for number, (source, *forms) in enumerate(lines, 1) if source.strip() or any(map(str.strip, forms))
    ]  # fmt: skip
    return glossary_of(entries, target, languages)


def glossary_of(
    entries: Iterable[Entry], target: Tokenizer, languages: tuple[str, str] = ("source", "target")
) -> Glossary:  # fmt: skip
    """Return a glossary of entries with the forms of their translations, for a target tokenizer and two languages.

    Raises:
        DataError: if an entry breaks a rule. The message has the name of the entry.
    """
    terms, names = list[Term](), dict[Words, str]()
    for entry in entries:
        source, forms = entry.source.strip(), [form.strip() for form in entry.forms if form.strip()]
        too_long = next((text for text in [source, *forms] if len(text) > MOST_CHARACTERS), None)
        if too_long is not None:
            raise DataError(
                f"{entry.name} has a term or a form of {counted(len(too_long), 'character')}: {too_long[:30]!r}... A "
                f"term or a form has at most {MOST_CHARACTERS}. Shorten it, or leave it out."
            )
        key = tuple(token for token, _ in _tokens(source, languages[0]))
        decoded = [target.decode(target.encode(form)) for form in forms]
        unknown = next((word for form in forms for word in target.unknown(form)), None)
        phrases = [" ".join(token for token, _ in _tokens(form, languages[1])) for form in decoded]
        problem = ""
        if not key or not all(phrases or [""]):
            problem = (
                "has no term with a translation. A line has a term, a TAB and a translation; other forms follow "
                "after TABs. For a term that stays as it is, write it twice: Acme TAB Acme"
            )
        elif key in names:
            problem = f"repeats the term {source!r} of {names[key]}. Every term has one line with all of its forms"
        elif unknown is not None:
            problem = f"has the word {unknown!r}, which the model never saw in training and cannot generate"
        if problem:
            raise DataError(f"{entry.name} {problem}. Correct it, or leave it out.")
        names[key] = entry.name
        by_form = {form: f" {phrase} " for form, phrase in zip(decoded, phrases, strict=True)}
        terms.append(Term(key, by_form, has_capitals=source != lower(source, languages[0])))
    return Glossary(terms, languages)
