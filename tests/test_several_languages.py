"""A model of several language pairs, from the files to translations: every command with the pair that it needs."""

import gzip
import json
import shutil
from pathlib import Path

import pytest
from conftest import nmt, write_tsv

from nmt import load

NUMBERS = {
    "en": ["one", "two", "three", "four", "five", "six", "seven"],
    "de": ["eins", "zwei", "drei", "vier", "funf", "sechs", "sieben"],
    "tr": ["bir", "iki", "üç", "dört", "beş", "altı", "yedi"],
    "hi": ["एक", "दो", "तीन", "चार", "पांच", "छह", "सात"],
}
FIRST = {"en": "i see", "de": "ich sehe", "tr": "ben görüyorum", "hi": "मैं देखता"}
PAIRS = ["en-de", "en-tr", "en-hi", "de-en", "tr-en", "hi-en"]
CONFIG = """
data: {tokenizer: word, normalization: none, joint_vocabulary: true, both_directions: true, train_share: 0.9,
  validation_share: 0.05, test_share: 0.05}
model: {encoder_layers: 1, decoder_layers: 1, d_model: 64, d_ff: 128, heads: 4, dropout: 0, tie_embeddings: all}
training: {epochs: 6, batch_size: 32, warmup_steps: 60, decode_validation: 60, best_by: chrf, precision: float32,
  schedule: linear, peak_learning_rate: 0.004, average_last: 1, corpus_temperature: 5}
"""
pytestmark = pytest.mark.slow


def sentence(language: str, numbers: tuple[int, int, int]) -> str:
    """Return a sentence of three numbers."""
    return " ".join([FIRST[language], *(NUMBERS[language][number] for number in numbers)])


def sentences(language: str, count: int = 343) -> list[str]:
    """Return all such sentences of a language, mixed."""
    return [sentence(language, (n * 89 % 7, n * 89 // 7 % 7, n * 89 // 49 % 7)) for n in range(count)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run "four": English to and from German, Turkish and Hindi. Hindi has fewer pairs."""
    folder = tmp_path_factory.mktemp("four")
    (folder / "configs").mkdir()
    (folder / "configs" / "four.yaml").write_text(CONFIG)
    for language in ("de", "tr", "hi"):
        count = 200 if language == "hi" else 343
        write_tsv(folder / f"en-{language}.tsv", zip(sentences("en", count), sentences(language, count), strict=True))
    corpora = [part for pair in PAIRS[:3] for part in ("--corpus", f"{pair}={pair}.tsv")]
    report = nmt("prepare", *corpora, "--config", "four.yaml", "--name", "four", cwd=folder).stdout
    assert all(f"pairs {pair}, tag <2{pair[-2:]}>" in report for pair in PAIRS)
    nmt("train", "--config", "four.yaml", "--dataset", "four", "--run", "four", cwd=folder)
    return folder


def test_the_best_epoch_has_the_best_mean_of_the_pairs(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        json.loads(line) for line in (trained / "checkpoints" / "four" / "metrics.jsonl").read_text().splitlines()
    ]
    epochs = [record for record in records if record["kind"] == "epoch"]
    for record in epochs:
        assert list(record["chrf_by_direction"]) == PAIRS
        assert record["validation_chrf"] == pytest.approx(sum(record["chrf_by_direction"].values()) / len(PAIRS))
    best = max(epochs, key=lambda record: (record["validation_chrf"], -record["validation_loss"]))
    monkeypatch.chdir(trained)
    assert load("four", "best", decoding={"target_language": "de"}).epoch == best["epoch"]


@pytest.mark.parametrize("pair", PAIRS)
def test_each_pair_is_translated(trained: Path, pair: str) -> None:
    source, target = pair.split("-")
    numbers = [(1, 2, 3), (6, 0, 2), (4, 4, 5)]
    texts = [sentence(source, chosen) for chosen in numbers]
    command = ["translate", "--run", "four", "--to", target, "--from", source, *texts]
    translated = nmt(*command, cwd=trained).stdout.splitlines()
    assert translated == [sentence(target, chosen) for chosen in numbers]


def test_a_language_has_to_be_chosen_and_be_known(trained: Path) -> None:
    outcome = nmt("translate", "--run", "four", "one", cwd=trained, code=2)
    assert "several languages: de, tr, hi, en. Choose one with --to de." in outcome.stderr
    outcome = nmt("translate", "--run", "four", "--to", "fr", "one", cwd=trained, code=2)
    assert "does not know this language" in outcome.stderr


def test_evaluation_has_a_row_for_each_pair_and_the_mean(trained: Path) -> None:
    command = ["evaluate", "--run", "four", "--metric", "chrf", "--metric", "bleu"]
    record = json.loads(nmt(*command, "--resamples", "10", "--json", cwd=trained).stdout)
    by_pair = {row["languages"]: row["scores"]["systems"]["four"]["chrF2"]["score"] for row in record["by_pair"]}
    assert list(by_pair) == PAIRS
    assert min(by_pair.values()) > 60
    shown = nmt(*command, "--resamples", "0", "--to", "en", "--report", "r.html", cwd=trained).stdout
    assert "hi-en" in shown
    assert "en-hi" not in shown
    mean = sum(score for pair, score in by_pair.items() if pair.endswith("-en")) / 3
    assert any(line.split()[:1] == ["mean"] and f"{mean:.1f}" in line for line in shown.splitlines())
    assert "Scores by language pair" in (trained / "r.html").read_text()
    single = nmt(*command, "--resamples", "0", "--to", "de", "--stress", cwd=trained).stdout
    assert "Scores by language pair" not in single
    refused = nmt(*command, "--stress", cwd=trained, code=2).stderr
    assert "--stress is for one language pair, and the test set has 6" in refused


def test_a_pair_that_was_never_seen_together_is_translated_and_scored(trained: Path) -> None:
    """Zero-shot: German and Turkish have no common pair."""
    for language in ("de", "tr"):
        (trained / f"zero.{language}").write_text("".join(f"{text}\n" for text in sentences(language, 30)))
    command = [
        "evaluate",
        "--run",
        "four",
        "--from",
        "de",
        "--to",
        "tr",
        "--source",
        "zero.de",
        "--reference",
        "zero.tr",
    ]
    record = json.loads(nmt(*command, "--resamples", "0", "--metric", "chrf", "--json", cwd=trained).stdout)
    translated = nmt("translate", "--run", "four", "--from", "de", "--to", "tr", "--input", "zero.de", cwd=trained)
    words = {word for line in translated.stdout.splitlines() for word in line.split()}
    assert record["test_set"]["sentences"] == 30
    assert words & {*NUMBERS["tr"]}, "the tag decides on the language"


def test_back_translation_with_the_model_gives_a_corpus_of_its_pair(trained: Path) -> None:
    with gzip.open(trained / "mono.tr.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{text}\n" for text in sentences("tr", 40))
    command = ["synthesize", "mono.tr.gz", "--run", "four", "--from", "tr", "--to", "en", "--export", "none"]
    nmt(*command, "--name", "en-tr_bt", cwd=trained)
    with gzip.open(trained / "data" / "en-tr_bt.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    right = [row["source"] == source for row, source in zip(rows, sentences("en", 40), strict=True)]
    assert sum(right) > 30
    corpora = [part for pair in PAIRS[:2] for part in ("--corpus", f"{pair}={pair}.tsv")]
    keys = ["--config", "four.yaml", "--set", "data.both_directions=false", "--name", "more"]
    report = nmt("prepare", *corpora, "--corpus", "en-tr_bt", "--tag", "en-tr_bt", *keys, cwd=trained).stdout
    assert "tag <en-tr_bt>" in report
    assert "pairs en-tr, tag <2tr>" in report


def test_one_pair_is_fine_tuned_with_its_tag(trained: Path) -> None:
    new = [
        ("i see one one one again", "ich sehe eins eins eins"),
        *zip(sentences("en", 60), sentences("de", 60), strict=True),
    ]
    write_tsv(trained / "new.tsv", new)
    keys = ["--languages", "en-de", "--name", "tuned", "--set", "data.both_directions=false"]
    nmt("prepare", "new.tsv", "--tokenizer-of", "four", *keys, cwd=trained)
    start = ["--set", "training.start_from=four", "--set", "training.epochs=1"]
    nmt("train", "--dataset", "tuned", "--run", "tuned", *start, cwd=trained)
    text, expected = sentence("en", (3, 2, 6)), sentence("de", (3, 2, 6))
    assert nmt("translate", "--run", "tuned", text, cwd=trained).stdout == f"{expected}\n"


def test_averages_and_ensembles_choose_a_pair_too(trained: Path) -> None:
    nmt("average", "--run", "four", "--epochs", "5,6", cwd=trained)
    text, expected = sentence("en", (3, 2, 6)), sentence("hi", (3, 2, 6))
    for runs in (["--run", "four"], ["--run", "four:6", "--run", "four:5"]):
        assert nmt("translate", *runs, "--to", "hi", text, cwd=trained).stdout == f"{expected}\n"
    shutil.rmtree(trained / "checkpoints" / "four" / "average", ignore_errors=True)


def test_translators_of_pairs_share_the_engine(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trained)
    german = load("four", decoding={"target_language": "de", "source_language": "en"})
    towards = german.config.decoding.model_copy(update={"source_language": "hi", "target_language": "en"})
    english = german.reconfigured(towards)
    assert german.translate([sentence("en", (1, 2, 3))]) == [sentence("de", (1, 2, 3))]
    assert english.translate([sentence("hi", (1, 2, 3))]) == [sentence("en", (1, 2, 3))]
    assert (german.languages, english.languages) == (("en", "de"), ("hi", "en"))
