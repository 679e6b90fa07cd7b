"""A task on digits with repeated targets is learned, and translated well with the default decoding."""

import random
from pathlib import Path

import pytest
from conftest import nmt, write_tsv

from nmt.data.dataset import open_dataset
from nmt.evaluation.metrics import make_metric

MODEL = {
    "model.encoder_layers": 2, "model.decoder_layers": 2, "model.d_model": 32, "model.d_ff": 128, "model.heads": 4,
    "model.dropout": 0, "training.label_smoothing": 0, "training.schedule": "linear",
    "training.peak_learning_rate": 0.005, "training.warmup_steps": 200, "training.batch_type": "tokens",
    "training.batch_size": 1024, "training.epochs": 18, "training.average_last": 1,
    # What the recipe has for small corpora is for natural language: two sorted sequences, joined, are not sorted.
    "training.augment": "{}", "training.subword_sampling": "false",
}  # fmt: skip
LEAST_BLEU = 99


def digits(count: int = 10_000) -> list[tuple[str, str]]:
    """Return sequences of one to ten digits with the digits sorted. No sequence occurs twice."""
    dice, pairs = random.Random(1), dict[str, str]()
    while len(pairs) < count:
        source = dice.choices("0123456789", k=dice.randint(1, 10))
        pairs[" ".join(source)] = " ".join(sorted(source))
    return list(pairs.items())


@pytest.mark.slow
def test_sorting_is_translated_as_it_was_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_tsv("digits.tsv", digits())
    nmt("prepare", "digits.tsv", cwd=tmp_path)
    settings = [part for key, value in MODEL.items() for part in ("--set", f"{key}={value}")]
    nmt("train", *settings, cwd=tmp_path)
    nmt("export", "--to", "ctranslate2", cwd=tmp_path)
    dataset = open_dataset("digits")
    assert dataset.manifest.has_ordinary_repeats
    references = dataset.text("test", "target").read_text().splitlines()
    export = next(Path("checkpoints/digits/exports").iterdir()).name
    for engine in ([], ["--export", export]):
        found = nmt("translate", *engine, "--input", str(dataset.text("test", "source")), cwd=tmp_path).stdout
        assert make_metric("bleu").corpus_score(found.splitlines(), [references]).score >= LEAST_BLEU
