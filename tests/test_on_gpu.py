"""On a machine with a GPU: exact training and resuming, search, export, and speed beside PyTorch.

``pytest -m gpu -n 0 -s`` prints figures as JSON at the end, to send with an issue of the project.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

from nmt import runtime
from nmt.config.schema import Config
from nmt.data.token_arrays import generate_split
from nmt.decoding.tensorflow_engine import TensorFlowEngine
from nmt.runtime import tf
from nmt.training.input_pipeline import batch_dataset
from nmt.training.optimization.build import build_update
from nmt.training.optimization.update import Update

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not runtime.GPUS, reason="TensorFlow sees no GPU")]
MODEL: dict[str, Any] = {"encoder_layers": 6, "decoder_layers": 6, "d_model": 512, "d_ff": 2048, "heads": 8}
SMALL: dict[str, Any] = {"encoder_layers": 1, "decoder_layers": 2, "d_model": 32, "d_ff": 64, "heads": 4}
VOCABULARY = {"source": 8000, "target": 8000}


@pytest.fixture(scope="module")
def figures() -> Iterator[dict[str, Any]]:
    found: dict[str, Any] = dict(runtime.environment())
    yield found
    print("\nFigures of this GPU:", json.dumps(found))


def made(model: dict[str, Any], **training: Any) -> Update:
    return build_update(Config.model_validate({"model": model, "training": training}), VOCABULARY)


def batches(sentences: int, count: int) -> list[Any]:
    split = generate_split(sentences * count, VOCABULARY["target"], seed=1)
    return list(batch_dataset(split, np.split(np.arange(sentences * count), count), source_bos=True))


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("changes", [{}, {"optimizer": "muon"}, {"r_drop": 1.0}, {"micro_batches": 2}], ids=str)
def test_two_runs_and_a_resumed_run_have_the_same_bits(precision: str, changes: dict[str, Any]) -> None:
    data, per_step = batches(16, 4), changes.get("micro_batches", 1)
    steps = [data[start : start + per_step] for start in range(0, 4, per_step)]
    first, second, resumed = (made(SMALL, precision=precision, **changes) for _ in range(3))
    for each in (first, second):
        each.take(steps[0], 1e-3, 1)
    resumed.restore(first.state())
    for number, step in enumerate(steps[1:], 2):
        for each in (first, second, resumed):
            each.take(step, 1e-3, number)
    expected = first.state()
    for each in (second, resumed):
        for name, array in each.state().weights.items():
            assert array.tobytes() == expected.weights[name].tobytes(), name


@pytest.mark.parametrize("beam", [1, 5])
def test_search_finds_on_the_gpu_what_it_finds_on_the_processor(beam: int) -> None:
    source = batches(8, 1)[0][0].numpy()
    config = Config.model_validate({"model": SMALL, "decoding": {"beam_size": beam}})
    model, found = made(SMALL, precision="float32").model, []
    for device in ("CPU:0", "GPU:0"):
        with tf.device(device):
            found.append(TensorFlowEngine(model, config).search_batch(source, np.full(8, 20, np.int32)).tokens.numpy())
    np.testing.assert_array_equal(*found)


def test_the_chain_trains_translates_and_exports(tmp_path: Path) -> None:
    def run(*arguments: str) -> None:
        subprocess.run([sys.executable, "-m", "nmt", *arguments], cwd=tmp_path, check=True, timeout=600)

    (tmp_path / "data").mkdir()
    lines = "".join(f"im {a} {b}\tich bin {a} {b}\n" for a in range(20) for b in range(20))
    (tmp_path / "data/pairs.tsv").write_text(lines)
    run("prepare", "pairs.tsv")
    run("train", "--config", str(ROOT / "configs/tiny.yaml"), "--dataset", "pairs", "--run", "one")
    run("translate", "--run", "one", "--beam", "5", "im 3 4")
    run("export", "--run", "one", "--to", "saved-model")


@pytest.mark.parametrize("tokens", [4096, 25_000])
def test_speed_of_training_beside_pytorch(tokens: int, figures: dict[str, Any]) -> None:
    data, update = batches(tokens // 25, 8), made(MODEL, precision="bfloat16")
    real = sum(int(np.count_nonzero(target.numpy()[:, 1:])) for _, target in data)

    def seconds(step: Any, wait: Any) -> float:
        for number in range(len(data)):
            step(number)
        wait()
        started = time.perf_counter()
        for number in range(len(data)):
            step(number)
        wait()
        return time.perf_counter() - started

    taken = seconds(lambda n: update.take([data[n]], 1e-4, n + 1), tf.test.experimental.sync_devices)
    figures[f"target tokens a second, batches of {tokens}"] = round(real / taken)
    figures["memory"] = tf.config.experimental.get_memory_info("GPU:0")["peak"]
    torch = pytest.importorskip("torch")
    model = torch.nn.Transformer(512, 8, 6, 6, 2048, batch_first=True).cuda()
    words = torch.nn.Embedding(8000, 512).cuda()
    optimizer = torch.optim.Adam([*model.parameters(), *words.parameters()], 1e-4, fused=True)
    ids = [[torch.tensor(side.numpy()).long().cuda() for side in batch] for batch in data]

    def torch_step(number: int) -> None:
        source, target = ids[number]
        mask = torch.nn.Transformer.generate_square_subsequent_mask(target.shape[1] - 1).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            states = model(words(source), words(target[:, :-1]), tgt_mask=mask, tgt_is_causal=True,
                           src_key_padding_mask=source == 0, memory_key_padding_mask=source == 0)  # fmt: skip
            logits = states @ words.weight.T
        targets = target[:, 1:].flatten()
        torch.nn.functional.cross_entropy(
            logits.float().flatten(0, 1), targets, ignore_index=0, label_smoothing=0.1
        ).backward()
        optimizer.step()
        optimizer.zero_grad()

    figures[f"PyTorch, batches of {tokens}"] = round(real / seconds(torch_step, torch.cuda.synchronize))


def test_speed_of_search(figures: dict[str, Any]) -> None:
    source, model = batches(64, 1)[0][0].numpy(), made(MODEL, precision="bfloat16").model
    for beam in (1, 5):
        engine = TensorFlowEngine(model, Config.model_validate({"model": MODEL, "decoding": {"beam_size": beam}}))
        for _ in range(2):
            started = time.perf_counter()
            tokens = engine.search_batch(source, np.full(64, 30, np.int32)).tokens.numpy()
            figures[f"output tokens a second, beam {beam}"] = round(
                np.count_nonzero(tokens) / (time.perf_counter() - started)
            )
