"""Right pickles are read as NumPy reads them; whatever else is in a file is refused in words and never run."""

import os
import pickle
import pickletools
import subprocess
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.sources import pickled_array as safe_pickle
from nmt.data.sources.pickled_array import read_string_array
from nmt.errors import DataError

PROTOCOLS = range(6)
PAIRS = np.array([["go", "geh"], ["good morning", "guten Morgen"], ["\N{GRINNING FACE}", "größer"]])


def read(content: bytes) -> np.ndarray:
    """Read the given bytes as a corpus file."""
    return read_string_array(content, "corpus.pkl")


def old_numpy(content: bytes) -> bytes:
    """Return a pickle with the module names that NumPy 1 wrote."""
    for module in (b"multiarray", b"numeric"):
        new, old = b"numpy._core." + module, b"numpy.core." + module
        content = content.replace(b"\x8c" + bytes([len(new)]) + new, b"\x8c" + bytes([len(old)]) + old)
        content = content.replace(new, old)
    return content


# --- what is read


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "array",
    [
        PAIRS,
        PAIRS.astype(">U20"),
        np.asfortranarray(PAIRS),
        PAIRS[::2],
        PAIRS[:, 0],
        np.array("one"),
        np.zeros((0, 2), "U3"),
        np.array([["", ""]]),
        np.array([["a\0b", "\x1a\r\n\\"]]),
    ],
    ids=["C", "big-endian", "Fortran", "strided", "one column", "scalar", "no rows", "empty strings", "controls"],
)
def test_every_layout_in_every_protocol(array: np.ndarray, protocol: int) -> None:
    frozen = array.copy(order="A")
    frozen.setflags(write=False)  # protocol 5 then writes bytes instead of a bytearray
    plain = pickle.dumps(array, protocol)
    of_python_2 = pickle.dumps(frozen, protocol, fix_imports=False)
    for content in (plain, pickletools.optimize(plain), pickle.dumps(frozen, protocol), of_python_2):
        for variant in (content, old_numpy(content)):
            result = read(variant)
            assert result.dtype == array.dtype.newbyteorder("=") and not result.flags.writeable
            assert result.shape == array.shape
            assert result.tolist() == array.tolist()


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(pairs=st.lists(st.tuples(text, text), min_size=1, max_size=6), protocol=st.sampled_from(PROTOCOLS))
def test_any_text_comes_back(pairs: list[tuple[str, str]], protocol: int) -> None:
    array = np.array(pairs, dtype=str)
    assert read(pickle.dumps(array, protocol)).tolist() == array.tolist()


@pytest.mark.corpora
@pytest.mark.parametrize(("name", "shape", "dtype"), [("both", (10000, 2), "<U49"), ("test", (1000, 2), "<U370")])
def test_real_files(name: str, shape: tuple[int, int], dtype: str, corpora: Path) -> None:
    path = corpora / f"english-german-{name}.pkl"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    result = read_string_array(path.read_bytes(), path.name)
    assert result.shape == shape
    assert result.dtype == dtype
    assert (result != "").any()


# --- what is refused: programs


class Reduced:
    """An object whose pickle makes the given call."""

    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call


def object_array(item: Any) -> np.ndarray:
    array = np.empty((1, 2), dtype=object)
    array[:] = item
    return array


def string(value: str) -> bytes:
    """Return the instruction BINUNICODE."""
    return b"X" + len(value.encode()).to_bytes(4, "little") + value.encode()


ARRAY = pickle.dumps(PAIRS, 3)


def live(sentinel: Path) -> dict[str, bytes]:
    """Pickles that make ``sentinel`` when pickle.loads reads them."""
    command = f"touch {sentinel}"
    code = f"open({str(sentinel)!r}, 'w').close()"
    system = Reduced(os.system, (command,))
    called = b"cos\nsystem\n" + string(command) + b"\x85R"
    return {
        **{f"os.system in protocol {protocol}": pickle.dumps(system, protocol) for protocol in PROTOCOLS},
        "eval": pickle.dumps(Reduced(eval, (code,))),
        "subprocess": pickle.dumps(Reduced(subprocess.check_call, (["touch", str(sentinel)],))),
        "a method of a path": pickle.dumps(Reduced(Path.touch, (sentinel,))),
        "getattr of an import": b"c__builtin__\ngetattr\n(c__builtin__\n__import__\n(Vos\ntRVsystem\ntR("
        + string(command)
        + b"tR.",
        "a dotted name": b"\x80\x04" + string("shutil") + string("os.system") + b"\x93" + string(command) + b"\x85R.",
        "INST": b"(" + string(command) + b"ios\nsystem\n.",
        "OBJ": b"(cos\nsystem\n" + string(command) + b"o.",
        "numpy.savetxt": b"cnumpy\nsavetxt\n" + string(str(sentinel)) + b")\x86R.",
        "runstring of numpy.testing": b"cnumpy.testing\nrunstring\n" + string(code) + b"}\x86R.",
        "a call in the state of an array": ARRAY[:-1] + b"(" + called + b"tb.",
        "a call before the array": b"\x80\x03" + called + b"0" + ARRAY[2:],
        "a call after the array": ARRAY[:-1] + called + b".",
        "a call as the shape": ARRAY.replace(b"K\x03K\x02\x86", called),
        "a call as the dtype's code": b"cnumpy\ndtype\n(cbuiltins\neval\n" + string(code) + b"\x85RI00\nI01\ntR.",
        "a call as the text": ARRAY[: ARRAY.index(b"\x89B") + 1] + called + b"tb.",
        "an object array": pickle.dumps(object_array(system)),
        "an object array in protocol 0": pickle.dumps(object_array(system), 0),
        "a list": pickle.dumps([system]),
        "a tuple": pickle.dumps((PAIRS, system)),
    }


@pytest.mark.parametrize("kind", live(Path("unused")))
def test_no_program_runs(tmp_path: Path, kind: str) -> None:
    sentinel = tmp_path / "sentinel"
    content = live(sentinel)[kind]
    try:
        pickle.loads(content)
    except Exception as error:  # many fail after the call
        del error
    assert sentinel.exists(), "the payload should work on pickle.loads"
    sentinel.unlink()
    with pytest.raises(DataError):
        read(content)
    assert not sentinel.exists()


# --- what is refused: malformed and oversized content


def described(
    *, code: str = "U2", order: str = "<", shape: bytes = b"K\x01K\x02\x86", text: bytes = b"C\x10" + b"a\0\0\0" * 4
) -> bytes:
    """Return an array written by hand; every part may be replaced."""
    dtype = b"cnumpy\ndtype\n" + string(code) + b"\x89\x88\x87R(K\x03" + string(order) + b"NNNK\x08K\x04K\x08tb"
    start = b"\x80\x03cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
    return start + b"(K\x01" + shape + dtype + b"\x89" + text + b"tb."


def number(value: int) -> bytes:
    return b"I" + str(value).encode() + b"\n"


def shape(*sizes: int) -> bytes:
    return b"(" + b"".join(map(number, sizes)) + b"t"


def size(value: int) -> bytes:
    return value.to_bytes(8, "little")


ENCODE = b"c_codecs\nencode\n"
MALFORMED = {
    "INST of an allowed name": b"(" + string("U1") + b"inumpy\ndtype\n.",
    "BUILD with a dict": b"cnumpy\ndtype\n" + string("U1") + b"\x89\x88\x87R}" + string("name") + b"Nsb.",
    "BUILD on a string": string("text") + b"Nb.",
    "BUILD with itself": described()[:-1] + b"q\x00(h\x00tb.",
    "REDUCE of a string": string("numpy dtype") + b")R.",
    "REDUCE without a tuple": b"cbuiltins\nbytes\nNR.",
    "a subclass of ndarray": described().replace(b"numpy\nndarray", b"numpy\nmemmap"),
    "a scalar of NumPy": pickle.dumps(np.str_("one")),
    "a matrix": pickle.dumps(PAIRS.view(np.matrix)),
    "an out-of-band buffer": pickle.dumps(PAIRS, 5, buffer_callback=lambda buffer: None),
    "variable-length strings": pickle.dumps(PAIRS.astype(np.dtypes.StringDType())),
    "a structured array": pickle.dumps(np.zeros(2, dtype=[("source", "U5"), ("target", "U5")])),
    "dtype metadata": pickle.dumps(PAIRS.astype(np.dtype("U20", metadata={"language": "de"}))),
    "a codec that unpacks": described(text=ENCODE + string("a") + string("zlib") + b"\x86R"),
    "encode of bytes": described(text=ENCODE + b"C\x01a" + string("latin1") + b"\x86R"),
    "encode of what is not Latin-1": described(text=ENCODE + string("€" * 16) + string("latin1") + b"\x86R"),
    "bytes of a huge size": described(text=b"cbuiltins\nbytes\n" + number(10**10) + b"\x85R"),
    "BINBYTES8 beyond the end": described(text=b"\x8e" + size(2**62) + b"a"),
    "LONG4 beyond the end": b"\x80\x02\x8b\xff\xff\xff\x7f\x01.",
    "INT of many digits": b"I" + b"9" * 100_000 + b"\n.",
    "a huge memo index": b"\x80\x03Nr\xff\xff\xff\x7f.",
    "many values": b"\x80\x03" + b"N" * 1_000_000 + b".",
    "deep tuples": b"\x80\x03N" + b"\x85" * 1_000_000 + b".",
    "a dtype of doubled tuples": b"\x80\x03cnumpy\ndtype\nNq\x00" + b"h\x00\x86q\x00" * 30 + b"R.",
    "a negative shape": described(shape=shape(-1, 2)),
    "a shape that wraps around": described(shape=shape(2**63, 2)),
    "a shape of many dimensions": described(shape=shape(1, 2, *[1] * 70)),
    "a shape of truth values": described(shape=b"\x88K\x02\x86"),
    "a shape that is a number": described(shape=b"K\x02"),
    "text too short": described(text=b"C\x0f" + b"a\0\0\0" * 3 + b"a\0\0"),
    "text as str": described(text=string("a\0\0\0" * 4)),
    "a code point above Unicode": described(text=b"C\x10" + b"\0\0\x11\0" * 4),
    "a surrogate": described(text=b"C\x10" + b"\0\xd8\0\0" * 4),
    "strings of no length": described(code="U0", text=b"C\x00"),
    "strings of unsayable length": described(code="U99999999999999999999"),
    "a length in other digits": described(code="U٢"),
    "a dtype with fields": described(code="U1,U1"),
    "another byte order": described(order="|"),
    "only a name": b"cnumpy\nndarray\n.",
    "billion laughs of tuples": b"\x80\x03)q\x00" + b"h\x00h\x00h\x00\x87q\x00" * 18 + b".",
    "a memo of negative index": b"\x80\x03Np-1\ng-2\n.",
    "a FRAME longer than the file": b"\x80\x04\x95" + size(2**62) + described()[2:],
    "LONG4 of a million digits": b"\x80\x02\x8b" + (10**6).to_bytes(4, "little") + b"\x7f" * 10**6 + b".",
    "UNICODE of half a pair": described(text=b"V\\ud800\n"),
    "objects by another name": described(code="object", text=b"C\x08" + bytes(8)),
    "a dtype of a dtype": described().replace(string("U2"), b"cnumpy\ndtype\n" + string("U2") + b"\x85R"),
    "a state of the wrong version": described().replace(b"(K\x03X", b"(K\x09X"),
    "an array of the wrong version": described().replace(b"(K\x01K", b"(K\x09K"),
    "an array in the order 2": described().replace(b"tb\x89C", b"tbK\x02C"),
    "a name with a line break": b"\x80\x04" + string("os\n") + string("system\x1b[2J") + b"\x93.",
    "a very long name": b"c" + b"a" * 1_000_000 + b"\nb\n.",
    "a tuple without a mark": b"\x80\x03t.",
    "only STOP": b".",
    "an unknown instruction": b"\x80\x03\xff.",
    "another pickle after it": ARRAY + ARRAY,
}


def test_the_array_written_by_hand_is_right() -> None:
    assert read(described()).tolist() == [["aa", "aa"]]


@pytest.mark.parametrize("kind", MALFORMED)
def test_malformed_content(kind: str) -> None:
    content = MALFORMED[kind]
    started = time.perf_counter()
    tracemalloc.start()
    try:
        with pytest.raises(DataError) as caught:
            read(content)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(content) + 2**20
    assert time.perf_counter() - started < 5
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 1000


HARMLESS = {"PROTO", "FRAME", "PUT", "BINPUT", "MEMOIZE"}
SIZES = {pickletools.TAKEN_FROM_ARGUMENT1: 1, pickletools.TAKEN_FROM_ARGUMENT8U: 8}  # others count in 4 bytes


@pytest.mark.parametrize("instruction", pickletools.opcodes, ids=lambda instruction: instruction.name)
def test_no_instruction_follows_an_array_but_those_that_leave_it(instruction: pickletools.OpcodeInfo) -> None:
    """With an argument of zeros, or of text."""
    count = instruction.arg.n if instruction.arg else 0
    argument = b"0\n0\n" if count == pickletools.UP_TO_NEWLINE else bytes(count if count >= 0 else SIZES.get(count, 4))
    content = described()[:-1] + instruction.code.encode("latin1") + argument + b"."
    if instruction.name in HARMLESS - {"PUT"}:
        assert read(content).tolist() == [["aa", "aa"]]
    else:
        with pytest.raises(DataError):
            read(content)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_truncation(protocol: int) -> None:
    content = pickle.dumps(PAIRS[:1, :1], protocol)
    for end in range(len(content)):
        with pytest.raises(DataError):
            read(content[:end])


# --- what is refused: other things than a corpus


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"Hello there.", "is not a pickle"),
        (bytes(100), "is not a pickle"),
        (b"PK\x03\x04\x14", "is a zip archive.*Unpack"),
        (b"\x93NUMPY\x01\x00", r"is a file of numpy.save.*Save the pairs with pickle.dump"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "is a Git LFS pointer"),
        (pickle.dumps({"a"}), "holds a set"),
        (pickle.dumps(None), "holds a value of type NoneType"),
        (b"\x80\x04" + string("pandas") + string("DataFrame") + b"\x93)\x81.", "load pandas.DataFrame"),
        (pickle.dumps(np.array([[b"a", b"b"]])), "an array of dtype 'S1' instead of strings"),
        (b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R.", "Python 2"),
    ],
    ids=lambda value: None if isinstance(value, str) else "",
)
def test_what_is_no_corpus_is_named(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=rf"^corpus\.pkl .*{message}"):
        read(content)


def test_no_frame_hides_what_follows_it() -> None:
    """A frame is a hint on how much to read ahead; one that ends elsewhere changes nothing."""
    for length in (0, 1, len(described()) - 3):
        content = b"\x80\x04\x95" + size(length) + described()[2:]
        assert read(content).tolist() == [["aa", "aa"]]


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(safe_pickle, "_build", fail)
    with pytest.raises(DataError, match="does not fit into memory"):
        read(ARRAY)
