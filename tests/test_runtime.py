"""Starting TensorFlow quietly, choosing a precision."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt import runtime


def imported(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"from nmt import runtime; {code}"], capture_output=True, text=True, check=False,
        cwd=folder, env={**os.environ, **environment},
    )  # fmt: skip


def test_importing_is_silent_and_a_keras_backend_meant_for_other_work_does_not_reach_us(tmp_path: Path) -> None:
    done = imported("runtime.tf.zeros(1); print(runtime.keras.backend.backend())", tmp_path, KERAS_BACKEND="jax")
    assert (done.returncode, done.stdout, done.stderr) == (0, "tensorflow\n", "")


def test_a_failure_while_starting_is_not_kept_from_the_user(tmp_path: Path) -> None:
    (tmp_path / "keras.py").write_text("import sys; print('the reason', file=sys.stderr); raise RuntimeError('broken')")
    done = imported("0", tmp_path, PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path]))
    assert done.returncode == 1
    assert "the reason" in done.stderr and "RuntimeError: broken" in done.stderr


@pytest.mark.parametrize("asked", ["float32", "bfloat16"])
def test_a_precision_that_is_asked_for_is_given(asked: str) -> None:
    assert runtime.resolve_precision(asked) == asked  # type: ignore[arg-type]


@pytest.mark.parametrize(("native", "chosen"), [(True, "bfloat16"), (False, "float32")])
def test_auto_follows_the_processor(native: bool, chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "GPUS", [])
    monkeypatch.setattr(runtime, "_processor_has_bfloat16", lambda: native)
    assert runtime.resolve_precision("auto") == chosen


def test_the_same_seed_gives_the_same_random_numbers() -> None:
    draws = []
    for seed in (1, 1, 2):
        runtime.start(seed)
        draws.append(runtime.keras.random.normal([4]).numpy().tolist())
    assert draws[0] == draws[1] != draws[2]
