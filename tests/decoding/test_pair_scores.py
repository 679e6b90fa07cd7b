"""Scores of sentence pairs under runs: per token, in both directions, and for pairs that are too long."""

from pathlib import Path

import pytest
from conftest import MakeRun

import nmt
from nmt.config.data import DataConfig
from nmt.data.sources.formats import Pair
from nmt.decoding import pair_scores
from nmt.decoding.pair_scores import pair_scorer
from nmt.errors import ConfigError
from nmt.runs.directory import Run
from nmt.text.translator import Translator

PAIRS = [Pair("im thirsty!", "ich bin durstig schön"), Pair("go!", "geh"), Pair("stop!", "ich gehe nach hause jetzt")]


def per_token(run: Run, source: str, target: str) -> float:
    translator = Translator.open(run)
    return translator.score([source], [target])[0] / (len(translator.target.encode(target)) + 1)


@pytest.mark.slow
def test_scores_are_mean_log_probabilities_of_one_or_two_runs(
    make_run: MakeRun, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_scores, "CHUNK", 2)
    forward, back = make_run(), make_run("bpe")
    manifest = back.dataset_path.read_text()
    config = DataConfig(score_runs=[forward.name], source_language="en", target_language="de")
    expected = [per_token(forward, *pair) for pair in PAIRS]
    assert list(pair_scorer(config)([*PAIRS, None])) == pytest.approx([*expected, 0], rel=1e-4)

    both = config.model_copy(update={"score_runs": [forward.name, f"{back.name}:1"]})
    with pytest.raises(ConfigError, match="translates en to de, but the pairs need a run that translates de to en"):
        pair_scorer(both)
    back.dataset_path.write_text(manifest.replace('"source_language": "en"', '"source_language": null').replace(
        '"target_language": "de"', '"target_language": null'))  # fmt: skip
    dual = [
        (first + second) / 2 - abs(first - second)
        for first, second in zip(expected, [per_token(back, pair.target, pair.source) for pair in PAIRS], strict=True)
    ]
    assert list(pair_scorer(both)(PAIRS)) == pytest.approx(dual, rel=1e-4)


def test_pairs_longer_than_the_model_reads_are_not_scored(make_run: MakeRun) -> None:
    run = make_run(positions="learned", max_positions=12)
    config = DataConfig(score_runs=[run.name], source_language="en", target_language="de")
    longer = Pair("a", "b " * 300)
    assert [score < 0 for score in pair_scorer(config)([longer, PAIRS[1], Pair(*longer[::-1])])] == [False, True, False]


@pytest.mark.usefixtures("prepared")
def test_prepare_drops_what_a_run_finds_unlikely(make_run: MakeRun) -> None:
    run = make_run()
    lines = Path("pairs.tsv").read_text().splitlines()
    scores = [per_token(run, *line.split("\t")) for line in lines[:4]]
    threshold = sum(sorted(scores)[1:3]) / 2
    Path("few.tsv").write_text("\n".join([*lines[:4], *lines[:4]]))
    settings = {"data.score_runs": [run.name], "data.filters": {"score": threshold}, "data.split": "random",
                "data.train_share": 0.5, "data.validation_share": 0.25, "data.test_share": 0.25}  # fmt: skip
    manifest = nmt.prepare("few.tsv", languages="en-de", tokenizer_of=run.name, set=settings, overwrite=True).manifest
    assert manifest.dropped["filter score"] == 4
