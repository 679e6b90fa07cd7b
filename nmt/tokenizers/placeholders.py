"""Placeholders of programs in texts, such as %s and {name}: a table of their syntaxes, and the search for them."""

import re
from typing import NamedTuple


class Syntax(NamedTuple):
    """Syntax of placeholders."""

    pattern: str
    """Regular expression. It takes linear time, and has no groups."""
    source: str
    """Where the syntax is defined."""


SYNTAXES: dict[str, Syntax] = {
    "mustache": Syntax(r"\{\{[^{}]*\}\}", "mustache(5)"),
    "brace": Syntax(r"\$?\{[\\\w.:!,#&-]*\}", "str.format of Python, template literals of JavaScript"),
    "printf": Syntax(
        r"%(?:%|(?:\(\w++\)|\d++\$)?[-+#0]*+\d*+(?:\.\d++)?[sdifuxXeEgGc@])",
        "printf of C, NSString of Apple",
    ),
}
"""Syntaxes by name, in the order in which they are tried."""
PLACEHOLDER = "|".join(syntax.pattern for syntax in SYNTAXES.values())
"""Regular expression of all placeholders."""
_PLACEHOLDER = re.compile(PLACEHOLDER)


def placeholders_of(text: str) -> list[str]:
    """Return the placeholders of a text, in order.

    >>> placeholders_of("{0} of %(count)s")
    ['{0}', '%(count)s']
    """
    return _PLACEHOLDER.findall(text)
