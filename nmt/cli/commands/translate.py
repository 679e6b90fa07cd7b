"""``nmt translate``: translation of sentences and documents, with alignments and scores."""

import itertools
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nmt.cli.options import (
    BatchSizeOption,
    BeamOption,
    DecodingOption,
    EpochOption,
    FromOption,
    MbrOption,
    OrdinaryTextOption,
    TemperatureOption,
    ToOption,
    check_decoding,
    decoding_of,
)
from nmt.errors import DataError, NmtError, TooLongError, on_command_line

if TYPE_CHECKING:
    from nmt.decoding.translation import Translation
    from nmt.documents.document import Document
    from nmt.storage.outputs import OutputFile
    from nmt.text.translator import TextOptions, Translator

PAUSE, LONGEST_WAIT = 0.05, 10.0
"""Times in seconds: lines of standard input are collected until no more come for ``PAUSE``, for ``LONGEST_WAIT`` at
most."""
MOST_BLOCKS = 16
"""Maximum number of blocks of standard input that have been read and wait to be translated."""
SHOWN = 5
"""Maximum number of lines that a note names."""


def translate(
    sentences: Annotated[
        list[str] | None,
        typer.Argument(metavar="SENTENCE", help="Default: the lines of standard input, as they arrive.", hidden=True),
    ] = None,
    run: Annotated[
        list[str] | None, typer.Option(help="Run, or several as an ensemble. Default: the run trained last.")
    ] = None,
    epoch: EpochOption = None,
    export: Annotated[str | None, typer.Option(help="Export: its name in the run, or a folder.")] = None,
    input_: Annotated[
        Path | None,
        typer.Option("--input", "-i", help="Text file, one sentence per line, or a document with --output."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Translated document of --input, such as .html or .md.")
    ] = None,
    n_best: Annotated[
        int | None, typer.Option(min=1, help="Print N translations of each line: line number, score, text.")
    ] = None,
    score: Annotated[
        bool, typer.Option("--score", help="Read lines of source TAB translation; print log-probabilities.")
    ] = False,
    sample: Annotated[bool, typer.Option("--sample", help="Draw words by their probabilities.")] = False,
    prefix: Annotated[str, typer.Option(help="Text with which every translation begins.")] = "",
    glossary: Annotated[
        str | None, typer.Option(metavar="FILE", help="Terms, in lines of source TAB translation (TAB other forms).")
    ] = None,
    fuzzy: Annotated[
        bool, typer.Option("--fuzzy", help="Mark translations in a gettext catalogue (.po) as fuzzy, for a review.")
    ] = False,
    skip_too_long: Annotated[
        bool, typer.Option("--skip-too-long", help="Print an empty translation of lines longer than the model reads.")
    ] = False,
    to: ToOption = None,
    from_: FromOption = None,
    beam: BeamOption = None,
    mbr: MbrOption = None,
    temperature: TemperatureOption = None,
    ordinary_text: OrdinaryTextOption = None,
    batch_size: BatchSizeOption = None,
    set_: DecodingOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON lines: translations, scores, alignments, confidence.")
    ] = False,
) -> None:
    """Translate sentences, one per line. Default: the lines of standard input, as they arrive.

    Examples:
        nmt translate --run letters --beam 5 --input letters.en > letters.out
    """
    from nmt.api import load
    from nmt.decoding.translation import SearchOptions
    from nmt.documents.catalogues.gettext import Catalogue
    from nmt.documents.formats import suffix_of
    from nmt.documents.plain_text import PlainText
    from nmt.runs.calibration import OF_UNKNOWN_WEIGHTS
    from nmt.text.translator import TextOptions

    decoding = decoding_of(
        set_, source_language=from_, target_language=to, beam_size=beam, mbr_candidates=mbr, temperature=temperature,
        ordinary_text=ordinary_text, batch_size=batch_size,
    )  # fmt: skip
    check_decoding(
        decoding, sample=sample, score=score, n_best=n_best, prefix=prefix,
        skip_too_long=skip_too_long, glossary=glossary, json=as_json,
    )  # fmt: skip
    suffix = suffix_of(input_.name) if input_ else ""
    if fuzzy and suffix not in Catalogue.SUFFIXES:
        raise NmtError("--fuzzy is for a gettext catalogue of --input (.po, .pot). Leave it out.")
    if output is not None or (suffix and suffix not in PlainText.SUFFIXES):
        lines_only = {"SENTENCE": sentences, "--n-best": n_best, "--json": as_json, "--score": score,
                      "--sample": sample, "--prefix": prefix}  # fmt: skip
        document, written = _open_document(input_, output, [name for name, value in lines_only.items() if value])
        with load(run or None, epoch, decoding=decoding, export=export) as translator:
            terms = translator.glossary(glossary) if glossary else None
            options = TextOptions(glossary=terms)
            document.needs_review = fuzzy
            _write_document(document, str(input_), written, translator, options, skip_too_long)
        return
    parts = read_sentences(sentences, input_)
    translator = load(run or None, epoch, decoding=decoding, export=export)
    if score:
        _write_scores(translator, parts)
        return
    is_confident = as_json and translator.is_calibrated
    if is_confident and translator.calibration.weights is None:
        typer.echo(f"Note: {on_command_line(OF_UNKNOWN_WEIGHTS)}", err=True)
    terms = translator.glossary(glossary) if glossary else None
    is_scored = n_best is not None or (as_json and not translator.engine.only_greedy)
    search = SearchOptions(sample, n_best or 1, scored=is_scored)
    is_split = translator.config.decoding.ordinary_text == "sentences"
    notes = _Notes(translator.languages, is_split=is_split, is_whole=not (is_split or sample or prefix or n_best))
    for texts, names in parts:
        options = TextOptions(search._replace(first=notes.count), terms, is_confident)
        results = _translate(translator, texts, names, options, prefix, skip_too_long)
        if as_json:
            _write_json(translator, texts, results)
        elif n_best is not None:
            _write_n_best(results, notes.count + 1)
        else:
            _write_texts(results)
        notes.add(texts, names, results)
    notes.write()


def _translate(
    translator: "Translator", texts: list[str], names: list[str], options: "TextOptions", prefix: str,
    skip_too_long: bool,
) -> "list[list[Translation]]":  # fmt: skip
    """Return the translations of lines. The error about a line that is too long names the option that skips it."""
    try:
        return translator.find(texts, options, prefix, names, skip_too_long)
    except TooLongError as error:
        raise DataError(
            *error.parts, " With --skip-too-long its translation is empty, and the others follow."
        ) from None


def _write_scores(translator: "Translator", parts: Iterable[tuple[list[str], list[str]]]) -> None:
    """Print the log-probabilities of given translations, read from lines of source TAB translation."""
    for texts, names in parts:
        pairs = [_pair(text, name) for text, name in zip(texts, names, strict=True)]
        sources = [source for source, _ in pairs]
        targets = [target for _, target in pairs]
        for value in translator.score(sources, targets, names=names):
            typer.echo(f"{value:.4f}")


def _write_texts(results: "list[list[Translation]]") -> None:
    """Print the best translation of each line."""
    from nmt.storage.text import as_cell

    for best, *_ in results:
        typer.echo(as_cell(best.text))


def _write_n_best(results: "list[list[Translation]]", first: int) -> None:
    """Print several translations of each line, with the number of the line and the score."""
    from nmt.storage.text import as_cell

    for number, translations in enumerate(results, start=first):
        for translation in translations:
            typer.echo(f"{number}\t{translation.score:.4f}\t{as_cell(translation.text)}")


def _write_json(translator: "Translator", texts: list[str], results: "list[list[Translation]]") -> None:
    """Print a JSON object for each line."""
    alignments = _alignments(translator, texts, results)
    for source, translations, aligned in zip(texts, results, alignments, strict=True):
        typer.echo(_json_line(source, translations, aligned))


class _Notes:
    """Notes on standard error at the end: lines that were skipped, and lines that lost sentences in translation."""

    def __init__(self, languages: tuple[str, str], *, is_split: bool, is_whole: bool) -> None:
        """Start without lines.

        Args:
            languages: codes of source and target.
            is_split: whether lines are split into sentences.
            is_whole: whether the translator reads lines unsplit, and may lose sentences of them.
        """
        self.count = 0
        """Number of lines so far."""
        self._languages, self._is_split, self._is_whole = languages, is_split, is_whole
        self._has_sentences = False
        self._skipped, self._shortened = list[str](), list[str]()

    def add(self, texts: list[str], names: list[str], results: "list[list[Translation]]") -> None:
        """Add lines, their names in messages, and their translations."""
        from nmt.tokenizers.sentences import STOPS, has_fewer_sentences

        best = [translations[0] for translations in results]
        self.count += len(texts)
        self._skipped += warn(best, names)
        if self._is_split:
            self._has_sentences |= not all(STOPS.isdisjoint(text.strip()[:-1]) for text in texts)
        if not self._is_whole:
            return
        for text, name, translation in zip(texts, names, best, strict=True):
            if has_fewer_sentences(text, translation.text, *self._languages):
                self._shortened.append(name)

    def write(self) -> None:
        """Write the notes."""
        from nmt.data.languages import sentence_note

        if self._has_sentences and (note := sentence_note(self._languages[0])):
            typer.echo(f"nmt: {note}", err=True)
        self._write(self._skipped, "sentences are longer than the model reads, and their translations are empty")
        self._write(
            self._shortened,
            "lines have translations of fewer sentences, as this run reads lines unsplit; --ordinary-text sentences "
            "translates each sentence",
        )

    def _write(self, names: list[str], problem: str) -> None:
        """Write a note about a problem of some lines, with the names of the first lines."""
        if not names:
            return
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        typer.echo(f"nmt: {len(names)} of {self.count} {problem}: {'; '.join(names[:SHOWN])}{more}", err=True)


Pairs = list[tuple[int, int]]
"""Alignment of a translation: pairs (i, j) of source token i and target token j, from 0."""


def _alignments(
    translator: "Translator", texts: list[str], results: "list[list[Translation]]"
) -> "list[list[Pairs | None]]":
    """Return the alignment of each translation of each text; None for a model without attention."""
    flat = [
        (text, translation) for text, translations in zip(texts, results, strict=True) for translation in translations
    ]
    sources = [text if translation.ids else "" for text, translation in flat]
    aligned: Iterator[Pairs | None]
    try:
        attention = translator.attention(sources, [translation for _, translation in flat])
        aligned = iter([weights.alignment() for weights in attention])
    except DataError:  # the model has no attention
        aligned = itertools.repeat(None)
    return [[next(aligned) for _ in translations] for translations in results]


def _json_line(source: str, translations: "list[Translation]", alignments: "list[Pairs | None]") -> str:
    """Return a sentence and its translations as a line of JSON."""
    from nmt.runs.calibration import CHECK_BELOW

    shown = []
    for translation, alignment in zip(translations, alignments, strict=True):
        details: dict[str, Any] = {
            "text": translation.text, "score": translation.score, "finished": translation.finished,
            "alignment": alignment,
        }  # fmt: skip
        if translation.confidence is not None:
            details["confidence"] = translation.confidence
            details["check"] = translation.confidence < CHECK_BELOW
            details["words"] = translation.words
        shown.append(details)
    line = {"source": source, "unknown": translations[0].unknown, "translations": shown}
    return json.dumps(line, ensure_ascii=False)


def _open_document(
    path: Path | None, output: Path | None, others: list[str]
) -> "tuple[Document, OutputFile]":  # fmt: skip
    """Return the document of --input and the file of --output, and refuse options that do not fit documents."""
    from nmt.documents.formats import FORMATS, output_suffix, read_document, suffix_of
    from nmt.storage.names import find_file
    from nmt.storage.outputs import OutputFile

    suffix, names = suffix_of(path.name) if path else "", ", ".join(FORMATS)
    if path is None or not suffix:
        raise NmtError(f"--output is for a document of --input, one of {names}. For lines, use > FILE.")
    if output is None:
        raise NmtError(f"--input {path} is a document. Give --output FILE{output_suffix(suffix)} for its translation.")
    if others:
        raise NmtError(f"{others[0]} is for lines; received the document {path}. Leave {others[0]} out.")
    if output.suffix.lower() not in (suffix, output_suffix(suffix)):
        needed = output_suffix(suffix)
        raise NmtError(f"--output is {output}, but the document {path} keeps its format. Give a name with {needed}.")
    written = OutputFile(output, inputs=[path])
    return read_document(str(path), find_file(str(path), [], "document").read_bytes()), written


def _write_document(
    document: "Document", name: str, output: "OutputFile", translator: Any, options: "TextOptions",
    skip_too_long: bool,
) -> None:  # fmt: skip
    """Translate a document. A sentence that is skipped stays as it is."""
    from nmt.cli.bars import Bar
    from nmt.data.languages import sentence_note
    from nmt.documents.formats import translate_document

    bar = Bar("lines")
    content = translate_document(
        document, name, translator, options, skip_too_long=skip_too_long, report=warn,
        progress=lambda done, total: bar.show("translate", done, total),
    )  # fmt: skip
    bar.close()
    output.write(content)
    if document.note:
        typer.echo(f"nmt: {document.note}", err=True)
    if translator.config.decoding.ordinary_text == "sentences" and (note := sentence_note(translator.languages[0])):
        typer.echo(f"nmt: {note}", err=True)


def read_sentences(sentences: list[str] | None, path: Path | None = None) -> Iterator[tuple[list[str], list[str]]]:
    """Return the sentences of the command line, of --input or of standard input, in parts.

    A part has sentences and their names in messages. Standard input gives a part after each pause.

    Raises:
        NmtError: if sentences are given in two ways, or a text cannot be read.
    """
    from nmt.data.dataset import DATASETS
    from nmt.data.sources.text_file import TextFile, find_text_file, read_lines

    if sentences and path:
        raise NmtError("Sentences are either arguments or lines of --input; received both. Leave one of them out.")
    if sentences:
        return iter([(sentences, [repr(sentence[:60]) for sentence in sentences])])
    if path is not None:
        is_pipe = path.exists() and not path.is_file()  # for example <(...) of a shell
        file = TextFile(path) if is_pipe else find_text_file(str(path), [DATASETS])
        return _named([read_lines(file)], str(file))
    if sys.stdin.isatty():
        typer.echo("Type sentences, one per line; end with Ctrl-D.", err=True)
    return _named(_arriving(sys.stdin.fileno(), "standard input"), "standard input")


def _named(parts: Iterable[list[str]], name: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the parts of a text, with the names of the lines in messages."""
    count = 0
    for lines in parts:
        yield lines, [f"{name}, line {count + number}" for number in range(1, len(lines) + 1)]
        count += len(lines)


def _arriving(descriptor: int, name: str) -> Iterator[list[str]]:
    """Yield the lines that have arrived each time that no more lines come for a moment."""
    from nmt.storage.text import text_lines

    blocks: queue.Queue[bytes] = queue.Queue(MOST_BLOCKS)
    errors: list[OSError] = []

    def read() -> None:
        try:
            while block := os.read(descriptor, 2**20):
                blocks.put(block)
        except OSError as error:
            errors.append(error)
        blocks.put(b"")

    # Windows cannot wait for a pipe with a time limit, but it can wait for a thread.
    threading.Thread(target=read, daemon=True).start()
    count, content, began = 0, bytearray(), 0.0
    block: bytes | None = blocks.get()
    while block:
        content += block
        began = began or time.monotonic()
        wait = min(PAUSE, began + LONGEST_WAIT - time.monotonic())
        try:
            block = blocks.get(timeout=wait) if wait > 0 else None
        except queue.Empty:
            block = None
        if block is None:
            end, began = content.rfind(b"\n") + 1, 0.0
            lines = text_lines(bytes(content[:end]), name, count)
            del content[:end]
            count += len(lines)
            yield lines
            block = blocks.get()
    if errors:
        raise errors[0]
    yield text_lines(bytes(content), name, count)


def _pair(line: str, name: str) -> tuple[str, str]:
    source, *targets = line.split("\t")
    if len(targets) != 1:
        raise DataError(
            f"{name} has {len(targets)} TABs. With --score a line is a sentence, a TAB and its translation. Join two "
            "files with: paste SOURCES TRANSLATIONS"
        )
    return source, targets[0]


def warn(translations: "list[Translation]", names: list[str]) -> list[str]:
    """Print warnings about unknown words and truncated translations. Return the names of skipped sentences."""
    skipped = []
    for translation, name in zip(translations, names, strict=True):
        if translation.is_skipped:
            skipped.append(name)
        elif not translation.finished:
            typer.echo(f"nmt: {name}: the translation was cut off at its maximum length", err=True)
        if translation.unknown:
            typer.echo(f"nmt: {name}: unknown to the model: {', '.join(translation.unknown)}", err=True)
    return skipped
