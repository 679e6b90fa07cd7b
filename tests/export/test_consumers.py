"""Exports in the programs that they are for, in an environment without nmt.

``NMT_CONSUMERS`` names the Python of an environment with the packages of ``CONSUMERS`` in ``.ci/run``.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from conftest import MakeRun

from nmt.decoding.translator import Translator
from nmt.export.export import export_run, find_exporter
from nmt.runs.directory import Run

PYTHON = os.environ.get("NMT_CONSUMERS")
TEXTS = ["im one two three!", "im\u00a0  thirsty!"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="needs NMT_CONSUMERS, the Python of an environment with the consumers"),
]
WITHOUT_NMT = """
import importlib.util, json, os, sys, tempfile
assert importlib.util.find_spec("nmt") is None
folder, texts = sys.argv[1], json.loads(sys.argv[2])
"""
CTRANSLATE2 = """
import ctranslate2, sentencepiece
engine = ctranslate2.Translator(folder)
source, target = (sentencepiece.SentencePieceProcessor(f"{folder}/{side}.spm") for side in ("source", "target"))
tokens = [source.encode(text, out_type=str) for text in texts]
found = engine.translate_batch(tokens, beam_size=1, max_decoding_length=8, min_decoding_length=0)
print(json.dumps([target.decode(result.hypotheses[0]) for result in found]))
"""
# Its sentence splitter downloads a model, so it is replaced; the rest is Argos Translate as it is.
ARGOS = """
home = tempfile.mkdtemp()
os.environ |= {"XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home, "ARGOS_CHUNK_TYPE": "MINISBD"}
from argostranslate import package, sbd, translate
sbd.MiniSBDSentencizer.split_sentences = lambda self, text: [text]
package.install_from_path(next(f"{folder}/{name}" for name in os.listdir(folder) if name.endswith(".argosmodel")))
installed = translate.get_translation_from_codes("en", "de")
print(json.dumps([installed.translate(text) for text in texts]))
"""
TRANSFORMERS = """
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder)
found = [model.generate(**tokenizer(text, return_tensors="pt"), num_beams=1, max_new_tokens=20) for text in texts]
print(json.dumps([tokenizer.decode(rows[0], skip_special_tokens=True) for rows in found]))
"""


def translated(code: str, folder: Path) -> list[str]:
    """Return what a consumer translates in a process without nmt."""
    done = subprocess.run(
        [str(PYTHON), "-I", "-c", WITHOUT_NMT + code, str(folder.resolve()), json.dumps(TEXTS)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout.splitlines()[-1]))


def test_ctranslate2(make_run: MakeRun) -> None:
    run = make_run("subword", tie_embeddings="all")
    found = translated(CTRANSLATE2, export_run(run, find_exporter("ctranslate2")).folder)
    decoding = run.config().decoding.model_copy(update={"max_length_ratio": 0.001, "max_length_extra": 8})
    assert found == [translation.text for translation in Translator.load(run, None, decoding).translate(TEXTS)]


def test_transformers(project_of_subwords: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="the export is compared here too, which needs nmt[huggingface]")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = translated(TRANSFORMERS, export_run(project_of_subwords, find_exporter("huggingface")).folder)
    assert found == [translation.text for translation in Translator.load(project_of_subwords).translate(TEXTS)]


def test_argos_translate(project_of_subwords: Run) -> None:
    """A trained model: Argos Translate searches with a beam and penalties of its own."""
    folder = export_run(project_of_subwords, find_exporter("argos", "float32")).folder
    decoding = project_of_subwords.config().decoding.model_copy(update={"beam_size": 4, "length_penalty": 0.2})
    ours = [found.text for found in Translator.load(project_of_subwords, None, decoding).translate(TEXTS)]
    assert translated(ARGOS, folder) == ours
    assert ours[1] == "ich bin durstig schön"


@pytest.fixture
def project_of_subwords(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run on joint subwords that has learned its pairs."""
    import nmt

    monkeypatch.chdir(prepared)
    (prepared / "learned.yaml").write_text(
        "model: {encoder_layers: 1, decoder_layers: 1, d_model: 64, d_ff: 128, heads: 4, tie_embeddings: all}\n"
        "training: {epochs: 60, batch_size: 16, schedule: linear, peak_learning_rate: 0.003, warmup_steps: 20}\n"
    )
    return nmt.train("learned.yaml", run="learned", dataset="subword")
