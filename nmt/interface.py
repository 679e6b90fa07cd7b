"""The Python interface as its callers see it: arguments are checked, and errors name arguments rather than options.

Messages are written in the words of the command line, which its users type; here they are said again for callers.
"""

import builtins
import contextlib
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

from nmt.config.decoding import KEYS, option_of
from nmt.errors import NmtError, unusable

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

PLAIN = None | bool | int | float | str | Mapping[str, Any] | Sequence[Any]
LARGEST = 2**63
"""Bound of numbers."""

OTHER_NAMES = {"tokenize": "tokenization", "n-best": "n"}
"""Arguments with other names than their options."""
LISTS = {"reference": "references", "hypothesis": "hypotheses", "metric": "metrics"}
"""Arguments that are lists, by the options that give an element."""
FLAGS = {"allow-changes", "by-length", "overwrite"}
DECODING = {option_of(key)[2:]: key for key in KEYS}
COMMANDS = {
    **dict.fromkeys(["to", "quantization", "vocabulary-map", "output", "tolerance", "allow-different"], "nmt export"),
    "epochs": "nmt average",
}  # fmt: skip
"""Commands by their options that are no argument of a function."""

_PROSE = "(?:is|has|must|cannot|chooses|measures|requires|replaces|needs|too|out|alone|or|and|with|to|for|from)"
_VALUE = rf"(?!--|{_PROSE}\b)('[^']*'|\S*[^\s,;:.)])"  # a mark at its end belongs to the sentence
_OPTION = rf"--([a-z][a-z-]*)(?:[ =]{_VALUE})?"
_QUOTED = r"""(?<!\w)(?:'[^'\n]*'|"[^"\n]*")(?!\w)"""  # a line of a file, a name
_COMMAND = rf"\bnmt [a-z]+(?: {_VALUE})*(?: {_OPTION})+"
_PHRASE = re.compile(rf"(?P<kept>{_QUOTED}|{_COMMAND})|(?<![\w-]){_OPTION}(?: {_OPTION})*")


def in_python(message: str) -> str:
    """Return a message with arguments in place of options; whole commands stay, and what is quoted.

    >>> in_python("Give --run NAME, or --set training.epochs=9. Or begin with nmt prepare --overwrite")
    'Give run="NAME", or set={"training.epochs": 9}. Or begin with nmt prepare --overwrite'
    """
    message = re.sub("^FILE ", "files ", message)  # an argument of the command line too
    return _PHRASE.sub(lambda match: match[0] if match["kept"] else _arguments(match[0]), message)


def _arguments(options: str) -> str:
    """Return options in a row as arguments."""
    found: list[str] = []
    keys: list[str] = []
    for option, value in re.findall(_OPTION, options):
        key, equals, of_key = value.strip("'").partition("=")
        name, literal = OTHER_NAMES.get(option, option.replace("-", "_")), _literal(value)
        if option == "from":
            keys.append(f'"training.start_from": {literal}')
        elif option == "set" and value:
            keys += [f'"{key}": {_literal(of_key)}'] * bool(equals)
            found += [f'set["{key}"]'] * (not equals)
        elif option in FLAGS:
            found.append(f"{name}=True {value}".rstrip())
        elif option in DECODING:
            key = DECODING[option]
            found.append(f'decoding={{"{key}": {literal}}}' if value else f'decoding["{key}"]')
        elif option in LISTS:
            found.append(f"{LISTS[option]}=[{literal}]" if value else LISTS[option])
        elif option in COMMANDS:
            found.append(f"{COMMANDS[option]} --{option} {value}".rstrip())
        else:
            found.append(f"{name}={literal}" if value else name)
    return ", ".join([*found, f"set={{{', '.join(keys)}}}"] if keys else found)


def _literal(text: str) -> str:
    """Return a value of the command line as Python writes it; the placeholders N and M stay."""
    words = {"true": "True", "false": "False", "null": "None", "N": "N", "M": "M"}
    if text in words or text[:1] in ("'", '"', "[", "{"):
        return words.get(text, text)
    return text if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", text) else f'"{text}"'


# --- arguments


class _Misfit(Exception):  # noqa: N818 - never leaves this module
    """A place within an argument, its value and its type."""


def public(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return a function of the Python interface: it refuses arguments of other types, and its errors name arguments.

    Raises:
        NmtError: for an argument of another type than its annotation, and for a file that the system refuses.
        TypeError: for a call with other arguments than its signature.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        bound, hints = signature.bind(*args, **kwargs), _types(function)
        try:
            given = bound.arguments
            given |= {name: _checked(name, value, hints[name]) for name, value in given.items() if name in hints}
            return function(*bound.args, **bound.kwargs)
        except NmtError as error:
            error.in_python = in_python(error.message)
            raise
        except OSError as error:
            if error.filename is None:
                raise
            raise NmtError(unusable(error)) from error

    return checked


@functools.cache
def _types(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of arguments; ``object`` stands for a name that is imported for type checkers alone."""

    class Names(dict[str, Any]):
        def __missing__(self, name: str) -> Any:
            return object

    return typing.get_type_hints(function, None, Names(vars(builtins) | function.__globals__))


def _checked(name: str, value: Any, hint: Any) -> Any:
    """Return an argument with numbers and sequences of other libraries as Python's own.

    Raises:
        NmtError: if it has another type.
    """
    try:
        return _fit(value, hint)
    except _Misfit as misfit:
        place, value, hint = misfit.args
    except RecursionError:
        place = ""
    try:
        shown = repr(value)[:80]
    except Exception:  # whatever a foreign class may raise
        shown = f"of {type(value)}"
    wanted = "a plain value" if hint is Any else re.sub(r"[\w.]+\.", "", inspect.formatannotation(hint))
    raise NmtError(f"{name}{place} is {shown}, but must be {wanted}. Change the argument.")


def _fit(value: Any, hint: Any) -> Any:
    """Return a value of a type. ``Any`` is a plain value: None, a number, text, a list or a mapping of plain values."""
    if hint is Any:
        hint = PLAIN
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        for choice in inner:
            with contextlib.suppress(_Misfit):
                return _fit(value, choice)
    elif origin is Mapping and isinstance(value, Mapping):
        return {_fit(key, inner[0]): _within(f"[{key!r:.60}]", each, inner[1]) for key, each in value.items()}
    elif origin is Sequence and isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping | Set):
        with contextlib.suppress(TypeError):  # of an array without dimensions
            return [_within(f"[{place}]", each, inner[0]) for place, each in enumerate(value)]
    elif origin is tuple and isinstance(value, tuple) and len(value) == len(inner):
        return tuple(map(_fit, value, inner))
    elif origin in (None, Callable):
        return _leaf(value, hint, origin or hint)
    raise _Misfit("", value, hint)


def _leaf(value: Any, hint: Any, kind: Any) -> Any:
    """Return a value without parts; numbers and texts of other libraries as Python's own."""
    if kind is str and isinstance(value, str):
        return str.__str__(value)
    if kind in (int, float):
        is_number = isinstance(value, Real if kind is float else Integral) and not isinstance(value, bool)
        if is_number and not abs(value) >= LARGEST:
            return kind(value)
    elif isinstance(value, kind):
        return value
    raise _Misfit("", value, hint)


def _within(place: str, value: Any, hint: Any) -> Any:
    """Return a value of a type, which is at a place of an argument."""
    try:
        return _fit(value, hint)
    except _Misfit as misfit:
        inner, *others = misfit.args
        raise _Misfit(place + inner, *others) from None
