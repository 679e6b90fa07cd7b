"""Attributes of HTML tags: the ones with text for readers, and the language and direction of a translation."""

import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from typing import NamedTuple

from nmt.tokenizers.scripts import direction

SPACE = " \t\n\r\f"
"""White space of HTML."""
LANGUAGE_ATTRIBUTES = ("lang", "xml:lang")
LABELS = frozenset({
    "alt", "aria-description", "aria-label", "aria-placeholder", "aria-roledescription", "aria-valuetext",
    "placeholder", "title",
})  # fmt: skip
"""Attributes with text, of any element
(https://html.spec.whatwg.org/multipage/dom.html#translatable-attributes, https://www.w3.org/TR/wai-aria-1.3)."""
LABELS_OF_ELEMENTS = {("th", "abbr"), ("optgroup", "label"), ("option", "label"), ("track", "label")}
"""Elements with an attribute that has text."""
BUTTONS = frozenset({"button", "reset", "submit"})
"""Types of ``<input>`` whose value is the text of a button."""
DESCRIPTIONS = frozenset({
    "description", "og:title", "og:description", "og:image:alt",
    "twitter:title", "twitter:description", "twitter:image:alt",
})  # fmt: skip
"""Names of ``<meta>`` elements whose content is a sentence or a heading."""
# Possessive quantifiers keep the time linear.
_ATTRIBUTES = re.compile(
    rf"""([^{SPACE}/>][^{SPACE}/>=]*+)(?:[{SPACE}]*+=[{SPACE}]*+("[^"]*+"|'[^']*+'|[^{SPACE}>"'][^{SPACE}>]*+))?+"""
)
_LONG_REFERENCE = re.compile(r"&#0*+([0-9]{8})[0-9]*+|&#0+(?=[0-9])")


def plain_text(html: str) -> str:
    """Return text with character references, such as &amp;, replaced by their characters."""
    # No character has a number of eight digits, and Python refuses to parse numbers of more than 4,300 digits.
    return unescape(_LONG_REFERENCE.sub(lambda match: "&#99999999" if match[1] else "&#", html))


class Attribute(NamedTuple):
    """Value of an attribute, and its position in the tag, with quotes."""

    value: str
    start: int
    end: int


def read_attributes(attributes: str, start: int) -> dict[str, Attribute]:
    """Return the attributes of a complete tag by their names in lower case; the first of equal names counts.

    Args:
        attributes: source of the attributes.
        start: position of the attributes in the tag.
    """
    found: dict[str, Attribute] = {}
    for match in _ATTRIBUTES.finditer(attributes):
        name, source = match[1].lower(), match[2] or ""
        if name not in found:
            value = source[1:-1] if source[:1] in ("'", '"') else source
            found[name] = Attribute(plain_text(value), start + match.start(2), start + match.end(2))
    return found


def value_of(attributes: Mapping[str, Attribute], name: str) -> str:
    """Return the value of an attribute in lower case; empty if it is missing."""
    return attributes[name].value.lower() if name in attributes else ""


def labels(tag: str, attributes: Mapping[str, Attribute]) -> Iterator[Attribute]:
    """Yield the attributes of an element whose values are text for readers."""
    for name, attribute in attributes.items():
        is_label = name in LABELS or (tag, name) in LABELS_OF_ELEMENTS
        if tag == "input" and name == "value":
            is_label = value_of(attributes, "type") in BUTTONS
        elif tag == "meta" and name == "content":
            names = {value_of(attributes, "name"), value_of(attributes, "property")}
            is_label = not names.isdisjoint(DESCRIPTIONS)
        if is_label and attribute.value.strip():
            yield attribute


def is_translated(attributes: Mapping[str, Attribute], *, default: bool) -> bool:
    """Return whether the attributes of an element declare its text translatable; ``default`` if they do not say."""
    value = value_of(attributes, "translate")
    if "translate" in attributes and value in ("no", "yes", ""):
        return value != "no"
    return default and "notranslate" not in value_of(attributes, "class").split()


def language_of(attributes: Mapping[str, Attribute]) -> str:
    """Return the language that an element declares; empty if it declares none."""
    return next((attributes[name].value for name in LANGUAGE_ATTRIBUTES if value_of(attributes, name)), "")


class Tag(NamedTuple):
    """Start tag of an element whose text is translated."""

    raw: int
    """Index of the tag in the parts of the page."""
    name: str
    language: str
    """Declared language of the element or of those around it; empty if there is none."""
    attributes: Mapping[str, Attribute]
    """Attributes that are not empty, by name."""


class Edit(NamedTuple):
    """Text that replaces a part of a tag."""

    raw: int
    start: int
    end: int
    text: str


def language_edits(tags: Sequence[Tag], source: str, target: str) -> Iterator[Edit]:
    """Yield the changes that declare the language of a translation.

    The source language becomes the target language. The direction of the source becomes that of the target; if these
    differ, ``dir`` is added to ``<html>`` and to elements whose language changes. Elements that declare another
    language stay as they are.

    Args:
        tags: tags with ``lang`` or ``dir``, and ``<html>``.
        source, target: language codes; nothing changes if one of them is unknown.
    """
    old, new = direction(source), direction(target)
    if "auto" in (old, new):
        return
    for tag in tags:
        if tag.language and _base(tag.language) != _base(source):
            continue
        declared = [tag.attributes[name] for name in LANGUAGE_ATTRIBUTES if name in tag.attributes]
        for attribute in declared:
            yield Edit(tag.raw, attribute.start, attribute.end, f'"{target.replace("_", "-")}"')
        own = tag.attributes.get("dir")
        if own and own.value.lower() == old != new:
            yield Edit(tag.raw, own.start, own.end, f'"{new}"')
        elif not own and old != new and (declared or tag.name == "html"):
            end_of_name = 1 + len(tag.name)
            yield Edit(tag.raw, end_of_name, end_of_name, f' dir="{new}"')


def _base(language: str) -> str:
    return language.lower().replace("_", "-").partition("-")[0]
