"""The README's commands, run in order by a shell: to the letter, but small corpora and models, and a short bench."""

import gzip
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, SMALLEST, small_pairs, write_pickle

README = (ROOT / "README.md").read_text()
COMMANDS = [
    line
    for block in re.findall(r"```console\n(.*?)```", README, re.S)
    for line in block.splitlines()
    if line and not line.startswith("#")
]
INSTALLING = [command for command in COMMANDS if command.startswith("python3 -m venv")]
WORDS = "data: {tokenizer: word, normalization: ascii-words, joint_vocabulary: false}"
BOOK = "data: {dataset: english-german-book, split: random, train_share: 0.9, validation_share: 0.05, test_share: 0.05}"


@pytest.mark.slow
def test_the_commands_work_in_the_order_of_the_readme(tmp_path: Path) -> None:
    write_pickle(tmp_path / "data" / "english-german-both.pkl", small_pairs())
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "base.yaml").write_text(SMALLEST)
    (tmp_path / "configs" / "book.yaml").write_text(f"{BOOK}\n{SMALLEST}")
    (tmp_path / "configs" / "multi30k.yaml").write_text(f"{WORDS}\n{SMALLEST}")
    pairs = iter(small_pairs(300))
    for name, count in (("train", 200), ("val", 40), ("test_2016_flickr", 40)):
        part = list(itertools.islice(pairs, count))
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in part).encode()
            (tmp_path / "data" / f"{name}.{language}.gz").write_bytes(gzip.compress(text))
    for name, rows in (("letters", small_pairs(250)), ("notices", small_pairs(343)[250:])):
        for side, language in enumerate(("en", "de")):
            (tmp_path / f"{name}.{language}").write_text("".join(f"{row[side]}\n" for row in rows))
    bin_ = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}
    outputs = {}
    for command in COMMANDS:
        if command in INSTALLING:
            continue
        shortened = command.replace("--seconds 60", "--seconds 0")
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", shortened], cwd=tmp_path, capture_output=True, text=True, check=False,
            env=environment, timeout=280,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        outputs[command] = done.stdout
    assert outputs["nmt plot losses"] == "checkpoints/base/plots/losses.png\n"
    assert outputs['nmt translate "im thirsty"'].strip()
    scores = [output for command, output in outputs.items() if "sacrebleu" in command]
    assert len(scores) >= 3
    assert all(0 <= float(score) <= 100 for score in scores)


def test_ci_runs_the_installing_commands() -> None:
    assert len(INSTALLING) == 2
    assert "demo" in INSTALLING[0] and "pytest" in INSTALLING[1]
    ci = (ROOT / ".ci" / "run").read_text()
    assert "README.md" in ci and "demo" in ci and "pytest" in ci
