"""Template environments for HTML and Markdown, in which every inserted value is escaped.

Templates of a package are the files in its folder ``templates/``. Every package may extend and include the templates
here: ``base.html`` is a page that fetches nothing, light or dark as the reader's system is.
"""

import re
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

HERE = "nmt.evaluation.reports"
# Characters with a meaning anywhere in a line of Markdown, and list markers, which have one at its start.
_MARKDOWN = re.compile(r"[\\`*_\[\]<>#|~$&]")
_LIST_MARKER = re.compile(r"^(\d*)([-+.)])(?!\d)")


class MarkdownMarkup(str):
    """Markdown that takes effect: ``markdown_environment`` inserts it as it is."""

    __slots__ = ()


def html_environment(package: str = HERE) -> Environment:
    """Return the environment of a package's HTML templates; inserted values are escaped, except ``Markup``."""
    return _environment(package, autoescape=True)


def markdown_environment(package: str = HERE) -> Environment:
    """Return the environment of a package's Markdown templates.

    Inserted values are escaped, except ``MarkdownMarkup``. The filter ``markup`` turns text into it.
    """
    environment = _environment(package, autoescape=False, finalize=escape_markdown)
    environment.filters["markup"] = MarkdownMarkup
    return environment


def escape_markdown(value: Any) -> str:
    """Return a value as one line of text that Markdown shows literally."""
    if isinstance(value, MarkdownMarkup):
        return value
    line = " ".join(str(value).split())
    return _LIST_MARKER.sub(r"\1\\\2", _MARKDOWN.sub(r"\\\g<0>", line))


def _environment(package: str, **options: Any) -> Environment:
    loader = ChoiceLoader([PackageLoader(name) for name in dict.fromkeys((package, HERE))])
    return Environment(
        loader=loader,
        undefined=StrictUndefined,  # a misspelled name is an error, not an empty cell
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )
