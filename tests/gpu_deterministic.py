"""Trains, resumes and searches, and prints a hash of the results; ``deterministic``: as on a GPU.

It needs a process of its own.
"""

import hashlib
import sys
import threading
from typing import Any

import numpy as np

from nmt.config.schema import Config
from nmt.data.token_arrays import generate_split
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.decoding.translation import SearchOptions
from nmt.runtime import tf
from nmt.training import input_pipeline
from nmt.training.optimization.build import build_update
from nmt.training.optimization.update import Batch

MODELS: list[dict[str, Any]] = [
    {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 32, "heads": 2},
    {"architecture": "recurrent", "attention": "general", "layers": 1, "width": 16},
]
VOCABULARY = {"source": 300, "target": 300}
TRAINING = {"precision": "float32", "micro_batches": 2, "r_drop": 1.0}


def batches() -> list[Batch]:
    """Return four batches. None is asked for before the second has been assembled ahead."""
    split, ahead, pad_rows = generate_split(32, 300, seed=1), threading.Event(), input_pipeline.pad_rows
    called = []

    def padded(*arguments: Any, **options: Any) -> np.ndarray:
        called.append(None)
        if len(called) > 2:
            ahead.set()
        return pad_rows(*arguments, **options)

    input_pipeline.pad_rows = padded
    found = iter(input_pipeline.batch_dataset(split, np.split(np.arange(32), 4), source_bos=True))
    first = next(found)
    assert ahead.wait(60), "a batch is assembled only when it is asked for"
    return [first, *found]


def main() -> None:
    digest, data = hashlib.sha256(), batches()
    for model in MODELS:
        config = Config.model_validate({"model": model, "training": TRAINING, "decoding": {"beam_size": 3}})
        update = build_update(config, VOCABULARY)
        update.take(data[:2], 1e-2, 1)
        resumed = build_update(config, VOCABULARY)
        resumed.restore(update.state())
        for each in (update, resumed):
            each.take(data[2:], 1e-2, 2)
        one, other = (each.state() for each in (update, resumed))
        for arrays, others in ((one.weights, other.weights), (one.optimizer, other.optimizer)):
            for name, array in arrays.items():
                assert array.tobytes() == others[name].tobytes(), name
                digest.update(array.tobytes())
        for options in (SearchOptions(), SearchOptions(sampled=True)):
            engine = TensorFlowEngine(update.model, config)
            found = engine.search_batch(data[0][0].numpy(), np.full(8, 12, np.int32), options)
            digest.update(found.tokens.numpy().tobytes() + found.scores.numpy().tobytes())
    print(digest.hexdigest())


if __name__ == "__main__":
    if "deterministic" in sys.argv:
        tf.config.experimental.enable_op_determinism()
    main()
