"""Back-translation and forward translation of monolingual text (Sennrich et al. 2016). An interrupted job resumes.

The text is translated in blocks of lines, and each block becomes a file in a hidden folder. When all blocks are there,
the file of pairs is written. So it does not depend on when a command was killed.
"""

import contextlib
import gzip
import itertools
import json
import math
import os
import shutil
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from pydantic import JsonValue

from nmt.config.decoding import BEAM
from nmt.config.schema import DecodingConfig
from nmt.config.training import VARIANT_NAMES, VariantName
from nmt.data.cleaning import Findings, Progress, place_of
from nmt.data.dataset import DATASETS
from nmt.data.encoding import corpus_median, median_ratio, relative_ratio
from nmt.data.sources.formats import Pair
from nmt.data.sources.text_file import TextFile, Unreadable, find_text_file, numbered_lines
from nmt.data.variants import VARIANTS, Languages
from nmt.decoding.exported import CTRANSLATE2, DESCRIPTION, EXPORTS, find_exports, is_of_weights
from nmt.decoding.translation import SearchOptions
from nmt.errors import ConflictError, NmtError, counted
from nmt.evaluation.systems import find_system
from nmt.interface import public
from nmt.message import Argument, Message, Report
from nmt.runs.directory import Run, find_run
from nmt.runs.weights import choose_epoch
from nmt.storage.atomic import sha256, write_bytes
from nmt.storage.file_lock import locked
from nmt.storage.json_file import check_format, parse_json, read_json, write_json
from nmt.storage.names import check_name, did_you_mean
from nmt.storage.outputs import OutputFile
from nmt.storage.text import as_cell
from nmt.text.translator import TextOptions, Translator

FORMAT = 2
"""Format of an unfinished job. In format 1, blocks dropped pairs by their ratio of tokens."""
BLOCK = 4096  # lines: enough for batches of similar length, and few to translate again after a kill
MAX_LENGTH_RATIO = 3.0  # ratio of the characters of both sides, relative to the corpus of the model
FASTEST = "int8"  # number format of the fastest exports
Block = list[tuple[int, str | Unreadable]]


class Synthesis(NamedTuple):
    """A finished file of synthetic pairs."""

    path: Path
    lines: int
    """Number of lines read."""
    dropped: Findings
    """Lines that were dropped, by reason."""


class _Task(NamedTuple):
    translator: Translator
    file: TextFile
    sample: bool
    forward: bool
    min_score: float | None
    augment: Mapping[VariantName, float]
    median: float | None
    """Median of target characters per source character in the training corpus; None if it is unknown."""


@public
def synthesize(
    file: str | Path,
    name: str,
    *,
    run: str | None = None,
    epoch: str | int | None = None,
    forward: bool = False,
    sample: bool = False,
    decoding: Mapping[str, JsonValue] | None = None,
    export: str | None = None,
    min_score: float | None = None,
    augment: Mapping[str, float] | None = None,
    overwrite: bool = False,
    progress: Progress = lambda task, done, total: None,
    note: Report = lambda text: None,
) -> Synthesis:
    """Translate text, and write ``data/<name>.jsonl.gz`` with source, target and score of each pair.

    The same call resumes a job that was interrupted. The file becomes the same as without interruption.

    Args:
        file: text with one sentence per line: plain, gzipped or in a zip archive.
        name: name of the file of pairs.
        run, epoch, decoding, export: model and search settings, as for ``load``. ``run`` may be an ensemble, RUN+RUN.
            The default of beam_size is 1, greedy search. The default of ``export`` is an int8 export, which is made if
            there is none; "none" translates with TensorFlow.
        forward: the lines become the sources of the pairs (self-training, distillation). Otherwise they become the
            targets (back-translation, with a run that translates from their language).
        sample: draw words by their probabilities instead of searching.
        min_score: lowest score of a pair to keep: the mean log-probability of the tokens of its translation.
        augment: with ``forward``, shares of the lines that variants replace before they are translated, by the name of
            the variant, as in ``training.augment``: {"typos": 0.1}. The run that learns from the pairs then learns what
            this model makes of such sentences.
        overwrite: replace an existing file, and the blocks of an interrupted job with other arguments.
        progress: function that is called with a step, the number of lines done, and the number of all lines.
        note: function that is called with a message when a run is exported or a job resumes.

    Raises:
        ConflictError: if the file of pairs exists, was begun with other arguments, or is being written.
        NmtError: as for ``load``, and if the text cannot be read.

    >>> made = nmt.synthesize("mono.de", "bt", run="base", overwrite=True)
    >>> str(made.path), made.lines
    ('data/bt.jsonl.gz', 2)
    """
    shares = _check_shares(augment or {}, forward=forward)
    path = DATASETS / f"{check_name(name, 'file of pairs')}.jsonl.gz"
    if os.path.lexists(path) and not overwrite:
        raise ConflictError(
            f"{path} exists already. Give another ",
            Argument("name"),
            ", or ",
            Argument("overwrite", True),
            ", which replaces it.",
        )
    text, weights = find_text_file(str(file), [DATASETS]), None if epoch is None else str(epoch)
    output = OutputFile(path, inputs=[text.path], overwrite=overwrite)
    export = export or ("none" if "+" in (run or "") else _fast_export(find_run(run), weights, note))
    settings = {"beam_size": 1, **{key: value for key, value in (decoding or {}).items() if value is not None}}
    system = find_system(run, weights, settings, None if export == "none" else export)
    if system.exported:
        models = [system.exported.folder / DESCRIPTION]
    else:
        models = [member.weights_path(choose_epoch(member, chosen)) for member, chosen in system.members]
    with system.open() as translator:
        median = translator.direction.median_length_ratio or corpus_median(system.manifest)
        task = _Task(translator, text, sample, forward, min_score, shares, median)
        made_with = {
            "input": f"{sha256(text.path)} {text.member or ''}", "run": system.name, "model": [*map(sha256, models)],
            "sample": sample, "forward": forward, "min_score": min_score, **system.decoding.model_dump(),
            "augment": shares,
        }  # fmt: skip
        return _write(task, output, made_with, progress, note, overwrite=overwrite)


def _check_shares(shares: Mapping[str, float], *, forward: bool) -> dict[VariantName, float]:
    """Return the shares of variants in their order; raises NmtError for shares that cannot be followed."""
    if shares and not forward:
        raise NmtError(
            Argument("augment"),
            " changes sources, and without ",
            Argument("forward", True),
            " the lines are targets. Leave one of the two out, or add the other.",
        )
    for name, share in shares.items():
        if name not in VARIANT_NAMES:
            nearest = did_you_mean(name, VARIANT_NAMES)
            raise NmtError(
                Argument("augment"), f" names the variant {name!r}{nearest}. Known: {', '.join(VARIANT_NAMES)}."
            )
        if not 0 < share <= 1:
            raise NmtError(
                Argument("augment"), f" gives {name} the share {share:g}. A share is above 0 and at most 1. Change it."
            )
    if (total := math.fsum(shares.values())) > 1:
        raise NmtError(Argument("augment"), f" has shares that add up to {total:g}, over 1. Lower some of them.")
    return {name: shares[name] for name in VARIANT_NAMES if name in shares}


def _varied(texts: list[str], shares: Mapping[VariantName, float], first: int, languages: Languages) -> list[str]:
    """Return lines in which variants replace some; the number of a line decides.

    Args:
        texts: consecutive lines.
        shares: share of the lines that each variant replaces.
        first: number of the first line, from 0.
        languages: codes of source and target.
    """
    varied = list(texts)
    for index, text in enumerate(texts):
        dice = Random(f"line {first + index}")
        chosen, above = dice.random(), 0.0
        following = Pair(texts[(index + 1) % len(texts)], "")
        for name, share in shares.items() if text.strip() else ():
            if above <= chosen < above + share:
                varied[index] = VARIANTS[name](Pair(text, ""), following, dice, languages).source
            above += share
    return varied


def _fast_export(run: Run, epoch: str | None, note: Report) -> str:
    """Return the name of an int8 export of a run's weights. It is made if there is none; "none" if that fails."""
    weights = choose_epoch(run, epoch)
    for folder, description in find_exports(run, CTRANSLATE2).items():
        if description.quantization == FASTEST and is_of_weights(description, run, weights):
            return folder.name
    from nmt.export.export import export_run, find_exporter  # noqa: PLC0415 - loads TensorFlow

    folder = run.folder / EXPORTS / f"{CTRANSLATE2}-{FASTEST}-{weights}"
    note(f"exporting run {run.name} to {folder}, which translates several times as fast")
    try:
        export_run(run, find_exporter(CTRANSLATE2, FASTEST), epoch=epoch, output=folder, overwrite=True)
    except NmtError as error:
        note(Message("TensorFlow translates, since the run is not exported: ", error))
        return "none"
    return folder.name


def _write(
    task: _Task, output: OutputFile, made_with: dict[str, Any], progress: Progress, note: Report, *,
    overwrite: bool,
) -> Synthesis:  # fmt: skip
    """Write the file of pairs. Finished blocks are used again if they were ``made_with`` the same settings."""
    path = output.path
    lines = sum(1 for _ in numbered_lines(task.file))
    folder = path.with_name(f".{path.name.removesuffix('.jsonl.gz')}.synthesis")
    folder.mkdir(parents=True, exist_ok=True)
    parts = [folder / f"part-{start:012d}" for start in range(0, lines, BLOCK)]

    def make(number: int, block: Block) -> int:
        rows = [json.dumps(row, ensure_ascii=False) + "\n" for row in _rows(task, block, number * BLOCK)]
        write_bytes(parts[number], "".join(rows).encode())
        return block[-1][0]

    with locked(folder / "lock", f"{path}"):
        output.check_unchanged()
        _begin(folder, made_with, path, overwrite=overwrite)
        if done := sum(part.exists() for part in parts):
            note(f"{min(done * BLOCK, lines):,} of {counted(lines, 'line')} were translated before")
        items, running = numbered_lines(task.file), deque[Future[int]]()
        # One thread cuts a block into tokens while the other thread translates a block.
        pool = ThreadPoolExecutor(2, "synthesize")
        try:
            for number, part in enumerate(parts):
                block = list(itertools.islice(items, BLOCK))
                if not part.exists():
                    running.append(pool.submit(make, number, block))
                while running and (len(running) == 2 or part == parts[-1]):
                    progress("translating", running.popleft().result(), lines)
        except Exception:
            pool.shutdown(cancel_futures=True)
            raise
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # Ctrl-C waits for no block
        dropped = Findings()
        with (
            output.temporary_file() as temporary, temporary.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        ):  # fmt: skip
            for row in (row for part in parts for row in part.read_bytes().splitlines(keepends=True)):
                if row.startswith(b'{"dropped"'):
                    dropped.add(*parse_json(row).values())
                else:
                    packed.write(row)
        shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):  # Windows removes a lock file when it is released
        folder.rmdir()
    return Synthesis(path, lines, dropped)


def _begin(folder: Path, made_with: dict[str, Any], path: Path, *, overwrite: bool) -> None:
    """Prepare the folder of the blocks. Blocks that were made with other settings are refused or removed."""
    state = folder / "state.json"
    before = read_json(state, "The state of synthetic pairs") if state.exists() else {"format": FORMAT, **made_with}
    number = before.pop("format", None)
    check_format(number, [1, FORMAT], str(state))
    before = DecodingConfig().model_dump() | {"augment": {}} | before  # what was added since then had its default
    changed = [key for key, value in made_with.items() if before.get(key) != value]
    differences = [
        key if key in ("input", "model") else f"{key} {before.get(key)} before, {made_with[key]} now" for key in changed
    ]
    if number != FORMAT:
        differences.append("length ratios in tokens before, in characters now")
    if differences and not overwrite:
        raise ConflictError(
            f"{path} was begun with other settings: {'; '.join(differences)}. A file has the pairs of one text and one "
            "model. Repeat the command that began it, give another ",
            Argument("name"),
            ", or begin anew with ",
            Argument("overwrite", True),
            ".",
        )
    if differences or not state.exists():
        for part in folder.glob("part-*"):
            part.unlink()
        write_json(state, {"format": FORMAT, **made_with})


def _rows(task: _Task, block: Block, first: int) -> Iterator[dict[str, Any]]:
    """Yield the pair of each numbered line, or the reason why the line is dropped, with its place."""
    translator = task.translator
    texts = ["" if isinstance(line, Unreadable) else line for _, line in block]
    texts = _varied(texts, task.augment, first, translator.languages) if task.augment else texts
    options = TextOptions(SearchOptions(task.sample, scored=True, first=first))
    translations = [best for best, *_ in translator.find(texts, options, skip_too_long=True)]
    scores = {index: translation.score or 0.0 for index, translation in enumerate(translations) if translation.ids}
    if translator.config.decoding.search(sampled=task.sample) == BEAM:  # scores of beam search include penalties
        sources = [translator.source.encode(texts[index]) for index in scores]
        targets = [translations[index].ids for index in scores]
        log_probabilities = translator.engine.token_scores(sources, targets)
        sums = [float(token_scores.sum()) for token_scores in log_probabilities]
        scores = dict(zip(scores, sums, strict=True))
    pairs = [Pair(text, as_cell(translation.text)) for text, translation in zip(texts, translations, strict=True)]
    median = task.median or median_ratio(pairs) or 1.0
    for index, (number, line) in enumerate(block):
        text, translation = texts[index], translations[index]
        written = pairs[index].target
        score = round(scores.get(index, 0.0) / max(len(translation.ids), 1), 4)
        reasons = {
            line.reason if isinstance(line, Unreadable) else "": isinstance(line, Unreadable),
            "empty line": not text.strip(),
            "longer than the model reads": translation.is_skipped,
            "cut off by the limit on its length": not translation.finished,
            "empty translation": not written.strip(),
            "translation equals the line": written == text,
            "length ratio": relative_ratio(pairs[index], median) > MAX_LENGTH_RATIO,
            "low score": task.min_score is not None and score < task.min_score,
        }
        source, target = (text, written) if task.forward else (written, text)
        if reason := next((reason for reason, applies in reasons.items() if applies), ""):
            yield {"dropped": reason, "place": place_of([task.file], number, Pair(text, written) if text else None)}
        else:
            yield {"source": source, "target": target, "score": score}
