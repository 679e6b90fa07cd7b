"""The Python interface as its callers see it: arguments are checked, and errors name arguments rather than options.

Messages are written in the words of the command line, which its users type; here they are said again for callers.
"""

import functools
import inspect
import re
import typing
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from nmt.config.decoding import KEYS, option_of
from nmt.errors import NmtError, unusable

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

CHECKS = ConfigDict(arbitrary_types_allowed=True, strict=True)
_adapter = functools.cache(lambda hint: TypeAdapter(hint, config=CHECKS))

ARGUMENTS = {
    "tokenize": ("tokenization", "tokenization={literal}"), "n-best": ("n", "n={literal}"),
    "reference": ("references", "references=[{literal}]"), "hypothesis": ("hypotheses", "hypotheses=[{literal}]"),
    "metric": ("metrics", "metrics=[{literal}]"), "overwrite": ("overwrite=True", "overwrite=True {value}"),
    "allow-changes": ("allow_changes=True", "allow_changes=True {value}"),
    "by-length": ("by_length=True", "by_length=True {value}"), "stress": ("stress=True", "stress=True {value}"),
    "calibrate": ("calibrate=True", "calibrate=True {value}"),
    **{option_of(key)[2:]: (f'decoding["{key}"]', f'decoding={{{{"{key}": {{literal}}}}}}') for key in KEYS},
}  # fmt: skip
"""What stands for an option without and with a value, if it is not an argument of the same name."""

_PROSE = "(?:is|has|must|cannot|chooses|measures|requires|replaces|needs|too|out|alone|or|and|with|to|for|from)"
_VALUE = rf"(?!--|nmt |{_PROSE}\b)('[^']*'|\S*[^\s,;:.)])"  # a mark at its end belongs to the sentence
_OPTION = rf"--([a-z][a-z-]*)(?:[ =]{_VALUE})?"
_QUOTED = r"""(?<!\w)(?:'[^'\n]*'|"[^"\n]*")(?!\w)"""  # a line of a file, a name
_COMMAND = rf"\bnmt [a-z]++(?: {_VALUE})*+(?: {_OPTION})++"
_PHRASE = re.compile(rf"(?P<kept>{_QUOTED}|{_COMMAND})|(?<![\w-]){_OPTION}(?: {_OPTION})*")


def in_python(message: str) -> str:
    """Return a message with arguments in place of options; whole commands stay, and what is quoted.

    >>> in_python("Give --run NAME, or --set training.epochs=9. Or begin with nmt prepare --overwrite")
    'Give run="NAME", or set={"training.epochs": 9}. Or begin with nmt prepare --overwrite'
    """
    said = _PHRASE.sub(lambda match: match[0] if match["kept"] else _arguments(match[0]), message)
    return re.sub("^FILE ", "files ", said)  # an argument of the command line too


def _arguments(options: str) -> str:
    """Return options in a row as arguments."""
    found: list[str] = []
    keys: list[str] = []
    for option, value in re.findall(_OPTION, options):
        key, equals, of_key = value.strip("'").partition("=")
        if option == "from":
            keys.append(f'"training.start_from": {_literal(value)}')
        elif option == "set" and equals:
            keys.append(f'"{key}": {_literal(of_key)}')
        elif option == "set" and value:
            found.append(f'set["{key}"]')
        else:
            name = option.replace("-", "_")
            forms = ARGUMENTS.get(option, (name, f"{name}={{literal}}"))
            found.append(forms[bool(value)].format(value=value, literal=_literal(value)))
    return ", ".join([*found, f"set={{{', '.join(keys)}}}"] if keys else found)


def _literal(text: str) -> str:
    """Return a value of the command line as Python writes it; the placeholders N and M stay."""
    words = {"true": "True", "false": "False", "null": "None", "N": "N", "M": "M"}
    is_literal = text[:1] in ("'", '"', "[", "{") or re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", text)
    return words.get(text, text if is_literal else f'"{text}"')


def public(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Return a function of the Python interface: it refuses arguments of other types, and its errors name arguments.

    Raises:
        NmtError: for an argument of another type than its annotation, and for a file that the system refuses.
        TypeError: for a call with other arguments than its signature.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        bound = signature.bind(*args, **kwargs)
        try:
            for name, value in bound.arguments.items():
                bound.arguments[name] = _checked(name, value, signature.parameters[name].annotation)
            return function(*bound.args, **bound.kwargs)
        except NmtError as error:
            error.in_python = in_python(error.message)
            raise
        except OSError as error:
            if error.filename is None:
                raise
            raise NmtError(unusable(error)) from error

    return checked


def _checked(name: str, value: Any, hint: Any) -> Any:
    """Return an argument, an array as a list. One without a type, or with the name of a type, is not checked."""
    if hint is inspect.Parameter.empty or isinstance(hint, str):
        return value
    place = ""
    try:
        value = value.tolist() if hasattr(value, "tolist") else value
        shown = repr(value)
        return _adapter(hint).validate_python(value)
    except ValidationError as error:
        inner = error.errors()[0]["loc"]
        if typing.get_origin(hint) is Sequence and inner:
            place, value, hint = f"[{inner[0]}]", value[inner[0]], typing.get_args(hint)[0]
            shown = repr(value)
    except Exception:  # whatever the repr of a foreign class may raise
        shown = f"of {type(value)}"
    wanted = re.sub(r"(?<![\w.])[\w.]+\.", "", inspect.formatannotation(hint))
    raise NmtError(f"{name}{place} is {shown[:80]}, but must be {wanted}. Change the argument.")
