"""Trains on logical CPUs. It needs a separate process: ``python devices.py FOLDER CASE DEVICES ..``.

For each number of devices, it writes weights and optimizer after five steps as ``CASE-DEVICES.npz``. The last step is
short. Each number has a process of its own, which forks before TensorFlow starts.
"""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from nmt import runtime
from nmt.config.schema import Config
from nmt.runtime import tf
from nmt.training.optimization.build import build_update

SMALL: dict[str, Any] = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "d_ff": 12, "heads": 2, "dropout": 0.3}
LUONG: dict[str, Any] = {"architecture": "recurrent", "attention": "general", "width": 8, "layers": 1, "dropout": 0.3}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "uneven": (SMALL, {"micro_batches": 5, "precision": "bfloat16", "r_drop": 1.0}),
    "muon": (SMALL, {"micro_batches": 5, "optimizer": "muon", "clip_norm": 1.0, "ema_decay": 0.9}),
    "recurrent": (LUONG, {"micro_batches": 4}),
}


def main(folder: Path, case: str, devices: int) -> None:
    processor = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * devices)
    runtime.devices = lambda: [f"CPU:{number}" for number in range(devices)]
    model, training = CASES[case]
    config = Config.model_validate({"model": model, "training": {"precision": "float32", **training}})
    update = build_update(config, {"source": 40, "target": 40})
    random, count = np.random.default_rng(0), config.training.micro_batches
    for step in range(1, 6):
        ids = random.integers(4, 40, [count, 2, 3, 6]).astype(np.int32)
        ids[:, :, 1, 4:] = 0
        ids[:, 1, :, 0] = 2
        batches = [(tf.constant(source), tf.constant(target)) for source, target in ids]
        update.take(batches[: count - 1 if step == 5 else count], 1e-2, step)
    state = update.state()
    assert len(update.devices) == devices and update.nonfinite.read().last_bad_batch is None
    np.savez(folder / f"{case}-{devices}.npz", tokens=state.totals.tokens, **state.weights, **state.optimizer)


if __name__ == "__main__":
    for count in map(int, sys.argv[3:]):
        child = os.fork()
        if not child:
            main(Path(sys.argv[1]), sys.argv[2], count)
            break
        if os.waitpid(child, 0)[1]:
            sys.exit(f"Training on {count} devices failed.")
