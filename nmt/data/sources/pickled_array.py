"""A safe reader of pickled string arrays, which runs no code from the file. It is the project's only reader of pickles.

A pickle is a program for a small stack machine. Some of its instructions call functions that the file names, so
``pickle.load`` runs any code that the writer chose. This reader never calls ``pickle.load``. It interprets only the
instructions that encode a NumPy array of strings, allows only the names in ``_NAMES``, and records a call as its name
and arguments instead of making it. It then builds the array from the checked records.

The cost of a file is bounded: it has at most ``MAX_BYTES``, an eighth of the machine's memory, and at most
``MAX_INSTRUCTIONS`` are interpreted. Lengths are compared with the available bytes before memory is allocated. Reading
takes a few times the size of the file in memory.
"""

import math
import os
import pickletools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmt.errors import DataError

# Windows does not say how much memory the machine has.
_MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 16 * 2**30
# Reading takes three or four times this much memory.
MAX_BYTES = min(4 * 2**30, _MEMORY // 8)
MAX_INSTRUCTIONS = 100  # a two-dimensional array has at most 73, in protocol 0

RULE = "A pickled corpus holds one NumPy array of strings."
SAVE_AGAIN = (
    "Save the pairs with pickle.dump(numpy.array(pairs, dtype=str), file), or as text with two tab-separated columns, "
    "in a file whose name ends in .tsv or .txt."
)
COPY_AGAIN = "Copy it again."

_MARK = object()
_CONSTANTS = {"MARK": _MARK, "NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_LITERALS = {
    *("INT", "BININT", "BININT1", "BININT2"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
# Names that a file may use, with their short names in this module. NumPy 2 moved numpy.core to numpy._core.
_NAMES = {
    "numpy.core.multiarray _reconstruct": "reconstruct",
    "numpy._core.multiarray _reconstruct": "reconstruct",
    "numpy.core.numeric _frombuffer": "frombuffer",
    "numpy._core.numeric _frombuffer": "frombuffer",
    "numpy ndarray": "ndarray",
    "numpy dtype": "dtype",
    # Protocols 0 to 2 have no literal bytes: they encode a string, or call bytes() for empty bytes.
    "_codecs encode": "encode",
    "__builtin__ bytes": "bytes",
    "builtins bytes": "bytes",
}
_OTHER_TYPES = {
    **{"EMPTY_LIST": "a list", "LIST": "a list", "EMPTY_DICT": "a dict", "DICT": "a dict", "EMPTY_SET": "a set"},
    **{"FLOAT": "a float", "BINFLOAT": "a float", "LONG": "a large int", "LONG1": "a large int"},
    **dict.fromkeys(("STRING", "BINSTRING", "SHORT_BINSTRING"), "strings of Python 2, whose pickles are not read"),
}
_FILE_KINDS = (
    (b"\x1f\x8b", "gzip data", "Unpack it with gunzip first."),
    (b"PK\x03\x04", "a zip archive", "Unpack it first."),
    (b"\x93NUMPY", "a file of numpy.save", SAVE_AGAIN),
    (b"version https://git-lfs", "a Git LFS pointer, not the data it points to", "Download the file itself."),
    (b"<", "a web page", "Download the raw file rather than the page that shows it."),
)


class _RefusedError(Exception):
    """Refusal of a file: its problem, which follows the file's name in a message, and the remedy."""

    def __init__(self, problem: str, remedy: str = SAVE_AGAIN) -> None:
        super().__init__(problem)
        self.remedy = remedy


@dataclass(frozen=True, eq=False)
class _Name:
    """A function or class that the file names, as its short name from ``_NAMES``; never the object itself."""

    name: str


@dataclass(eq=False)
class _Call:
    """A call that the file asks for, with the state that it then sets. It is recorded and never made."""

    name: str
    arguments: tuple[Any, ...]
    state: Any = None


def read_string_array(content: bytes, name: str) -> np.ndarray:
    """Return the array of str (NumPy kind "U", native byte order, read-only) that is pickled in a file's content.

    The caller checks its shape. Its characters are valid Unicode and may include NUL. All protocols that Python 3
    writes are read, in C and Fortran order. Bytes after the end of the pickle are refused.

    Raises:
        DataError: for any other content; names the file. No code in the file is run.
    """
    if len(content) > MAX_BYTES:
        raise DataError(
            f"{name} has more than {MAX_BYTES} bytes, the limit of a pickled corpus. Give the pairs as a .tsv file."
        )
    try:
        _check_kind(content)
        return _build(_interpret(content))
    except _RefusedError as refused:
        raise DataError(f"{name} {refused}. {RULE} {refused.remedy}") from None
    except MemoryError as error:
        raise DataError(f"{name} does not fit into memory ({len(content)} bytes). Give fewer pairs.") from error
    except Exception as error:  # damaged bytes fail in many ways: a missing mark, a bad number, invalid UTF-8
        is_pickle = content[:1] == b"\x80"
        problem, remedy = ("is damaged or cut off", COPY_AGAIN) if is_pickle else ("is not a pickle", SAVE_AGAIN)
        raise DataError(f"{name} {problem} ({len(content)} bytes). {RULE} {remedy}") from error


def _check_kind(content: bytes) -> None:
    """Refuse content that is obviously of another kind than a pickle."""
    if not content:
        raise _RefusedError("is empty")
    for start, kind, remedy in _FILE_KINDS:
        if content.startswith(start):
            raise _RefusedError(f"is {kind}", remedy)
    # Protocol 0 is text too, but it ends in a full stop, and an array begins with a NumPy name.
    control = re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", content[:4096])
    if not control and content[:1] != b"\x80" and content[:6] != b"cnumpy" and content[-1:] != b".":
        raise _RefusedError("looks like text", "Rename two-column text, so that its name ends in .tsv or .txt.")


def _interpret(content: bytes) -> Any:
    """Interpret a pickle and return its value, which consists of literals, tuples, ``_Name`` and ``_Call`` records.

    Raises:
        _RefusedError: for an instruction that an array never needs.
        Exception: of any kind, for damaged content.
    """
    stack: list[Any] = []
    memo: dict[int, Any] = {}  # a dict, so that a huge index takes no memory
    for count, (instruction, argument, place) in enumerate(pickletools.genops(content), start=1):
        if instruction.name == "FRAME" and (argument or 0) > len(content) - (place or 0):
            raise EOFError("frame longer than the file")
        if instruction.name == "STOP":
            if place is None or place + 1 != len(content):
                raise _RefusedError(f"has further bytes after the end of the pickle, at byte {place}", COPY_AGAIN)
            return stack.pop()
        if count >= MAX_INSTRUCTIONS:
            raise _RefusedError(f"has more than {MAX_INSTRUCTIONS} pickle instructions; an array needs fewer")
        _execute(instruction.name, argument, stack, memo)
    raise EOFError  # for the type checker; never reached, since genops raises an error if STOP is missing


def _execute(instruction: str, argument: Any, stack: list[Any], memo: dict[int, Any]) -> None:
    """Apply an instruction to the stack and the memo; raise ``_RefusedError`` if an array never needs it."""
    if instruction in _CONSTANTS:
        stack.append(_CONSTANTS[instruction])
    elif instruction in _LITERALS:
        stack.append(argument)
    elif instruction in {"PUT", "BINPUT", "MEMOIZE"}:
        memo[len(memo) if instruction == "MEMOIZE" else argument] = stack[-1]
    elif instruction in {"GET", "BINGET"}:
        stack.append(memo[argument])
    elif instruction in _TUPLES:
        stack.append(_pop(stack, _TUPLES[instruction]))
    elif instruction == "TUPLE":
        values = _pop(stack, stack[::-1].index(_MARK))
        stack[-1] = values  # in the place of the mark
    elif instruction == "GLOBAL":
        stack.append(_record_name(argument))
    elif instruction == "STACK_GLOBAL":
        stack.append(_record_name(" ".join(_pop(stack, 2))))
    elif instruction == "REDUCE":
        stack.append(_record_call(*_pop(stack, 2)))
    elif instruction == "BUILD":
        state = stack.pop()
        stack[-1].state = state
    elif instruction in _OTHER_TYPES:
        raise _RefusedError(f"holds {_OTHER_TYPES[instruction]}")
    elif instruction not in {"PROTO", "FRAME"}:
        raise _RefusedError(f"uses the pickle instruction {instruction}, which an array never needs; nothing was run")


def _pop(stack: list[Any], count: int) -> tuple[Any, ...]:
    if count > len(stack):
        raise IndexError(count)
    values = tuple(stack[len(stack) - count :])
    del stack[len(stack) - count :]
    return values


def _record_name(name: str) -> _Name:
    """Return the record of an allowed name, which is given as module, space, name."""
    if name in _NAMES:
        return _Name(_NAMES[name])
    if not re.fullmatch(r"[\w.]+ [\w.<>]+", name):
        raise ValueError(name[:80])
    dotted = name[:80].replace(" ", ".")
    raise _RefusedError(f"asks to load {dotted}, which could run code; nothing was run")


def _record_call(function: Any, arguments: Any) -> _Call:
    if not isinstance(function, _Name) or not isinstance(arguments, tuple):
        raise TypeError("a call needs a name and a tuple")
    if function.name == "dtype":  # checked now, before the reader meets the objects of an array of objects
        _string_length(arguments)
    return _Call(function.name, arguments)


def _string_length(arguments: Any) -> int:
    """Return the number of characters of each string, from the arguments of a dtype."""
    match arguments:
        case (str(code), 0 | 1, 0 | 1) if matched := re.fullmatch("U([1-9][0-9]{0,8})", code):
            return int(matched[1])
        case (str(code), *_) if re.fullmatch("O[0-9]*", code):
            raise _RefusedError(f"holds an array of Python objects (dtype {code!r})")
        case (str(code), *_):
            raise _RefusedError(f"holds an array of dtype {code[:20]!r} instead of strings")
    raise ValueError("dtype is not named by a string")


def _build(value: Any) -> np.ndarray:
    """Return the array that ``value`` describes, after checking that its parts fit each other."""
    match value:
        case _Call(
            name="reconstruct",
            arguments=(_Name(name="ndarray"), (0,), kind),
            state=(1, tuple(shape), dtype, 0 | 1 as column_major, data),
        ) if _as_bytes(kind) == b"b":
            order = "F" if column_major else "C"
        case _Call(name="frombuffer", arguments=(data, dtype, tuple(shape), "C" | "F" as order)):
            pass
        case _:
            kind = "another object" if isinstance(value, _Name | _Call) else f"a value of type {type(value).__name__}"
            raise _RefusedError(f"holds {kind}")
    match dtype:
        case _Call(name="dtype", state=(3, "<" | ">" as byte_order, None, None, None, *_)):
            length = _string_length(dtype.arguments)
        case _:
            raise ValueError("dtype is not one of strings")
    raw = _as_bytes(data)
    if not all(type(size) is int and size >= 0 for size in shape) or 4 * length * math.prod(shape) != len(raw):
        raise _RefusedError(f"is damaged: its {len(raw)} bytes of text do not fill its shape", COPY_AGAIN)
    _check_characters(np.frombuffer(raw, dtype=f"{byte_order}u4"))
    array = np.frombuffer(raw, dtype=f"{byte_order}U{length}").reshape(shape, order="F" if order == "F" else "C")
    array = array.astype(f"=U{length}", copy=False)
    array.setflags(write=False)
    return array


def _as_bytes(value: Any) -> bytes | bytearray:
    """Return the bytes that a literal or a recorded call stands for."""
    match value:
        case bytes() | bytearray():
            return value
        case _Call(name="encode", arguments=(str(text), "latin1")):
            return text.encode("latin1")
        case _Call(name="bytes", arguments=()):
            return b""
    raise ValueError("not bytes")


def _check_characters(codes: np.ndarray) -> None:
    """Refuse codes beyond Unicode, and surrogates, which UTF-8 cannot encode."""
    invalid = (codes > 0x10FFFF) | ((codes >= 0xD800) & (codes <= 0xDFFF))
    if invalid.any():
        raise _RefusedError(f"holds {codes[invalid.argmax()]:#x}, which is not the code of a Unicode character")
