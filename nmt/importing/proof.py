"""Comparison of an imported run with the original in transformers, or with what that was found to do elsewhere.

Shapes: B sentences, S source length, T target length, V vocabulary.
"""

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
"""Largest difference of the scores of translations that tie; scores of float32 are exact to some 1e-5."""
SEARCHES = {"greedy": 1, "beam": BEAMS}


def sentences_to_compare(source: Tokenizer, given: Sequence[str]) -> list[str]:
    """Return the first given sentences that differ; without any, sentences of random pieces."""
    random, words = np.random.default_rng(1), source.size - len(source.tags)
    rows = (random.integers(FIRST_WORD, words, random.integers(3, 16)).tolist() for _ in range(SENTENCES))
    # Bytes of control characters are no text of a line.
    made = ("".join(filter(str.isprintable, source.decode(row))) for row in rows)
    return [text for text in dict.fromkeys(given or made) if 0 < len(source.encode(text)) < LONGEST][:SENTENCES]


def expected_of(
    folder: Path, original: Original, engine: TensorFlowEngine, source: Tokenizer, texts: list[str], scratch: Path
) -> tuple[list[Expected], float]:
    """Return what the original does with texts, and the largest difference of a logit in their greedy translations.

    Args:
        folder: files of the original.
        original: the same, as read.
        engine: engine of the run.
        source: source tokenizer of the run.
        texts: sentences to compare on.
        scratch: folder on a disk with room for logits.

    Raises:
        DataError: if transformers cannot be asked.
    """
    orders, expected, largest = (original.source.order, original.target.order), list[Expected](), 0.0
    read_by, written_by = (np.zeros(order.max() + 1, np.int32) for order in orders)
    for ours_of, order in zip((read_by, written_by), orders, strict=True):
        ours_of[order[::-1]] = np.arange(len(order))[::-1]  # the first of our ids of each row
    special = orders[1][:FIRST_WORD].tolist()
    scored = np.setdiff1d(np.unique(orders[1], return_index=True)[1], [PAD, BOS])
    model = cast(Any, engine.model)
    with tempfile.TemporaryDirectory(dir=scratch) as logits:
        found = process.call(HuggingFaceExporter, answers, str(folder.resolve()), texts, special, logits)
        for number, answer in enumerate(found):
            batch = texts[number * BATCH : (number + 1) * BATCH]
            read, greedy = read_by[np.array(answer["ids"])], np.array(answer["greedy"])
            sources = [[id_ for id_ in row if id_ not in (PAD, BOS, EOS)] for row in read.tolist()]
            for place, text in enumerate(batch):  # a piece without a row has an id of its own, and the row of unk
                if read_by[orders[0][ids := source.encode(text)]].tolist() == sources[place]:
                    sources[place] = ids
            written = written_by[greedy]
            written[:, 0] = BOS
            mine = model(tf.constant(read), tf.constant(written[:, :-1])).numpy()[greedy[:, 1:] != special[PAD]]
            theirs = load_file(logits_file(Path(logits), number))["logits"]
            apart = np.abs(mine[:, scored] - theirs[:, orders[1][scored]])
            largest = max(largest, float(apart.max()))
            ours = (ids[:, 1:].tolist() for ids in (written, written_by[np.array(answer["beam"])]))
            translations = ([row[: row.index(EOS) + 1 if EOS in row else None] for row in ids] for ids in ours)
            rows = zip(batch, sources, *translations, strict=True)
            expected += [Expected(text=text, source=ids, greedy=one, beam=other) for text, ids, one, other in rows]
    return expected, largest


def compare(engine: TensorFlowEngine, source: Tokenizer, expected: list[Expected]) -> dict[str, int]:
    """Return in how many texts a run differs from what the original does: source ids, translations of each search.

    Of translations of a beam whose scores tie, rounding decides which is the first: these are no difference.
    """
    different = {"source ids": sum(source.encode(each.text) != each.source for each in expected)}
    for kind, beams in SEARCHES.items():
        decoding = engine.config.decoding.model_copy(update={"beam_size": beams, "length_penalty": 0.0})
        search = engine.reconfigured(decoding, prepared=False)
        found = search.search([each.source for each in expected], np.full(len(expected), LONGEST, np.int32), BEST)
        translations = [(text, hypotheses[0].ids) for text, hypotheses in zip(expected, found, strict=True)]
        others = [(text, ids) for text, ids in translations if ids != getattr(text, kind)]
        if kind == "beam":
            others = [(text, ids) for text, ids in others if not _tie(engine, text.source, ids, text.beam)]
        different[kind] = len(others)
    return different


def _tie(engine: TensorFlowEngine, source: list[int], *translations: list[int]) -> bool:
    """Return whether two translations of a sentence have the same score, but for rounding."""
    scores = [float(of_tokens.sum()) for of_tokens in engine.token_scores([source] * 2, list(translations))]
    return abs(scores[0] - scores[1]) <= TIE
