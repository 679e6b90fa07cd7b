"""Exports, used by the programs that they are made for, in an environment without nmt.

``NMT_CONSUMERS`` names the Python of an environment with the packages of ``CONSUMERS`` in ``.ci/run``.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

import nmt
from nmt.export.export import export_run, find_exporter
from nmt.runs.directory import Run
from nmt.text.translator import Translator

PYTHON = os.environ.get("NMT_CONSUMERS")
TEXTS = ["im one two three!", "im\u00a0  thirsty!"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="needs NMT_CONSUMERS, the Python of an environment with the consumers"),
]
FORMATS = {"ctranslate2": "float32", "huggingface": None, "argos": "float32"}
SETTINGS = """
model: {encoder_layers: 1, decoder_layers: 1, d_model: 64, d_ff: 128, heads: 4, tie_embeddings: all}
training: {epochs: 60, batch_size: 16, schedule: linear, peak_learning_rate: 0.003, warmup_steps: 20}
"""
# Argos Translate's sentence splitter downloads a model, so it is replaced; the rest is Argos Translate as it is.
CONSUMERS = """
import json, os, sys, tempfile
try:
    import nmt.cli
except ImportError:
    pass
else:
    sys.exit("nmt can be imported here")
home = tempfile.mkdtemp()
os.environ |= {"XDG_DATA_HOME": home, "XDG_CONFIG_HOME": home, "XDG_CACHE_HOME": home, "ARGOS_CHUNK_TYPE": "MINISBD"}
os.environ["HF_HUB_OFFLINE"] = "1"
folders, texts = json.loads(sys.argv[1]), json.loads(sys.argv[2])

import ctranslate2, sentencepiece
folder = folders["ctranslate2"]
source, target = (sentencepiece.SentencePieceProcessor(f"{folder}/{side}.spm") for side in ("source", "target"))
tokens = [source.encode(text, out_type=str) for text in texts]
results = ctranslate2.Translator(folder).translate_batch(tokens, beam_size=1)
translations = {"ctranslate2": [target.decode(result.hypotheses[0]) for result in results]}

from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
folder = folders["huggingface"]
tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder)
rows = [model.generate(**tokenizer(text, return_tensors="pt"), num_beams=1, max_new_tokens=20)[0] for text in texts]
translations["huggingface"] = [tokenizer.decode(row, skip_special_tokens=True) for row in rows]

from argostranslate import package, sbd, translate
sbd.MiniSBDSentencizer.split_sentences = lambda self, text: [text]
folder = folders["argos"]
package.install_from_path(next(f"{folder}/{name}" for name in os.listdir(folder) if name.endswith(".argosmodel")))
translations["argos"] = [translate.get_translation_from_codes("en", "de").translate(text) for text in texts]
print(json.dumps(translations))
"""


@pytest.fixture(scope="module")
def learned(prepared: Path) -> Run:
    """A run on joint subwords that has learned its pairs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(prepared)
        Path("learned.yaml").write_text(SETTINGS)
        return Run(nmt.train("learned.yaml", run="learned", dataset="subword").folder.resolve())


@pytest.fixture(scope="module")
def translations(learned: Run) -> dict[str, list[str]]:
    """Translations by each consumer, in a process without nmt."""
    pytest.importorskip("transformers", reason="the export is compared here too, which needs nmt[huggingface]")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(learned.folder.parent.parent)
        exporters = {name: find_exporter(name, quantization) for name, quantization in FORMATS.items()}
        folders = {name: str(export_run(learned, exporter).folder) for name, exporter in exporters.items()}
    command = [str(PYTHON), "-I", "-c", CONSUMERS, json.dumps(folders), json.dumps(TEXTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("name", ["ctranslate2", "huggingface"])
def test_greedy_search_finds_what_nmt_finds(learned: Run, translations: dict[str, list[str]], name: str) -> None:
    assert translations[name] == Translator.open(learned).translate(TEXTS)


def test_argos_translate_finds_what_nmt_finds_with_its_beam_and_penalty(
    learned: Run, translations: dict[str, list[str]]
) -> None:
    decoding = learned.config().decoding.model_copy(update={"beam_size": 4, "length_penalty": 0.2})
    ours = Translator.open(learned, None, decoding).translate(TEXTS)
    assert translations["argos"] == ours
    assert ours[1] == "ich bin durstig schön"
