"""Character encodings that a document may declare: the encodings that browsers know.

The list is the WHATWG's (https://encoding.spec.whatwg.org), from the package ``webencodings``. Python has more codecs,
such as punycode and idna, which no document uses and which take minutes for a long text.
"""

import codecs
import re

import webencodings

from nmt.errors import DataError

_META = re.compile(rb"<meta[^<>]+?charset\s*+=\s*+[\"']?([\w.:-]+)", re.IGNORECASE)
_BEGINNING = 1024
"""Bytes at the beginning of a page in which browsers look for its encoding."""


def page_codec(content: bytes, name: str) -> codecs.CodecInfo:
    """Return the codec of an HTML page; UTF-8 if the page declares none.

    Raises:
        DataError: if the page declares an encoding that browsers do not read.
    """
    declared = _META.search(content[:_BEGINNING])
    label = declared[1].decode("latin-1") if declared else "utf-8"
    encoding = webencodings.lookup(label)
    if encoding is None or encoding.name == "replacement":
        raise DataError(
            f"{name} declares the encoding {label}, which browsers do not read. Correct <meta charset>, or save "
            "the page as UTF-8."
        )
    # As in browsers, a byte-order mark takes precedence, and a page whose tag is readable cannot be in UTF-16.
    if content.startswith(codecs.BOM_UTF8) or encoding.name.startswith("utf-16"):
        encoding = webencodings.UTF8
    return encoding.codec_info


def catalogue_codec(label: str, name: str) -> codecs.CodecInfo:
    """Return the codec of a gettext catalogue; iconv takes the name of its charset literally.

    Browsers, in contrast, read ISO-8859-1 as Windows-1252, which has more characters.

    Raises:
        DataError: if browsers do not read the charset, or Python does not know it.
    """
    try:
        if webencodings.lookup(label):
            return codecs.lookup(label)
    except LookupError:
        pass
    raise DataError(f"{name} is in the charset {label}, which nmt does not read. Convert it with msgconv -t UTF-8.")


def decode_exactly(content: bytes, codec: codecs.CodecInfo) -> str | None:
    """Return the decoded text; None if the bytes are not in this encoding, or encoding the text gives other bytes."""
    try:
        text, _ = codec.decode(content, "strict")
        return text if codec.encode(text, "strict")[0] == content else None
    except ValueError:
        return None
