"""Whatever is in a file, its reader returns or says in words what is wrong, and does nothing else.

Each reader is given good files with a few bytes flipped, cut out, doubled or replaced by what is dangerous in its
format, and bytes at random. It must return or raise NmtError (or an OSError with the file's name, which the command
line puts into words), start no program, write no file, come to an end, and use a bounded amount of memory.

A few hundred files a reader are tried with the other tests, always the same ones. To search on, each reader for ten
minutes:

    NMT_FUZZ_MINUTES=10 pytest tests/test_fuzz.py -s -n 0 [-k tmx]

A new reader is an entry in ``READERS``: the file, good contents of it, the call that reads it, and bytes worth
splicing in.
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import pickle
import resource
import signal
import struct
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docx
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from nmt.cli.commands.prepare import describe
from nmt.config.data import DataConfig
from nmt.config.loading import load_config
from nmt.config.schema import Config
from nmt.data.dataset import Dataset, open_dataset
from nmt.data.prepare import prepare
from nmt.data.sources.formats import read_pairs
from nmt.data.sources.pickled_array import read_string_array
from nmt.data.sources.text_file import Unreadable, find_text_file
from nmt.documents.formats import read_document
from nmt.errors import DataError, NmtError, printable
from nmt.runs.directory import Run
from nmt.runs.metrics import AverageMetrics, EpochMetrics, Header, StepMetrics
from nmt.storage.arrays import read_arrays, read_shapes, write_arrays
from nmt.storage.atomic import sha256
from nmt.tokenizers.base import BOS, EOS
from nmt.tokenizers.registry import load_tokenizer
from nmt.training.checkpoints import CheckpointManifest, TrainingProgress, read_checkpoint

MINUTES = float(os.environ.get("NMT_FUZZ_MINUTES", "0"))
EXAMPLES = 2_000 if MINUTES else 200  # between two looks at the clock
MOST_SECONDS = 20  # of processor time for a file of some kilobytes: more is a hang
MOST_MEMORY = 400 * 2**20
PAIRS = [
    (f"{a} {b}, Tom.", f"{c} {b}, größer!") for a in ("Go", "Run") for b in ("up", "on") for c in ("Geh", "Lauf", "a")
]


# --- what a reader must not do


class BrokenPromiseError(BaseException):
    """What a reader did that none may; no ``except Exception`` of its own can hide it."""


class Watch:
    """Whether calls of the system are being refused: a hook once added is there for the whole process."""

    on = False


PROGRAMS = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.", "socket.", "pickle.", "ctypes.")
CHANGES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "shutil.")


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if not Watch.on:
        return
    if event.startswith(PROGRAMS + CHANGES):
        raise BrokenPromiseError(event, arguments)
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        raise BrokenPromiseError(event, arguments)


sys.addaudithook(_watch)


def _hang(*_: object) -> None:
    raise BrokenPromiseError(f"more than {MOST_SECONDS} s")


@contextmanager
def watched() -> Iterator[None]:
    """Let nothing in the block start a program, change a file, run on for ever or fill the memory."""
    before = _peak_memory()
    handler = signal.signal(signal.SIGVTALRM, _hang)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    Watch.on = True
    try:
        yield
    finally:
        Watch.on = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)
    if _peak_memory() - before > MOST_MEMORY:
        raise BrokenPromiseError(f"{_peak_memory() - before:,} bytes of memory")


def _peak_memory() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


# --- files


INTEGERS = [
    struct.pack(order + kind, value % 2**bits)
    for order in "<>"
    for kind, bits in (("B", 8), ("H", 16), ("I", 32), ("Q", 64))
    for value in (0, -1, 2 ** (bits - 1), 2 ** (bits - 1) - 1, 2 ** (bits - 2))
]
ANY_TEXT = [b"\t", b"\n", b"\r", *b'\0 \xff \xed\xa0\x80 \xf4\x90\x80\x80 \xef\xbb\xbf \x1b[2J " {'.split(b" ")]
JSON = [
    *b'null -1 1e999 NaN "\\ud800" {} [] "" true , : "../../canary" "/canary"'.split(),
    *(b"9" * 30, b"9" * 5000),
]
DEEP = [b"[" * 2000, b"[" * 100_000, b'{"a":' * 2000]


@st.composite
def damaged(draw: Callable[..., Any], seeds: list[bytes], tokens: list[bytes]) -> bytes:
    """Return a good file with some damage, or bytes of no sense."""
    if draw(st.integers(0, 19)) == 0:
        return draw(st.binary(max_size=200) | st.lists(st.sampled_from(tokens)).map(b"".join))
    content = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.sampled_from([1, 1, 2, 4, 8, 16, 100, 1000])))
        piece, token, number = content[start:end], draw(st.sampled_from(tokens)), draw(st.sampled_from(INTEGERS))
        other, cut = draw(st.sampled_from(seeds)), draw(st.integers(0, 1000))
        flipped = bytes(byte ^ 1 << draw(st.integers(0, 7)) for byte in piece[:1])
        repeated, random = piece * draw(st.sampled_from([2, 3, 51])), draw(st.binary(min_size=1, max_size=8))
        new, end = [
            (flipped, start + 1), (b"", len(content)), (b"", end), (repeated, end), (token, start),
            (token, start + len(token)), (number, start + len(number)), (other[cut : cut + 1000], end), (random, end),
        ][draw(st.integers(0, 8))]  # fmt: skip
        content = content[:start] + new + content[end:]
    return content


@dataclass(frozen=True)
class Reader:
    """A way into the program for content that somebody else wrote."""

    file: str
    """What is damaged, a path in the project that ``seeds`` has set up."""
    seeds: Callable[[], list[bytes]]
    """Sets up the project in the current folder, and returns good contents of the file."""
    read: Callable[[], object]
    tokens: list[bytes]
    sign: Callable[[Path], object] = Path.exists
    """Puts the checksum of the damaged file where an attacker would."""


COLUMNS = DataConfig(), DataConfig(source_column="en", target_column="de")


def read_corpus(name: str, *configs: DataConfig) -> Callable[[], object]:
    def read(config: DataConfig) -> None:
        items = [item for _, item in read_pairs([find_text_file(name, [])], config)]
        for item in items:
            if isinstance(item, Unreadable):
                if item.is_dropped:
                    continue
                raise DataError(item.message)
            assert "".join(item).encode() is not None

    return lambda: every(*(lambda config=config: read(config) for config in configs))


def every(*reads: Callable[[], object]) -> None:
    """Make every call, whatever the others say, and raise the last refusal if all refuse."""
    refusals = []
    for read in reads:
        try:
            read()
        except NmtError as error:
            refusals.append(error)
    if len(refusals) == len(reads):
        raise refusals[-1]


def pickles() -> list[bytes]:
    array = np.array(PAIRS[:2])
    return [
        *(pickle.dumps(array, protocol) for protocol in range(6)),
        pickle.dumps(np.asfortranarray(array.astype(">U30")), 2),
        pickle.dumps(array.astype(object), 4),
        b"cos\nsystem\n(Vtouch canary\ntR.",
        b"(Vtouch canary\nios\nsystem\n.",
    ]


PICKLE_TOKENS = [
    *(bytes([code]) for code in b"(.012FIJKLMNPQRSTUVXabcdeghijloprstuq}])" + bytes(range(0x80, 0x99))),
    *(b"cos\nsystem\n", b"(Vtouch canary\nt", b"\x8c\x02os\x8c\x06system\x93", b"cbuiltins\neval\n", b"X\x02\0\0\0O8"),
    *(b"cnumpy\nndarray\n", b"cnumpy\ndtype\n", b"U999999999", b"I-1\n", b"L" + b"9" * 5000 + b"L\n", b"(" * 1000),
    *(b"q\x00", b"h\x00", b"h\x00\x86q\x00" * 40, b"]q\x00h\x00a", b"}q\x00h\x00h\x00s"),
    *(b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x96\xff\xff\xff\xff\0\0\0\0", b"\x8b\xff\xff\xff\x7f"),
]


def tsv() -> list[bytes]:
    rows = "".join(f"{source}\t{target}\n" for source, target in PAIRS)
    numbered = "".join(f"{number}\t{row}\n" for number, row in enumerate(rows.splitlines(), start=1))
    return [rows.encode(), ("\ufeffid\ten\tde\r\n" + numbered).encode()]


def json_lines() -> list[bytes]:
    return [
        "".join(json.dumps({a: source, b: target}) + "\n" for source, target in PAIRS).encode()
        for a, b in (("source", "target"), ("en", "de"))
    ]


def tmx() -> list[bytes]:
    unit = (
        '<tu tuid="1"><tuv xml:lang="en"><seg>Go <bpt i="1">&lt;b></bpt>up</seg></tuv>'
        '<tuv xml:lang="de-DE"><seg>Geh &#228;</seg></tuv></tu>'
    )
    document = f'<tmx version="1.4"><header srclang="en"/><body>{unit * 3}</body></tmx>'
    return [
        ('<?xml version="1.0" encoding="UTF-8"?><!DOCTYPE tmx SYSTEM "tmx14.dtd">' + document).encode(),
        ('<?xml version="1.0" encoding="UTF-16"?>' + document).encode("utf-16"),
        ('<?xml version="1.0" encoding="ISO-8859-1"?><!-- a -->' + document).encode("latin1"),
        ("<!DOCTYPE tmx [<!ELEMENT tu ANY>]>" + document).encode(),
        ('<!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>' + document.replace("Go", "&b;")).encode(),
        ('<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + document.replace("Go", "&x;")).encode(),
    ]  # fmt: skip


XML_TOKENS = [
    *(b"<!DOCTYPE tmx [", b"]>", b'<!ENTITY a "b">', b'<!ENTITY % p SYSTEM "http://localhost/">', b"%p;", b"&a;"),
    *(b'<!ATTLIST tuv xml:lang CDATA "x">', b"<!ELEMENT a " + b"(" * 500, b"&#xD800;", b"&#0;", b"<![CDATA[", b"]]>"),
    *(b"<!--", b"-->", b"<?", b"?>", b"<tu>", b"</tu>", b"<seg>", b"</seg>", b"<tuv>", b"<tu>" * 500, b" a" * 500),
    *(b'encoding="UTF-7"', b'encoding="utf-32"', b'encoding="rot13"', b'encoding="idna"', b'encoding="cp037"'),
    *(b'encoding="x"', b' xml:lang=""'),
]


def xliff() -> list[bytes]:
    unit = '<trans-unit id="1"><source>Go <x id="1"/>up</source><target state="final">Geh &#228;</target></trans-unit>'
    segment = (
        '<segment state="translated"><source>Go <ph id="1"/>up</source><target>Geh <cp hex="1f"/></target></segment>'
    )
    return [
        f'<xliff version="1.2"><file source-language="en" target-language="de"><body>{unit * 3}</body></file></xliff>'
        .encode(),
        f'<xliff version="2.0" srcLang="en" trgLang="de"><file><unit>{segment * 3}</unit></file></xliff>'.encode(),
    ]  # fmt: skip


def catalogue() -> list[bytes]:
    header = (
        'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Content-Type: text/plain; charset={}\\n"\n'
        '"Plural-Forms: plural=n;\\n"\n'
    )
    entries = (
        '#, fuzzy\nmsgid "Go"\nmsgstr "Geh"\n\n#~ msgid "a"\n#~ msgstr "b"\n\nmsgctxt "c"\nmsgid "é\\n"\n"b"\n'
        'msgid_plural "c"\nmsgstr[0] "d"\nmsgstr[1] "\\x41"\n'
    )
    return [(header.format(charset) + entries).encode(charset) for charset in ("utf-8", "latin-1", "gbk")]


PO_TOKENS = [
    *(
        b'msgid "a"',
        b'msgstr "b"',
        b"msgid_plural",
        b"msgstr[9999]",
        b"msgstr[",
        b'"' * 500,
        b"\\" * 500,
        b"#~ ",
        b"#, fuzzy",
    ),
    *(b"charset=UTF-16", b"charset=utf-7", b"charset=iso-2022-jp", b"plural=n/0;", b"plural=" + b"(" * 900, b"9" * 900),
]


def tarred() -> list[bytes]:
    made = []
    for kind in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=kind) as archive:
            for name, content in ((f"{'a' * 200}.po", catalogue()[0]), ("b.xlf", xliff()[0]), ("README", b"x")):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        made.append(file.getvalue())
    return made


def gzipped() -> list[bytes]:
    return [gzip.compress(content) for content in tsv()]


def zipped() -> list[bytes]:
    made = []
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", kind) as archive:
            archive.writestr("pairs.tsv", tsv()[0])
            archive.writestr("_about.txt", "x")
        made.append(file.getvalue())
    return made


ZIP_TOKENS = [
    *(b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07", b"\x0c\0", b"\x0e\0", b"\x63\0"),
    *(b"\x01\0\x10\0", b"../../canary", b"/canary", b"pairs.tsv.gz"),
]


def yaml_files() -> list[bytes]:
    return [
        Config().to_yaml().encode(),
        b"format: 2\n" + Config().to_yaml().encode(),
        b"training: {accumulate: 2, pack: false, schedule: paper}\nmodel: {initialisation: small}\n",
        b"data: {n_sentences: 1000, split: random}\nmodel:\n  d_model: 64\ntraining:\n  adam_epsilon: 1e-9\n",
        b"a: &a [1, 2]\nb: &b [*a, *a]\ndata: {<<: {seed: 3}, dataset: *b}\n",
    ]


YAML_TOKENS = [
    *b"*a <<: !!python/object/apply:os.system ! | >9 = { } null 0x 0o 0b 1e999 .inf .nan 2001-99-99".split(),
    *(b"&a ", b"!!python/object/apply:os.system [touch canary]", b"!!int ", b"!!float ", b"!!bool ", b"!!timestamp "),
    *(b"!!binary ", b"!!set ", b"!!omap ", b"!!pairs ", b"!!null ", b"? ", b"- ", b": ", b"--- ", b"%YAML 9.9\n"),
    *(b"\t", b"[" * 3000, b"- " * 3000, b"{a: " * 500, b"0x" + b"f" * 9000, b"1:" * 3000 + b"1", b"9" * 5000),
]


def project() -> Dataset:
    """Prepare the dataset "small"."""
    Path("pairs.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
    config = DataConfig(tokenizer="word", normalization="nfkc", joint_vocabulary=False, subword_sampling=True)
    return prepare(Path("pairs.tsv"), config, "small")


def in_dataset(file: str) -> Callable[[], list[bytes]]:
    def seeds() -> list[bytes]:
        return [(project().folder / file).read_bytes()]

    return seeds


def sign_in_manifest(path: Path) -> None:
    manifest = json.loads((path.parent / "manifest.json").read_bytes())
    manifest["files"][path.name] = sha256(path)
    (path.parent / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def sign_model(path: Path) -> None:
    stored = json.loads(path.with_suffix(".json").read_bytes())
    path.with_suffix(".json").write_text(json.dumps({**stored, "model_sha256": sha256(path)}), encoding="utf-8")


def look_at_manifest() -> None:
    dataset = open_dataset("small")
    every(lambda: describe(dataset.manifest), lambda: dataset.split("train"), dataset.tokenizers)


def look_at_split() -> None:
    dataset = open_dataset("small")
    split = dataset.split("train")
    for sequences, vocabulary in zip((split.source, split.target), dataset.manifest.vocabulary.values(), strict=True):
        assert len(sequences) == len(split)
        rows = [sequences[index].tolist() for index in range(len(sequences))]
        assert all(0 <= id_ < vocabulary for row in rows for id_ in row)


def look_at_tokenizer(path: str) -> Callable[[], object]:
    def look() -> object:
        tokenizer = load_tokenizer(Path(path))
        ids = tokenizer.encode("Go up größer </s>")
        assert all(0 <= id_ < tokenizer.size and id_ not in {BOS, EOS} for id_ in ids)
        tokenizer.sample(["Go up"], 1)
        return tokenizer.decode(range(min(tokenizer.size, 1000))).encode(), tokenizer.unknown("Go off")

    return look


def look_at_run() -> object:
    run = Run(Path("checkpoints/base"))
    return run.metrics(), run.best(), run.average()


def subword_files(name: str) -> Callable[[], list[bytes]]:
    def seeds() -> list[bytes]:
        from nmt.tokenizers.registry import fit_tokenizer

        config = DataConfig(tokenizer="subword", normalization="nfkc", vocabulary_size=300)
        fit_tokenizer([text for pair in PAIRS for text in pair], config).save(Path("tokenizer.source.json"))
        return [Path(name).read_bytes()]

    return seeds


HEADERS: list[list[Header]] = [[], [Header()]]


def metrics() -> list[bytes]:
    records = [
        StepMetrics(epoch=1, step=5, loss=2.5, accuracy=0.25, learning_rate=1e-4),
        EpochMetrics(
            epoch=1, step=9, train_loss=2.0, train_accuracy=0.3, validation_loss=2.2, validation_accuracy=0.28,
            target_tokens=1000, seconds=1.5,
        ),
        AverageMetrics(epochs=[1, 2], step=9, validation_loss=2.0, validation_accuracy=0.3),
    ]  # fmt: skip
    run = Run(Path("checkpoints/base"))
    run.weights_path("average").parent.mkdir(parents=True)
    run.weights_path("average").touch()
    run.write_config(Config())
    return ["".join(record.model_dump_json() + "\n" for record in [*header, *records]).encode() for header in HEADERS]


def weights() -> list[bytes]:
    write_arrays(Path("some.safetensors"), {"a": np.ones((3, 2), np.float32), "steps": np.array(3)})
    return [Path("some.safetensors").read_bytes()]


def state() -> list[bytes]:
    folder = Path("step-00000003")
    folder.mkdir()
    (folder / "metrics.jsonl").touch()
    files = {"metrics.jsonl": sha256(folder / "metrics.jsonl")}
    for name in ("weights.safetensors", "optimizer.safetensors"):
        files[name] = write_arrays(folder / name, {"a": np.ones(3, np.float32)})
    loop = TrainingProgress(
        epoch=1, step=3, steps_in_epoch=1, seconds=2.5, totals=(1.5, 1.0, 2.0), logged=(0, 0, 0), environment={"a": "b"}
    )
    return [signed(loop, files)]


def signed(loop: TrainingProgress, files: dict[str, str]) -> bytes:
    """Return the JSON of a state with its checksum."""
    checksum = hashlib.sha256(json.dumps([2, loop.model_dump(mode="json"), files], sort_keys=True).encode()).hexdigest()
    return CheckpointManifest(loop=loop, files=files, sha256=checksum).model_dump_json().encode()


def sign_state(path: Path) -> None:
    """Make the checksum right, so that what is odd in a state is looked at."""
    with contextlib.suppress(ValueError):
        stored = CheckpointManifest.model_validate_json(path.read_bytes())
        path.write_bytes(signed(stored.loop, stored.files))


def word_document() -> list[bytes]:
    document = docx.Document()
    document.add_paragraph("a ").add_run("b").bold = True
    content = io.BytesIO()
    document.save(content)
    with zipfile.ZipFile(content) as file:
        Path("parts").mkdir()
        file.extractall("parts")
    return [Path("parts/word/document.xml").read_bytes()]


def opendocument() -> list[bytes]:
    name = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0".format
    spaces = f'xmlns:o="{name("office")}" xmlns:t="{name("text")}"'
    return [
        f'<o:document {spaces}><t:p>a<t:span t:style-name="b">b</t:span><t:s/><t:tab/>c</t:p></o:document>'.encode()
    ]


def put_into_opendocument(path: Path) -> None:
    with zipfile.ZipFile("a.odt", "w") as file:
        file.write(path, "content.xml")


def put_into_zip(path: Path) -> None:
    """Make the damaged XML a part of a document that is whole."""
    Path("parts/word/document.xml").write_bytes(path.read_bytes())
    with zipfile.ZipFile("a.docx", "w") as file:
        for part in filter(Path.is_file, Path("parts").rglob("*")):
            file.write(part, part.relative_to("parts"))


def look_at_document(name: str) -> Callable[[], object]:
    def look() -> None:
        document = read_document(name, Path(name).read_bytes())
        document.render([text.upper() for text in document.texts])

    return look


TAGS = [b"<b>", b"</b>", b"<br>", b"<!--", b"<p translate=no>", b"<code>", "\U00100001\U00105001\U0010a001".encode()]
NPY_TOKENS = [
    *b"\x93NUMPY PK\x03\x04 'O' '<f8' '<i8' '|V0' '<U0' True (-1,) (0,) (9,9)".split(b" "),
    *(b"(" + b"9" * 20 + b",)", b"[('a', '<i8')]"),
]
SMALL = "data/small"
READERS = {
    "pickle": Reader("a.pkl", pickles, lambda: read_string_array(Path("a.pkl").read_bytes(), "a.pkl"), PICKLE_TOKENS),
    "tsv": Reader("corpus.tsv", tsv, read_corpus("corpus.tsv", *COLUMNS), ANY_TEXT),
    "json_lines": Reader("corpus.jsonl", json_lines, read_corpus("corpus.jsonl", *COLUMNS), ANY_TEXT + JSON + DEEP),
    "tmx": Reader("corpus.tmx", tmx, read_corpus("corpus.tmx", *COLUMNS), ANY_TEXT + XML_TOKENS),
    "xliff": Reader("corpus.xlf", xliff, read_corpus("corpus.xlf", *COLUMNS), ANY_TEXT + XML_TOKENS),
    "catalogue": Reader("corpus.po", catalogue, read_corpus("corpus.po", *COLUMNS), ANY_TEXT + PO_TOKENS),
    "tar": Reader("corpus.tar", tarred, read_corpus("corpus.tar", *COLUMNS), ANY_TEXT + PO_TOKENS),
    "gzip": Reader("corpus.tsv.gz", gzipped, read_corpus("corpus.tsv.gz", DataConfig()), ANY_TEXT),
    "zip": Reader("corpus.zip", zipped, read_corpus("corpus.zip", DataConfig()), ZIP_TOKENS),
    "yaml": Reader("own.yaml", yaml_files, lambda: load_config(Path("own.yaml")).to_yaml(), ANY_TEXT + YAML_TOKENS),
    "manifest": Reader(
        f"{SMALL}/manifest.json", in_dataset("manifest.json"), look_at_manifest, ANY_TEXT + JSON + DEEP
    ),
    "tokens": Reader(
        f"{SMALL}/train.source.tokens.npy", in_dataset("train.source.tokens.npy"), look_at_split, NPY_TOKENS,
        sign_in_manifest,
    ),
    "offsets": Reader(
        f"{SMALL}/train.target.offsets.npy", in_dataset("train.target.offsets.npy"), look_at_split, NPY_TOKENS,
        sign_in_manifest,
    ),
    "word_tokenizer": Reader(
        f"{SMALL}/tokenizer.source.json", in_dataset("tokenizer.source.json"),
        look_at_tokenizer(f"{SMALL}/tokenizer.source.json"),
        [*ANY_TEXT, *JSON, *DEEP, b'"char"', b'"subword"', b'" "', b'"ascii-words"'],
    ),
    "subword_tokenizer": Reader(
        "tokenizer.source.json", subword_files("tokenizer.source.json"), look_at_tokenizer("tokenizer.source.json"),
        ANY_TEXT + JSON + DEEP,
    ),
    "subword_model": Reader(
        "tokenizer.source.model", subword_files("tokenizer.source.model"), look_at_tokenizer("tokenizer.source.json"),
        INTEGERS, sign_model,
    ),
    "metrics": Reader("checkpoints/base/metrics.jsonl", metrics, look_at_run, ANY_TEXT + JSON + DEEP),
    "weights": Reader("some.safetensors", weights, lambda: read_arrays(Path("some.safetensors")), JSON + INTEGERS),
    "shapes": Reader("some.safetensors", weights, lambda: read_shapes(Path("some.safetensors")), JSON + INTEGERS),
    "html": Reader("a.html", lambda: [b"<meta charset=utf-8>a<b>b</b>"], look_at_document("a.html"), ANY_TEXT + TAGS),
    "markdown": Reader("a.md", lambda: [b"# a\n\n- b *c* [d](e)\n\n|a|b|\n|-|-|\n|c|d|\n"], look_at_document("a.md"),
                       ANY_TEXT + TAGS),
    "subtitles": Reader("a.vtt", lambda: [b"WEBVTT\n\n00:01.000 --> 00:02.000\n<v A>a\nb\n"], look_at_document("a.vtt"),
                        ANY_TEXT + TAGS),
    "gettext": Reader("a.po", lambda: [b'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\n'], look_at_document("a.po"),
                      ANY_TEXT + TAGS),
    "xliff_document": Reader("a.xlf", xliff, look_at_document("a.xlf"), ANY_TEXT + TAGS + XML_TOKENS),
    "json_messages": Reader("a.json", lambda: [b'{"a": "b {c}", "d": ["e"]}'], look_at_document("a.json"),
                            ANY_TEXT + JSON),
    "word": Reader("a.xml", word_document, look_at_document("a.docx"), ANY_TEXT + XML_TOKENS, put_into_zip),
    "opendocument": Reader("b.xml", opendocument, look_at_document("a.odt"), ANY_TEXT + XML_TOKENS,
                           put_into_opendocument),
    "state": Reader(
        "step-00000003/state.json", state, lambda: read_checkpoint(Path("step-00000003"), 3), ANY_TEXT + JSON + DEEP,
        sign_state,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_a_reader_returns_or_says_what_is_wrong(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reader = READERS[name]
    seeds = reader.seeds()
    path = Path(reader.file)
    tried = refused = 0

    def attempt(content: bytes) -> None:
        nonlocal tried, refused
        path.write_bytes(content)
        reader.sign(path)
        tried += 1
        try:
            with watched():
                reader.read()
        except NmtError as error:
            refused += 1
            assert len(str(error)) < 10_000
            assert str(error) == printable(str(error))
        except OSError as error:
            refused += 1
            assert error.filename is not None

    for content in seeds:
        attempt(content)
    assert refused < tried, "nothing of what is to be damaged is good to begin with"
    ends, round_ = time.monotonic() + 60 * MINUTES, 0
    while round_ == 0 or time.monotonic() < ends:
        options = settings(
            max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        )  # fmt: skip
        seed(round_)(options(given(damaged(seeds, reader.tokens))(attempt)))()
        round_ += 1
    print(f"\n{name}: {tried:,} files, {refused:,} refused")
    assert refused > 0
