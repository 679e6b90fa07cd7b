"""Placeholders of programs in texts, such as %s and {name}: a table of their syntaxes, and the search for them."""

import re
from collections.abc import Iterable
from typing import NamedTuple


class Syntax(NamedTuple):
    """Syntax of placeholders."""

    pattern: str
    """Regular expression. It takes linear time, and has no groups."""
    source: str
    """Where the syntax is defined."""


_WIDTH = r"(?:\*(?:\d++\$)?|\d++)?"
_SIZE = r"(?:hh|h|ll|l|q|j|z|t|L|I32|I64)?"
_C = rf"{_WIDTH}(?:\.{_WIDTH})?(?:{_SIZE}[diouxXeEfFgGaAcCsSpnm@]|<PRI\w++>)"
_PYTHON = r"\*?\d*+(?:\.(?:\*|\d*+))?[hlL]?[diouxXeEfFgGcrsab]"
# Text of unknown format may have percentages: "100%ig" and "100 %ige", "50% discount", and Turkish "%20si".
_IS_PERCENTAGE = r"(?<!\d(?=%(?!ll?[du]\b)[^\W\d_]{2}))(?<!\d\s(?=%(?!ll?[du]\b)[^\W\d_]{2}))(?!%[1-9]\d*+[^\W\d_l]{2})"
_NAME = r"[a-zA-Z_]\w*+"

SYNTAXES: dict[str, Syntax] = {
    # Names of the flags of PO files: texts that are known to have this format.
    "c-format": Syntax(rf"%(?:%|(?:\d++\$)?(?:#@\w++@|[-+ #0'I]*+{_C}))", "printf(3), gettext manual 15.3.1"),
    "python-format": Syntax(rf"%(?:\([^()]*+\))?[-+ #0]*+(?:%|{_PYTHON})", "printf-style formatting of Python"),
    "python-brace-format": Syntax(r"\{\{|\}\}|\{[^{}]*+(?:\{[^{}]*+\}[^{}]*+)?\}", "format string syntax of Python"),
    "ruby-format": Syntax(
        rf"%(?:%|\{{\w++\}}|[-+ #0]*+(?:<\w++>|\d++\$)?[-+ #0]*+{_WIDTH}(?:\.{_WIDTH})?[diuoxXbBeEfgGaAcps])",
        "Kernel#format of Ruby",
    ),
    "qt-format": Syntax(r"%(?:L?\d{1,2}|L?n)", "QString::arg, QObject::tr"),
    "kde-format": Syntax(r"%\d++", "KLocalizedString"),
    # Texts of unknown format.
    "erb": Syntax(r"<%(?:[^%<]|%(?!>)|<(?!%))*+%>", "ERB of Ruby, EJS, ASP"),
    "php": Syntax(r"<\?(?:[^?<]|\?(?!>)|<(?!\?))*+\?>", "tags of PHP"),
    "jinja": Syntax(
        r"\{%(?:[^%{]|%(?!\})|\{(?!%))*+%\}|\{#(?:[^#{]|#(?!\})|\{(?!#))*+#\}", "Jinja, Django, Liquid, Twig"
    ),
    "mustache": Syntax(r"\{\{\{?[^{}]*+\}\}\}?", "mustache(5), Handlebars, Jinja, Vue, i18next"),
    "arguments": Syntax(
        r"\{\s?\w++\s?,\s?(?:number|date|time|spellout|ordinal|duration)\b[^{}]*+\}", "MessageFormat of ICU"
    ),
    "fluent": Syntax(r"\{\s?(?:[A-Z]++\([^(){}]*+\)|[$-]?[\w.-]++(?:\([^(){}]*+\))?)\s?\}", "Fluent of Mozilla"),
    "brace": Syntax(
        r"[$#%]?\{(?:[^\s{}]*+(?:\{[^\s{}]*+\}[^\s{}]*+)?|[\w.\[\]]*+:[^{}%]*+%[^{}]*+)\}",
        "str.format of Python, template literals of JavaScript, #{} of Ruby and Elixir, %{} of their I18n",
    ),
    "template": Syntax(r"(?<![\w$])\$[a-zA-Z_]\w*+(?:\$(?!\w))?", "string.Template of Python, chrome.i18n"),
    "percent": Syntax(r"(?<![\w%])%[a-zA-Z_]\w++%(?![\w%])", "Twig of Symfony, variables of Windows"),
    "named": Syntax(rf"%(?:\({_NAME}\)[-+#0]*+{_PYTHON}|<{_NAME}>[-+#0]*+[\d.]*+[a-zA-Z])", "Python, Ruby"),
    "printf": Syntax(
        rf"%%|{_IS_PERCENTAGE}%(?:\d++\$)?(?:#@\w++@|[-+#0']*+{_C})",
        "printf(3), Formatter of Android, NSString of Apple",
    ),
    "numbered": Syntax(r"(?<![\d%])%L?\d{1,2}(?!\d)", "QString::arg, KLocalizedString"),
    "colon": Syntax(r"(?<!\S):[a-zA-Z_]\w*+:?", "Laravel, emoji codes"),
    "weblate": Syntax(r"\[X\d++X\]", "machine translation of Weblate"),
}
"""Syntaxes by name, in the order in which they are tried."""
FLAGS = frozenset(name for name in SYNTAXES if name.endswith("-format"))
"""Syntaxes of PO flags, exact. They are not tried in texts of unknown format."""
PLACEHOLDER = "|".join(syntax.pattern for name, syntax in SYNTAXES.items() if name not in FLAGS)
"""Regular expression of the placeholders in texts of unknown format."""
_PLACEHOLDER = re.compile(PLACEHOLDER)
_OF_FLAG = {name: re.compile(SYNTAXES[name].pattern) for name in FLAGS}


def placeholders_of(text: str, syntaxes: Iterable[str] = ()) -> list[str]:
    """Return the placeholders of a text.

    Args:
        text: text with placeholders.
        syntaxes: the only syntaxes, which are flags of a PO entry, in ``FLAGS``; without them, all syntaxes that may
            occur in a text of unknown format are tried.

    >>> placeholders_of("{0} of %(count)s"), placeholders_of("100%ige {0}"), placeholders_of("50% done", ["c-format"])
    (['{0}', '%(count)s'], ['{0}'], ['% d'])
    """
    patterns = [_OF_FLAG[name] for name in syntaxes] or [_PLACEHOLDER]
    return [placeholder for pattern in patterns for placeholder in pattern.findall(text)]
