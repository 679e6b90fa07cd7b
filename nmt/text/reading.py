"""Preprocessing of ordinary text: it adapts case and removes quotes, tags, emoji and foreign scripts.

A sentence that looks like the training data is not changed. ``rewriting`` restores in the translation what this module
removes.
"""

import bisect
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nmt.text.cutting import QUOTED, Cutter, blank, normalize_spans
from nmt.text.inline import Cut, Span, Tag, find_markup
from nmt.tokenizers.base import FIRST_WORD, UNK, Tokenizer
from nmt.tokenizers.letter_case import capitalize, has_case, lower
from nmt.tokenizers.scripts import HAN, KANA, Word, join_words, space_between, split_words
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
SIGNS = dict(zip("“”„«»‘’‚–—", '"""""\'\'\'--', strict=True)) | {"…": "..."}
"""Typographic signs and their replacements, for models that do not know the signs."""
COMPATIBLE = frozenset(["<wide>", "<narrow>", "<compat>", "<font>", "<initial>", "<medial>", "<final>", "<isolated>"])
"""Kinds of Unicode decompositions that keep the meaning: ﬁ, ｱ. The others change it: 10² is not 102."""
NUMBER = r"\d(?:[.,:/-]?\d){4,}"
# A mail address begins at the beginning of a word, so a long word is searched once, not from each of its letters.
# Chinese and Japanese have no space around it.
_EAST_ASIAN = f"{HAN}{KANA}\u3000-\u303f\uff01-\uff65"
_LETTER = rf"[^\W{_EAST_ASIAN}]"
_KEPT = re.compile(
    rf"(?i:https?://|www\.)[^\s<>\"{_EAST_ASIAN}]*(?:{_LETTER}|/)"
    rf"|(?<![.+-])(?<!{_LETTER})(?:{_LETTER}|[.+-])++@(?:{_LETTER}|-)++\.(?:{_LETTER}|[.-])*{_LETTER}"
    rf"|(?<!{_LETTER})[@#](?:{_LETTER}++|\w++)|{NUMBER}"
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
        self._base = language.partition("-")[0].lower()
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
        if not sentence.isascii():
            sentence = self._with_known_characters(sentence.translate(self._signs))
            tags, placeholders = find_markup(sentence)  # an ellipsis becomes longer
        removed = placeholders + self._foreign_spans(blank(sentence, [*placeholders, *tags]))
        # An address may contain placeholders, but neither tags nor marks.
        markup = [span for span in placeholders if sentence[span[0]] not in "{%$"]
        addresses = [match.span() for match in _KEPT.finditer(blank(sentence, [*markup, *tags]))]
        if not (removed or addresses or tags):
            return Reading(self._in_known_case(sentence))
        kept = tuple(sentence[start:end] for start, end in addresses)
        bare = self._without(sentence, [*removed, *addresses], tags) if addresses else Text("")
        return Reading(self._without(sentence, removed, tags), kept, bare)

    # --- characters that occur in no word of the model

    def _knows(self, character: str) -> bool:
        if character in self._characters or character.lower() in self._characters:
            return True
        plain = self._tokenizer.normalize(character)
        return bool(plain) and self._characters.issuperset(plain)

    def _with_known_characters(self, sentence: str) -> str:
        """Return a sentence with the usual forms of characters such as ﬁ and ｱ that the model does not know."""
        unknown = {
            character for character in set(sentence).difference(self._characters)
            if _usual_form(character) and not self._knows(character)
        }  # fmt: skip
        if not unknown:
            return sentence
        parts, place = list[str](), 0
        while place < len(sentence):
            part = sentence[place]
            end = place + 1
            if part in unknown:
                is_voiced = sentence[end : end + 1] in ("ﾞ", "ﾟ")
                usual = _usual_form(sentence[place : end + is_voiced])
                if usual and all(map(self._knows, usual)):
                    part = usual
                    end += is_voiced
            parts.append(part)
            place = end
        return "".join(parts)

    def _foreign_spans(self, sentence: str) -> list[Span]:
        """Return the spans of text that the model cannot express: emoji, and words in other scripts."""
        if self._characters.issuperset(sentence):
            return []
        spans: list[Span] = []
        unknown_characters = {character for character in set(sentence) if not self._knows(character)}
        for chunk in re.finditer(r"\S+", sentence):
            unknown = [index for index in range(*chunk.span()) if sentence[index] in unknown_characters]
            spans += self._foreign_words(sentence, chunk.span(), unknown)
            categories = {index: unicodedata.category(sentence[index]) for index in unknown}
            for index, category in categories.items():
                is_sign = category in ("So", "Sc", "Sk")
                # Joiners and variation selectors belong to the sign before them.
                is_part = category in ("Mn", "Cf") and categories.get(index - 1, "Ll") in JOINED
                if is_sign or is_part:
                    spans.append((index, index + 1))
        return spans

    @staticmethod
    def _foreign_words(sentence: str, chunk: Span, unknown: list[int]) -> Iterator[Span]:
        """Yield the spans of words with mostly unknown letters, in a part of a sentence without white space.

        A single unknown character of a script without spaces stays among characters that the model knows.

        Args:
            sentence: the sentence.
            chunk: span of the part.
            unknown: indices of the characters in the part that the model does not know.
        """
        letters = sum(map(str.isalpha, sentence[slice(*chunk)]))
        unknown_letters = [index for index in unknown if sentence[index].isalpha()]
        if len(unknown_letters) * 2 > letters:
            yield unknown_letters[0], unknown_letters[-1] + 1
            return
        start = chunk[0]
        for word in split_words(sentence[slice(*chunk)]) if unknown_letters else []:
            end = start + len(word.text)
            first, last = (bisect.bisect_left(unknown_letters, place) for place in (start, end))
            places = unknown_letters[first:last]
            letters = sum(map(str.isalpha, word.text))
            if len(places) * 2 > letters and space_between(sentence[places[0]], "a"):
                yield places[0], places[-1] + 1
            start = end

    def _without(self, sentence: str, spans: Sequence[Span], tags: list[Tag]) -> Text:
        """Return the model input of a sentence without spans and tags."""
        spans, tags = normalize_spans(sentence, spans, tags)
        cutter = Cutter(sentence, tags)
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
        return self._in_known_case(join_words(split_words(text)))._replace(cuts=tuple(cuts))

    # --- case

    def _in_known_case(self, sentence: str) -> Text:
        """Return the model input of a sentence, in the case that the model knows."""
        unchanged = Text(sentence)
        if not self._has_case or not has_case(sentence):
            return unchanged
        words = split_words(sentence)
        texts = [word.text for word in words]
        capitals = [index for index, text in enumerate(texts) if text.isupper() and sum(map(str.isalpha, text)) > 1]
        if capitals and sentence.isupper() and _is_mostly_cased(sentence):
            return self._lowered(sentence, words)
        if self._is_title(texts):
            names = {0, *capitals}
            cased = [text if index in names else self._familiar_case(text) for index, text in enumerate(texts)]
            return unchanged if cased == texts else Text(_rejoin(words, cased))
        cased, changed = list(texts), []
        for index in capitals:
            text, familiar = texts[index], self._familiar_case(texts[index])
            if len(text) >= FEWEST_LETTERS and self._cost(familiar) * 2 <= self._cost(text):
                cased[index] = familiar if index else capitalize(familiar, self._language)
                changed.append(index)
        return Text(_rejoin(words, cased), tuple(changed)) if changed else unchanged

    def _lowered(self, sentence: str, words: list[Word]) -> Text:
        """Return the model input of a sentence whose words are all in capitals."""
        cased = [self._familiar_case(word.text) for word in words]
        capitalized = capitalize(cased[0], self._language)
        if all(map(self._knows, set(capitalized).difference(cased[0]))):
            cased[0] = capitalized
        lowered = _rejoin(words, cased)
        # The number of characters does not depend on case. Of few words, such as TV, the model may know the capitals.
        margin = int(self._tokenizer.unit != "characters")
        if self._cost(sentence) < self._cost(lowered) + margin:
            return Text(sentence)
        return Text(lowered, is_upper=True)

    @staticmethod
    def _is_title(words: list[str]) -> bool:
        if len(words) < FEWEST_TITLE_WORDS or not words[1][:1].isupper():
            return False
        initials = [word[0] for word in words if word[0].isalpha()]
        return len(initials) >= FEWEST_TITLE_WORDS and all(initial.lower() != initial for initial in initials)

    def _familiar_case(self, word: str) -> str:
        """Return a word in the case with the fewest tokens; among equals, with the lowest (most frequent) ids."""
        small = lower(word, self._language)
        cases = [small, capitalize(small, self._language), word]
        familiar = min(
            dict.fromkeys(cases), key=lambda cased: (self._cost(cased), max(self._tokenizer.encode(cased), default=0))
        )
        if self._base != "de" or not word.isupper() or "SS" not in word:
            return familiar
        # STRASSE may be Straße. MASSE may be Masse, so ß must have fewer tokens.
        places = [match.start() for match in re.finditer("ss", small)]
        spellings = [f"{small[:place]}ß{small[place + 2 :]}" for place in places]
        spellings += [capitalize(spelling, self._language) for spelling in spellings]
        return min([familiar, *spellings], key=self._cost)

    def _cost(self, text: str) -> int:
        """Return the number of tokens of a text; unknown tokens count ``UNKNOWN_COST`` more."""
        ids = self._tokenizer.encode(text)
        return len(ids) + UNKNOWN_COST * (sum(id_ in self._unlikely for id_ in ids) + (not ids))


def _rejoin(words: list[Word], texts: list[str]) -> str:
    """Return the text of words in other case."""
    return join_words(word._replace(text=text) for word, text in zip(words, texts, strict=True))


def _is_mostly_cased(text: str) -> bool:
    """Return whether most letters of a text have case: a Chinese sentence about a TV is no text in capitals."""
    letters = [character for character in text if character.isalpha()]
    return sum(map(has_case, letters)) * 2 > len(letters)


def _usual_form(text: str) -> str:
    """Return the usual form of a character with the voicing mark behind it; empty if there is none of equal meaning."""
    kind, _, _ = unicodedata.decomposition(text[0]).partition(" ")
    form = unicodedata.normalize("NFKC", text)
    if kind not in COMPATIBLE or any(map(str.isspace, form)) or unicodedata.combining(form[0]):
        return ""
    if kind == "<compat>" and any(map(str.isdigit, form)):  # 1⒈ is not 11.
        return ""
    return form
