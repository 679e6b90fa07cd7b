"""Preprocessing of ordinary text: it adapts case and removes quotes, tags, emoji and foreign scripts.

A sentence that looks like the training data is not changed. ``rewriting`` restores in the translation what this module
removes.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from nmt.text.inline import CLOSING, OPENING, QUOTES, Cut, Span, Tag, find_markup
from nmt.tokenizers.base import FIRST_WORD, UNK, Tokenizer
from nmt.tokenizers.sentences import sentences_of

FEWEST_TITLE_WORDS = 3
"""Fewest words of a title-case heading; two capitalised words may be a name."""
FEWEST_LETTERS = 3
"""Fewest letters of a word in capitals that becomes lower case within a sentence: US does not become us."""
JOINED = ("So", "Sk", "Mn", "Cf")
"""Unicode categories of signs, and of the characters that combine with a sign."""
UNKNOWN_COST = 10
"""Number of tokens that an unknown word or a byte counts as."""
MOST_TAGS = 1_000
"""Most tags and placeholders of a sentence. A sentence with more is copied to the translation."""
QUOTED = frozenset(['""', "“”", "„“", "«»", "»«", "‘’", "‚‘"])
"""Pairs of opening and closing quotes."""
BRACKETS = QUOTED | {"()", "[]", "<>"}
SIGNS = dict(zip("“”„«»‘’‚–—", '"""""\'\'\'--', strict=True)) | {"…": "..."}
"""Typographic signs and their replacements, for models that do not know the signs."""
NUMBER = r"\d(?:[.,:/-]?\d){4,}"
# A mail address begins at the beginning of a word, so a long word is searched once, not from each of its letters.
_KEPT = re.compile(
    rf"(?:https?://|www\.)[^\s<>\"]*[\w/]|(?<![\w.+-])[\w.+-]++@[\w-]++\.[\w.-]*\w|(?<!\w)[@#]\w+|{NUMBER}",
    re.IGNORECASE,
)


class Text(NamedTuple):
    """Model input for a sentence, and the changes that postprocessing reverts."""

    text: str
    """Sentence as the model reads it."""
    capitals: tuple[int, ...] = ()
    """Indices of the words that were in capitals."""
    cuts: tuple[Cut, ...] = ()
    """Removed pieces and tags, in order."""
    is_upper: bool = False
    """Whether the whole sentence was in capitals."""


class Reading(NamedTuple):
    """A sentence after preprocessing."""

    text: Text
    """Model input."""
    kept: tuple[str, ...] = ()
    """Addresses and long numbers in ``text``, which the translation must contain."""
    bare: Text = Text("")
    """Model input without the addresses and long numbers, used if the translation of ``text`` loses one of them."""
    before: str = ""
    """Quote before the sentence."""
    after: str = ""
    """Quote after the sentence."""
    separator: str = ""
    """White space between this sentence and the next."""


class Reader:
    """Preprocesses lines for a model. Several threads may use it."""

    def __init__(self, tokenizer: Tokenizer, language: str, *, split: bool = True) -> None:
        """Create a reader.

        Args:
            tokenizer: tokenizer of the source side.
            language: language code of the source side.
            split: whether lines are split into sentences.
        """
        self._tokenizer, self._language, self._split = tokenizer, language, split
        ids = range(FIRST_WORD, tokenizer.size)
        self._unlikely = {UNK, *(id_ for id_ in ids if tokenizer.byte_of(id_) is not None)}
        self._characters = set(" ").union(*tokenizer.pieces(set(ids) - self._unlikely))
        self._has_case = tokenizer.normalize("Aa") == "Aa"
        self._signs = str.maketrans({sign: plain for sign, plain in SIGNS.items() if not self._knows(sign)})

    def read(self, line: str, *, split: bool = True) -> list[Reading]:
        """Return the readings of the sentences of a line; without ``split``, one reading of the whole line."""
        line = line.strip()
        if not line:
            return [Reading(Text(""))]
        before, after = line[0], line[-1]
        inner = line[1:-1].strip()
        if before + after in QUOTED and inner and before not in inner and after not in inner:
            readings = self.read(inner, split=split)
            readings[0] = readings[0]._replace(before=before + readings[0].before)
            readings[-1] = readings[-1]._replace(after=readings[-1].after + after)
            return readings
        parts = sentences_of(line, self._language) if split and self._split else [(line, "")]
        return [self._read_sentence(text)._replace(separator=separator) for text, separator in parts]

    def _read_sentence(self, sentence: str) -> Reading:
        tags, placeholders = find_markup(sentence)
        # A model invents words for a sentence without letters and digits.
        if not any(map(str.isalnum, sentence)) or len(tags) + len(placeholders) > MOST_TAGS:
            return Reading(Text("", cuts=(Cut(sentence, 0, False),)))
        if self._signs and not sentence.isascii():
            sentence = sentence.translate(self._signs)
            tags, placeholders = find_markup(sentence)  # an ellipsis becomes longer
        removed = placeholders + self._foreign_spans(_blank(sentence, [*placeholders, *tags]))
        # An address may contain placeholders, but neither tags nor marks.
        markup = [span for span in placeholders if sentence[span[0]] not in "{%$"]
        addresses = [match.span() for match in _KEPT.finditer(_blank(sentence, [*markup, *tags]))]
        if not (removed or addresses or tags):
            words = sentence.split()
            text = self._in_known_case(words)
            return Reading(text._replace(text=sentence) if text.text == " ".join(words) else text)
        kept = tuple(sentence[start:end] for start, end in addresses)
        bare = self._without(sentence, [*removed, *addresses], tags) if addresses else Text("")
        return Reading(self._without(sentence, removed, tags), kept, bare)

    # --- characters that occur in no word of the model

    def _knows(self, character: str) -> bool:
        if character in self._characters or character.lower() in self._characters:
            return True
        plain = self._tokenizer.normalize(character)
        return bool(plain) and self._characters.issuperset(plain)

    def _foreign_spans(self, sentence: str) -> list[Span]:
        """Return the spans of text that the model cannot express: emoji, and words in other scripts."""
        if self._characters.issuperset(sentence):
            return []
        spans: list[Span] = []
        for word in re.finditer(r"\S+", sentence):
            unknown = [index for index in range(*word.span()) if not self._knows(sentence[index])]
            letters = [index for index in range(*word.span()) if sentence[index].isalpha()]
            unknown_letters = [index for index in unknown if sentence[index].isalpha()]
            if len(unknown_letters) * 2 > len(letters):
                spans.append((unknown_letters[0], unknown_letters[-1] + 1))
            categories = {index: unicodedata.category(sentence[index]) for index in unknown}
            for index, category in categories.items():
                is_sign = category in ("So", "Sc", "Sk")
                # Joiners and variation selectors belong to the sign before them.
                is_part = category in ("Mn", "Cf") and categories.get(index - 1, "Ll") in JOINED
                if is_sign or is_part:
                    spans.append((index, index + 1))
        return spans

    def _without(self, sentence: str, spans: Sequence[Span], tags: list[Tag]) -> Text:
        """Return the model input of a sentence without spans and tags."""
        spans, tags = _normalize_spans(sentence, spans, tags)
        cutter = _Cutter(sentence, tags)
        for start, end, number in sorted([*(Tag(start, end, 0) for start, end in spans), *tags]):
            if number > 0:
                cutter.open_tag(start, end, number)
            elif number < 0:
                cutter.close_tag(start, end, number)
            else:
                cutter.cut(start, end)
        text = cutter.finish()
        if not any(map(str.isalnum, text)):
            return Text("", cuts=(Cut(sentence, 0, False),))
        cuts = cutter.cuts
        ends_in_piece = bool(spans) and not cutter.plain[spans[-1][1] :].strip()
        if ends_in_piece:  # the stop of the sentence comes before the piece
            cuts = [cut if cut.tag else cut._replace(is_closed=False) for cut in cuts]
        return self._in_known_case(text.split())._replace(cuts=tuple(cuts))

    # --- case

    def _in_known_case(self, words: list[str]) -> Text:
        """Return the model input of words, in the case that the model knows."""
        plain = Text(" ".join(words))
        if not self._has_case:
            return plain
        upper = [index for index, word in enumerate(words) if word.isupper() and sum(map(str.isalpha, word)) > 1]
        if upper and plain.text.isupper():
            return self._lowered(words)
        if self._is_title(words):
            names = {0, *upper}
            cased = [word if index in names else self._familiar_case(word) for index, word in enumerate(words)]
            return Text(" ".join(cased))
        cased, capitals = list(words), []
        for index in upper:
            word, familiar = words[index], self._familiar_case(words[index])
            if len(word) >= FEWEST_LETTERS and self._cost([familiar]) * 2 <= self._cost([word]):
                cased[index] = familiar if index else familiar.capitalize()
                capitals.append(index)
        return Text(" ".join(cased), tuple(capitals))

    def _lowered(self, words: list[str]) -> Text:
        """Return the model input of words that are all in capitals."""
        cased = [self._familiar_case(word) for word in words]
        initial = cased[0][:1].upper()
        if self._knows(initial):
            cased[0] = initial + cased[0][1:]
        # The number of characters does not depend on case. Of few words, such as TV, the model may know the capitals.
        margin = int(self._tokenizer.unit != "characters")
        if self._cost(words) < self._cost(cased) + margin:
            return Text(" ".join(words))
        return Text(" ".join(cased), is_upper=True)

    @staticmethod
    def _is_title(words: list[str]) -> bool:
        if len(words) < FEWEST_TITLE_WORDS or not words[1][:1].isupper():
            return False
        initials = [word[0] for word in words if word[0].isalpha()]
        return len(initials) >= FEWEST_TITLE_WORDS and all(initial.lower() != initial for initial in initials)

    def _familiar_case(self, word: str) -> str:
        """Return a word in the case with the fewest tokens; among equals, with the lowest (most frequent) ids."""
        cases = dict.fromkeys((word.lower(), word.capitalize(), word))
        return min(cases, key=lambda cased: (self._cost([cased]), max(self._tokenizer.encode(cased), default=0)))

    def _cost(self, words: list[str]) -> int:
        """Return the number of tokens of words; unknown tokens count ``UNKNOWN_COST`` more."""
        ids = self._tokenizer.encode(" ".join(words))
        return len(ids) + UNKNOWN_COST * (sum(id_ in self._unlikely for id_ in ids) + (not ids))


def _normalize_spans(sentence: str, spans: Sequence[Span], tags: list[Tag]) -> tuple[list[Span], list[Tag]]:
    """Return spans in order without overlaps, and the tags outside of them.

    A pair of tags around no word becomes a span, and so does the number of a footnote with its tags.
    """
    text = _blank(sentence, [*spans, *tags])
    all_spans = list(spans)
    starts = {tag.number: tag.start for tag in tags}
    for _, end, number in tags:
        if number < 0 and -number in starts:
            start = starts[-number]
            is_word = str.isalpha if start and text[start - 1].isalnum() else str.isalnum
            if not any(map(is_word, text[start:end])):
                all_spans.append((start, end))
    merged = _merge(sentence, all_spans)
    remaining = _blank(sentence, merged)
    return merged, [tag for tag in tags if remaining[tag.start] != " "]


def _blank(sentence: str, parts: Sequence[tuple[int, ...]]) -> str:
    """Return a sentence with spaces in place of parts, which begin with their start and end."""
    characters = list(sentence)
    for start, end, *_ in parts:
        characters[start:end] = " " * (end - start)
    return "".join(characters)


class _Remainder:
    """Text that remains of a sentence. It counts words as they are added; a new count at every cut is quadratic."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.words = 0
        """Number of words."""
        self.ends_in_space = False
        self.last_sign = ""
        """Last character that is not white space; empty if there is none."""
        self.last_has_letters = False
        """Whether the last word has a letter or a digit."""

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @property
    def is_empty(self) -> bool:
        return not self._parts

    def add(self, text: str) -> None:
        """Add text without changes."""
        if not text:
            return
        words = text.split()
        if words:
            continues_word = bool(self.words) and not self.ends_in_space and not text[0].isspace()
            has_letters = any(map(str.isalnum, words[-1]))
            extends_last = continues_word and len(words) == 1
            self.last_has_letters = has_letters or (extends_last and self.last_has_letters)
            self.words += len(words) - continues_word
            self.last_sign = words[-1][-1]
        self.ends_in_space = text[-1].isspace()
        self._parts.append(text)

    def join(self, text: str) -> None:
        """Add text that follows a cut: punctuation directly, and words after a space."""
        self._strip()
        text = text.lstrip()
        self.add(f" {text}" if text and self._parts and text[0] not in CLOSING else text)

    def drop_last_sign(self) -> None:
        """Remove the last character that is not white space."""
        self._strip()
        text = self.text[:-1]
        self.__init__()  # type: ignore[misc]
        self.add(text)

    def _strip(self) -> None:
        while self._parts:
            self._parts[-1] = self._parts[-1].rstrip()
            if self._parts[-1]:
                break
            self._parts.pop()
        self.ends_in_space = False


class _Cutter:
    """Cuts pieces and tags out of a sentence, from left to right."""

    def __init__(self, sentence: str, tags: list[Tag]) -> None:
        self.plain = _blank(sentence, tags)
        """The sentence with spaces in place of its tags."""
        self.cuts = list[Cut]()
        """Pieces and tags that were cut out."""
        self._sentence, self._rest = sentence, _Remainder()
        self._content_end = len(self.plain.rstrip(CLOSING + " "))
        self._position = 0
        """End of the part of the sentence that has been processed."""
        self._follows_cut = False
        """Whether the next text follows a cut, with nothing but tags between them."""

    def cut(self, start: int, end: int) -> None:
        """Cut a span out with the brackets around it. At the beginning, the punctuation after it is cut out too."""
        sentence, rest = self._sentence, self._rest
        if sentence[start - 1 : start] + sentence[end : end + 1] in BRACKETS:
            start, end = start - 1, end + 1
        self._add_until(start)
        self._follows_cut = True
        while rest.is_empty and self.plain[end : end + 1] and self.plain[end] in CLOSING:
            end += 1
        space = sentence[_end_of_word(sentence, start) : start]
        is_closed = end >= self._content_end
        if rest.last_sign == "," and is_closed:  # as in "Hello, {name}!"
            rest.drop_last_sign()
            space = f",{space}"
            self.cuts = [cut._replace(words=min(cut.words, rest.words)) for cut in self.cuts]
        is_glued = self.plain[end : end + 1].isalnum() and not space
        self.cuts.append(Cut(space + sentence[start:end], rest.words, is_closed, is_glued=is_glued))
        self._position = end

    def open_tag(self, start: int, end: int, number: int) -> None:
        """Cut out the start of a tag."""
        self._follows_cut = not self._add_until(start) and self._follows_cut
        rest, plain = self._rest, self.plain
        is_apart = self._follows_cut or not rest.words or rest.ends_in_space or plain[end : end + 1].isspace()
        is_within_word = not is_apart
        next_sign = plain[end:].lstrip()[:1]
        is_closed = not (is_within_word and rest.last_has_letters) and next_sign not in OPENING + QUOTES
        words = rest.words - is_within_word
        if self.cuts:  # if a piece was cut out of the same word, the tag begins behind the piece
            words = max(words, self.cuts[-1].words)
        self.cuts.append(Cut(self._sentence[start:end], words, is_closed, number))
        self._position = end

    def close_tag(self, start: int, end: int, number: int) -> None:
        """Cut out the end of a tag."""
        self._follows_cut = not self._add_until(start) and self._follows_cut
        is_closed = self._rest.last_sign not in CLOSING + QUOTES
        self.cuts.append(Cut(self._sentence[start:end], self._rest.words, is_closed, number))
        self._position = end

    def finish(self) -> str:
        """Return the remaining text of the sentence."""
        self._add_until(len(self._sentence))
        return self._rest.text

    def _add_until(self, end: int) -> str:
        """Add the sentence up to a position to the remaining text, and return the added part."""
        text = self._sentence[self._position : end]
        if self._follows_cut:
            self._rest.join(text)
        else:
            self._rest.add(text)
        return text


def _end_of_word(sentence: str, position: int) -> int:
    """Return the end of the word before a position."""
    while position and sentence[position - 1].isspace():
        position -= 1
    return position


def _merge(sentence: str, spans: list[Span]) -> list[Span]:
    """Return spans in order; spans with only white space between them become one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and not sentence[merged[-1][1] : start].strip():
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
