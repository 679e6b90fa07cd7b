"""The recipes of nmt/README.md work as they are written.

A recipe that changes a file is followed on a copy of the package, by the code of its blocks and the edits that its
text names.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, small_pairs, write_pickle

from nmt.errors import DataError
from nmt.export.base import TrainedModel
from nmt.export.export import export_run
from nmt.plotting import curves, figures
from nmt.runs.directory import Run
from nmt.runs.weights import choose_epoch
from nmt.storage.arrays import read_arrays

RECIPES = (ROOT / "nmt" / "README.md").read_text().split("## Recipes")[1]


def blocks(title: str) -> list[str]:
    """Return the Python blocks of a recipe."""
    section = RECIPES.split(f"### {title}\n")[1].split("\n### ")[0]
    found = re.findall(r"^( *)```python\n(.*?)^ *```$", section, re.S | re.M)
    return [textwrap.dedent(code) if indent else code for indent, code in found]


class Copy:
    """A copy of the package, to follow a recipe on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__")
        self.package = Path(shutil.copytree(ROOT / "nmt", folder / "nmt", ignore=ignored))
        shutil.copytree(ROOT / "configs", folder / "configs")

    def append(self, module: str, code: str) -> None:
        assert code.startswith(f"# nmt/{module}\n"), f"the block names {code.splitlines()[0]}, not {module}"
        with (self.package / module).open("a") as file:
            file.write(f"\n\n{code}")

    def edit(self, module: str, pattern: str, replacement: str) -> None:
        """Replace what a regular expression finds in a module, once."""
        text, count = re.subn(pattern, replacement, (self.package / module).read_text(), flags=re.M)
        assert count == 1, f"{module} has {count} places like {pattern!r}: does the recipe still hold?"
        (self.package / module).write_text(text)

    def insert(self, block: str, place: str, pattern: str, more: str = r"\g<0>") -> None:
        """Put the lines of a block, which names the place, before what a regular expression finds."""
        first, _, lines = block.partition("\n")
        assert first == f"# nmt/{place}"
        self.edit(place.partition(": ")[0], pattern, lines.replace("\\", r"\\") + more)

    def start(self, *arguments: str, code: str = "from nmt.cli.app import main; main()") -> Any:
        return subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=self.folder, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(self.folder), "COLUMNS": "160"},
        )  # fmt: skip

    def run(self, *arguments: str, **options: str) -> str:
        done = self.start(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    write_pickle(tmp_path / "pairs.pkl", small_pairs())
    return Copy(tmp_path)


def test_a_normalization_and_a_tokenizer(copy: Copy) -> None:
    (normalization,), (tokenizer,) = blocks("A normalization"), blocks("A tokenizer")
    copy.append("tokenizers/normalization.py", normalization)
    copy.append("tokenizers/word.py", tokenizer)
    copy.edit("config/data.py", r"(normalization: Literal\[)", r'\1"lower", ')
    copy.edit("config/data.py", r"(tokenizer: Literal\[)", r'\1"bigram", ')
    registry = "tokenizers/registry.py"
    copy.edit(registry, r"(normalization: Literal\[)", r'\1"lower", ')
    copy.edit(registry, r'(kind: Literal\["word", )', r'\1"bigram", ')
    copy.edit(registry, r"^(from nmt.tokenizers.word import )", r"\1BigramTokenizer, ")
    copy.edit(registry, r'("word": WordTokenizer, )', r'\1"bigram": BigramTokenizer, ')
    copy.run("prepare", "pairs.pkl", "--set", "data.normalization=lower", "--set", "data.tokenizer=bigram")
    code = (
        "from nmt.tokenizers.registry import *; from pathlib import Path; "
        "tokenizer = load_tokenizer(Path('data/pairs/tokenizer.source.json')); "
        "print(tokenizer.decode(tokenizer.encode('IM  one Two')), tokenizer.normalize('IM  Thirsty!'), tokenizer.unit)"
    )
    assert copy.run(code=code) == "im one two im thirsty! character pairs\n"


def test_a_setting_of_the_model(copy: Copy) -> None:
    field, layer, choice = blocks("A setting of the model")
    copy.insert(field, "config/transformer.py", "^    norm_placement: ")
    parts = "models/transformer/blocks.py"
    copy.append(parts, layer)
    copy.insert(choice, f"{parts}: _feed_forward", r"^        return FeedForward\(", "        return kind(")
    code = """
from types import SimpleNamespace
from nmt.config.schema import Config
from nmt.export.transformer_weights import transformer_section
from nmt.models.build import build_model
from nmt.runtime import keras, tf

def logits(activation):
    config = Config.model_validate({"model": {"d_model": 8, "d_ff": 8, "heads": 2, "activation": activation}})
    keras.utils.set_random_seed(1)
    return config, build_model(config.model, 9, 9)(tf.constant([[4, 5, 3]]), tf.constant([[2, 6]]))

(_, relu), (config, gelu) = logits("relu"), logits("gelu")
print(0 < float(tf.reduce_max(tf.abs(relu - gelu))) < 1)
try:
    transformer_section(SimpleNamespace(config=config, run=SimpleNamespace(name="one")), "CTranslate2")
except Exception as error:
    print(error)
"""
    told = copy.run(code=code)
    assert told.startswith(
        "True\nRun 'one' has model.activation: gelu. CTranslate2 runs Transformers with the default."
    )


def test_a_schedule(copy: Copy) -> None:
    function, branch = blocks("A schedule")
    module = "training/optimization/schedules.py"
    copy.append(module, function)
    copy.insert(branch, f"{module}: learning_rate", r'^    if training\.schedule == "inverse_sqrt":$')
    copy.edit("config/training.py", r"(schedule: Literal\[)", r'\1"constant", ')
    rates = (
        "from nmt.config.training import TrainingConfig as T; "
        "from nmt.training.optimization.schedules import learning_rate as rate; "
        "settings = T(schedule='constant', peak_learning_rate=0.5, warmup_steps=10); "
        "print([rate(step, 64, settings) for step in (1, 10, 1000)])"
    )
    assert copy.run(code=rates) == "[0.05, 0.5, 0.5]\n"


@pytest.mark.slow
def test_a_setting_of_decoding(copy: Copy, project: Path) -> None:
    key, lines = blocks("A setting of decoding")
    copy.insert(key, "config/decoding.py: DecodingKeys", "^    seed: Annotated")
    copy.edit("decoding/search.py", r"^    \*\*others: Any,$", r"    min_p: float = 0.0,\n\g<0>")
    copy.insert(lines, "decoding/search.py: sample", r"^        return draw\(")
    assert "likely as the likeliest." in " ".join(copy.run("translate", "--help").replace("│", "").split())
    shutil.copytree(project / "checkpoints" / "base", copy.folder / "checkpoints" / "base")
    sentences = ["im one two three", "im seven"]
    greedy = copy.run("translate", *sentences)
    assert copy.run("translate", "--sample", "--temperature", "3", "--min-p", "0.9999", *sentences) == greedy
    assert copy.run("translate", "--sample", "--temperature", "3", *sentences) != greedy


def test_a_figure(copy: Copy, project: Path) -> None:
    function, entry = blocks("A figure")
    copy.append("plotting/curves.py", function)
    place, _, line = entry.partition("\n")
    assert place == "# nmt/cli/plot/app.py: OF_A_RUN"
    copy.edit("cli/plot/app.py", "^OF_A_RUN = {\n", rf"\g<0>{line}")
    shutil.copytree(project / "checkpoints" / "base", copy.folder / "checkpoints" / "base")
    assert copy.run("plot", "gap", "--output", "gap.svg") == "gap.svg\n"
    assert "Gap between validation and training" in (copy.folder / "gap.svg").read_text()
    assert "Draw validation loss minus training loss by epoch." in copy.run("plot", "--help")
    names, figure, run = vars(curves).copy(), figures.empty_figure(), Run(project / "checkpoints" / "base")
    exec(function, names)
    names["draw_gap"](figure, run)
    (line,) = figure.axes[0].lines
    assert line.get_ydata().tolist() == [epoch.validation_loss - epoch.train_loss for epoch in run.epochs()]


def test_an_option_and_a_message(copy: Copy, project: Path) -> None:
    (parameter, statement), (refusal,) = blocks("An option"), blocks("A message")
    for block, pattern in (
        (parameter, r"^    as_json: JsonOption"), (statement, r"^    if as_json:$"),
        (refusal, r"^    if run is not None and dataset is not None:$"),
    ):  # fmt: skip
        copy.insert(block, "cli/inspection/tokens.py: tokens", pattern)
    shutil.copytree(project / "checkpoints" / "base", copy.folder / "checkpoints" / "base")
    assert copy.run("tokens", "--first", "2", "im thirsty").startswith("<s> im\t2 ")
    assert "Show the first N tokens of each sentence." in copy.run("tokens", "--help")
    command, _, phrase = RECIPES.split("```text\n$ ")[1].split("\n")[0].partition("  => ")
    done = copy.start(*shlex.split(command)[1:])
    assert (done.returncode, done.stdout) == (2, "") and phrase in done.stderr


@pytest.mark.slow
def test_a_metric(copy: Copy, project: Path) -> None:
    of_steps, of_validations, score = blocks("A metric")
    copy.insert(of_steps, "runs/metrics.py: StepMetrics", r"^    target_tokens: int \| None = None$")
    copy.insert(of_validations, "runs/metrics.py: Quality", r"^    validation_chrf: .*$")
    copy.append("evaluation/metrics.py", score)
    shown = (
        "from nmt.evaluation.validation_decoder import SCORES; from nmt.plotting.comparison import METRICS; "
        "from nmt.runs.metrics import *; from nmt.training.tensorboard import scalars; "
        "record = StepMetrics(epoch=1, step=1, loss=1.0, accuracy=0.5, learning_rate=0.1, update_norm=2.5); "
        "print(in_words(record), scalars(record, None)['train/update_norm'], SCORES['validation_ter'], "
        "METRICS['ter'].best([3, 2]), 'update-norm' in METRICS)"
    )
    words = "loss 1.000, accuracy 0.500, learning rate 0.1, update norm 2.5"
    assert copy.run(code=shown) == f"{words} 2.5 ter 2 True\n"
    copy.run("prepare", "pairs.pkl")
    settings = [f"training.{key}" for key in ("epochs=1", "decode_validation=5", "samples=0")]
    copy.run("train", "--config", "tiny.yaml", *(part for key in settings for part in ("--set", key)))
    *_, epoch = (copy.folder / "checkpoints/tiny/metrics.jsonl").read_text().splitlines()
    assert json.loads(epoch)["validation_ter"] > 0
    copy.run("report", "--no-scores", "--no-attention")
    page = (copy.folder / "checkpoints/tiny/report.html").read_text()
    assert "validation TER" in page and "Validation TER by step" in page
    files = [part for option in ("--hypothesis", "--reference") for part in (option, "data/pairs/test.target.txt")]
    assert "chrF2+ ↑" in copy.run("evaluate", *files, "--metric", "chrf+")
    assert "chrf+" in copy.run("evaluate", "--help")


def test_a_field_of_the_metrics_file(copy: Copy) -> None:
    number, older = blocks("A field of metrics.jsonl, and when its format number grows")
    metrics = "runs/metrics.py"
    copy.edit(metrics, r"^CURRENT_FORMAT = 2$", number.partition("\n")[2].rstrip())
    copy.edit(metrics, r"^    learning_rate: Annotated", "    rate: Annotated")
    copy.insert(older, "runs/metrics.py: parse_metrics", r"^            if number == 1 and .*:$")
    lines = [
        json.dumps({"kind": "header", "format": 2}),
        *(json.dumps({"kind": "step", "epoch": 1, "step": 1, "loss": 1.0, "accuracy": 0.5, name: 0.25, "new": 7})
          for name in ("learning_rate", "rate")),
    ]  # fmt: skip
    (copy.folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    code = (
        "from pathlib import Path; from nmt.runs.metrics import *; path = Path('metrics.jsonl'); "
        "print([record.rate for record in parse_metrics(path.read_bytes(), path)], Header().format)"
    )
    assert copy.run(code=code) == "[0.25, 0.25] 3\n"


def test_an_export(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks("An export")
    names: dict[str, Any] = {}
    exec(code, names)
    exporter = names["NumpyExporter"]()
    monkeypatch.chdir(project)
    run = Run(Path("checkpoints/base"))
    folder = project / "weights"
    folder.mkdir()
    exporter.write(TrainedModel.of(run, None), folder)
    written, saved = np.load(folder / "weights.npz"), read_arrays(run.weights_path(choose_epoch(run, None)))
    assert written.files and set(written.files) == set(saved)
    assert all(np.array_equal(written[name], array) for name, array in saved.items())
    with pytest.raises(DataError, match="The export is not equal to the run"):
        export_run(run, exporter)
    assert not (run.folder / "exports" / "numpy").exists()
