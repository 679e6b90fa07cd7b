"""Type checks of arguments, which the functions of the Python interface make before they run."""

import functools
import inspect
import re
import typing
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from nmt.errors import NmtError, unusable_file_message

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

CHECKS = ConfigDict(arbitrary_types_allowed=True, strict=True)
_adapter = functools.cache(lambda hint: TypeAdapter(hint, config=CHECKS))


def public(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a function of the Python interface: it refuses arguments of another type than annotated.

    Raises:
        NmtError: if an argument has another type than its annotation, or the system refuses a file.
        TypeError: if the arguments do not fit the signature.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        bound = signature.bind(*args, **kwargs)
        try:
            for name, value in bound.arguments.items():
                bound.arguments[name] = _check_type(name, value, signature.parameters[name].annotation)
            return function(*bound.args, **bound.kwargs)
        except OSError as error:
            if error.filename is None:
                raise
            raise NmtError(unusable_file_message(error)) from error

    return checked


def _check_type(name: str, value: Any, hint: Any) -> Any:
    """Return an argument, converted to a list if it is an array. Without an annotation, or with a string, any fits."""
    if hint is inspect.Parameter.empty or isinstance(hint, str):
        return value
    place = ""
    try:
        value = value.tolist() if hasattr(value, "tolist") else value
        value_text = repr(value)
        return _adapter(hint).validate_python(value)
    except ValidationError as error:
        inner = error.errors()[0]["loc"]
        if typing.get_origin(hint) is Sequence and inner:
            place, value, hint = f"[{inner[0]}]", value[inner[0]], typing.get_args(hint)[0]
            value_text = repr(value)
    except Exception:  # the repr of a foreign class may raise any exception
        value_text = f"of {type(value)}"
    wanted = re.sub(r"(?<![\w.])[\w.]+\.", "", inspect.formatannotation(hint))
    raise NmtError(f"{name}{place} is {value_text[:80]}, but must be {wanted}. Change the argument.")
