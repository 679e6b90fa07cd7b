"""Synthetic pairs: lines of text with their translations (Sennrich et al. 2016), in blocks that outlive a kill.

A block of lines is translated by itself, so the pairs do not depend on where a command was killed. Each complete block
is a part of the file in a hidden folder beside it; the finished file is all parts in a row.
"""

import gzip
import itertools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config.decoding import BEAM
from nmt.data.cleaning import EXAMPLES, Findings, Progress, place_of
from nmt.data.sources.formats import Pair
from nmt.data.sources.text_file import TextFile, Unreadable, numbered_lines
from nmt.decoding.translation import SearchOptions, Translation
from nmt.decoding.translator import Translator
from nmt.errors import ConflictError
from nmt.storage.atomic import atomic_file, sha256, write_bytes
from nmt.storage.file_lock import locked
from nmt.storage.json_file import check_format, read_json, write_json
from nmt.storage.text import as_cell
from nmt.tokenizers.base import EOS

FORMAT = 1
BLOCK = 4096
"""Lines of a block: so many that batches of like length have little padding, and few enough to repeat after a kill."""


class Rules(NamedTuple):
    """What is made of a line and its translation, and which of these pairs are dropped."""

    forward: bool = False
    """Whether the line is the source of the pair; else it is the target, as in back-translation."""
    max_length_ratio: float = 3.0
    """Largest ratio of the sides' lengths, in tokens with eos."""
    min_score: float | None = None
    """Lowest score of a pair that is kept: the mean log-probability of the translation's tokens."""

    def reason(self, line: str, tokens: int, translation: Translation, score: float) -> str | None:
        """Return the reason to drop a line of N ``tokens``, or None."""
        lengths = sorted((tokens + 1, len(translation.ids)))
        reasons = {
            "empty line": not line.strip(),
            "longer than the model reads": translation.is_skipped,
            "translation reached the limit on its length": not translation.finished,
            "empty translation": not translation.text.strip(),
            "translation equals the line": translation.text == line,
            "length ratio": lengths[1] > self.max_length_ratio * lengths[0],
            "low score": self.min_score is not None and score < self.min_score,
        }
        return next((reason for reason, applies in reasons.items() if applies), None)


class Synthesis(NamedTuple):
    """A finished file of synthetic pairs."""

    path: Path
    lines: int
    """Number of lines read."""
    dropped: Findings
    """Lines left out, by reason."""

    @property
    def pairs(self) -> int:
        """Number of pairs written."""
        return self.lines - self.dropped.counts.total()


def write_synthetic_pairs(
    translator: Translator,
    file: TextFile,
    path: Path,
    made_with: dict[str, Any],
    options: SearchOptions,
    rules: Rules,
    *,
    overwrite: bool = False,
    report: Progress = lambda task, done, total: None,
    note: Callable[[str], None] = lambda text: None,
) -> Synthesis:
    """Translate the lines of a text file, and write the pairs as gzipped JSON Lines.

    Args:
        translator: translates the lines.
        file: text, a sentence a line.
        path: file to write.
        made_with: what the translations depend on besides the lines; a part made with anything else is not continued.
        options: greedy or beam search, or sampling.
        rules: which side is the line, and which pairs are dropped.
        overwrite: replace an existing file, and parts that were made otherwise.
        report: called with the lines done.
        note: called with what is continued, in words.

    Raises:
        ConflictError: if the file exists, if parts were made otherwise, or another process writes them.
        DataError: if the text cannot be read.
    """
    refuse_finished(path, overwrite=overwrite)
    lines = sum(1 for _ in numbered_lines(file))
    folder = path.with_name(f".{path.name.removesuffix('.jsonl.gz')}.synthesis")
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock", f"{path}"):
        settings = {"input": f"{sha256(file.path)} {file.member or ''}", **made_with, **rules._asdict()}
        _begin(folder, settings, path, overwrite=overwrite)
        parts = [folder / f"part-{start:012d}.jsonl.gz" for start in range(0, lines, BLOCK)]
        if done := sum(part.exists() for part in parts):
            note(f"{min(done * BLOCK, lines):,} of {lines:,} lines are translated already; going on with the others")
        items, dropped = numbered_lines(file), Findings()
        for number, part in enumerate(parts):
            block = list(itertools.islice(items, BLOCK))
            if not part.exists():
                pairs, found = _translated(translator, file, block, options._replace(first=number * BLOCK), rules)
                write_json(part.with_suffix(".dropped.json"), {"counts": found.counts, "places": found.places})
                write_bytes(part, gzip.compress("".join(pairs).encode(), mtime=0))
            report("translating", block[-1][0], lines)
        for part in parts:
            found = Findings(**read_json(part.with_suffix(".dropped.json"), "A part of synthetic pairs"))
            dropped.counts.update(found.counts)
            for reason, places in found.places.items():
                dropped.places[reason] = [*dropped.places.get(reason, []), *places][:EXAMPLES]
        with atomic_file(path) as temporary, temporary.open("wb") as whole:
            for part in parts:
                whole.write(part.read_bytes())
        shutil.rmtree(folder)
    return Synthesis(path, lines, dropped)


def refuse_finished(path: Path, *, overwrite: bool) -> None:
    """Raise ConflictError if the file exists, unless it may be overwritten."""
    if path.exists() and not overwrite:
        raise ConflictError(
            f"{path} exists already. Synthetic pairs are not overwritten unless you ask for it. Give another --name, "
            "or --overwrite."
        )


def _begin(folder: Path, made_with: dict[str, Any], path: Path, *, overwrite: bool) -> None:
    """Prepare the folder of the parts: empty, or with those that were made with the same."""
    state = folder / "state.json"
    made_with = json.loads(json.dumps(made_with))
    if state.exists():
        before = read_json(state, "The state of synthetic pairs")
        check_format(before.pop("format", None), [FORMAT], str(state))
        differences = [key for key in made_with if before.get(key) != made_with[key]]
        if differences and not overwrite:
            told = [f"{key} {_shown(before.get(key))} before, {_shown(made_with[key])} now" for key in differences]
            raise ConflictError(
                f"{path} was begun with differences: {'; '.join(told)}. A file of synthetic pairs is made with one input and one "
                "model alone. Repeat the command that began it, give another --name, or begin anew with --overwrite."
            )
        if differences:
            state.unlink()
    if not state.exists():
        for part in folder.glob("part-*"):
            part.unlink()
        write_json(state, {"format": FORMAT, **made_with})


def _shown(value: Any) -> str:
    return repr(value) if len(repr(value)) <= 20 else f"{repr(value)[:12]}..."


def _translated(
    translator: Translator, file: TextFile, block: list[tuple[int, str | Unreadable]], options: SearchOptions,
    rules: Rules,
) -> tuple[list[str], Findings]:  # fmt: skip
    """Return the pairs of a block of numbered lines as lines of JSON, and what was dropped."""
    dropped, pairs = Findings(), list[str]()
    texts = ["" if isinstance(line, Unreadable) else line for _, line in block]
    found = [best for best, *_ in translator.find(texts, options._replace(scored=True), skip_too_long=True)]
    encoded = [translator.source.encode(text) for text in texts]
    scores = [translation.score or 0.0 for translation in found]
    if translator.config.decoding.search(sampled=options.sampled) == BEAM:  # whose scores have penalties
        ended = [index for index, translation in enumerate(found) if translation.ids[-1:] == [EOS]]
        values = translator.engine.score([encoded[index] for index in ended], [found[index].ids for index in ended])
        for index, value in zip(ended, values, strict=True):
            scores[index] = value
    for (number, line), text, ids, translation, total in zip(block, texts, encoded, found, scores, strict=True):
        score = total / max(len(translation.ids), 1)
        written = as_cell(translation.text)
        reason = line.reason if isinstance(line, Unreadable) else rules.reason(text, len(ids), translation, score)
        if reason:
            dropped.add(reason, place_of([file], number, None if isinstance(line, Unreadable) else Pair(text, written)))
            continue
        source, target = (text, written) if rules.forward else (written, text)
        pair = {"source": source, "target": target, "score": round(score, 4)}
        pairs.append(json.dumps(pair, ensure_ascii=False) + "\n")
    return pairs, dropped
