"""Overlap with training equals the result of comparing all pairs of sentences."""

from pathlib import Path

import numpy as np
import pytest
from conftest import small_pairs, write_pickle

from nmt.config.data import DataConfig
from nmt.config.schema import Config
from nmt.data.prepare import prepare
from nmt.evaluation.test_set import TrainingOverlap, compare_with_training, find_overlap
from nmt.runs.directory import Run, create_run


@pytest.mark.parametrize("tokenizer", ["word", "char", "subword"])
def test_no_source_of_a_split_by_source_was_trained_on_and_those_of_a_random_split_are_found(
    tokenizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("nmt.evaluation.test_set.CHUNK_SENTENCES", 7)
    pairs = [(source, f"{target} {n}") for source, target in small_pairs(100) for n in ("eins", "zwei", "drei")]
    corpus = write_pickle(tmp_path / "pairs.pkl", pairs)
    for split, expected in (("by_source", 0), ("random", None)):
        config = DataConfig(split=split, tokenizer=tokenizer, vocabulary_size=None)
        dataset = prepare(corpus, config, split)
        sources = dataset.text("test", "source").read_text().splitlines()
        overlap = find_overlap(sources, dataset)
        train, test = (dataset.split(name).source for name in ("train", "test"))
        by_hand = [any(np.array_equal(sentence, ids) for ids in map(train.__getitem__, range(len(train))))
                   for sentence in map(test.__getitem__, range(len(test)))]  # fmt: skip
        assert overlap.tolist() == by_hand
        assert overlap.sum() == dataset.manifest.splits["test"].sources_in_training
        assert overlap.any() == (expected is None)


def test_sentences_that_a_model_cannot_tell_apart_are_equal(folder: Path) -> None:
    rare = [(f"seldom{chr(97 + n % 26)}{chr(97 + n // 26)} one", "eins") for n in range(60)]
    corpus = write_pickle(folder / "pairs.pkl", [*small_pairs(), *rare])
    dataset = prepare(corpus, DataConfig(min_count=2), "rare")
    train = dataset.split("train").source
    tokenizer = dataset.tokenizers()[0]
    known = tokenizer.decode(next(train[n] for n in range(len(train)) if 1 not in train[n]))
    overlap = find_overlap([known.upper() + "!", "neverseen one", "", "one neverseen never"], dataset)
    assert overlap.tolist() == [True, True, False, False]


def test_what_a_run_started_from_was_trained_on_too(folder: Path) -> None:

    def make_run(name: str, pairs: list[tuple[str, str]], start_from: str | None) -> tuple[Run, str]:
        """Return a run, and a source sentence from its training split."""
        dataset = prepare(write_pickle(folder / f"{name}.pkl", pairs), DataConfig(min_count=1), f"{name}-data")
        config = Config.model_validate({"training": {"start_from": start_from}})
        held_out = {line for split in ("validation", "test") for line in dataset.text(split, "source").open()}
        seen = next(source for source, _ in pairs if f"{source}\n" not in held_out)
        return create_run(name, config, [dataset.folder / "manifest.json", *dataset.tokenizer_files]), seen

    pairs = small_pairs(200)
    (_, first), (_, second), (run, third) = (
        make_run("one", pairs[:60], None),
        make_run("two", pairs[60:120], "one:best"),
        make_run("three", pairs[120:], "two"),
    )
    sources = [third, "nobody said this", second, first]
    assert compare_with_training(sources, [run, run]) == TrainingOverlap(
        checked={"three-data": 1, "two-data": 1, "one-data": 1}, numbers=[1, 3, 4], unchecked=[],
    )  # fmt: skip
    Path("data/two-data/manifest.json").unlink()
    without = compare_with_training(sources, [run])
    assert (list(without.checked), without.numbers) == (["three-data", "one-data"], [1, 4])
    assert ["Dataset 'two-data', which run 'two'" in reason for reason in without.unchecked] == [True]
    Path("checkpoints/one").rename("elsewhere")
    make_run("one-again", pairs[:60], None)
    assert "run 'two' started from the weights of run 'one'" in compare_with_training(sources, [run, run]).unchecked[1]
    make_run("one", pairs[:60], "three")  # a new run of that name, started from its own descendant
    assert "run 'one' started from the weights of run 'three'" in compare_with_training(sources, [run]).unchecked[1]
