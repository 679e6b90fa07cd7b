"""Character encodings that a document declares: those of browsers, and no others.

The list is the WHATWG's (https://encoding.spec.whatwg.org), as ``webencodings`` has it. Python has further codecs, such
as punycode and idna, that no document is in; they take minutes for a long text.
"""

import codecs
import re

import webencodings

from nmt.errors import DataError

_META = re.compile(rb"<meta[^<>]+?charset\s*+=\s*+[\"']?([\w.:-]+)", re.IGNORECASE)
_BEGINNING = 1024
"""Bytes of a page in which browsers look for its encoding."""


def page_codec(content: bytes, name: str) -> codecs.CodecInfo:
    """Return the codec of a page of HTML, by default that of UTF-8.

    Raises:
        DataError: if the page declares an encoding that browsers do not read.
    """
    declared = _META.search(content[:_BEGINNING])
    label = declared[1].decode("latin-1") if declared else "utf-8"
    encoding = webencodings.lookup(label)
    if encoding is None or encoding.name == "replacement":
        raise DataError(f"{name} is not in the encoding {label}. Write <meta charset> as it is, or as UTF-8.")
    # As in browsers: a byte-order mark comes first, and a page whose tag could be read is not in UTF-16.
    if content.startswith(codecs.BOM_UTF8) or encoding.name.startswith("utf-16"):
        encoding = webencodings.UTF8
    return encoding.codec_info


def catalogue_codec(label: str, name: str) -> codecs.CodecInfo:
    """Return the codec of a catalogue of gettext, whose charset iconv reads as it is written.

    Browsers read ISO-8859-1 as Windows-1252, which has more characters.

    Raises:
        DataError: if browsers do not read the encoding, or Python does not know it.
    """
    try:
        if webencodings.lookup(label):
            return codecs.lookup(label)
    except LookupError:
        pass
    raise DataError(f"{name} is in the charset {label}, which nmt does not read. Convert it with msgconv -t UTF-8.")


def decode_exactly(content: bytes, codec: codecs.CodecInfo) -> str | None:
    """Return the text of bytes; None if it is not in this encoding, or would not become the same bytes again."""
    try:
        text, _ = codec.decode(content, "strict")
        return text if codec.encode(text, "strict")[0] == content else None
    except ValueError:
        return None
