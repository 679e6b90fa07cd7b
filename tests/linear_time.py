"""Finds the patterns and the text functions of the package, and says which are slow on adversarial texts.

``python tests/linear_time.py KIND`` (see ``SUBJECTS``) prints a line of JSON for each subject: its ``Result``, with the
first text that took more than ``MOST_SECONDS`` of processor time.
Subjects run in a process that the system ends when that time is over: the interpreter cannot interrupt a pattern.
"""

import ast
import contextlib
import importlib
import inspect
import io
import json
import mmap
import os
import pkgutil
import re
import signal
import sys
import tempfile
import time
import types
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from adversarial_text import LENGTH, MARKS, PatternTexts, mixtures

import nmt

MOST_SECONDS = 2.0
SHORT, MIDDLE = 2_000, 8_000
"""Characters of the first texts, and of the second if the first take long for their length. If both take so long that a
text of ``LENGTH`` may be slow, it is tried too."""
BUDGET = 0.05
"""Seconds of processor time for pairs of fragments: a function that takes long in linear time is tried with fewer."""
PACKAGE = Path(nmt.__file__).parent
AT_ONE_PLACE = {"match", "fullmatch"}
METHODS = AT_ONE_PLACE | {"search", "finditer", "findall", "sub", "subn", "split"}

Function = Callable[[str], object]


class Subject(NamedTuple):
    """What is to answer in linear time."""

    name: str
    call: Function
    texts: Callable[[int], Iterable[str]]
    """Returns texts of a number of characters, all of which are tried."""
    fragments: list[str]
    """Parts of further texts."""


def no_texts(length: int) -> Iterable[str]:
    """Return nothing: a subject may be tried with fragments alone."""
    return []


# --- patterns


def modules() -> list[types.ModuleType]:
    """Return all modules of the package."""
    names = [module.name for module in pkgutil.walk_packages(nmt.__path__, "nmt.")]
    return [importlib.import_module(name) for name in ["nmt", *names] if not name.endswith("__main__")]


def patterns_of(value: object, depth: int = 3) -> Iterator[re.Pattern[Any]]:
    """Yield the compiled patterns in a value: itself, in a collection, in the attributes of a class of the package."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, (list, tuple, set, frozenset)):
        for part in value:
            yield from patterns_of(part, depth - 1)
    elif depth and isinstance(value, dict):
        for part in value.values():
            yield from patterns_of(part, depth - 1)
    elif depth and isinstance(value, type) and value.__module__.partition(".")[0] == "nmt":
        for part in vars(value).values():
            yield from patterns_of(part, depth - 1)


def calls_of(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the function of ``re`` and its pattern, of each call within a function."""
    functions = [
        node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    ]
    for call in {node for function in functions for node in ast.walk(function) if isinstance(node, ast.Call)}:
        match call.func:
            case ast.Attribute(value=ast.Name(id="re"), attr=name) if name in METHODS | {"compile"} and call.args:
                yield name, call.args[0]


def is_constant(expression: ast.expr, module: types.ModuleType) -> bool:
    """Return whether the pattern of a call of ``re`` is made of literals and constants of its module."""
    names = [node.id for node in ast.walk(expression) if isinstance(node, ast.Name)]
    simple = (ast.Constant, ast.Name, ast.Load, ast.JoinedStr, ast.FormattedValue, ast.BinOp, ast.Add)
    is_simple = all(isinstance(node, simple) for node in ast.walk(expression))
    return is_simple and all(isinstance(vars(module).get(name), (str, bytes, re.Pattern)) for name in names)


def built_patterns() -> list[str]:
    """Return what functions build patterns of that no test can know, each with its place."""
    found = []
    for module in modules():
        for _, expression in calls_of(tree_of(module)):
            if not is_constant(expression, module):
                found.append(f"{module.__name__}: {ast.unparse(expression)[:80]}")
    return found


def tree_of(module: types.ModuleType) -> ast.Module:
    """Return the syntax of a module."""
    return ast.parse(Path(str(module.__file__)).read_text())


def methods_by_name(trees: Iterable[ast.AST]) -> dict[str, set[str]]:
    """Return the methods of patterns that the package names, by the name of what has them."""
    found: dict[str, set[str]] = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            match node.value:
                case ast.Name(id=name) | ast.Attribute(attr=name):
                    found.setdefault(name, set()).add(node.attr)
    return found


def all_patterns() -> dict[str, tuple[re.Pattern[Any], set[str]]]:
    """Return the patterns of the package by the places where they stand, each with the methods that are called."""
    loaded = {module: tree_of(module) for module in modules()}
    methods = methods_by_name(loaded.values())
    found: dict[str, tuple[re.Pattern[Any], set[str]]] = {}
    seen = set[int]()
    for module, tree in loaded.items():
        for name, value in vars(module).items():
            if isinstance(value, types.ModuleType):
                continue
            for number, pattern in enumerate(patterns_of(value)):
                if id(pattern) not in seen:
                    seen.add(id(pattern))
                    used = methods.get(name, METHODS) if pattern is value else METHODS
                    found[f"{module.__name__}.{name}" + (f"[{number}]" if number else "")] = (pattern, used)
        for method, expression in calls_of(tree):
            if not is_constant(expression, module):
                continue
            value = eval(compile(ast.Expression(expression), module.__name__, "eval"), vars(module))
            if not isinstance(value, re.Pattern):
                pattern = re.compile(value)
                used = METHODS if method == "compile" else {method}
                found[f"{module.__name__}, line {expression.lineno}"] = (pattern, used)
    return found


def asked(pattern: re.Pattern[Any], methods: set[str]) -> Function:
    """Return a function that asks a pattern in the ways in which the package does."""

    def ask(text: str) -> None:
        given = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
        if methods - AT_ONE_PLACE:
            deque(pattern.finditer(given), maxlen=0)
        if "match" in methods:
            pattern.match(given)
        if "fullmatch" in methods:
            pattern.fullmatch(given)

    return ask


def pattern_subjects() -> Iterator[Subject]:
    """Yield all patterns."""
    for name, (pattern, methods) in all_patterns().items():
        texts = PatternTexts(pattern)
        yield Subject(name, asked(pattern, methods), texts.pumped, texts.fragments())


# --- functions of text

FRAGMENTS = [
    "a", " ", "A", "0", "1..1", "a.", ". ", ",", "?", '"', "„“", "\n", "\r\n", "\t", "\xa0", "日", "。", "م",
    "\u0647\u064f",
    "ह", "İ", "\u0301", "😀", "\u200d", "<b>", "</b>", '<a b="', "<br/>", "<", ">", "{a}", "{", "}", "%s", "%", "%0",
    "&amp;", "&", "#", "@", "a@b.c", "www.a.b/", "http://", "-", "'", "it's ", "(", ")", "[", "\\", "\0", *MARKS,
]  # fmt: skip
"""Parts of plain text, markup and placeholders."""
GIVEN = {"language": "en", "name": "a.txt", "path": "a.txt", "kind": "run"}
"""Values of parameters after the text, by their names; others are given the text too."""


def functions_of_text() -> Iterator[Subject]:
    """Yield all functions of the package that need nothing but text."""
    for module in modules():
        for name, function in vars(module).items():
            if not inspect.isfunction(function) or function.__module__ != module.__name__:
                continue
            positional = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters = inspect.signature(function).parameters.values()
            required = [each for each in parameters if each.default is each.empty and each.kind in positional]
            if required and all(each.annotation in (str, "str") for each in required):
                others = [GIVEN.get(each.name) for each in required[1:]]
                yield Subject(f"{module.__name__}.{name}", _with(function, others), no_texts, FRAGMENTS)


def _with(function: Callable[..., object], others: list[str | None]) -> Function:
    return lambda text: function(text, *(text if other is None else other for other in others))


def parts_of_translation() -> Iterator[Subject]:
    """Yield what a text goes through with a tokenizer, and what makes other texts of it."""
    from random import Random

    from nmt.config.data import DataConfig
    from nmt.data.sources.formats import Pair
    from nmt.data.variants import VARIANTS
    from nmt.evaluation.stress import CHANGES
    from nmt.text.glossary import Glossary, Term, read_glossary
    from nmt.text.reading import Reader
    from nmt.text.rewriting import postprocess
    from nmt.tokenizers.base import tokens_of
    from nmt.tokenizers.registry import fit_tokenizer
    from nmt.tokenizers.sentences import segment, sentences_of

    corpus = ["A man (Bob) sees the dog of a man!", "Two women run through the woods, and 12 dogs sleep."] * 4
    for kind, settings in {
        "word": {"tokenizer": "word"}, "char": {"tokenizer": "char"},
        "unigram": {"tokenizer": "subword", "vocabulary_size": 320},
        "bpe": {"tokenizer": "subword", "vocabulary_size": 320, "subword_model": "bpe"},
    }.items():  # fmt: skip
        tokenizer = fit_tokenizer(corpus, DataConfig.model_validate({"normalization": "nfkc", **settings}))
        reader = Reader(tokenizer, "en")

        def tokenized(text: str, tokenizer: Any = tokenizer) -> None:
            ids = tokenizer.encode(text)
            tokenizer.decode(ids)
            tokenizer.pieces(ids)

        def sampled(text: str, tokenizer: Any = tokenizer) -> None:
            tokenizer.sample([text[: len(text) // 4]], 0)  # a step of Python for each character

        def shown(text: str, tokenizer: Any = tokenizer) -> None:
            tokens_of(tokenizer, text[: len(text) // 4])  # an object for each byte

        def read(text: str, reader: Reader = reader) -> None:
            for split in (True, False):
                for reading in reader.read(text, split=split):
                    postprocess(reading, reading.text, "", None)

        def segmented(text: str, tokenizer: Any = tokenizer) -> None:
            segment(text, "en", lambda part: len(tokenizer.encode(part)), 200)

        def glossary_file(text: str, tokenizer: Any = tokenizer) -> None:
            Path("glossary.tsv").write_text(f"man\tdog\n{text}\tdog", errors="replace")
            read_glossary("glossary.tsv", tokenizer)

        functions: list[Function] = [tokenized, sampled, shown]
        if kind == "unigram":  # the others ask any tokenizer for the same, and take long
            functions += [read, segmented, glossary_file]
        for function in functions:
            # An object for each byte takes long in linear time too, so fewer texts are tried.
            fragments = FRAGMENTS[::6] if function is shown else FRAGMENTS
            yield Subject(f"{function.__name__} by {kind}", function, no_texts, fragments)
    for language in ("de", "zh", "ar", "hi", "tr"):
        yield Subject(f"sentences in {language}", _with(sentences_of, [language]), no_texts, FRAGMENTS)
    long, forms = Term(("a",) * 100 + ("b",), {"x": " x "}), Glossary([Term(("0",), {"a": " a "})])
    yield Subject("Glossary.terms_of", Glossary([long]).terms_of, no_texts, FRAGMENTS)
    yield Subject("Glossary.missing", lambda text: forms.missing(text, text), no_texts, FRAGMENTS)
    for name, change in {**CHANGES, **VARIANTS}.items():

        def function(text: str, change: Any = change) -> object:
            return change(Pair(text, text), Pair(text, text), Random(0), ("de", "zh"))

        yield Subject(f"variant {name}", function, no_texts, FRAGMENTS)


# --- readers of documents

IN_WORD = ["<w:p>", "</w:p>", "<w:r><w:t>", "</w:t></w:r>", "<w:r><w:t>a</w:t></w:r>"]
IN_OPENDOCUMENT = ["<text:p>", "</text:p>", "<text:span>", "</text:span>", "<text:s/>", "<text:tab/>"]
IN_DOCUMENTS = [
    *FRAGMENTS, "<!--", "-->", "<p>", "</p>", "<p ", "a=b ", "<script>", "</script", "<![CDATA[", "<?", "<!", "&#1;",
    "WEBVTT\n\n", "1\n", "00:01.000 --> 00:02.000\n", "00:00:01,000 --> 00:00:02,000\n", "- ", "{\\an8}", "<v A>",
    '"', '\\"', 'msgid "', 'msgid "a"\n', 'msgstr ""\n', 'msgid_plural "b"\n', "#~ ", "#, fuzzy\n", '"a"\n', "\n\n",
    "> ", "1. ", "```\n", "|-|-|\n", "[a]: b\n", "[a](b)", "![", "](", "**", "_", "`", "~~", "[^a]", "<a:", "\\\n",
    '{"a": "', '", "b": ["', '"]}', "\\u00e9", "a=b\\\n", "{0}", "%1$s", "&File", "<g id='1'>", "</g>", "<x/>", "<ph>",
    "</ph>", "<trans-unit><source>a</source>", "</trans-unit>",
    "<meta charset=", "<0:01.000>", "<c>", "</c>", *IN_WORD, *IN_OPENDOCUMENT,
]  # fmt: skip
"""Parts of documents of any format."""
BEGINNINGS = {".vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\n", ".srt": "1\n00:00:01,000 --> 00:00:02,000\n"}


def document_subjects() -> Iterator[Subject]:
    """Yield all formats of documents, and the markup of HTML."""
    from nmt.documents.formats import FORMATS, read_document, translate_texts
    from nmt.documents.html import Markup

    tried = set[object]()
    for suffix, reader in FORMATS.items():

        def read(text: str, suffix: str = suffix) -> None:
            if suffix == ".md":  # several objects for each line
                text = text[: len(text) // 4]
            content = text.encode("utf-8", "replace")
            document = read_document(f"a{suffix}", AROUND[suffix](text) if suffix in AROUND else content)
            document.render(translate_texts(document.texts, lambda lines: lines, lambda *_: None))
            document.render([text.upper() for text in document.texts])

        def read_within(text: str, suffix: str = suffix) -> None:
            read(BEGINNINGS.get(suffix, "") + text, suffix)

        # An office document takes long to open, and its text is XML whatever it holds: fewer texts are tried.
        in_xml = {".docx": IN_WORD, ".odt": IN_OPENDOCUMENT}.get(suffix)
        fragments = [*in_xml, *IN_DOCUMENTS[::6]] if in_xml else IN_DOCUMENTS
        if reader not in tried:
            tried.add(reader)
            yield Subject(f"reader of {suffix}", read, no_texts, fragments)
        if suffix in BEGINNINGS:
            yield Subject(f"reader of {suffix}, in a cue", read_within, no_texts, IN_DOCUMENTS)
    yield Subject("Markup", lambda text: Markup(text).render([]), no_texts, IN_DOCUMENTS)


_WORD_FILE = io.BytesIO()


def in_xml(text: str) -> str:
    """Return a text without the characters that XML does not have."""
    return "".join(each for each in text if each in "\t\n\r" or " " <= each <= "\ud7ff" or each >= "\ue000")


def well_formed(before: str, body: str, after: str, otherwise: str) -> str:
    """Return XML with a body, or with another one if it is not well formed with the first."""
    from lxml import etree

    try:
        etree.fromstring(before + body + after)
    except etree.XMLSyntaxError:
        body = otherwise
    return before + body + after


def in_word(text: str) -> bytes:
    """Return a document of Word whose body is XML made of a text: as it stands if it is well formed, else as a text."""
    import docx

    if not _WORD_FILE.getvalue():
        docx.Document().save(_WORD_FILE)
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    kept = in_xml(text)
    body = kept if "<w:p>" in kept else f"<w:p>{kept if '<w:r>' in kept else f'<w:r><w:t>{kept}</w:t></w:r>'}</w:p>"
    otherwise = f"<w:p><w:r><w:t>{escape(kept)}</w:t></w:r></w:p>"
    document = well_formed(f'<w:document xmlns:w="{space}"><w:body>', body, "</w:body></w:document>", otherwise)
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_WORD_FILE.getvalue())) as original, zipfile.ZipFile(target, "w") as file:
        for name in original.namelist():
            file.writestr(name, document if name == "word/document.xml" else original.read(name))
    return target.getvalue()


def in_unit(text: str) -> bytes:
    """Return an XLIFF file whose source is XML made of a text: as it stands if it is well formed, else as a text."""
    kept = in_xml(text)
    return well_formed("<xliff><trans-unit><source>", kept, "</source></trans-unit></xliff>", escape(kept)).encode()


def in_opendocument(text: str) -> bytes:
    """Return an OpenDocument text whose body is XML made of a text, or the text itself, as ``in_word`` does."""
    space = "urn:oasis:names:tc:opendocument:xmlns:{0}:1.0".format
    kept = in_xml(text)
    body = kept if "<text:p>" in kept else f"<text:p>{kept}</text:p>"
    before = f'<o:document xmlns:o="{space("office")}" xmlns:text="{space("text")}">'
    document = well_formed(before, body, "</o:document>", f"<text:p>{escape(kept)}</text:p>")
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        file.writestr("content.xml", document)
    return target.getvalue()


AROUND: dict[str, Callable[[str], bytes]] = {".docx": in_word, ".odt": in_opendocument, ".xlf": in_unit}
"""Functions that make documents of any text."""


SUBJECTS = {
    "patterns": pattern_subjects, "functions": functions_of_text, "translation": parts_of_translation,
    "documents": document_subjects,
}  # fmt: skip


# --- the trial


class Result(NamedTuple):
    """How a subject answered."""

    name: str
    texts: int
    """Number of texts that it was tried with."""
    seconds: float
    """Processor time of all of them."""
    slow: str | None = None
    """Beginning and end of the first text that took too long."""


def trials(subjects: Iterable[Subject], most: float = MOST_SECONDS) -> Iterator[Result]:
    """Yield how each subject answers within ``most`` seconds.

    A process of its own tries them in turn, and another goes on after a slow one.
    """
    waiting = deque(subjects)
    shown = mmap.mmap(-1, 256)  # the number of texts, and the one in turn
    while waiting:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _try_all(waiting, most, shown, writing)
        os.close(writing)
        with os.fdopen(reading) as answers:
            for answer in answers:
                yield Result(**json.loads(answer))
                waiting.popleft()
        status = os.waitpid(child, 0)[1]
        count, _, text = shown[:].rstrip(b"\0").partition(b" ")
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGPROF:
            yield Result(waiting.popleft().name, int(count), most, text.decode("utf-8", "replace"))
        elif status or waiting:
            raise RuntimeError(f"{waiting[0].name} ended with status {status} at the text {text!r}")


def _try_all(subjects: Iterable[Subject], most: float, shown: mmap.mmap, writing: int) -> None:
    """Write the results of subjects to a pipe; the system ends this process at a slow text."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    code = 1
    try:
        for subject in subjects:
            begun = time.process_time()
            result = Result(subject.name, _tried(subject, most, shown), time.process_time() - begun)
            os.write(writing, f"{json.dumps(result._asdict())}\n".encode())
        code = 0
    finally:
        os._exit(code)


def _tried(subject: Subject, most: float, shown: mmap.mmap) -> int:
    """Try all texts of a subject, the one in turn written to the shared memory, and return their number."""
    count = 0

    def took(text: str) -> float:
        nonlocal count
        count += 1
        shown[:] = f"{count} {text[:60]!r} ... {text[-20:]!r}".encode("utf-8", "replace")[:256].ljust(256, b"\0")
        # The timer makes the clock of the process coarse: milliseconds. The clock of a thread stays fine.
        begun = time.thread_time()
        signal.setitimer(signal.ITIMER_PROF, most)
        with contextlib.suppress(Exception, SystemExit):  # a refusal is an answer
            subject.call(text)
        signal.setitimer(signal.ITIMER_PROF, 0)
        return time.thread_time() - begun

    with contextlib.suppress(Exception, SystemExit):
        subject.call("")  # may load modules, some of which take longer than a text may
    least = min(took("") for _ in range(3))  # the first time takes longer
    suspect = most / (LENGTH / SHORT) ** 2

    def lengthened(short: str, middle: str, long: str) -> None:
        seconds = took(short) - least
        if seconds > suspect and expected(seconds, took(middle) - least) > most / 2:
            took(long)

    lengths = (SHORT, MIDDLE, LENGTH)
    for texts in zip(*(subject.texts(length) for length in lengths), strict=True):
        lengthened(*texts)
    ends = time.process_time() + BUDGET
    for number, texts in enumerate(zip(*(mixtures(subject.fragments, length) for length in lengths), strict=True)):
        if number > 2 * len(subject.fragments) and time.process_time() > ends:
            break
        lengthened(*texts)
    return count


def expected(short: float, middle: float) -> float:
    """Return the time for ``LENGTH`` by those for ``SHORT`` and ``MIDDLE``, as a sum of a linear and a square term."""
    ratio = MIDDLE / SHORT
    square = max(0.0, middle - ratio * short) / (ratio**2 - ratio)
    times = LENGTH / SHORT
    return times * max(0.0, short - square) + times**2 * square


def main(kind: str) -> None:
    """Print the results of the subjects of a kind."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for result in trials(SUBJECTS[kind]()):
            print(json.dumps(result._asdict()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
