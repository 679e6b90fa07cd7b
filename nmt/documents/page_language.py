"""Language and direction of a translated HTML page: the attributes lang and dir of its elements."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from nmt.tokenizers.scripts import direction

LANGUAGE_ATTRIBUTES = ("lang", "xml:lang")


class Span(NamedTuple):
    """Value of an attribute, and its position in the tag, with quotes."""

    value: str
    start: int
    end: int


class Tag(NamedTuple):
    """Start tag of an element whose text is translated."""

    raw: int
    """Index of the tag in the parts of the page."""
    name: str
    language: str
    """Declared language of the element or of those around it; empty if there is none."""
    attributes: Mapping[str, Span]
    """Values of ``lang``, ``xml:lang`` and ``dir``."""


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
        for span in declared:
            yield Edit(tag.raw, span.start, span.end, f'"{target.replace("_", "-")}"')
        own = tag.attributes.get("dir")
        if own and own.value.lower() == old != new:
            yield Edit(tag.raw, own.start, own.end, f'"{new}"')
        elif not own and old != new and (declared or tag.name == "html"):
            end_of_name = 1 + len(tag.name)
            yield Edit(tag.raw, end_of_name, end_of_name, f' dir="{new}"')


def _base(language: str) -> str:
    return language.lower().replace("_", "-").partition("-")[0]
