"""Encoding of stored pairs into token ids on disk, on all processors. Memory does not grow with the corpus."""

import contextlib
import itertools
import multiprocessing
import os
import re
import signal
import statistics
import threading
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from nmt.config.data import DataConfig
from nmt.config.decoding import LENGTH_RATIO
from nmt.data.cleaning import Progress
from nmt.data.manifest import SIDES, SPLITS, Manifest, Side, SplitCounts, SplitName
from nmt.data.pair_store import PairStore
from nmt.data.sources.formats import Pair
from nmt.data.sources.text_file import TextFile, numbered_lines
from nmt.data.token_arrays import Sequences, offsets_of
from nmt.errors import DataError, NmtError, counted
from nmt.message import Argument
from nmt.tokenizers.base import UNK, Tokenizer, leading_tags, tag_id
from nmt.tokenizers.registry import load_tokenizer

CHUNK_PAIRS = 2_000  # pairs encoded at a time
CHUNK_BYTES = 8 * 2**20  # the same limit in bytes of text, for long pairs
PARALLEL_PAIRS = 50_000  # smallest number of pairs for which worker processes save time
PERCENTILES = (50, 90, 99)
SLACK = 10
"""Characters that are added to both sides, as the ratios of short pairs vary more."""
RATIO_PAIRS = 10_000
"""Most pairs from which the median of a corpus is estimated."""
_LINE_BREAK = re.compile(r"[\r\n]+")


# --- ratios of lengths
# English needs three times as many characters as Chinese, so the ratio of a pair is compared with the median ratio of
# its corpus. Characters are counted, so that the same pairs are dropped with every tokenizer.


def median_ratio(pairs: Iterable[Pair]) -> float | None:
    """Return the median of target characters per source character; None without a pair that has text on both sides."""
    ratios = [len(target) / len(source) for source, target in pairs if source and target]
    return statistics.median(ratios) if ratios else None


def corpus_median(manifest: Manifest) -> float | None:
    """Return the median of a training corpus, or for a manifest of an older format the mean; None if unknown."""
    characters = manifest.splits["train"].characters
    if manifest.report.median_length_ratio is None and all(characters.get(side) for side in SIDES):
        return characters["target"] / characters["source"]
    return manifest.report.median_length_ratio


def relative_ratio(pair: Pair, median: float) -> float:
    """Return how many times longer one side of a pair is than the other side lets expect, 1 or more.

    Both sides are compared in characters of the language that needs more of them. So exchanged sides have the same
    ratio.
    """
    source = len(pair.source) * max(1.0, median)
    target = len(pair.target) / min(1.0, median)
    shorter, longer = sorted((source + SLACK, target + SLACK))
    return longer / shorter


def search_ratio(manifest: Manifest) -> float:
    """Return ``decoding.max_length_ratio`` for "auto": twice the ratio of tokens in training, and at least 2.

    The largest ratio of several directions counts.

    A model from Chinese to English characters writes three to four times as many tokens as it reads.
    """
    train = manifest.splits["train"]
    source, target = (train.tokens[side] + train.pairs for side in SIDES)  # with eos
    ratios = [direction.token_ratio for direction in manifest.directions if direction.token_ratio]
    return round(LENGTH_RATIO * max(1.0, *(ratios or [target / max(1, source)])), 1)


# --- encoding


class LengthLimits(NamedTuple):
    """Limits for the length of a pair; None: no limit."""

    max_tokens: int | None
    """Most tokens of each side."""
    max_ratio: float | None
    """Largest ratio of the sides relative to the median of their direction."""

    def violation(self, pair: Pair, source_tokens: int, target_tokens: int, median: float) -> str | None:
        """Return the reason to drop a pair with these numbers of tokens, or None."""
        if self.max_tokens is not None and max(source_tokens, target_tokens) > self.max_tokens:
            return "too long"
        if self.max_ratio is not None and relative_ratio(pair, median) > self.max_ratio:
            return "length ratio"
        return None


class Encoding(NamedTuple):
    """Treatment of some pairs of a pair store."""

    pairs: range
    """Indices of the pairs."""
    tags: tuple[str, ...] = ()
    """Tags before each source."""
    median: float = 1.0
    """Median of target characters per source character in the direction of the pairs."""


class EncodedChunk(NamedTuple):
    """N encoded pairs, and the pairs of the same chunk that were dropped for their length."""

    kept: list[int]
    """N indices in the pair store."""
    tokens: dict[Side, Sequences]
    """Token ids of the N sentences, by side."""
    texts: list[Pair]
    """Raw text of the N pairs."""
    dropped: list[tuple[str, int]]
    """Reason and index in the pair store of each dropped pair."""


class Encoder:
    """Encodes pairs of a pair store."""

    def __init__(self, store: Path, tokenizers: dict[Side, Path], encodings: Sequence[Encoding]) -> None:
        """Open the store and load the tokenizers. Call it in the process that encodes."""
        self.store = PairStore(store)
        self.source, self.target = (load_tokenizer(tokenizers[side]) for side in SIDES)
        self._encodings = [(part, [tag_id(self.source, tag) for tag in part.tags]) for part in encodings]

    def encode(self, indices: np.ndarray, limits: LengthLimits | None) -> EncodedChunk:
        """Return the pairs at ``indices`` of the store as token ids; without ``limits`` all of them."""
        kept, texts, sources, targets, dropped = [], [], [], [], []
        for index in indices.tolist():
            pair = self.store[index]
            part, tags = next(found for found in self._encodings if index in found[0].pairs)
            source, target = [*tags, *self.source.encode(pair.source)], self.target.encode(pair.target)
            if limits and (reason := limits.violation(pair, len(source), len(target), part.median)):
                dropped.append((reason, index))
                continue
            kept.append(index)
            texts.append(pair)
            sources.append(source)
            targets.append(target)
        tokens: dict[Side, Sequences] = {
            "source": Sequences.from_rows(sources, self.source.size),
            "target": Sequences.from_rows(targets, self.target.size),
        }
        return EncodedChunk(kept, tokens, texts, dropped)


_worker_encoder: Encoder  # encoder of this process, if it is a worker


def _start_worker(store: Path, tokenizers: dict[Side, Path], encodings: Sequence[Encoding]) -> None:
    global _worker_encoder  # noqa: PLW0603 - an initializer cannot return a value
    _worker_encoder = Encoder(store, tokenizers, encodings)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End a worker whose parent was killed: it would wait for work for ever."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def _encode_in_worker(indices: np.ndarray, limits: LengthLimits | None) -> EncodedChunk:
    return _worker_encoder.encode(indices, limits)


@contextlib.contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Begin processes that Ctrl-C does not reach, whole: it interrupts this process alone, after the block.

    They inherit the signal mask. It keeps no other thread from taking the signal, which Python then hands to this one.
    Windows has no signal masks.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    taken: list[int] = []
    in_main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, lambda number, _: taken.append(number)) if in_main_thread else None
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        if in_main_thread:
            signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
        for number in taken:
            signal.raise_signal(number)


def available_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Encode = Callable[[Iterable[np.ndarray], LengthLimits | None], Iterator[EncodedChunk]]
"""Function from chunks of indices and length limits (None: no limits) to encoded chunks, in order."""


@contextlib.contextmanager
def open_encoder(
    store: Path, tokenizers: dict[Side, Path], pairs: int, encodings: Sequence[Encoding]
) -> Iterator[Encode]:
    """Yield a function that encodes stored pairs in this process, or for many pairs on every processor.

    ``pairs`` is their number, and ``encodings`` covers all of them.
    Workers are spawned instead of forked, so that threads of this process cannot hang them. They do not load
    TensorFlow.
    """
    workers, parts = available_processors(), (store, tokenizers, encodings)
    if pairs < PARALLEL_PAIRS or workers == 1:
        encoder = Encoder(*parts)
        with encoder.store:
            yield lambda chunks, limits: (
                encoder.encode(part, limits) for chunk in chunks for part in encoder.store.chunks(chunk, CHUNK_BYTES)
            )
        return
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_start_worker, initargs=parts)

    def submit(chunk: np.ndarray, limits: LengthLimits | None) -> Future[EncodedChunk]:
        with _interrupts_deferred():  # the first call starts the workers, which inherit the signal mask
            return pool.submit(_encode_in_worker, chunk, limits)

    def encode(chunks: Iterable[np.ndarray], limits: LengthLimits | None) -> Iterator[EncodedChunk]:
        pending: deque[Future[EncodedChunk]] = deque()
        for part in (part for chunk in chunks for part in reader.chunks(chunk, CHUNK_BYTES)):
            pending.append(submit(part, limits))
            if len(pending) > 4 * workers:  # limits the chunks in memory
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()

    try:
        with PairStore(store) as reader:
            yield encode
    except BrokenProcessPool:
        raise NmtError(
            "The system ended a process that was tokenizing, most likely for lack of memory. Nothing was written. "
            "Close other programs, or repeat with fewer processors: taskset -c 0 nmt prepare ..."
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


class WrittenSplit(NamedTuple):
    """The N pairs that were written for a split, and the pairs that were dropped for their length."""

    kept: np.ndarray
    """Index of each pair in the pair store, int64 [N]."""
    dropped: list[tuple[str, int]]
    """Reason and index in the pair store of each dropped pair."""
    counts: SplitCounts
    """Statistics, without ``sources_in_training``."""


def write_split(
    folder: Path, name: SplitName, indices: np.ndarray, encode: Encode, vocabulary: dict[Side, int],
    config: DataConfig, report: Progress,
) -> WrittenSplit:  # fmt: skip
    """Write the token ids and offsets of each side, and the raw text of the splits that need it later.

    Pairs beyond the length limits of ``config`` are dropped from training and validation, but never from the test.

    Raises:
        DataError: if no pair is left.
    """
    chunks = (indices[start : start + CHUNK_PAIRS] for start in range(0, len(indices), CHUNK_PAIRS))
    kept, dropped = array("q"), list[tuple[str, int]]()
    lengths: dict[Side, list[np.ndarray]] = {side: [] for side in SIDES}
    unknown: dict[str, int] = dict.fromkeys(SIDES, 0)
    characters: dict[str, int] = dict.fromkeys(SIDES, 0)
    with contextlib.ExitStack() as files:
        tokens = {side: files.enter_context((folder / f"{name}.{side}.tokens.npy").open("wb")) for side in SIDES}
        for side in SIDES:
            _write_header(tokens[side], vocabulary[side], 0)
        texts = {
            side: files.enter_context((folder / f"{name}.{side}.txt").open("wb"))
            for side in SIDES
            if name != "train" or config.subword_sampling in (True, "possible")
        }
        limits = None if name == "test" else LengthLimits(config.max_tokens, config.max_length_ratio)
        for encoded in encode(chunks, limits):
            kept.extend(encoded.kept)
            dropped += encoded.dropped
            for column, side in enumerate(SIDES):
                sequences = encoded.tokens[side]
                tokens[side].write(sequences.tokens.tobytes())
                lengths[side].append(sequences.lengths.astype(np.int32))
                unknown[side] += int((sequences.tokens == UNK).sum())
                characters[side] += sum(len(pair[column]) for pair in encoded.texts)
                if side in texts:
                    lines = (_LINE_BREAK.sub(" ", pair[column]) + "\n" for pair in encoded.texts)
                    texts[side].write("".join(lines).encode("utf-8"))
            report(f"tokenizing {name}", len(kept) + len(dropped), len(indices))
        if not kept:
            raise DataError(
                f"The {name} split would be empty: all of its pairs exceed data.max_tokens {config.max_tokens} or "
                f"data.max_length_ratio {config.max_length_ratio}. Each of {', '.join(SPLITS)} needs at least one "
                "pair. Raise the limits, or set them to null."
            )
        joined = {side: np.concatenate(pieces) for side, pieces in lengths.items()}
        for side in SIDES:
            offsets = offsets_of(joined[side])
            np.save(folder / f"{name}.{side}.offsets.npy", offsets)
            tokens[side].seek(0)
            _write_header(tokens[side], vocabulary[side], int(offsets[-1]))
    counts = SplitCounts(
        pairs=len(kept),
        tokens={side: int(joined[side].sum(dtype=np.int64)) for side in SIDES},
        longest={side: int(joined[side].max()) for side in SIDES},
        unknown=unknown,
        sources_in_training=0,
        characters=characters,
        percentiles={
            side: {str(percent): int(np.percentile(joined[side], percent, method="higher")) for percent in PERCENTILES}
            for side in SIDES
        },
    )
    return WrittenSplit(np.array(kept, np.int64), dropped, counts)


def _write_header(file: BinaryIO, vocabulary: int, tokens: int) -> None:
    """Write the header of an .npy file of token ids. Its length is the same for every number of tokens."""
    dtype = np.lib.format.dtype_to_descr(np.min_scalar_type(vocabulary - 1))
    header = {"descr": dtype, "fortran_order": False, "shape": (tokens,)}
    np.lib.format.write_array_header_1_0(file, header)


def sample_subwords(text: TextFile, tokenizer: Tokenizer, prepared: Sequences, seed: list[int]) -> Sequences:
    """Return the sentences of a prepared side, re-encoded from their raw text with sampled segmentations.

    A sentence that would become longer than the longest in ``prepared`` keeps its prepared tokens.

    Raises:
        DataError: if the text has fewer lines than ``prepared`` has sentences.
    """
    longest = int(prepared.lengths.max())
    tokens, lengths = [], array("q")
    lines = (line for _, line in numbered_lines(text) if isinstance(line, str))
    for start in range(0, len(prepared), CHUNK_PAIRS):
        texts = list(itertools.islice(lines, min(CHUNK_PAIRS, len(prepared) - start)))
        if start + len(texts) < min(start + CHUNK_PAIRS, len(prepared)):
            raise DataError(
                f"{text} ends after {counted(start + len(texts), 'line')}. The split has "
                f"{counted(len(prepared), 'sentence')}, one per line. Prepare the corpus again with ",
                Argument("overwrite", True),
                ".",
            )
        chunk_seed = int(np.random.SeedSequence([*seed, start]).generate_state(1)[0]) % (2**32 - 1)
        rows = []
        for row, ids in zip(itertools.count(start), tokenizer.sample(texts, chunk_seed)):
            sampled = np.array([*leading_tags(tokenizer, prepared[row]), *ids], prepared.tokens.dtype)
            rows.append(sampled if len(sampled) <= longest else prepared[row])
        tokens.append(np.concatenate(rows))
        lengths.extend(map(len, rows))
    return Sequences(np.concatenate(tokens), offsets_of(np.array(lengths)))
