"""The recipes of nmt/README.md work as they are written.

A recipe is followed on a copy of the package: its changes as they are shown, and the edits that its text names.
"""

import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from conftest import ROOT, small_pairs, write_pickle
from matplotlib.figure import Figure

from nmt.errors import DataError
from nmt.export.base import Exporter, Tags, TrainedModel
from nmt.export.export import EXPORTERS, export_run, find_exporter
from nmt.models.base import Seq2SeqModel
from nmt.plotting.curves import run_title
from nmt.plotting.style import add_axes, add_title
from nmt.runs.directory import Run
from nmt.runs.weights import choose_epoch
from nmt.storage.arrays import read_arrays
from nmt.tokenizers.normalization import collapse_white_space
from nmt.tokenizers.word import WordTokenizer

RECIPES = (ROOT / "nmt" / "README.md").read_text().split("## Recipes")[1]


def section(title: str) -> str:
    return RECIPES.split(f"\n### {title}")[1].split("\n### ")[0]


class Copy:
    """A copy of the package, to follow a recipe on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__")
        self.package = Path(shutil.copytree(ROOT / "nmt", folder / "nmt", ignore=ignored))
        shutil.copytree(ROOT / "configs", folder / "configs")

    def edit(self, module: str, place: str, replacement: str) -> None:
        """Replace a text that a module holds once."""
        text = (self.package / module).read_text()
        assert text.count(place) == 1, f"{module} has {text.count(place)} places like {place!r}: does the recipe hold?"
        (self.package / module).write_text(text.replace(place, replacement))

    def insert(self, module: str, place: str, text: str) -> None:
        """Put a text before another that a module holds once."""
        self.edit(module, place, text + place)

    def append(self, module: str, code: object) -> None:
        """Add a function or class of this file to a module."""
        with (self.package / module).open("a") as file:
            file.write(f"\n\n{inspect.getsource(code)}")  # type: ignore[arg-type]

    def follow(self, title: str) -> None:
        """Change the files as the section of a recipe shows."""
        (changes,) = re.findall(r"```diff\n(.*?)```", section(title), re.S)
        for file, lines in re.findall(r"^@@ nmt/(\S+)\n(.*?)(?=^@@|\Z)", changes, re.S | re.M):
            for removed, added, shown in re.findall(r"((?:^-.*\n)*)((?:^\+.*\n)+)(^ .*\n)?", lines, re.M):
                before, after = (re.sub("^.", "", part, flags=re.M).replace("...\n", "") for part in (removed, added))
                place = before or "\n" + shown[1:].rstrip("\n").removesuffix("...")
                self.edit(file, place, after if before else f"\n{after}{place[1:]}")

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


def lower(text: str) -> str:
    """Return ``text`` in lower case, with white space collapsed."""
    return collapse_white_space(text.lower())


class BigramTokenizer(WordTokenizer):
    """One id for every two characters."""

    kind: ClassVar = "bigram"
    unit: str = "character pairs"
    separator: ClassVar = ""

    @staticmethod
    def is_piece(text: str) -> bool:
        """Return whether text is one or two characters."""
        return 1 <= len(text) <= 2

    @staticmethod
    def _split(normalized: str) -> Iterable[str]:
        return [normalized[start : start + 2] for start in range(0, len(normalized), 2)]


def constant_rate(step: int, *, peak: float, warmup_steps: int) -> float:
    """Return the rate that rises to the peak and stays there."""
    return peak * min(1.0, step / warmup_steps)


def test_a_value_of_a_key(copy: Copy) -> None:
    normalization, registry, word = (f"tokenizers/{name}.py" for name in ("normalization", "registry", "word"))
    schedules = "training/optimization/schedules.py"
    copy.insert(normalization, "NORMALIZERS: ", inspect.getsource(lower) + "\n\n")
    copy.insert(normalization, '"none": ', '"lower": lower, ')
    copy.append(word, BigramTokenizer)
    copy.insert(registry, "CharacterTokenizer, WordTokenizer\n", "BigramTokenizer, ")
    copy.insert(registry, '"word": WordTokenizer', '"bigram": BigramTokenizer, ')
    copy.append(schedules, constant_rate)
    choice = "return constant_rate(step, peak=peak, warmup_steps=warmup_steps)\n    "
    copy.insert(schedules, 'if training.schedule == "inv', f'if training.schedule == "constant":\n        {choice}')
    copy.insert("config/data.py", '"none", "nfc"', '"lower", ')
    copy.insert("config/data.py", '"word", "char"', '"bigram", ')
    copy.insert(registry, '"none", "nfc"', '"lower", ')
    copy.insert(registry, '"word", "char"', '"bigram", ')
    copy.insert("config/training.py", '"noam", "inverse_sqrt"', '"constant", ')
    copy.run("prepare", "pairs.pkl", "--set", "data.normalization=lower", "--set", "data.tokenizer=bigram")
    code = (
        "from nmt.tokenizers.registry import *; from pathlib import Path; "
        "from nmt.config.training import TrainingConfig as T; "
        "from nmt.training.optimization.schedules import learning_rate as rate; "
        "settings = T(schedule='constant', peak_learning_rate=0.5, warmup_steps=10); "
        "tokenizer = load_tokenizer(Path('data/pairs/tokenizer.source.json')); "
        "print(tokenizer.decode(tokenizer.encode('IM  one Two')), tokenizer.normalize('IM  Thirsty!'), tokenizer.unit, "
        "[rate(step, 64, settings) for step in (1, 10, 1000)])"
    )
    assert copy.run(code=code) == "im one two im thirsty! character pairs [0.05, 0.5, 0.5]\n"


@pytest.mark.slow
def test_a_setting_of_the_model(copy: Copy) -> None:
    copy.follow("A setting of the model")
    code = """
from types import SimpleNamespace
from nmt.config.schema import Config
from nmt.export.transformer_weights import transformer_section
from nmt.models.build import build_model
from nmt.runtime import keras, tf

def logits(temperature):
    config = Config.model_validate({"model": {"d_model": 8, "d_ff": 8, "heads": 2, "temperature": temperature}})
    keras.utils.set_random_seed(1)
    return config, build_model(config.model, 9, 9)(tf.constant([[4, 5, 3]]), tf.constant([[2, 6]]))

(_, one), (config, five) = logits(1), logits(5)
print(0 < float(tf.reduce_max(tf.abs(one - five))) < 1)
try:
    transformer_section(SimpleNamespace(config=config, run=SimpleNamespace(name="one")), "CTranslate2")
except Exception as error:
    print(error)
"""
    refused = "Run 'one' has model.temperature: 5.0. CTranslate2 runs Transformers with the default."
    assert copy.run(code=code).startswith(f"True\n{refused}")


@pytest.mark.slow
def test_a_setting_of_decoding(copy: Copy, project: Path) -> None:
    copy.follow("A setting of decoding")
    shutil.copytree(project / "checkpoints" / "base", copy.folder / "checkpoints" / "base")
    sentences = ["im one two three", "im seven"]
    command = ["translate", "--ordinary-text", "none"]
    greedy = copy.run(*command, *sentences)
    assert copy.run(*command, "--sample", "--temperature", "3", "--set", "decoding.min_p=0.9999", *sentences) == greedy
    assert copy.run(*command, "--sample", "--temperature", "3", *sentences) != greedy


def draw_gap(figure: Figure, run: Run) -> None:
    """Draw validation loss minus training loss by epoch."""
    epochs = run.epochs()
    axes = add_axes(figure, "epoch", "validation loss - training loss (nats)")
    axes.plot([record.epoch for record in epochs], [record.validation_loss - record.train_loss for record in epochs])
    add_title(figure, "Gap between validation and training", run_title(run))


def test_a_figure(copy: Copy, project: Path) -> None:
    copy.append("plotting/curves.py", draw_gap)
    (entry,) = re.findall('`("gap": .*?)`', section("A figure"))
    copy.insert("cli/plot/app.py", '"losses": ', f"{entry}, ")
    shutil.copytree(project / "checkpoints" / "base", copy.folder / "checkpoints" / "base")
    assert copy.run("plot", "gap", "--output", "gap.svg") == "gap.svg\n"
    assert "Gap between validation and training" in (copy.folder / "gap.svg").read_text()
    assert "Draw validation loss minus training loss by epoch." in copy.run("plot", "--help")


def test_an_option_and_its_message(copy: Copy, project: Path) -> None:
    title = "An option and its message"
    copy.follow(title)
    shutil.copytree(project / "checkpoints" / "base", copy.folder / "checkpoints" / "base")
    assert copy.run("tokens", "--first", "2", "im thirsty").startswith("<s> im\t2 ")
    assert "Show the first N tokens of each sentence." in copy.run("tokens", "--help")
    ((command, phrase),) = re.findall(r"`\$ nmt (.*?)  => (.*?)`", section(title))
    done = copy.start(*shlex.split(command))
    assert (done.returncode, done.stdout) == (2, "") and phrase in done.stderr


@pytest.mark.slow
def test_a_metric(copy: Copy, project: Path) -> None:
    copy.follow("A metric")
    shown = (
        "from nmt.evaluation.validation_decoder import SCORES; from nmt.plotting.comparison import METRICS; "
        "from nmt.runs.metrics import *; from nmt.training.tensorboard import scalars; "
        "record = StepMetrics(epoch=1, step=1, loss=1.0, accuracy=0.5, learning_rate=0.1, update_norm=2.5); "
        "print(in_words(record), scalars(record, None)['train/update_norm'], SCORES['validation_ter'], "
        "METRICS['ter'].measure.best, 'update-norm' in METRICS)"
    )
    words = "loss 1.000, accuracy 0.500, learning rate 0.1, update norm 2.5"
    assert copy.run(code=shown) == f"{words} 2.5 ter min True\n"
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
    metrics = "runs/metrics.py"
    condition, renaming = re.search("`(if .*?:) (values.*?)`", section("A metric")).groups()  # type: ignore[union-attr]
    copy.edit(metrics, "CURRENT_FORMAT = 2", "CURRENT_FORMAT = 3")
    copy.edit(metrics, "    learning_rate: ", "    rate: ")
    copy.insert(metrics, 'if number == 1 and values["kind"]', f"{condition}\n{' ' * 16}{renaming}\n{' ' * 12}")
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


class NumpyExporter(Exporter):
    """Weights as an .npz file. Its consumer translates nothing yet, so that an export is refused."""

    name: ClassVar = "numpy"
    consumer: ClassVar = "NumPy"

    def check(self, model: TrainedModel) -> None:
        """Refuse nothing."""

    def write(self, model: TrainedModel, folder: Path) -> None:
        """Write ``weights.npz``."""
        np.savez(folder / "weights.npz", **model.weights())

    def translate(self, model: TrainedModel, folder: Path, texts: list[str], tags: Tags = ()) -> list[str]:
        """Return empty translations."""
        return [""] * len(texts)

    def usage(self, model: TrainedModel) -> str:
        """Return how to read the file."""
        return "`numpy.load` reads weights.npz."


def test_an_export(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(f"`{method}`" in section("An export") for method in Exporter.__abstractmethods__)
    monkeypatch.chdir(project)
    monkeypatch.setitem(EXPORTERS, "numpy", (__name__, "NumpyExporter"))
    run = Run(Path("checkpoints/base"))
    exporter = find_exporter("numpy")
    exporter.write(TrainedModel.of(run, None), project)
    written, saved = np.load(project / "weights.npz"), read_arrays(run.weights_path(choose_epoch(run, None)))
    assert written.files and set(written.files) == set(saved)
    assert all(np.array_equal(written[name], array) for name, array in saved.items())
    with pytest.raises(DataError, match="The export is not equal to the run"):
        export_run(run, exporter)
    assert not (run.folder / "exports" / "numpy").exists()


def test_an_architecture() -> None:
    text, abstract = section("An architecture"), Seq2SeqModel.__abstractmethods__
    assert [method for method in abstract if f"`{method}`" not in text] == []  # test_contract.py follows it
