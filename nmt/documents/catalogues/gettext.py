"""gettext catalogues (.po, .pot): entries without a translation are translated, everything else stays byte for byte."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from nmt.documents.catalogues.messages import UNKNOWN, Edit, Message, MessageFile, edited
from nmt.documents.catalogues.plural_forms import PluralForms, plural_forms, rule_of
from nmt.documents.charsets import catalogue_codec, decode_exactly
from nmt.errors import DataError
from nmt.storage.text import decode_utf8
from nmt.tokenizers.placeholders import OF_FLAG

# Comments, strings and keywords, anywhere in a line, as gettext reads a catalogue.
_TOKEN = re.compile(r'#[^\r\n]*+|"(?:[^"\\\r\n]++|\\[^\r\n])*+"?|[a-z_]++')
_ESCAPE = re.compile(r"((?:\\[0-7]{1,3}|\\x[0-9a-fA-F]++)+)|\\(.)")
_BYTE = re.compile(r"\\(?:x([0-9a-fA-F]++)|([0-7]{1,3}))")
_CHARSET = re.compile(r"charset=([\w.:-]+)")
_LANGUAGE = re.compile(r'((?:(?<=")|(?<=\\n))Language:) *+(?=\\n)')
_INITIAL_PLURAL_FORMS = re.compile(r"nplurals=INTEGER; *plural=EXPRESSION;?")
_FUZZY = re.compile(r"fuzzy *,? *|, *fuzzy(?= *\Z)")
_LINE_END = re.compile(r"\r\n|\r|\n|")
_OBSOLETE = re.compile(r"#~ *msgid ")
_CONTROLS = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", '"': '"'
}  # fmt: skip
_ESCAPES = str.maketrans({character: f"\\{sign}" for sign, character in _CONTROLS.items()})
TEMPLATE = "CHARSET"
"""Placeholder for the charset in the header of a new catalogue."""
_NONE = re.compile(r"(?!)")


@dataclass
class _Field:
    """Field of an entry, such as msgid or msgstr[0]."""

    keyword: re.Match[str]
    strings: list[re.Match[str]] = field(default_factory=list)
    """Quoted strings of the field, as matches in the catalogue."""

    @property
    def escaped(self) -> str:
        """The joined strings without quotes, with their escapes."""
        return "".join(string[0][1:].removesuffix('"') for string in self.strings)

    @property
    def end(self) -> int:
        """Position behind the last string."""
        return self.strings[-1].end()


@dataclass
class _Entry:
    """Entry of a catalogue: a message and its translations."""

    comments: list[re.Match[str]]
    """Comments before the entry."""
    sources: dict[str, _Field] = field(default_factory=dict)
    """Fields msgctxt, msgid and msgid_plural."""
    targets: list[_Field] = field(default_factory=list)
    """Fields msgstr in order."""
    messages: list[Message] = field(default_factory=list)
    """The singular, and the plural if there is one."""

    @property
    def start(self) -> int:
        """Position of the first keyword."""
        return next(iter(self.sources.values())).keyword.start()

    @property
    def flags(self) -> list[re.Match[str]]:
        """Comments with flags, such as "#, fuzzy, c-format"."""
        return [comment for comment in self.comments if comment[0].startswith("#,")]

    @property
    def flag_names(self) -> set[str]:
        """Names of all flags."""
        return {name.strip() for comment in self.flags for name in comment[0][2:].split(",")}

    @property
    def is_fuzzy(self) -> bool:
        """Whether the translation waits for a review, so that programs do not use it."""
        return "fuzzy" in self.flag_names

    @property
    def is_complete(self) -> bool:
        """Whether every form has a translation."""
        return all(target.escaped for target in self.targets)

    @property
    def is_header(self) -> bool:
        """Whether the entry is the translation of the empty msgid, which describes the catalogue."""
        return [*self.sources] == ["msgid"] and not self.sources["msgid"].escaped and bool(self.targets)

    @property
    def placeholder(self) -> re.Pattern[str] | None:
        """Placeholders of the format that a flag names; None without a flag."""
        flags = self.flag_names
        pattern = next((OF_FLAG[name] for name in sorted(flags) if name in OF_FLAG), None)
        is_none = any(name.startswith("no-") and name.endswith("-format") for name in flags)
        return _NONE if pattern is None and is_none else pattern


class Catalogue(MessageFile):
    """A catalogue (.po, .pot) in the charset of its header.

    Translated and obsolete entries stay. Fuzzy entries are translated anew. If a translation changes placeholders, its
    entry becomes fuzzy. An entry whose text the translation does not change stays as it is.
    """

    SUFFIXES = (".po", ".pot")
    UNSAFE: ClassVar[str] = "Marked fuzzy"

    def __init__(self, content: bytes, name: str) -> None:
        """Find the untranslated entries.

        Raises:
            DataError: if the catalogue is not in the charset of its header.
        """
        super().__init__(content, name)
        header = _header(content.decode("latin-1"))
        charset = _CHARSET.search(header.targets[0].escaped) if header else None
        self._is_template = charset is None or charset[1] == TEMPLATE
        self._codec = catalogue_codec("utf-8" if charset is None or self._is_template else charset[1], name)
        is_utf8 = self._codec.name == "utf-8"
        text = decode_utf8(content, name) if is_utf8 else decode_exactly(content, self._codec)
        if text is None:
            raise DataError(
                f"{name} is not in the charset {self._codec.name}. Correct the charset in its header, or convert "
                "the file with msgconv -t UTF-8."
            )
        self._text = text
        self._line_break = "\r\n" if "\r\n" in text else "\n"
        self._entries = list[_Entry]()
        for entry in _entries(text):
            sources = [_unescape(entry.sources[name].escaped, self._codec)
                       for name in ("msgid", "msgid_plural") if name in entry.sources]  # fmt: skip
            has_strings = bool(entry.targets) and all(target.strings for target in entry.targets)
            is_message = "msgid" in entry.sources and all(sources) and has_strings
            if is_message and (entry.is_fuzzy or not entry.is_complete):
                entry.messages = [Message(source, entry.placeholder, is_label=True) for source in sources]
                self._entries.append(entry)
                self.texts += [message.text for message in entry.messages]
        self.left["obsolete message"] = sum(1 for _ in _OBSOLETE.finditer(text))

    def render(self, texts: list[str], source: str = "source", target: str = "target") -> bytes:
        """Return the catalogue with translations of ``texts``, in UTF-8 if its charset lacks some characters."""
        header = _header(self._text)
        forms = plural_forms(_unescape(header.targets[0].escaped, self._codec)) if header else None
        if forms is None and target != UNKNOWN:
            forms = plural_forms(rule_of(target))
        edits, remaining = list[Edit](), iter(texts)
        self.unsafe = 0
        for entry in self._entries:
            translations = [next(remaining) for _ in entry.messages]
            if any(text != message.text for text, message in zip(translations, entry.messages, strict=True)):
                edits += self._entry_edits(entry, translations, forms)
        if edits and header:
            edits += self._header_edits(header, target)
        catalogue = edited(self._text, edits)
        try:
            if self._is_template and not catalogue.isascii():
                return _in_utf8(catalogue)
            return self._codec.encode(catalogue, "strict")[0]
        except UnicodeEncodeError:
            return _in_utf8(catalogue)

    def _entry_edits(self, entry: _Entry, translations: list[str], forms: PluralForms | None) -> Iterator[Edit]:
        """Yield the changes of an entry: its translations, and its fuzzy mark."""
        rendered = [message.render(text) for message, text in zip(entry.messages, translations, strict=True)]
        values = [f'"{rendering.text.translate(_ESCAPES)}"' for rendering in rendered]
        is_unsafe = not all(rendering.is_safe for rendering in rendered)
        self.unsafe += is_unsafe
        last, count, singular = entry.targets[-1], len(entry.targets), 0
        if len(values) > 1 and forms:
            count = forms.number
            one, several = entry.messages
            singular = forms.form_of_singular(fits_all=one.has_placeholders_of(several))
        elif count == 1:
            singular = -1  # the plural, if there is one
        for number, field_ in enumerate(entry.targets):
            if number >= count:
                yield Edit(entry.targets[number - 1].end, field_.end, "")
            elif entry.is_fuzzy or not field_.escaped:
                yield Edit(field_.strings[0].start(), field_.end, values[0 if number == singular else -1])
        added = [f"{self._line_break}msgstr[{number}] {values[0 if number == singular else -1]}"
                 for number in range(len(entry.targets), count)]  # fmt: skip
        yield Edit(last.end, last.end, "".join(added))
        yield from self._fuzzy_edits(entry, is_fuzzy=is_unsafe or self.needs_review)

    def _fuzzy_edits(self, entry: _Entry, *, is_fuzzy: bool) -> Iterator[Edit]:
        """Yield the changes that add or remove a fuzzy mark. The comment with the previous msgid is removed."""
        if is_fuzzy and not entry.is_fuzzy and entry.flags:
            place = entry.flags[0].start() + len("#,")
            yield Edit(place, place, " fuzzy,")
        elif is_fuzzy and not entry.is_fuzzy:
            yield Edit(entry.start, entry.start, f"#, fuzzy{self._line_break}")
        for comment in entry.comments:
            flags = comment[0]
            if flags.startswith("#,") and not is_fuzzy:
                flags = _FUZZY.sub("", flags)
            if flags != comment[0] or flags.startswith("#|"):
                is_empty = flags.startswith("#|") or not flags[2:].strip()
                line_end = _LINE_END.match(self._text, comment.end()).end()  # type: ignore[union-attr]
                yield Edit(comment.start(), line_end if is_empty else comment.end(), "" if is_empty else flags)

    def _header_edits(self, header: _Entry, target: str) -> Iterator[Edit]:
        """Yield the changes that complete the header of a template: its language and plural forms."""
        strings = header.targets[0]
        start, end = strings.strings[0].start(), strings.end
        text = old = self._text[start:end]
        if target != UNKNOWN:
            text = _LANGUAGE.sub(lambda match: f"{match[1]} {target.replace('-', '_')}", text)
            text = _INITIAL_PLURAL_FORMS.sub(rule_of(target), text)
            if "Plural-Forms:" not in text and any("msgid_plural" in entry.sources for entry in self._entries):
                text += f'{self._line_break}"Plural-Forms: {rule_of(target)}\\n"'
        if text != old:
            yield Edit(start, end, text)
        if header.is_fuzzy:  # programs ignore a fuzzy header
            yield from self._fuzzy_edits(header, is_fuzzy=False)


def _in_utf8(catalogue: str) -> bytes:
    """Return a catalogue in UTF-8, and correct the charset in its header, if it has one."""
    header = _header(catalogue)
    for string in header.targets[0].strings if header else []:
        if charset := _CHARSET.search(string[0]):
            start, end = string.start() + charset.start(1), string.start() + charset.end(1)
            catalogue = f"{catalogue[:start]}UTF-8{catalogue[end:]}"
            break
    return catalogue.encode()


def _entries(text: str) -> Iterator[_Entry]:
    """Yield the entries of a catalogue in order."""
    comments, entry = list[re.Match[str]](), _Entry([])
    current: _Field | None = None
    for token in _TOKEN.finditer(text):
        keyword = token[0]
        if keyword.startswith("#~"):
            comments.clear()  # they belong to an obsolete entry
        elif keyword.startswith("#"):
            comments.append(token)
        elif keyword.startswith('"'):
            if current is not None:
                current.strings.append(token)
        else:
            current = _Field(token)
            has_message = "msgid" in entry.sources or bool(entry.targets)
            if keyword == "msgctxt" or (keyword == "msgid" and has_message):
                yield entry
                entry = _Entry([])
            if not entry.sources:
                entry.comments, comments = comments, []
            if keyword == "msgstr":
                entry.targets.append(current)
            elif keyword in ("msgctxt", "msgid", "msgid_plural"):
                entry.sources[keyword] = current
    yield entry


def _header(text: str) -> _Entry | None:
    """Return the header of a catalogue."""
    return next((entry for entry in _entries(text) if entry.is_header), None)


def _unescape(escaped: str, codec: codecs.CodecInfo) -> str:
    """Return a text without its escapes; empty if they are no text in the charset, so that the entry stays."""

    def replace(match: re.Match[str]) -> str:
        if match[1] is None:
            return _CONTROLS.get(match[2], match[0])
        digits = _BYTE.findall(match[1])
        numbers = [int(octal, 8) if octal else int(hexadecimal, 16) for hexadecimal, octal in digits]
        return codec.decode(bytes(number & 0xFF for number in numbers), "strict")[0]

    try:
        return _ESCAPE.sub(replace, escaped)
    except UnicodeDecodeError:
        return ""
