"""Fixtures that many tests share: a small corpus, a run on it, runs with random weights, the real corpora."""

import gc
import importlib.util
import io
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

import nmt as package
from nmt import runtime
from nmt.cli.app import main
from nmt.runs.directory import Run, create_run
from nmt.runs.metrics import EpochMetrics
from nmt.runs.weights import save_weights
from nmt.storage.arrays import checksum, read_arrays

# The same examples in each run, so that a change fails by its own fault only. A busy machine is no failure.
hypothesis.settings.register_profile("same", hypothesis.settings(), deadline=None, derandomize=True)
hypothesis.settings.register_profile("new", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("same")

# TensorFlow and what tests keep are millions of objects. By default, Python looks at all of them so often that this
# takes a tenth of the time of the tests. ``forget_objects`` excludes those of finished tests.
gc.set_threshold(50_000, 20, 20)

# Two processes run tests at a time, with a thread each: this saves a twentieth of the time. Tests that start processes
# train with all threads. TensorFlow keeps its threads once it has computed something.
runtime.tf.config.threading.set_intra_op_parallelism_threads(1)
runtime.tf.config.threading.set_inter_op_parallelism_threads(1)
runtime.tf.zeros(1)

ROOT = Path(__file__).resolve().parent.parent
CORPORA = os.environ.get("NMT_CORPORA")
ENVIRONMENT = {"COLUMNS": "160", "NO_COLOR": "1", "MPLBACKEND": "agg"}

_FLAGS = Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else []
CUTS_BFLOAT16 = "avx2" in _FLAGS and "avx512f" not in _FLAGS
"""Whether products cut float32 to bfloat16, an error twice that of rounding: TensorFlow's on processors of AVX2."""
ROUNDS_BFLOAT16 = pytest.mark.skipif(CUTS_BFLOAT16, reason="TensorFlow cuts to bfloat16 on this processor")

SMALLEST = """
model: {encoder_layers: 1, decoder_layers: 1, d_model: 32, d_ff: 64, heads: 4}
training: {epochs: 2, batch_size: 32, warmup_steps: 30, log_every: 5}
"""


def small_pairs(count: int = 300) -> list[tuple[str, str]]:
    """Return different pairs in which word i of the source is word i of the target: a model learns them in seconds."""
    numbers = ["one", "two", "three", "four", "five", "six", "seven"]
    german = ["eins", "zwei", "drei", "vier", "funf", "sechs", "sieben"]
    rows = [(f"im {numbers[a]} {numbers[b]} {numbers[c]}", f"ich bin {german[a]} {german[b]} {german[c]}")
            for a in range(7) for b in range(7) for c in range(7)]  # fmt: skip
    return [("im thirsty", "ich bin durstig"), *rows][:count]


def write_pickle(path: Path, pairs: list[tuple[str, str]]) -> Path:
    """Write a corpus as the lesson has it, a pickled NumPy array of str, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(np.array(pairs), protocol=3))
    return path


def write_tsv(path: str | Path, pairs: Iterable[tuple[str, str]]) -> Path:
    """Write a corpus as a TSV file, and return its path."""
    Path(path).write_bytes("".join(f"{source}\t{target}\n" for source, target in pairs).encode())
    return Path(path)


@dataclass(frozen=True)
class Outcome:
    """Exit code, standard output and standard error of a command."""

    code: int
    out: str
    err: str


def run_nmt(*arguments: str, stdin: bytes = b"", cwd: Path | None = None) -> Outcome:
    """Run the command line in this process, in which TensorFlow is loaded once.

    Several hosts need processes of their own: TensorFlow joins none that computes already.
    """
    with tempfile.TemporaryFile() as typed, pytest.MonkeyPatch.context() as patch:
        typed.write(stdin)
        typed.seek(0)
        streams = [io.TextIOWrapper(content, encoding="utf-8") for content in (typed, io.BytesIO(), io.BytesIO())]
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        patch.setattr(sys, "argv", ["nmt", *arguments])
        for variable, value in ENVIRONMENT.items():
            patch.setenv(variable, value)
        if cwd is not None:
            patch.chdir(cwd)
        with pytest.raises(SystemExit) as ended:
            main()
    out, err = (stream.detach().getvalue().decode() for stream in streams[1:])
    return Outcome(int(ended.value.code or 0), out, err)


def nmt(*arguments: str, cwd: Path, stdin: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process, and check its exit code."""
    done = run_nmt(*arguments, stdin=stdin.encode(), cwd=cwd)
    assert done.code == code, f"exit code {done.code}\n{done.out}\n{done.err}"
    return subprocess.CompletedProcess(arguments, done.code, done.out, done.err)


def nmt_process(*arguments: str, cwd: Path, stdin: str = "", code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, as a user does, and check its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "nmt", *arguments], cwd=cwd, input=stdin, capture_output=True, text=True, timeout=280,
        check=False, env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done


def unpack(folder: Path) -> Path:
    """Put a dataset and a trained run of an older version into a folder, and return it."""
    with tarfile.open(ROOT / "tests" / "made_before" / "format-1.tar.gz") as archive:
        # Python before 3.11.4 has no filters.
        filters: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(folder, **filters)
    return folder


def an_epoch(epoch: int, **values: Any) -> EpochMetrics:
    """Return the metrics of an epoch of ten steps, with other values where they are given."""
    usual = {"train_loss": 2.0, "train_accuracy": 0.5, "validation_loss": 1.0, "validation_accuracy": 0.6}
    counts = {"epoch": epoch, "step": 10 * epoch, "target_tokens": 100, "seconds": 1.5}
    return EpochMetrics.model_validate(usual | counts | values)


def outcome(run: Run) -> dict[str, object]:
    """Return the result of a run, without the time and memory that it took."""
    arrays = {
        str(path.relative_to(run.folder)): checksum(read_arrays(path)) for path in run.folder.rglob("*.safetensors")
    }
    lines = [json.loads(line) for line in run.metrics_path.read_text().splitlines()]
    metrics = [{key: line[key] for key in line.keys() - {"seconds", "peak_memory"}} for line in lines]
    return {**arrays, "metrics": metrics}


# A suite that runs in the background ignores Ctrl-C, and so would the commands that it interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-messages", action="store_true", help="write tests/cli/messages.txt anew")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the commands of the READMEs: they take minutes each, in which the last process would run alone."""
    items.sort(key=lambda item: item.path.name != "test_readmes.py")


@pytest.fixture(autouse=True)
def forget_objects() -> Iterator[None]:
    """Exclude what a test leaves behind from later garbage collections.

    nmt collects garbage before it builds a model. Without this, these collections take a quarter of the time of the
    slow tests.
    """
    yield
    collect_and_freeze()


def collect_and_freeze() -> None:
    """Free what is garbage now, and exclude all other objects from later collections."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, the working directory of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of the real corpora."""
    if not CORPORA:
        pytest.skip("needs the real corpora; set NMT_CORPORA to their folder")
    folder = Path(CORPORA).expanduser()
    if not folder.is_dir():
        pytest.fail(f"NMT_CORPORA must name the folder of the real corpora; there is no folder {folder}")
    return folder


@pytest.fixture(scope="session")
def trained_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a prepared corpus and the trained run "base", by the commands of the README."""
    folder = tmp_path_factory.mktemp("project")
    write_pickle(folder / "data" / "english-german-both.pkl", small_pairs())
    (folder / "configs").mkdir()
    (folder / "configs" / "base.yaml").write_text(SMALLEST)
    nmt("prepare", "english-german-both.pkl", cwd=folder)
    nmt("train", "--config", "base.yaml", cwd=folder)
    return folder


@pytest.fixture
def project(trained_project: Path, tmp_path: Path) -> Path:
    """A copy of the trained project, for tests that change it."""
    return Path(shutil.copytree(trained_project, tmp_path / "project"))


LEARNS = """
model: {encoder_layers: 1, decoder_layers: 1, d_model: 64, d_ff: 128, heads: 4, tie_embeddings: all}
training: {epochs: 24, batch_size: 32, schedule: linear, peak_learning_rate: 0.004, warmup_steps: 30}
"""


@pytest.fixture(scope="session")
def multilingual_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run "four", which has learned en-de, en-fr and the opposite directions. Do not change it."""
    folder = tmp_path_factory.mktemp("multilingual")
    french = {"eins": "un", "zwei": "deux", "drei": "trois", "vier": "quatre", "funf": "cinq", "sechs": "six",
              "sieben": "sept"}  # fmt: skip
    pairs = small_pairs(150)[1:]
    write_tsv(folder / "de.tsv", pairs)
    write_tsv(folder / "fr.tsv", [
        (source, " ".join(["je", "suis", *(french[word] for word in target.split()[2:])])) for source, target in pairs
    ])  # fmt: skip
    (folder / "four.yaml").write_text(LEARNS)
    settings = [
        "data.both_directions=true",
        "data.tokenizer=subword",
        "data.normalization=nfc",
        "data.vocabulary_size=330",
        "data.subword_sampling=false",  # a few epochs are enough then
    ]
    options = [word for setting in settings for word in ("--set", setting)]
    nmt("prepare", "--corpus", "en-de=de.tsv", "--corpus", "en-fr=fr.tsv", *options, "--name", "four", cwd=folder)
    nmt("train", "--config", "four.yaml", "--dataset", "four", "--run", "four", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def transformers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """PyTorch and transformers, loaded once for all calls of a module; skips without the extra huggingface."""
    from preloaded_consumers import preload

    from nmt.export.huggingface import HuggingFaceExporter

    if not all(map(importlib.util.find_spec, HuggingFaceExporter.modules)):
        pytest.skip("needs the extra huggingface: pip install 'nmt[huggingface]'")
    with pytest.MonkeyPatch.context() as patch:
        preloaded = preload(patch, tmp_path_factory.mktemp("transformers"))
        yield
    preloaded.close()


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Headless Chromium."""
    from chromium import Chromium

    with Chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


# --- runs with random weights of any architecture and tokenizer ----------------------------------------------------

EXPORT_SIZES = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "d_ff": 48, "heads": 4}
SHORT_SEARCH = {"max_length_ratio": 1.0, "max_length_extra": 6}
DATASETS: dict[str, dict[str, Any]] = {
    "word": {"tokenizer": "word", "normalization": "ascii-words"},
    "char": {"tokenizer": "char", "normalization": "nfkc"},
    "subword": {"tokenizer": "subword", "normalization": "nfkc", "vocabulary_size": 330},
    "separate": {"tokenizer": "subword", "normalization": "nfkc", "vocabulary_size": 330, "joint_vocabulary": False},
    "tagged": {
        "tokenizer": "subword",
        "vocabulary_size": 330,
        "corpora": {"bt": {"files": ["pairs.tsv"], "tag": True}},
    },
    "bpe": {"tokenizer": "subword", "normalization": "none", "vocabulary_size": 330, "subword_model": "bpe"},
    "without-bytes": {"tokenizer": "subword", "normalization": "none", "vocabulary_size": 60, "byte_fallback": False},
    "ascii-words": {"tokenizer": "subword", "normalization": "ascii-words", "vocabulary_size": 330},
    "joint-words": {"tokenizer": "word", "normalization": "none", "joint_vocabulary": True},
}

MakeRun = Callable[..., Run]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset of each tokenizer."""
    folder = tmp_path_factory.mktemp("exports")
    lines = [f"{source}!\t{target} schön" for source, target in small_pairs(120)]
    (folder / "pairs.tsv").write_text("\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, settings in DATASETS.items():
            keys = {f"data.{key}": value for key, value in settings.items()}
            package.prepare("pairs.tsv", name=name, languages="en-de", set=keys)
    return folder


@pytest.fixture
def make_run(prepared: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> MakeRun:
    """Return a function of (dataset, section decoding, section model) that makes a run in the datasets' folder."""
    from nmt.config.schema import Config
    from nmt.data.dataset import open_dataset
    from nmt.models.build import build_model
    from nmt.models.weights import weights_of
    from nmt.runtime import keras

    monkeypatch.chdir(prepared)
    count = 0

    def make(tokenizer: str = "subword", decoding: dict[str, Any] = SHORT_SEARCH, **section: Any) -> Run:
        nonlocal count
        count += 1
        name = re.sub(r"\W+", "-", f"{request.node.name}-{count}")[-100:].strip("-_")
        model = section if section.keys() & {"architecture"} else {**EXPORT_SIZES, **section}
        config = Config.model_validate({"model": model, "decoding": decoding})
        dataset = open_dataset(tokenizer)
        run = create_run(name, config, [dataset.folder / "manifest.json", *dataset.tokenizer_files])
        keras.utils.set_random_seed(3)
        vocabulary = dataset.manifest.vocabulary
        weights = weights_of(build_model(config.model, vocabulary["source"], vocabulary["target"]))
        random = np.random.default_rng(3)  # for biases and norms too, which begin as zeros and ones
        noisy = {name: array + random.normal(0, 0.1, array.shape).astype(np.float32) for name, array in weights.items()}
        save_weights(run, noisy, 1)
        return run

    return make
