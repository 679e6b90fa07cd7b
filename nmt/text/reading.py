"""Lines of ordinary text as a model reads them: in the case that it knows, without quotes, emoji and other scripts.

A sentence like those of training is read as it stands. ``rewriting`` gives the rest back to the translation.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from nmt.text.inline import CLOSING, OPENING, QUOTES, Cut, Tag, find_markup
from nmt.tokenizers.base import FIRST_WORD, UNK, Tokenizer
from nmt.tokenizers.sentences import sentences_of

FEWEST_TITLE_WORDS = 3
"""Words of the shortest heading; two names in a row are none."""
FEWEST_LETTERS = 3
"""Letters of the shortest word in capitals within a sentence that is none; US is not us."""
JOINED = ("So", "Sk", "Mn", "Cf")
"""Unicode categories of signs, and of what a sign is made of."""
UNKNOWN_COST = 10
"""Tokens that an unknown word, or a byte, counts as."""
MOST_TAGS = 1_000
"""Tags and placeholders of a sentence, beyond which it is carried over."""
QUOTED = frozenset(['""', "“”", "„“", "«»", "»«", "‘’", "‚‘"])  # noqa: RUF001
"""Opening and closing quotes."""
BRACKETS = QUOTED | {"()", "[]", "<>"}
SIGNS = dict(zip("“”„«»‘’‚–—", '"""""\'\'\'--', strict=True)) | {"…": "..."}  # noqa: RUF001
"""Typographic signs, with what stands for them where a model does not know them."""
NUMBER = r"\d(?:[.,:/-]?\d){4,}"
# An address of mail begins where its word does: a long word is looked at once, not from each of its letters.
_KEPT = re.compile(
    rf"(?:https?://|www\.)[^\s<>\"]*[\w/]|(?<![\w.+-])[\w.+-]++@[\w-]++\.[\w.-]*\w|(?<!\w)[@#]\w+|{NUMBER}",
    re.IGNORECASE,
)


class Text(NamedTuple):
    """What a model reads of a sentence."""

    text: str
    capitals: tuple[int, ...] = ()
    """Numbers of the words that were in capitals, from 0."""
    cuts: tuple[Cut, ...] = ()
    """What was taken out, and tags, in order."""
    is_upper: bool = False
    """Whether all of it was in capitals."""


class Reading(NamedTuple):
    """A sentence as a model reads it."""

    text: Text
    kept: tuple[str, ...] = ()
    """Addresses and long numbers in ``text``, which the translation must have."""
    bare: Text = Text("")
    """What the model reads where the translation lost one of them: the sentence without them."""
    before: str = ""
    """Quote before the sentence."""
    after: str = ""
    """Quote after it."""
    separator: str = ""
    """White space between the sentence and the next."""


class Reader:
    """Reads lines for a model. Several threads may use it."""

    def __init__(self, tokenizer: Tokenizer, language: str, *, split: bool = True) -> None:
        """Take the tokenizer and the language code of the source side, and whether a line has several sentences."""
        self._tokenizer, self._language, self._split = tokenizer, language, split
        ids = range(FIRST_WORD, tokenizer.size)
        self._unlikely = {UNK, *(id_ for id_ in ids if tokenizer.byte_of(id_) is not None)}
        self._characters = set(" ").union(*tokenizer.pieces(set(ids) - self._unlikely))
        self._has_case = tokenizer.normalize("Aa") == "Aa"
        self._signs = str.maketrans({sign: plain for sign, plain in SIGNS.items() if not self._knows(sign)})

    def read(self, line: str, *, split: bool = True) -> list[Reading]:
        """Return the readings of the sentences of a line; unless it is to be split, one of all of it."""
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
        return [self._read(text)._replace(separator=separator) for text, separator in parts]

    def _read(self, sentence: str) -> Reading:
        tags, places = find_markup(sentence)
        # A model makes up words for what has none.
        if not any(map(str.isalnum, sentence)) or len(tags) + len(places) > MOST_TAGS:
            return Reading(Text("", cuts=(Cut(sentence, 0, False),)))
        if self._signs and not sentence.isascii():
            sentence = sentence.translate(self._signs)
            tags, places = find_markup(sentence)  # an ellipsis becomes longer
        foreign = places + self._foreign(_blank(sentence, [*places, *tags]))
        shown = _blank(sentence, [*(each for each in places if sentence[each[0]] not in "{%$"), *tags])
        kept = [match.span() for match in _KEPT.finditer(shown)]
        if not (foreign or kept or tags):
            words = sentence.split()
            text = self._known_case(words)
            return Reading(text._replace(text=sentence) if text.text == " ".join(words) else text)
        pieces = tuple(sentence[start:end] for start, end in kept)
        bare = self._without(sentence, [*foreign, *kept], tags) if kept else Text("")
        return Reading(self._without(sentence, foreign, tags), pieces, bare)

    # --- characters that no word of the model has

    def _knows(self, character: str) -> bool:
        if character in self._characters or character.lower() in self._characters:
            return True
        return bool(plain := self._tokenizer.normalize(character)) and self._characters.issuperset(plain)

    def _foreign(self, sentence: str) -> list[tuple[int, int]]:
        """Return the places of what the model cannot express: emoji, words in other scripts."""
        if self._characters.issuperset(sentence):
            return []
        found = []
        for word in re.finditer(r"\S+", sentence):
            unknown = [place for place in range(*word.span()) if not self._knows(sentence[place])]
            letters = [place for place in range(*word.span()) if sentence[place].isalpha()]
            if len(strange := [place for place in unknown if sentence[place].isalpha()]) * 2 > len(letters):
                found.append((strange[0], strange[-1] + 1))
            # Signs that are no letters, with the joiners and variants after them.
            kinds = {place: unicodedata.category(sentence[place]) for place in unknown}
            found += [
                (place, place + 1) for place, kind in kinds.items()
                if kind in ("So", "Sc", "Sk") or (kind in ("Mn", "Cf") and kinds.get(place - 1, "Ll") in JOINED)
            ]  # fmt: skip
        return found

    def _without(self, sentence: str, places: Sequence[tuple[int, int]], tags: list[Tag]) -> Text:
        """Return a sentence without its tags and some of its places."""
        places, tags = _apart(sentence, places, tags)
        cutting = _Cutting(sentence, tags)
        for start, end, number in sorted([*((*place, 0) for place in places), *tags]):
            if number > 0:
                cutting.open_tag(start, end, number)
            elif number < 0:
                cutting.close_tag(start, end, number)
            else:
                cutting.cut(start, end)
        text = cutting.finish()
        cuts = cutting.cuts
        if places and not cutting.plain[places[-1][1] :].strip():
            cuts = [each if each.tag else each._replace(is_closed=False) for each in cuts]
        if not any(map(str.isalnum, text)):
            return Text("", cuts=(Cut(sentence, 0, False),))
        return self._known_case(text.split())._replace(cuts=tuple(cuts))

    # --- case

    def _known_case(self, words: list[str]) -> Text:
        """Return words as a text in the case that the model knows."""
        plain = Text(" ".join(words))
        if not self._has_case:
            return plain
        shouted = [number for number, word in enumerate(words) if word.isupper() and sum(map(str.isalpha, word)) > 1]
        read = list(words)
        if shouted and plain.text.isupper():
            first, *others = map(self._familiar, words)
            read = [first[:1].upper() + first[1:] if self._knows(first[:1].upper()) else first, *others]
            # Characters are as many in any case; of few words, such as TV, the model may know the capitals.
            is_known = self._cost(words) < self._cost(read) + (self._tokenizer.unit != "characters")
            return plain if is_known else Text(" ".join(read), is_upper=True)
        if self._is_title(words):
            names = {0, *shouted}
            return Text(" ".join(word if n in names else self._familiar(word) for n, word in enumerate(words)))
        capitals = []
        for number in shouted:
            word, familiar = words[number], self._familiar(words[number])
            if len(word) >= FEWEST_LETTERS and self._cost([familiar]) * 2 <= self._cost([word]):
                read[number] = familiar if number else familiar.capitalize()
                capitals.append(number)
        return Text(" ".join(read), tuple(capitals))

    @staticmethod
    def _is_title(words: list[str]) -> bool:
        if len(words) < FEWEST_TITLE_WORDS or not words[1][:1].isupper():
            return False
        letters = [word[0] for word in words if word[0].isalpha()]
        return len(letters) >= FEWEST_TITLE_WORDS and all(letter.lower() != letter for letter in letters)

    def _familiar(self, word: str) -> str:
        """Return a word in the case with fewest tokens; of equals that with the lowest ids, which are most frequent."""
        cases = dict.fromkeys((word.lower(), word.capitalize(), word))
        return min(cases, key=lambda each: (self._cost([each]), max(self._tokenizer.encode(each), default=0)))

    def _cost(self, words: list[str]) -> int:
        ids = self._tokenizer.encode(" ".join(words))
        return len(ids) + UNKNOWN_COST * (sum(id_ in self._unlikely for id_ in ids) + (not ids))


def _apart(
    sentence: str, places: Sequence[tuple[int, int]], tags: list[Tag]
) -> tuple[list[tuple[int, int]], list[Tag]]:
    """Return places in order and tags; a pair of tags without words is a place, and so is the number of a note."""
    found = list(places)
    rest = _blank(sentence, [*found, *tags])
    begun = {each.number: each.start for each in tags}
    for _, end, number in tags:
        if number < 0 and -number in begun:
            start = begun[-number]
            is_word = str.isalpha if start and rest[start - 1].isalnum() else str.isalnum
            found += [] if any(map(is_word, rest[start:end])) else [(start, end)]
    found = _merged(sentence, found)
    covered = _blank(sentence, found)
    return found, [each for each in tags if covered[each.start] != " "]


def _blank(sentence: str, places: Sequence[tuple[int, ...]]) -> str:
    """Return a sentence with spaces in its places."""
    characters = list(sentence)
    for start, end, *_ in places:
        characters[start:end] = " " * (end - start)
    return "".join(characters)


class _Rest:
    """What is left of a sentence. It counts its words as they come: counting anew at each cut takes quadratic time."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.words = 0
        self.ends_in_space = False
        self.last_sign = ""
        """Last character but white space; empty if there is none."""
        self.last_has_letters = False
        """Whether the last word has a letter or a digit."""

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @property
    def is_empty(self) -> bool:
        return not self._parts

    def add(self, text: str) -> None:
        """Add text as it stands."""
        if not text:
            return
        if words := text.split():
            goes_on = bool(self.words) and not self.ends_in_space and not text[0].isspace()
            has_letters = any(map(str.isalnum, words[-1]))
            self.last_has_letters = has_letters or (goes_on and len(words) == 1 and self.last_has_letters)
            self.words += len(words) - goes_on
            self.last_sign = words[-1][-1]
        self.ends_in_space = text[-1].isspace()
        self._parts.append(text)

    def join(self, text: str) -> None:
        """Add text from which something before it was cut: punctuation follows its word."""
        self._strip()
        text = text.lstrip()
        self.add(f" {text}" if text and self._parts and text[0] not in CLOSING else text)

    def drop_last_sign(self) -> None:
        """Remove the last character but white space."""
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


class _Cutting:
    """A sentence from which parts are taken, in order: what is left of it, and the cuts."""

    def __init__(self, sentence: str, tags: list[Tag]) -> None:
        self.plain = _blank(sentence, tags)
        """The sentence with spaces in place of its tags."""
        self.cuts = list[Cut]()
        self._sentence, self._rest = sentence, _Rest()
        self._content_end = len(self.plain.rstrip(CLOSING + " "))
        self._last = 0
        self._is_joined = False
        """Whether a cut, with nothing but tags after it, stands before what is added next."""

    def cut(self, start: int, end: int) -> None:
        """Take a place out, with the brackets around it; one at the beginning with the punctuation after it."""
        sentence, rest = self._sentence, self._rest
        if sentence[start - 1 : start] + sentence[end : end + 1] in BRACKETS:
            start, end = start - 1, end + 1
        self._add_until(start)
        self._is_joined = True
        while rest.is_empty and self.plain[end : end + 1] and self.plain[end] in CLOSING:
            end += 1
        space = sentence[_end_of_word(sentence, start) : start]
        is_closed = end >= self._content_end
        if rest.last_sign == "," and is_closed:  # as in "Hello, {name}!"
            rest.drop_last_sign()
            space = f",{space}"
            self.cuts = [each._replace(words=min(each.words, rest.words)) for each in self.cuts]
        is_glued = self.plain[end : end + 1].isalnum() and not space
        self.cuts.append(Cut(space + sentence[start:end], rest.words, is_closed, is_glued=is_glued))
        self._last = end

    def open_tag(self, start: int, end: int, number: int) -> None:
        """Take a tag out that opens something."""
        self._is_joined = not self._add_until(start) and self._is_joined
        rest, plain = self._rest, self.plain
        is_apart = self._is_joined or not rest.words or rest.ends_in_space or plain[end : end + 1].isspace()
        has_begun = not is_apart
        after = plain[end:].lstrip()[:1]
        is_closed = not (has_begun and rest.last_has_letters) and after not in OPENING + QUOTES
        words = rest.words - has_begun
        if self.cuts:  # a piece was cut out of this very word, so the tag begins behind it
            words = max(words, self.cuts[-1].words)
        self.cuts.append(Cut(self._sentence[start:end], words, is_closed, number))
        self._last = end

    def close_tag(self, start: int, end: int, number: int) -> None:
        """Take a tag out that closes something."""
        self._is_joined = not self._add_until(start) and self._is_joined
        is_closed = self._rest.last_sign not in CLOSING + QUOTES
        self.cuts.append(Cut(self._sentence[start:end], self._rest.words, is_closed, number))
        self._last = end

    def finish(self) -> str:
        """Return what is left of the sentence."""
        self._add_until(len(self._sentence))
        return self._rest.text

    def _add_until(self, place: int) -> str:
        """Add the sentence up to a place to the rest, and return what was added."""
        text = self._sentence[self._last : place]
        if self._is_joined:
            self._rest.join(text)
        else:
            self._rest.add(text)
        return text


def _end_of_word(sentence: str, place: int) -> int:
    """Return the end of the word before a place."""
    while place and sentence[place - 1].isspace():
        place -= 1
    return place


def _merged(sentence: str, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return places in order, those with nothing but space between them as one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if found and not sentence[found[-1][1] : start].strip():
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found
