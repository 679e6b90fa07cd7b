"""Encoding is equal in one and in many processes, drops too long pairs, and writes arrays piece by piece."""

import io
from pathlib import Path

import numpy as np
import pytest

from nmt.config.data import DataConfig
from nmt.data import encoding
from nmt.data.encoding import Encoding, LengthLimits, write_split
from nmt.data.manifest import SIDES
from nmt.data.pair_store import PairStoreWriter
from nmt.data.sources.formats import Pair
from nmt.errors import NmtError
from nmt.tokenizers.registry import fit_tokenizer


@pytest.mark.parametrize(
    ("tokens", "characters", "reason"),
    [
        ((10, 10), (40, 40), None), ((11, 1), (40, 40), "too long"), ((1, 11), (40, 40), "too long"),
        ((9, 4), (40, 90), None), ((9, 4), (40, 91), "length ratio"), ((9, 4), (91, 40), "length ratio"),
        ((1, 1), (1, 12), None), ((1, 1), (1, 13), "length ratio"),
    ],
)  # fmt: skip
def test_limits(tokens: tuple[int, int], characters: tuple[int, int], reason: str | None) -> None:
    pair = Pair(*("x" * count for count in characters))
    assert LengthLimits(10, 2.0).violation(pair, *tokens, 1.0) == reason
    assert LengthLimits(None, None).violation(pair, *tokens, 1.0) is None


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A pair store with pairs of growing length, and tokenizers in the same folder."""
    pairs = [Pair("wort " * (1 + n % 9), f"word{n % 50} " * (1 + n % 7)) for n in range(300)]
    with PairStoreWriter(tmp_path) as writer:
        for number, pair in enumerate(pairs):
            writer.append(number, pair)
    config = DataConfig(tokenizer="word", normalization="nfkc")
    for column, side in enumerate(SIDES):
        fit_tokenizer((pair[column] for pair in pairs), config).save(tmp_path / f"tokenizer.{side}.json")
    return tmp_path


def written(store: Path, folder: Path, config: DataConfig, name: str = "train") -> tuple[encoding.WrittenSplit, dict]:
    folder.mkdir()
    paths = {side: store / f"tokenizer.{side}.json" for side in SIDES}
    order = np.random.default_rng(1).permutation(300)
    with encoding.open_encoder(store, paths, 300, [Encoding(range(300))]) as encode:
        result = write_split(folder, name, order, encode, dict.fromkeys(SIDES, 60), config, lambda *_: None)
    return result, {file.name: file.read_bytes() for file in folder.iterdir()}


def test_many_processes_write_what_one_writes(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, files = written(store, tmp_path / "alone", DataConfig())
    monkeypatch.setattr(encoding, "PARALLEL_PAIRS", 0)
    monkeypatch.setattr(encoding, "CHUNK_PAIRS", 7)
    monkeypatch.setattr(encoding, "available_processors", lambda: 2)
    together, files_together = written(store, tmp_path / "together", DataConfig())
    assert files == files_together
    np.testing.assert_array_equal(alone.kept, together.kept)
    assert alone.counts == together.counts


def test_a_process_that_dies_is_told_in_words(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "PARALLEL_PAIRS", 0)
    monkeypatch.setattr(encoding, "available_processors", lambda: 2)
    (store / "tokenizer.source.json").write_text("{}")  # a worker fails to start on it
    with pytest.raises(NmtError, match="system ended a process that was tokenizing"):
        written(store, tmp_path / "out", DataConfig())


def test_pairs_over_the_limits_are_left_out_of_training_and_not_of_the_test(store: Path, tmp_path: Path) -> None:
    config = DataConfig(max_tokens=6, max_length_ratio=None)
    result, _ = written(store, tmp_path / "train", config)
    assert {reason for reason, _ in result.dropped} == {"too long"}
    assert sorted([*result.kept, *(index for _, index in result.dropped)]) == list(range(300))
    for side in SIDES:
        lengths = np.diff(np.load(tmp_path / "train" / f"train.{side}.offsets.npy"))
        assert (lengths.sum(), lengths.max()) == (result.counts.tokens[side], result.counts.longest[side])
        saved = io.BytesIO()  # the header was written twice, before and after the ids
        np.save(saved, np.load(tmp_path / "train" / f"train.{side}.tokens.npy", mmap_mode="r"))
        assert (tmp_path / "train" / f"train.{side}.tokens.npy").read_bytes() == saved.getvalue()
        assert lengths.max() <= 6
    whole, files = written(store, tmp_path / "test", config, "test")
    assert (len(whole.kept), whole.dropped) == (300, [])
    assert files["test.source.txt"].count(b"\n") == 300
