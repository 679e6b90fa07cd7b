"""A tiny run with Chinese targets: every BLEU is tokenized for Chinese, in training, evaluation, export and report."""

import json
from pathlib import Path

import pytest
from conftest import nmt, write_tsv

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven"]
HAN = ["一", "二", "三", "四", "五", "六", "七"]
PAIRS = [
    (
        f"i have {NUMBERS[a]} dogs, {NUMBERS[b]} cats and {NUMBERS[c]} birds.",
        f"我有{HAN[a]}只狗，{HAN[b]}只猫和{HAN[c]}只鸟。",
    )
    for a in range(7)
    for b in range(7)
    for c in range(7)
]
pytestmark = pytest.mark.slow
CONFIG = """
data: {tokenizer: char, normalization: none}
model: {encoder_layers: 1, decoder_layers: 1, d_model: 32, d_ff: 64, heads: 4}
training: {epochs: 8, batch_size: 32, warmup_steps: 30, patience: 8, best_by: bleu, decode_validation: 30}
"""


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run "zh" from English to Chinese."""
    folder = tmp_path_factory.mktemp("chinese")
    write_tsv(folder / "pairs.en-zh.tsv", PAIRS)
    (folder / "configs").mkdir()
    (folder / "configs" / "base.yaml").write_text(CONFIG)
    nmt("prepare", "pairs.en-zh.tsv", "--config", "base.yaml", "--name", "zh", cwd=folder)
    nmt("train", "--config", "base.yaml", "--dataset", "zh", "--run", "zh", cwd=folder)
    return folder


def test_bleu_in_training_grows_and_chooses_the_best_epoch(chinese: Path) -> None:
    """With 13a a sentence would be a single word, and BLEU 0 in every epoch."""
    records = map(json.loads, (chinese / "checkpoints" / "zh" / "metrics.jsonl").read_text().splitlines())
    bleu = [record["validation_bleu"] for record in records if record.get("validation_bleu") is not None]
    assert max(bleu) > 5
    assert max(bleu) > bleu[0]


def test_evaluation_stress_and_report_are_tokenized_for_chinese(chinese: Path) -> None:
    command = ["evaluate", "--run", "zh", "--resamples", "0", "--stress", "--by-length", "--report", "r.html"]
    record = json.loads(nmt(*command, "--json", cwd=chinese).stdout)
    assert "tok:zh" in record["scores"]["signatures"]["BLEU"]
    assert "asian:yes" in record["scores"]["signatures"]["TER"]
    assert {bucket["scores"]["signatures"]["BLEU"] for bucket in record["by_length"]} == {
        record["scores"]["signatures"]["BLEU"]
    }
    rows = {row["variant"]: row for row in record["stress"]["zh"]}
    assert rows["plain"]["bleu"] == pytest.approx(record["scores"]["systems"]["zh"]["BLEU"]["score"])
    assert rows["plain"]["bleu"] > 5
    assert "upper" in rows  # the source has case
    assert record["stress_left_out"] == ["lower"]  # the sources are lower-cased
    assert "tok:zh" in (chinese / "r.html").read_text()
    table = nmt(*command[:-2], cwd=chinese).stdout
    assert table.count("Left out, since they change hardly any of these sources: lower.") == 1
    assert "words, split at white space" in table
    assert "lower." in (chinese / "r.html").read_text()


def test_a_report_of_the_run_is_tokenized_for_chinese(chinese: Path) -> None:
    nmt("report", "--run", "zh", "--output", "run.html", cwd=chinese)
    assert "tok:zh" in (chinese / "run.html").read_text()


def test_the_proof_of_an_export_compares_bleu_of_chinese(chinese: Path) -> None:
    pytest.importorskip("ctranslate2")
    nmt("export", "--run", "zh", "--to", "ctranslate2", cwd=chinese)
    [card] = (chinese / "checkpoints" / "zh" / "exports").glob("*/README.md")
    assert "tok:zh" in card.read_text()


def test_the_confidence_is_calibrated_by_chrf(chinese: Path) -> None:
    assert "onfidence" in nmt("evaluate", "--run", "zh", "--resamples", "0", "--calibrate", cwd=chinese).stdout
