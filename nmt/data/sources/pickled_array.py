"""Pickled corpora, read without running anything: the one place in the project that reads pickles.

A pickle is a program for a small stack machine, and some of its instructions call functions that the file names, so
``pickle.load`` runs whatever its writer chose. This module is an allow-listing unpickler that never calls it: it
interprets only the instructions that a NumPy array of strings is written with, allows only the names in ``_NAMES``,
and keeps a "call" as a plain record of its name and arguments. The array is then built from the checked records.

A file costs a bounded amount: at most ``MAX_BYTES`` are read, an eighth of the machine's memory, and at most
``MAX_INSTRUCTIONS`` followed, a length is checked against the bytes that are there before anything is allocated, and
the memory used is a few times the file.
"""

import math
import os
import pickletools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nmt.errors import DataError, NotFoundError

# Three or four times as much is in memory while a file is read.
MAX_BYTES = min(4 * 2**30, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8)
MAX_INSTRUCTIONS = 100  # a two-dimensional array takes at most 73, in protocol 0

RULE = "A pickled corpus holds one NumPy array of strings"
SAVE_IT_RIGHT = (
    "Save the pairs with pickle.dump(numpy.array(pairs, dtype=str), file), or as two-column text, "
    "a tab between the columns, in a file whose name ends in .tsv or .txt."
)
COPY_IT = "Copy it anew."

_MARK = object()
_CONSTANTS = {"MARK": _MARK, "NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_LITERALS = {
    *("INT", "BININT", "BININT1", "BININT2"),
    *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
# What the file may name, and what it is called below. NumPy 2 moved numpy.core to numpy._core.
_NAMES = {
    "numpy.core.multiarray _reconstruct": "reconstruct",
    "numpy._core.multiarray _reconstruct": "reconstruct",
    "numpy.core.numeric _frombuffer": "frombuffer",
    "numpy._core.numeric _frombuffer": "frombuffer",
    "numpy ndarray": "ndarray",
    "numpy dtype": "dtype",
    # Protocols 0 to 2 have no bytes: they are written as text to be encoded, and no bytes as a call of bytes().
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
    (b"\x93NUMPY", "a file of numpy.save", SAVE_IT_RIGHT),
    (b"version https://git-lfs", "a Git LFS pointer, not the data it points to", "Download the file itself."),
    (b"<", "a web page", "Download the raw file rather than the page that shows it."),
)


class _RefusedError(Exception):
    """What is wrong with the file, to follow its name in a message, and the remedy."""

    def __init__(self, received: str, remedy: str = SAVE_IT_RIGHT) -> None:
        super().__init__(received)
        self.remedy = remedy


@dataclass(frozen=True, eq=False)
class _Name:
    """A function or class that the file names: a word from ``_NAMES``, never the thing itself."""

    name: str


@dataclass(eq=False)
class _Call:
    """A call that the file asks for, and the state it then sets: recorded, not made."""

    name: str
    arguments: tuple[Any, ...]
    state: Any = None


def read_string_array(path: Path, content: bytes | None = None) -> np.ndarray:
    """Return the array of str (NumPy kind "U", native byte order, read-only) that is pickled in ``path``.

    Its shape is as written, for the caller to check; its characters are valid Unicode and may include NUL. All
    protocols that Python 3 writes are read, in C and Fortran order; bytes after the end of the pickle are refused.
    ``content`` is that of ``path`` where the caller has unpacked it.

    Raises:
        NotFoundError: if there is no such file.
        DataError: for any other content; nothing in the file is run.
    """
    content = _read(path) if content is None else content
    if len(content) > MAX_BYTES:
        raise DataError(_too_long(path, f"more than {MAX_BYTES}"))
    try:
        _check_kind(content)
        return _build(_interpret(content))
    except _RefusedError as refused:
        raise DataError(f"{RULE}; {path} {refused}. {refused.remedy}") from None
    except MemoryError as error:
        raise DataError(f"{RULE}; {path} does not fit into memory ({len(content)} bytes). Give fewer pairs.") from error
    except Exception as error:  # damaged bytes fail in every way: a missing mark, a bad number, text that is not UTF-8
        cut_off = content[:1] == b"\x80"
        state, remedy = ("is damaged or cut off", COPY_IT) if cut_off else ("is not a pickle", SAVE_IT_RIGHT)
        raise DataError(f"{RULE}; {path} {state} ({len(content)} bytes). {remedy}") from error


def _read(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if not path.is_file():  # a pipe or a device could keep the reader waiting for ever
            raise DataError(f"{RULE}; {path} is not a regular file. Give the path of the pickle itself.")
        if size > MAX_BYTES:
            raise DataError(_too_long(path, str(size)))
        with path.open("rb") as file:
            return file.read(size)
    except FileNotFoundError:
        raise NotFoundError(f"There is no file {path}. Check the name, or give the full path.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Check its permissions and its disk.") from error


def _too_long(path: Path, size: str) -> str:
    return f"{RULE} in at most {MAX_BYTES} bytes; {path} has {size}. Give the pairs as a .tsv file."


def _check_kind(content: bytes) -> None:
    if not content:
        raise _RefusedError("is empty")
    for start, kind, remedy in _FILE_KINDS:
        if content.startswith(start):
            raise _RefusedError(f"is {kind}", remedy)
    # Protocol 0 is text too: it ends in a full stop, and that of an array begins with a NumPy name.
    control = re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", content[:4096])
    if not control and content[:1] != b"\x80" and content[:6] != b"cnumpy" and content[-1:] != b".":
        raise _RefusedError("looks like text", "Two-column text is read when its name ends in .tsv or .txt.")


def _interpret(content: bytes) -> Any:
    """Follow the instructions and return the value they leave: literals, tuples, ``_Name`` and ``_Call`` records."""
    machine = _Machine()
    for count, (instruction, argument, place) in enumerate(pickletools.genops(content), start=1):
        if instruction.name == "FRAME" and (argument or 0) > len(content) - (place or 0):
            raise EOFError("a frame longer than the file")
        if instruction.name == "STOP":
            if place is None or place + 1 != len(content):
                raise _RefusedError(f"goes on after the end of the pickle, at byte {place}", COPY_IT)
            return machine.stack.pop()
        if count >= MAX_INSTRUCTIONS:
            raise _RefusedError(f"has more than the {MAX_INSTRUCTIONS} instructions that such an array can need")
        machine.follow(instruction.name, argument)
    raise EOFError  # genops itself raises when STOP is missing; this is for the type checker


class _Machine:
    """The stack machine of the pickle format, without the instructions that could do more than describe an array."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}  # a dict: a huge index takes no more room than another

    def follow(self, instruction: str, argument: Any) -> None:
        stack, memo = self.stack, self.memo
        if instruction in _CONSTANTS:
            stack.append(_CONSTANTS[instruction])
        elif instruction in _LITERALS:
            stack.append(argument)
        elif instruction in {"PUT", "BINPUT", "MEMOIZE"}:
            memo[len(memo) if instruction == "MEMOIZE" else argument] = stack[-1]
        elif instruction in {"GET", "BINGET"}:
            stack.append(memo[argument])
        elif instruction in _TUPLES:
            stack.append(self._pop_from(len(stack) - _TUPLES[instruction]))
        elif instruction == "TUPLE":
            values = self._pop_from(len(stack) - stack[::-1].index(_MARK))
            stack[-1] = values  # in the place of the mark
        elif instruction == "GLOBAL":
            stack.append(_named(argument))
        elif instruction == "STACK_GLOBAL":
            stack.append(_named(" ".join(self._pop_from(len(stack) - 2))))
        elif instruction == "REDUCE":
            stack.append(_called(*self._pop_from(len(stack) - 2)))
        elif instruction == "BUILD":
            state = stack.pop()
            stack[-1].state = state
        elif instruction not in {"PROTO", "FRAME"}:
            _refuse_instruction(instruction, argument)

    def _pop_from(self, start: int) -> tuple[Any, ...]:
        if start < 0:
            raise IndexError(start)
        values = tuple(self.stack[start:])
        del self.stack[start:]
        return values


def _refuse_instruction(instruction: str, argument: Any) -> None:
    if instruction == "INST":
        _named(argument)
    if instruction in _OTHER_TYPES:
        raise _RefusedError(f"holds {_OTHER_TYPES[instruction]}")
    raise _RefusedError(f"uses the pickle instruction {instruction}, which such an array never needs; nothing was run")


def _named(name: str) -> _Name:
    """Return the record of an allowed name, given as module, space, name."""
    if name in _NAMES:
        return _Name(_NAMES[name])
    if not re.fullmatch(r"[\w.]+ [\w.<>]+", name):
        raise ValueError(name[:80])
    asked = name[:80].replace(" ", ".")
    raise _RefusedError(f"asks to load {asked}, which could run code; refused, and nothing was run")


def _called(function: Any, arguments: Any) -> _Call:
    if not isinstance(function, _Name) or not isinstance(arguments, tuple):
        raise TypeError("a call needs a name and a tuple")
    if function.name == "dtype":  # checked here: the objects of an object array come before its end
        _string_length(arguments)
    return _Call(function.name, arguments)


def _string_length(arguments: Any) -> int:
    match arguments:
        case (str(code), 0 | 1, 0 | 1) if matched := re.fullmatch("U([1-9][0-9]{0,8})", code):
            return int(matched[1])
        case (str(code), *_) if re.fullmatch("O[0-9]*", code):
            raise _RefusedError(f"holds an array of Python objects (dtype {code!r})")
        case (str(code), *_):
            raise _RefusedError(f"holds an array of dtype {code[:20]!r} instead of strings")
    raise ValueError("a dtype that is not named by a string")


def _build(value: Any) -> np.ndarray:
    """Return the array that ``value`` describes, after checking that its parts fit together."""
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
            raise ValueError("not the dtype of an array of strings")
    raw = _as_bytes(data)
    if not all(type(size) is int and size >= 0 for size in shape) or 4 * length * math.prod(shape) != len(raw):
        raise _RefusedError(f"is damaged: {len(raw)} bytes of text do not make the shape it states", COPY_IT)
    _check_characters(np.frombuffer(raw, dtype=f"{byte_order}u4"))
    array = np.frombuffer(raw, dtype=f"{byte_order}U{length}").reshape(shape, order="F" if order == "F" else "C")
    array = array.astype(f"=U{length}", copy=False)
    array.setflags(write=False)
    return array


def _as_bytes(value: Any) -> bytes | bytearray:
    match value:
        case bytes() | bytearray():
            return value
        case _Call(name="encode", arguments=(str(text), "latin1")):
            return text.encode("latin1")
        case _Call(name="bytes", arguments=()):
            return b""
    raise ValueError("not bytes")


def _check_characters(codes: np.ndarray) -> None:
    """Raise if a code is above Unicode's last, or a surrogate, which no UTF-8 file can hold."""
    wrong = (codes > 0x10FFFF) | ((codes >= 0xD800) & (codes <= 0xDFFF))
    if wrong.any():
        raise _RefusedError(f"holds a character that Unicode does not have, with the code {codes[wrong.argmax()]:#x}")
