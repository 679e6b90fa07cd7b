"""Prints what ``gpu_placement`` finds of training steps and searches, as JSON; for a process of its own.

``python tests/gpu_figures.py [NAME ..]`` prints the calls named, or all: operations without a GPU kernel, copies to the
host and launches, of a step or of a token of a search.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # else graphs have operations of the processor's own

import numpy as np
from gpu_placement import placements

from nmt import runtime
from nmt.config.schema import Config
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.decoding.translation import SearchOptions
from nmt.runtime import tf
from nmt.training.optimization.build import build_update
from nmt.training.optimization.totals import RunningTotals
from nmt.training.validation import make_validation_step

VOCABULARY = {"source": 400, "target": 400}
SMALL = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 16, "d_ff": 32, "heads": 2}
SIX = {**SMALL, "encoder_layers": 6, "decoder_layers": 6}
BAHDANAU = {
    "architecture": "recurrent", "cell": "gru", "step": "bahdanau", "attention": "additive", "bidirectional": True,
    "first_state": "backward", "width": 16,
}  # fmt: skip
LUONG = {
    "architecture": "recurrent", "attention": "general", "input_feeding": True, "layers": 2, "window": "local-p",
    "window_half_width": 2, "width": 16,
}  # fmt: skip
STEPS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "step 2+2 float32": (SMALL, {"precision": "float32"}),
    "step 2+2 bfloat16": (SMALL, {"precision": "bfloat16"}),
    "step 2+2 float16": (SMALL, {"precision": "float16"}),
    "step 6+6 bfloat16": (SIX, {"precision": "bfloat16"}),
    "step 6+6 bfloat16 muon": (SIX, {"precision": "bfloat16", "optimizer": "muon"}),
    "step 2+2 bfloat16 r-drop": (SMALL, {"precision": "bfloat16", "r_drop": 5.0}),
    "step 2+2 bfloat16 micro-batches": (SMALL, {"precision": "bfloat16", "micro_batches": 4}),
    "step 2+2 bfloat16 padded": (SMALL, {"precision": "bfloat16", "remove_padding": False}),
    "step 2+2 bfloat16 clipped, averaged": (
        SMALL, {"precision": "bfloat16", "clip_norm": 1.0, "ema_decay": 0.9, "weight_decay": 0.1, "skip_nonfinite": 9}
    ),
    "step 2+2 bfloat16 ssru": ({**SMALL, "decoder": "ssru"}, {"precision": "bfloat16"}),
    "step 2+2 bfloat16 rotary, untied, word dropout": (
        {**SMALL, "positions": "rotary", "tie_embeddings": "none", "norm_placement": "pre", "word_dropout": 0.1},
        {"precision": "bfloat16"},
    ),
    "step bahdanau bfloat16": (BAHDANAU, {"precision": "bfloat16"}),
    "step luong float32": (LUONG, {"precision": "float32"}),
}  # fmt: skip
SEARCHES: dict[str, tuple[dict[str, Any], dict[str, Any], SearchOptions]] = {
    "greedy 2+2": (SMALL, {}, SearchOptions()),
    "greedy 2+2 ssru": ({**SMALL, "decoder": "ssru"}, {}, SearchOptions()),
    "beam 5 2+2": (SMALL, {"beam_size": 5}, SearchOptions()),
    "beam 5 2+2 penalties": (
        SMALL, {"beam_size": 5, "coverage_penalty": 0.2, "no_repeat_ngram_size": 3}, SearchOptions(n_best=5)
    ),
    "sampling 2+2": (SMALL, {"top_k": 9, "top_p": 0.9}, SearchOptions(sampled=True)),
    "greedy luong": (LUONG, {}, SearchOptions(scored=True)),
    "beam 5 bahdanau": (BAHDANAU, {"beam_size": 5}, SearchOptions()),
}  # fmt: skip
Figures = tuple[dict[str, int], int, int]
"""Operations without a kernel by name and types; copies to the host; launches."""


def rows() -> np.ndarray:
    """Return rows of ids of different lengths: int32 [6, 9]."""
    ids = np.random.default_rng(0).integers(4, 400, [6, 9]).astype(np.int32)
    for row in range(6):
        ids[row, 5 + row // 2 :] = 0
    return ids


def configured(model: dict[str, Any], **sections: Any) -> Config:
    return Config.model_validate({"model": model, **sections})


def step(model: dict[str, Any], training: dict[str, Any]) -> Callable[[], None]:
    config = configured(model, training=training)
    with tf.device("CPU:1"):
        update = build_update(config, VOCABULARY)
    with tf.device("CPU:0"):
        batches = [(tf.constant(rows()), tf.constant(rows()))] * config.training.micro_batches
    return lambda: update.take(batches, 1e-3, 1)


def validation() -> Callable[[], None]:
    with tf.device("CPU:1"):
        update, totals = (
            build_update(configured(SMALL, training={"precision": "bfloat16"}), VOCABULARY),
            RunningTotals(),
        )
    with tf.device("CPU:0"):
        batch = tf.constant(rows()), tf.constant(rows())
    return lambda: make_validation_step(update.model, totals)(*batch)


def search(model: dict[str, Any], decoding: dict[str, Any], options: SearchOptions) -> Callable[[], None]:
    config = configured(model, decoding=decoding, training={"precision": "bfloat16"})
    with tf.device("CPU:1"):
        engine = TensorFlowEngine(build_update(config, VOCABULARY).model, config)
    return lambda: engine.search_batch(rows(), np.full(6, 12, np.int32), options)


def figures(name: str) -> Figures:
    """Return the figures of a step, a validation step, or of a token of a search."""
    if name in SEARCHES:
        call, depth = search(*SEARCHES[name]), 2
    else:
        call, depth = (validation() if name == "validation" else step(*STEPS[name])), 0
    found = placements(call)
    lacking: dict[str, int] = {}
    for placed in found:
        for op, count in placed.without_kernel().items():
            lacking[op] = lacking.get(op, 0) + count
    return (
        lacking,
        sum(len(placed.copies_to_host(depth)) for placed in found),
        sum(len(placed.launches(depth)) for placed in found),
    )


def is_recurrent(name: str) -> bool:
    """Return whether a call is one of a recurrent model."""
    model = {**STEPS, **SEARCHES}.get(name, [SMALL])[0]
    return "architecture" in model


def print_figures(name: str) -> None:
    print(json.dumps({name: figures(name)}), flush=True)


def print_apart(name: str) -> None:
    """Print figures in a process of their own: TensorFlow optimizes graphs of recurrent models otherwise after others.

    This process may not have computed anything.
    """
    child = os.fork()
    if not child:
        print_figures(name)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(f"{name} failed.")


def main(names: list[str]) -> None:
    processor = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * 2)
    runtime.GPUS = [processor]  # what is chosen by device is chosen as on a GPU
    runtime.SLOW_STRIDES = False
    for name in sorted(names or [*STEPS, "validation", *SEARCHES], key=is_recurrent, reverse=True):
        if is_recurrent(name):
            print_apart(name)
        else:
            print_figures(name)


if __name__ == "__main__":
    main(sys.argv[1:])
