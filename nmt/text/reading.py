"""Preprocessing of ordinary text: it adapts case and removes marks, quotes, tags, emoji and foreign scripts.

A sentence that looks like the training data is not changed. ``rewriting`` restores in the translation what this module
removes.
"""

import bisect
import re
import unicodedata
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from nmt.text.cutting import Cutter, blank, normalize_spans
from nmt.text.inline import Cut, Span, Tag, find_markup
from nmt.text.pieces import KEPT, LONG_WORD, SUSPICIOUS, is_word, unwrap
from nmt.tokenizers.base import FIRST_WORD, UNK, Tokenizer
from nmt.tokenizers.icu import has_choices
from nmt.tokenizers.letter_case import capitalize, has_case, lower
from nmt.tokenizers.names import find_names
from nmt.tokenizers.scripts import Word, join_words, space_between, split_words
from nmt.tokenizers.sentences import MOST_WORD_CHARACTERS, segment, sentences_of

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
    stand_ins: tuple[tuple[str, str], ...] = ()
    """Words that stand in ``text`` for pieces of the sentence, each with its piece."""


class Parts(NamedTuple):
    """A sentence with the spans of its parts that the translation must contain unchanged."""

    sentence: str
    removed: list[Span]
    """Spans that the model does not read, such as placeholders."""
    kept: list[Span]
    """Spans that the model may copy by itself, such as addresses, numbers and new names."""
    tags: list[Tag]


class Reading(NamedTuple):
    """A sentence after preprocessing."""

    text: Text
    """Model input."""
    kept: tuple[str, ...] = ()
    """Addresses, numbers and new names in ``text``, which the translation must contain."""
    bare: Text = Text("")
    """Model input without what is kept, used if the translation of ``text`` loses a part of it."""
    parts: Parts | None = None
    """Parts of the sentence; None for a sentence that the model reads whole."""
    before: str = ""
    """Marks, quotes and brackets before the sentence."""
    after: str = ""
    """Quotes and brackets after the sentence."""
    separator: str = ""
    """White space between this sentence and the next."""


class Reader:
    """Preprocesses lines for a model. Several threads may use it."""

    def __init__(
        self, tokenizer: Tokenizer, language: str, *, split: bool = True, most_tokens: int = 2**30,
        known_words: Set[str] | None = None,
    ) -> None:  # fmt: skip
        """Create a reader.

        Args:
            tokenizer: tokenizer of the source side.
            language: language code of the source side.
            split: whether lines are split into sentences.
            most_tokens: most tokens of a sentence. A longer one is cut.
            known_words: words in lower case. Names that are not among them are kept; None: names are not looked for.
        """
        self._known_words = known_words
        self._tokenizer, self._language, self._split, self._most_tokens = tokenizer, language, split, most_tokens
        self._base = language.partition("-")[0].lower()
        ids = range(FIRST_WORD, tokenizer.size)
        self._unlikely = {UNK, *(id_ for id_ in ids if tokenizer.byte_of(id_) is not None)}
        self.characters = set(" ").union(*tokenizer.pieces(set(ids) - self._unlikely))
        """Characters that occur in words of the model."""
        self._has_case = tokenizer.normalize("Aa") == "Aa"
        # For a text without letters, models make up words; but the texts of some models are all digits.
        has_letters = any(map(str.isalpha, self.characters))
        self._is_said = str.isalpha if has_letters else str.isalnum
        self._signs = str.maketrans({sign: plain for sign, plain in SIGNS.items() if not self._knows(sign)})

    def read(self, line: str, *, split: bool = True, cut: bool = True) -> list[Reading]:
        """Return the readings of the sentences of a line.

        Args:
            line: a line of text.
            split: whether a line may have several readings.
            cut: whether sentences that are too long are cut.
        """
        line = line.strip()
        if not line:
            return [Reading(Text(""))]
        if has_choices(line):
            return [_copied(line)]
        before, line, after = unwrap(line)
        readings = []
        for text, separator in self._sentences(line, split=split, cut=cut):
            opening, core, closing = unwrap(text)
            reading = self._read_sentence(core)
            readings.append(reading._replace(before=opening, after=closing, separator=separator))
        readings[0] = readings[0]._replace(before=before + readings[0].before)
        readings[-1] = readings[-1]._replace(after=readings[-1].after + after)
        return readings

    def _sentences(self, line: str, *, split: bool, cut: bool) -> list[tuple[str, str]]:
        """Return the sentences of a line, each with the white space after it, and the parts of long sentences."""
        # Hardly a token has less than a character, or a character more than four tokens, so most need no counting.
        is_long = cut and split and len(line) * 4 > self._most_tokens
        is_whole = not is_long or self.count_tokens(line) <= self._most_tokens
        if is_whole:
            return sentences_of(line, self._language) if split and self._split else [(line, "")]
        segments = segment(line, self._language, self.count_tokens, self._most_tokens)
        return [(text, separator) for text, separator, _ in segments]

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens of a sentence, without words that the model does not read."""
        return len(self._tokenizer.encode(LONG_WORD.sub(" ", text)))

    def _read_sentence(self, sentence: str) -> Reading:
        is_plain = SUSPICIOUS.search(sentence) is None
        tags, placeholders = ([], []) if is_plain else find_markup(sentence)
        if not any(map(self._is_said, sentence)) or len(tags) + len(placeholders) > MOST_TAGS:
            return _copied(sentence)
        if not sentence.isascii():
            sentence = self._with_known_characters(sentence.translate(self._signs))
            if not is_plain:
                tags, placeholders = find_markup(sentence)  # an ellipsis becomes longer
        removed = list(placeholders)
        if len(sentence) >= MOST_WORD_CHARACTERS:
            removed += (match.span() for match in LONG_WORD.finditer(sentence))
        removed += self._foreign_spans(blank(sentence, [*removed, *tags]))
        kept_spans = [] if is_plain else _find_kept(sentence, placeholders, tags)
        if self._known_words is not None:
            rest = blank(sentence, [*removed, *kept_spans, *tags])
            kept_spans = sorted([*kept_spans, *find_names(rest, self._known_words)])
        if not (removed or kept_spans or tags):
            return Reading(self._in_known_case(sentence))
        kept = tuple(sentence[start:end] for start, end in kept_spans)
        parts = Parts(sentence, removed, kept_spans, tags)
        bare = self._without(parts, [*removed, *kept_spans]) if kept_spans else Text("")
        return Reading(self._without(parts, removed), kept, bare, parts=parts)

    def with_other_digits(self, reading: Reading) -> Text | None:
        """Return the model input with other digits in place of those that are kept; None if more than digits are.

        Models write a digit as a word, and often only they know which.
        """
        if reading.parts is None or not all(map(str.isdecimal, reading.kept)) or max(map(len, reading.kept)) > 1:
            return None
        sentence = list(reading.parts.sentence)
        for start, _ in reading.parts.kept:
            digit = unicodedata.decimal(sentence[start])
            sentence[start] = str(digit + 1 if digit in range(2, 9) else 2)
        text = self._without(reading.parts._replace(sentence="".join(sentence)), reading.parts.removed)
        return text if self._fits(text) else None

    def with_stand_ins(self, parts: Parts, words: Sequence[str], *, has_lost: bool) -> Text | None:
        """Return the model input of a sentence with words in place of its first pieces; None if none gets a word.

        Tags and code have no part in the grammar of a sentence and are cut out. So are pieces within a word.

        Args:
            parts: parts of the sentence.
            words: different words. Those that the sentence has are left out.
            has_lost: whether the pieces that the model may copy by itself are replaced, too.
        """
        usable = [word for word in words if word not in parts.sentence]
        text = self._without(parts, parts.removed + parts.kept if has_lost else parts.removed, usable)
        return text if text.stand_ins and self._fits(text) else None

    def _fits(self, text: Text) -> bool:
        return self.count_tokens(text.text) <= self._most_tokens

    # --- characters that occur in no word of the model

    def _knows(self, character: str) -> bool:
        if character in self.characters or character.lower() in self.characters:
            return True
        plain = self._tokenizer.normalize(character)
        return bool(plain) and self.characters.issuperset(plain)

    def _with_known_characters(self, sentence: str) -> str:
        """Return a sentence with the usual forms of characters such as ﬁ and ｱ that the model does not know."""
        unknown = {
            character for character in set(sentence).difference(self.characters)
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
        if self.characters.issuperset(sentence):
            return []
        spans: list[Span] = []
        unknown_characters = {character for character in set(sentence) if not self._knows(character)}
        for chunk in re.finditer(r"\S+", sentence):
            unknown = [index for index in range(*chunk.span()) if sentence[index] in unknown_characters]
            spans += self._foreign_words(sentence, chunk.span(), unknown)
            categories = {index: unicodedata.category(sentence[index]) for index in unknown}
            for index, category in categories.items():
                is_sign = category in ("So", "Sc", "Sk") or (category == "Sm" and not sentence[index].isascii())
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

    def _without(self, parts: Parts, spans: Sequence[Span], words: Sequence[str] = ()) -> Text:
        """Return the model input of a sentence without spans and tags, with ``words`` in place of the first spans."""
        sentence = parts.sentence
        spans, tags = normalize_spans(sentence, spans, parts.tags)
        cutter = Cutter(sentence, tags)
        waiting, stand_ins = list(words), list[tuple[str, str]]()
        for start, end, number in sorted([*(Tag(start, end, 0) for start, end in spans), *tags]):
            if number > 0:
                cutter.open_tag(start, end, number)
            elif number < 0:
                cutter.close_tag(start, end, number)
            elif waiting and is_word(sentence, start, end):
                word = waiting.pop(0)
                cutter.replace(start, end, word)
                stand_ins.append((word, sentence[start:end]))
            else:
                cutter.cut(start, end)
        text = cutter.finish()
        if not any(map(self._is_said, text)):
            return _copied(sentence).text
        cuts = cutter.cuts
        ends_in_piece = bool(spans) and not cutter.plain[spans[-1][1] :].strip()
        if ends_in_piece:  # the stop of the sentence comes before the piece
            cuts = [cut if cut.tag else cut._replace(is_closed=False) for cut in cuts]
        text = join_words(split_words(text))
        return self._in_known_case(text)._replace(cuts=tuple(cuts), stand_ins=tuple(stand_ins))

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


def _find_kept(sentence: str, placeholders: list[Span], tags: list[Tag]) -> list[Span]:
    """Return the spans of pieces that the model may copy by itself. Those within placeholders are left out.

    An address may contain placeholders, but neither tags nor marks.
    """
    markup = [span for span in placeholders if sentence[span[0]] not in "{%$"]
    spans = [match.span() for match in KEPT.finditer(blank(sentence, [*markup, *tags]))]
    rest = blank(sentence, placeholders)
    return [(start, end) for start, end in spans if not rest[start:end].isspace()]


def _copied(sentence: str) -> Reading:
    """Return the reading of a sentence that its translation copies."""
    return Reading(Text("", cuts=(Cut(sentence, 0, False),)))


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
