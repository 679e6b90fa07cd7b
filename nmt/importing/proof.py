"""Comparison of an imported run with its original: with transformers, or with the results in an import.json.

Shapes: B sentences, S source length, T target length, V vocabulary.
"""

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from safetensors.numpy import load_file

from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.decoding.translation import BEST
from nmt.export import process
from nmt.export.huggingface import HuggingFaceExporter
from nmt.importing.answers import BATCH, BEAMS, LONGEST, answers, logits_file
from nmt.importing.original import Original
from nmt.runs.origin import Expected
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD, PAD, Tokenizer

SENTENCES = 200
"""Most sentences of a comparison."""
TIE = 1e-4
"""Largest difference of the scores of translations that tie. Scores in float32 are exact to about 1e-5."""
SEARCHES = {"greedy": 1, "beam": BEAMS}
"""Number of beams of each search that is compared."""


def sentences_to_compare(source: Tokenizer, given: Sequence[str]) -> list[str]:
    """Return the first distinct sentences of ``given``; without any, sentences of random pieces.

    For a model of several target languages, those without the code of a language get the next code.
    """
    first_tag = source.size - len(source.tags)
    codes = itertools.cycle([f">>{tag}<< " for tag in source.tags] or [""])
    texts = []
    for text in dict.fromkeys(given or _random_texts(source)):
        ids = source.encode(text)
        if 0 < len(ids) < LONGEST - 1:
            texts.append(text if ids[0] >= first_tag else next(codes) + text)
    return texts[:SENTENCES]


def _random_texts(source: Tokenizer) -> list[str]:
    """Return texts of random pieces, without control characters, which no line of text has."""
    random, end = np.random.default_rng(1), source.size - len(source.tags)
    rows = [random.integers(FIRST_WORD, end, random.integers(3, 16)).tolist() for _ in range(SENTENCES)]
    return ["".join(filter(str.isprintable, source.decode(row))) for row in rows]


def original_results(
    folder: Path, original: Original, engine: TensorFlowEngine, source: Tokenizer, texts: list[str], scratch: Path
) -> tuple[list[Expected], float]:
    """Return the original's results for texts, and the largest difference of a logit in their greedy translations.

    Args:
        folder: files of the original.
        original: the model in these files.
        engine: engine of the run.
        source: source tokenizer of the run.
        texts: sentences to compare on.
        scratch: folder on a disk with room for logits.

    Raises:
        DataError: if transformers fails.
    """
    source_order, target_order = original.source.order, original.target.order
    source_ids_of_rows, target_ids_of_rows = _ids_of_rows(source_order), _ids_of_rows(target_order)
    special = target_order[:FIRST_WORD].tolist()
    # Ids with the same row have different biases in the run: only the first of them is scored as in the original.
    scored = np.setdiff1d(np.unique(target_order, return_index=True)[1], [PAD, BOS])
    model = cast(Any, engine.model)
    results, largest = list[Expected](), 0.0
    with tempfile.TemporaryDirectory(dir=scratch) as logits:
        batches = process.call(HuggingFaceExporter, answers, str(folder.resolve()), texts, special, logits)
        for number, answer in enumerate(batches):
            batch = texts[number * BATCH : (number + 1) * BATCH]
            padded_sources = source_ids_of_rows[np.array(answer["ids"])]
            sources = _without_special_ids(padded_sources)
            for index, text in enumerate(batch):
                # An extra piece has its own id in the run and the row of unk in the original.
                ids = source.encode(text)
                if source_ids_of_rows[source_order[ids]].tolist() == sources[index]:
                    sources[index] = ids
            greedy, beam = np.array(answer["greedy"]), np.array(answer["beam"])
            targets = target_ids_of_rows[greedy]
            targets[:, 0] = BOS
            is_token = greedy[:, 1:] != special[PAD]
            our_logits = model(tf.constant(padded_sources), tf.constant(targets[:, :-1])).numpy()[is_token]
            their_logits = load_file(logits_file(Path(logits), number))["logits"]
            differences = np.abs(our_logits[:, scored] - their_logits[:, target_order[scored]])
            largest = max(largest, float(differences.max()))
            translations = _up_to_eos(targets[:, 1:]), _up_to_eos(target_ids_of_rows[beam][:, 1:])
            for text, ids, greedy_ids, beam_ids in zip(batch, sources, *translations, strict=True):
                results.append(Expected(text=text, source=ids, greedy=greedy_ids, beam=beam_ids))
    return results, largest


def _ids_of_rows(order: np.ndarray) -> np.ndarray:
    """Return the run's id of each row of the original, int32; the first id of a row that several ids have."""
    ids = np.zeros(order.max() + 1, np.int32)
    ids[order[::-1]] = np.arange(len(order))[::-1]
    return ids


def _without_special_ids(ids: np.ndarray) -> list[list[int]]:
    return [[id_ for id_ in row if id_ not in (PAD, BOS, EOS)] for row in ids.tolist()]


def _up_to_eos(ids: np.ndarray) -> list[list[int]]:
    """Return the rows of ids, each up to its first eos."""
    return [row[: row.index(EOS) + 1 if EOS in row else None] for row in ids.tolist()]


def compare(engine: TensorFlowEngine, source: Tokenizer, expected: list[Expected]) -> dict[str, int]:
    """Return the number of texts with different results in run and original: source ids, greedy and beam translations.

    Rounding decides which one of several beam translations with tied scores comes first. Such a difference is not
    counted.
    """
    sources = [result.source for result in expected]
    different = {"source ids": sum(source.encode(result.text) != result.source for result in expected)}
    for kind, beams in SEARCHES.items():
        decoding = engine.config.decoding.model_copy(update={"beam_size": beams, "length_penalty": 0.0})
        search = engine.reconfigured(decoding, prepared=False)
        n_bests = search.search(sources, np.full(len(sources), LONGEST, np.int32), BEST)
        different[kind] = 0
        for result, n_best in zip(expected, n_bests, strict=True):
            ids, expected_ids = n_best[0].ids, getattr(result, kind)
            if ids != expected_ids and not (kind == "beam" and _tie(engine, result.source, ids, expected_ids)):
                different[kind] += 1
    return different


def _tie(engine: TensorFlowEngine, source: list[int], *translations: list[int]) -> bool:
    """Return whether two translations of a sentence have the same score up to rounding."""
    first, second = (float(scores.sum()) for scores in engine.token_scores([source] * 2, list(translations)))
    return abs(first - second) <= TIE
