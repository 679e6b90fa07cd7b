"""The recipes of nmt/README.md work as they are written.

A recipe that changes a file is followed on a copy of the package, by the code of its blocks and the edits that its
text names.
"""

import os
import re
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
from nmt.plotting import figures
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

    def run(self, *arguments: str, code: str = "from nmt.cli.app import main; main()") -> str:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=self.folder, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(self.folder)},
        )  # fmt: skip
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
    for kind in ("kind", "tokenizer"):
        copy.edit(
            registry, rf'CharacterTokenizer if (\w+\.{kind}) == "char" else WordTokenizer',
            r'{"word": WordTokenizer, "char": CharacterTokenizer, "bigram": BigramTokenizer}[\1]',
        )  # fmt: skip
    copy.run("prepare", "pairs.pkl", "--set", "data.normalization=lower", "--set", "data.tokenizer=bigram")
    code = (
        "from nmt.tokenizers.registry import *; from pathlib import Path; "
        "tokenizer = load_tokenizer(Path('data/pairs/tokenizer.source.json')); "
        "print(tokenizer.decode(tokenizer.encode('IM  one Two')), tokenizer.normalize('IM  Thirsty!'), tokenizer.unit)"
    )
    assert copy.run(code=code) == "im one two im thirsty! character pairs\n"


def test_a_schedule(copy: Copy) -> None:
    function, branch = blocks("A schedule")
    module = "training/optimization/schedules.py"
    copy.append(module, function)
    place, _, lines = branch.partition("\n")
    assert place == f"# nmt/{module}: learning_rate"
    copy.edit(module, r'^    if training\.schedule == "inverse_sqrt":$', lines.replace("\\", r"\\") + r"\g<0>")
    copy.edit("config/training.py", r"(schedule: Literal\[)", r'\1"constant", ')
    rates = (
        "from nmt.config.training import TrainingConfig as T; "
        "from nmt.training.optimization.schedules import learning_rate as rate; "
        "settings = T(schedule='constant', peak_learning_rate=0.5, warmup_steps=10); "
        "print([rate(step, 64, settings) for step in (1, 10, 1000)])"
    )
    assert copy.run(code=rates) == "[0.05, 0.5, 0.5]\n"


def test_a_setting_of_decoding(copy: Copy, project: Path) -> None:
    key, lines = (block.partition("\n") for block in blocks("A setting of decoding"))
    assert (key[0], lines[0]) == ("# nmt/config/decoding.py: DecodingKeys", "# nmt/decoding/sampling.py: sample")
    copy.edit("config/decoding.py", "^    seed: Annotated", key[2].replace("\\", r"\\") + r"\g<0>")
    copy.edit("decoding/sampling.py", r"^    \*\*others: Any,$", r"    min_p: float = 0.0,\n\g<0>")
    copy.edit("decoding/sampling.py", r"^        return draw\(", lines[2] + r"\g<0>")
    assert "likely as the likeliest." in " ".join(copy.run("translate", "--help").replace("│", "").split())
    shutil.copytree(project / "checkpoints" / "base", copy.folder / "checkpoints" / "base")
    sentences = ["im one two three", "im seven"]
    greedy = copy.run("translate", *sentences)
    assert copy.run("translate", "--sample", "--temperature", "3", "--min-p", "0.9999", *sentences) == greedy
    assert copy.run("translate", "--sample", "--temperature", "3", *sentences) != greedy


def test_a_figure(copy: Copy, project: Path) -> None:
    function, entry = blocks("A figure")
    copy.append("plotting/curves.py", function)
    copy.append("plotting/registry.py", entry)
    shutil.copytree(project / "checkpoints" / "base", copy.folder / "checkpoints" / "base")
    assert copy.run("plot", "gap") == "checkpoints/base/plots/gap.png\n"
    assert (copy.folder / "checkpoints/base/plots/gap.png").read_bytes().startswith(b"\x89PNG")
    assert "Draw validation loss minus training loss by epoch." in copy.run("plot", "--help")

    names: dict[str, Any] = {"Figure": figures.Figure, "Run": Run}
    exec(function, names)
    run = Run(project / "checkpoints" / "base")
    figure = figures.empty_figure()
    names["draw_gap"](figure, run)
    (line,) = figure.axes[0].lines
    assert line.get_ydata().tolist() == [epoch.validation_loss - epoch.train_loss for epoch in run.epochs()]


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
