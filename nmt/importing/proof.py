"""Comparison of an imported run with the original in transformers, or with what that was found to do elsewhere.

Shapes: B sentences, S source length, T target length, V vocabulary.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.decoding.translation import BEST
from nmt.export.huggingface import load
from nmt.importing.original import Original
from nmt.runs.origin import Expected
from nmt.runtime import tf
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD, PAD, Tokenizer

SENTENCES, BATCH, LONGEST = 200, 40, 40
"""Most sentences of a comparison, sentences of a batch, and most tokens of a sentence or translation."""
SEARCHES = {"greedy": 1, "beam": 4}


def sentences_to_compare(source: Tokenizer, given: Sequence[str]) -> list[str]:
    """Return the first given sentences that differ; without any, sentences of random pieces."""
    random, words = np.random.default_rng(1), source.size - len(source.tags)
    rows = (random.integers(FIRST_WORD, words, random.integers(3, 16)).tolist() for _ in range(SENTENCES))
    # Bytes of control characters are no text of a line.
    made = ("".join(filter(str.isprintable, source.decode(row))) for row in rows)
    return [text for text in dict.fromkeys(given or made) if 0 < len(source.encode(text)) < LONGEST][:SENTENCES]


def expected_of(
    folder: Path, original: Original, engine: TensorFlowEngine, source: Tokenizer, texts: list[str]
) -> tuple[list[Expected], float]:
    """Return what the original does with texts, and the largest difference of a logit in their greedy translations."""
    import torch  # noqa: PLC0415 - an optional extra
    import transformers  # noqa: PLC0415 - an optional extra

    (tokenizer, model), ours_model = load(folder), cast(Any, engine.model)
    orders, expected, largest = (original.source.order, original.target.order), list[Expected](), 0.0
    read_by, written_by = (np.zeros(order.max() + 1, np.int32) for order in orders)
    for found, order in zip((read_by, written_by), orders, strict=True):
        found[order[::-1]] = np.arange(len(order))[::-1]  # the first of our ids of each row
    pad, _, start, end = orders[1][:FIRST_WORD].tolist()
    settings = {"pad_token_id": pad, "eos_token_id": end, "decoder_start_token_id": start, "do_sample": False,
                "max_new_tokens": LONGEST, "suppress_tokens": [pad, start]}  # fmt: skip
    scored = np.setdiff1d(np.unique(orders[1], return_index=True)[1], [PAD, BOS])
    for place in range(0, len(texts), BATCH):
        batch = texts[place : place + BATCH]
        inputs = dict(tokenizer(batch, padding=True, return_tensors="pt"))
        read = read_by[inputs["input_ids"].numpy()]
        sources = [[id_ for id_ in row if id_ not in (PAD, BOS, EOS)] for row in read.tolist()]
        for number, text in enumerate(batch):  # a piece without a row has an id of its own, and the row of unk
            if read_by[orders[0][ids := source.encode(text)]].tolist() == sources[number]:
                sources[number] = ids
        greedy, beam = (
            model.generate(**inputs, generation_config=transformers.GenerationConfig(**settings, **search))
            for search in ({"num_beams": 1}, {"num_beams": SEARCHES["beam"], "length_penalty": 0.0})
        )
        with torch.inference_mode():
            logits = model(**inputs, decoder_input_ids=greedy[:, :-1]).logits.numpy()
        written = written_by[greedy.numpy()]
        written[:, 0] = BOS
        mine = ours_model(tf.constant(read), tf.constant(written[:, :-1])).numpy()
        apart = np.abs(mine[..., scored] - logits[..., orders[1][scored]])
        largest = max(largest, float(apart[written[:, 1:] != PAD].max()))
        ours = (ids[:, 1:].tolist() for ids in (written, written_by[beam.numpy()]))
        translations = ([row[: row.index(EOS) + 1 if EOS in row else None] for row in ids] for ids in ours)
        rows = zip(batch, sources, *translations, strict=True)
        expected += [Expected(text=text, source=ids, greedy=one, beam=other) for text, ids, one, other in rows]
    return expected, largest


def compare(engine: TensorFlowEngine, source: Tokenizer, expected: list[Expected]) -> dict[str, int]:
    """Return in how many texts a run differs from what the original does: source ids, translations of each search."""
    different = {"source ids": sum(source.encode(each.text) != each.source for each in expected)}
    for kind, beams in SEARCHES.items():
        decoding = engine.config.decoding.model_copy(update={"beam_size": beams, "length_penalty": 0.0})
        search = engine.reconfigured(decoding, prepared=False)
        found = search.search([each.source for each in expected], np.full(len(expected), LONGEST, np.int32), BEST)
        pairs = zip(found, expected, strict=True)
        different[kind] = sum(hypotheses[0].ids != getattr(each, kind) for hypotheses, each in pairs)
    return different
