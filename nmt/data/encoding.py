"""Spooled pairs to token ids on disk, on all processors, in memory that does not grow with the corpus."""

import contextlib
import itertools
import multiprocessing
import os
import re
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Self

import numpy as np

from nmt.config.data import DataConfig
from nmt.data.cleaning import Progress
from nmt.data.pair_store import Spool
from nmt.data.sources.formats import Pair
from nmt.data.sources.text_file import TextFile, numbered_lines
from nmt.data.token_arrays import Sequences
from nmt.errors import DataError, NmtError
from nmt.tokenizers.base import UNK, Tokenizer
from nmt.tokenizers.registry import load_tokenizer

Side = Literal["source", "target"]
SIDES: tuple[Side, ...] = ("source", "target")
CHUNK = 2_000  # pairs encoded at a time
CHUNK_BYTES = 8 * 2**20  # of their texts, or fewer pairs
WORTH_WORKERS = 50_000  # pairs from which starting processes pays
_LINE_BREAK = re.compile(r"[\r\n]+")


class Limits(NamedTuple):
    """Which pairs are left out for their length."""

    max_tokens: int | None
    max_length_ratio: float | None

    def broken(self, source: int, target: int) -> str | None:
        """Return the reason to leave out a pair of so many tokens a side, if there is one."""
        if self.max_tokens is not None and max(source, target) > self.max_tokens:
            return "too long"
        shorter, longer = sorted((source + 1, target + 1))  # with eos
        if self.max_length_ratio is not None and longer > self.max_length_ratio * shorter:
            return "length ratio"
        return None


@dataclass
class Encoded:
    """Some pairs as ids, in order, those left out gone from all but ``left_out``."""

    kept: np.ndarray
    """Indices of the pairs in the spool, int64."""
    tokens: dict[Side, np.ndarray]
    """Ids end to end."""
    lengths: dict[Side, np.ndarray]
    """Tokens of each sentence, int64."""
    texts: list[Pair]
    """As they stood in the file."""
    left_out: list[tuple[str, int]]
    """Reasons and indices in the spool."""


class Encoder:
    """Encodes pairs of a spool."""

    def __init__(self, spool: Path, tokenizers: dict[Side, Path]) -> None:
        """Open the spool and load the tokenizers, in the process that is to work with them."""
        self.spool = Spool(spool)
        self.tokenizers: dict[Side, Tokenizer] = {side: load_tokenizer(path) for side, path in tokenizers.items()}

    def encode(self, indices: np.ndarray, limits: Limits) -> Encoded:
        """Return the pairs at ``indices`` of the spool as ids."""
        rows: dict[Side, list[list[int]]] = {side: [] for side in SIDES}
        kept, texts, left_out = [], [], []
        for index in indices.tolist():
            pair = self.spool[index]
            source = self.tokenizers["source"].encode(pair.source)
            target = self.tokenizers["target"].encode(pair.target)
            if reason := limits.broken(len(source), len(target)):
                left_out.append((reason, index))
                continue
            kept.append(index)
            texts.append(pair)
            rows["source"].append(source)
            rows["target"].append(target)
        return Encoded(
            np.array(kept, np.int64),
            {side: _flat(rows[side], self.tokenizers[side].size) for side in SIDES},
            {side: np.array([len(row) for row in rows[side]], np.int64) for side in SIDES},
            texts,
            left_out,
        )


def _flat(rows: list[list[int]], vocabulary: int) -> np.ndarray:
    return np.array([id_ for row in rows for id_ in row], np.min_scalar_type(vocabulary - 1))


_worker: Encoder  # one in each process of a pool


def _start_worker(spool: Path, tokenizers: dict[Side, Path]) -> None:
    global _worker  # noqa: PLW0603 - what an initializer leaves for the calls that follow it
    _worker = Encoder(spool, tokenizers)


def _work(indices: np.ndarray, limits: Limits) -> Encoded:
    return _worker.encode(indices, limits)


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Encode = Callable[[Iterable[np.ndarray], Limits], Iterator[Encoded]]


@contextlib.contextmanager
def encoding(spool: Path, tokenizers: dict[Side, Path], pairs: int) -> Iterator[Encode]:
    """Yield a function that encodes chunks of indices in order: here, or for many pairs on every processor.

    Processes are spawned, not forked, so that whatever runs in this one cannot hang them; they load no TensorFlow.
    """
    workers = processors()
    if pairs < WORTH_WORKERS or workers == 1:
        encoder = Encoder(spool, tokenizers)
        with encoder.spool:
            yield lambda chunks, limits: (
                encoder.encode(portion, limits)
                for chunk in chunks
                for portion in encoder.spool.portions(chunk, CHUNK_BYTES)
            )
        return
    pool = ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), initializer=_start_worker, initargs=(spool, tokenizers)
    )

    def submit(chunk: np.ndarray, limits: Limits) -> Future[Encoded]:
        # The first call starts the processes, which inherit what is blocked: Ctrl-C is for this process alone.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return pool.submit(_work, chunk, limits)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def encode(chunks: Iterable[np.ndarray], limits: Limits) -> Iterator[Encoded]:
        waiting: deque[Future[Encoded]] = deque()
        for portion in (portion for chunk in chunks for portion in pairs_of.portions(chunk, CHUNK_BYTES)):
            waiting.append(submit(portion, limits))
            if len(waiting) > 4 * workers:  # no more than that is ever in memory
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    try:
        with Spool(spool) as pairs_of:
            yield encode
    except BrokenProcessPool:
        raise NmtError(
            "A process that tokenizes was ended by the system, most likely for want of memory; nothing was written. "
            "Close other programs, or repeat with fewer processors: taskset -c 0 nmt prepare ..."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


class GrowingArray:
    """A one-dimensional .npy file that is written piece by piece."""

    def __init__(self, path: Path, kind: np.dtype) -> None:
        """Begin an empty array."""
        self._file = path.open("wb")
        self.kind = kind
        self.count = 0
        self._write_header()

    def _write_header(self) -> None:
        header = {"descr": np.lib.format.dtype_to_descr(self.kind), "fortran_order": False, "shape": (self.count,)}
        np.lib.format.write_array_header_1_0(self._file, header)  # leaves room for the shape to grow

    def append(self, piece: np.ndarray) -> None:
        """Write more elements."""
        self._file.write(piece.astype(self.kind, copy=False).tobytes())
        self.count += len(piece)

    def __enter__(self) -> Self:
        """Return the array."""
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Put the final shape into the header and close the file."""
        self._file.seek(0)
        self._write_header()
        self._file.close()


@dataclass
class Written:
    """What was written of a split, for its counts."""

    kept: np.ndarray
    """Indices in the spool, int64 [N]."""
    lengths: dict[Side, np.ndarray]
    """Tokens of each sentence, int32 [N]."""
    unknown: dict[Side, int]
    characters: dict[Side, int]
    left_out: list[tuple[str, int]]


def write_split(
    folder: Path, name: str, indices: np.ndarray, encode: Encode, vocabulary: dict[Side, int], config: DataConfig,
    report: Progress,
) -> Written:  # fmt: skip
    """Write ``<name>.<side>.tokens.npy`` and ``.offsets.npy``, and the raw text where it is needed again.

    Pairs against the limits of ``config`` are left out, of the test none.
    """
    limits = Limits(None, None) if name == "test" else Limits(config.max_tokens, config.max_length_ratio)
    chunks = (indices[start : start + CHUNK] for start in range(0, len(indices), CHUNK))
    kept, left_out, lengths = [np.zeros(0, np.int64)], [], {side: [np.zeros(0, np.int32)] for side in SIDES}
    unknown, characters = dict.fromkeys(SIDES, 0), dict.fromkeys(SIDES, 0)
    done = 0
    with contextlib.ExitStack() as files:
        arrays = {
            side: (
                files.enter_context(
                    GrowingArray(folder / f"{name}.{side}.tokens.npy", np.min_scalar_type(vocabulary[side] - 1))
                ),
                files.enter_context(GrowingArray(folder / f"{name}.{side}.offsets.npy", np.dtype(np.int64))),
            )
            for side in SIDES
        }
        texts = {
            side: files.enter_context((folder / f"{name}.{side}.txt").open("wb"))
            for side in SIDES
            if name != "train" or config.subword_sampling
        }
        for _, offsets in arrays.values():
            offsets.append(np.zeros(1, np.int64))
        for encoded in encode(chunks, limits):
            done += len(encoded.kept) + len(encoded.left_out)
            kept.append(encoded.kept)
            left_out += encoded.left_out
            for column, side in enumerate(SIDES):
                tokens, offsets = arrays[side]
                offsets.append(tokens.count + np.cumsum(encoded.lengths[side]))
                tokens.append(encoded.tokens[side])
                lengths[side].append(encoded.lengths[side].astype(np.int32))
                unknown[side] += int((encoded.tokens[side] == UNK).sum())
                characters[side] += sum(len(pair[column]) for pair in encoded.texts)
                if side in texts:
                    lines = (_LINE_BREAK.sub(" ", pair[column]) + "\n" for pair in encoded.texts)
                    texts[side].write("".join(lines).encode("utf-8"))
            report(f"tokenizing {name}", done, len(indices))
    joined = {side: np.concatenate(pieces) for side, pieces in lengths.items()}
    return Written(np.concatenate(kept), joined, unknown, characters, left_out)


def resample(text: TextFile, tokenizer: Tokenizer, prepared: Sequences, seed: list[int]) -> Sequences:
    """Return the sentences of a prepared side, whose raw text is given, in subwords drawn at random."""
    longest = int(prepared.lengths.max())
    pieces, lengths = [], []
    lines = (line for _, line in numbered_lines(text) if isinstance(line, str))
    for start in range(0, len(prepared), CHUNK):
        texts = list(itertools.islice(lines, min(CHUNK, len(prepared) - start)))
        if start + len(texts) < min(start + CHUNK, len(prepared)):
            raise DataError(
                f"The text of a split has a line for each of its {len(prepared):,} sentences; {text} ends after "
                f"{start + len(texts):,}. Prepare the corpus again with --overwrite."
            )
        drawn = int(np.random.SeedSequence([*seed, start]).generate_state(1)[0]) % (2**32 - 1)
        rows = [
            np.array(ids, prepared.tokens.dtype) if len(ids) <= longest else prepared[start + place]
            for place, ids in enumerate(tokenizer.sample(texts, drawn))
        ]
        pieces.append(np.concatenate(rows))
        lengths.append(np.array([len(row) for row in rows], np.int64))
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64)
    return Sequences(np.concatenate(pieces), offsets)
