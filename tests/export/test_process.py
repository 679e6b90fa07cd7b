"""Processes of consumers run without TensorFlow, and a failure of any kind gives one message."""

import sys
from pathlib import Path

import pytest
from conftest import MakeRun

from nmt.errors import DataError, NotFoundError, printable
from nmt.export import process
from nmt.export.ctranslate2 import CTranslate2Exporter
from nmt.export.export import export_run
from nmt.export.huggingface import HuggingFaceExporter
from nmt.extras import require
from nmt.importing.answers import convert_pickle
from nmt.runs.directory import Run
from nmt.runtime import tf

ENDINGS = {
    "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": r"was ended by signal SIGSEGV \(Segmentation fault\)\.",
    "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": r"was ended by signal SIGKILL \(Killed\)\.",
    "import there_is_no_such_package": "ended with exit code 1: ModuleNotFoundError: No module named 'there_is_no",
    "raise SystemExit": r"ended with exit code 0\.",
    "import time; time.sleep(60)": "gave no answer within 1 seconds",
}


@pytest.mark.parametrize(("code", "said"), ENDINGS.items())
def test_every_end_of_a_process_is_one_message(code: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as raised:
        process.run_python(HuggingFaceExporter, ["-c", code], None, seconds=1 if "sleep" in code else 60)
    message = str(raised.value)
    assert message.startswith("transformers failed: its process ") and "Its packages are torch" in message
    assert "Nothing was written" in message and "pip install --upgrade 'nmt[huggingface]'" in message


def test_a_call_has_no_tensorflow_and_raises_what_the_function_raises() -> None:
    assert tf.__version__ and "tensorflow" in sys.modules
    require("tensor", "tensorflow")
    with pytest.raises(NotFoundError, match="package tensorflow is not installed"):
        process.call(CTranslate2Exporter, require, "tensor", "tensorflow")
    text = "Größe 大小 حجم आकार İı"
    assert process.call(CTranslate2Exporter, printable, text) == text


def test_a_consumer_that_crashes_leaves_nothing(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ctranslate2", reason="needs the extra fast: pip install 'nmt[fast]'")
    run: Run = make_run("subword")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "ctranslate2.py").write_text("import os\n\nos.abort()\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    with pytest.raises(DataError, match=r"CTranslate2 failed: its process was ended by signal SIGABRT"):
        export_run(run, CTranslate2Exporter(), output=tmp_path / "exports" / "out")
    assert not list((tmp_path / "exports").iterdir())


def test_weights_of_pytorch_are_read_in_a_process(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('torch of the test')")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        with pytest.raises(DataError, match="torch of the test"):
            process.call(HuggingFaceExporter, convert_pickle, "model.bin", "model.safetensors")
