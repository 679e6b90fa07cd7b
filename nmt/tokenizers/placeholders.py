"""Placeholders of programs in texts, such as %s and {name}: a table of their syntaxes, and the search for them."""

import re
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
    "colon": Syntax(r"(?<!\S):[a-zA-Z_]\w++:?+(?![:`\w])", "Laravel, emoji codes"),
    "weblate": Syntax(r"\[X\d++X\]", "machine translation of Weblate"),
}
"""Syntaxes in texts of unknown format, by name, in the order in which they are tried."""
PLACEHOLDER = "|".join(syntax.pattern for syntax in SYNTAXES.values())
"""Regular expression of the placeholders in texts of unknown format."""
_PLACEHOLDER = re.compile(PLACEHOLDER)

_PERCENT = Syntax(
    r"%(?:\{[^{}]*\}|(?:\(\w+\)|<\w+>|\d+\$)?[-+ #0'I]*+(?:\*(?:\d+\$)?|\d++)?(?:\.(?:\*(?:\d+\$)?|\d*+))?"
    r"(?:(?:hh|ll|[hlLqjztZ])?[a-zA-Z@%]|<\w+>)|)",
    "printf(3) and its relatives",
)
_BRACES = Syntax(r"\{\{|\}\}|\{[^{}]*+(?:\{[^{}]*+\}[^{}]*+)*+\}|[{}]", "str.format of Python, std::format of C++")
_JAVA = Syntax(r"\{[^{}]*+\}|[{}]|''?", "java.text.MessageFormat")
_NUMBERS = Syntax(r"%L?(?:\d{1,2}|n)", "QString::arg, KLocalizedString")
_BOOST = Syntax(r"%(?:\d++%|%|)", "boost::format")
_SHELL = Syntax(r"\$(?:\w+|\{\w+\})", "envsubst")
_FORMATS = {
    "c objc gcc-internal gfc-internal python java-printf javascript elisp librep tcl perl php ruby lua awk": _PERCENT,
    "object-pascal": _PERCENT,
    "python-brace csharp perl-brace c++ rust": _BRACES,
    "java": _JAVA,
    "qt qt-plural kde kde-kuit ycp smalltalk": _NUMBERS,
    "boost": _BOOST,
    "sh": _SHELL,
}
OF_FLAG = {f"{name}-format": re.compile(syntax.pattern) for names, syntax in _FORMATS.items() for name in names.split()}
"""Placeholders of texts whose format the flag of a PO entry names, such as "c-format" (manual of gettext)."""


def placeholders_of(text: str) -> list[str]:
    """Return the placeholders of a text of unknown format, in order.

    >>> placeholders_of("{0} of %(count)s"), placeholders_of("100%ige {0}")
    (['{0}', '%(count)s'], ['{0}'])
    """
    return _PLACEHOLDER.findall(text)
