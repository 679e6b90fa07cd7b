"""Subwords decode to the same text, no text becomes a special id, and a saved model is the same on another machine."""

import collections
import gzip
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nmt.config.data import DataConfig
from nmt.errors import DataError
from nmt.tokenizers.base import BOS, EOS, PAD, UNK
from nmt.tokenizers.normalization import nfc
from nmt.tokenizers.registry import fit_tokenizer, load_tokenizer
from nmt.tokenizers.subword import DEFAULT_LONGEST, SAMPLING_ALPHA, SubwordTokenizer, default_vocabulary_size
from nmt.tokenizers.word import CharacterTokenizer

QUICK = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
LESSON = "Der kleine Hund läuft über die grüne Wiese und bellt laut, weil er eine Katze gesehen hat ."
WORDS = LESSON.split()
CONTROL = ["<s>", "</s>", "<unk>", "<pad>", "<0x41>", "\u2581", "\u2581</s>", "<pad><s>", "\u2047", "\u2585"]
TEXTS = (
    st.text()
    | st.lists(st.sampled_from([*CONTROL, *WORDS, "5", "😀", "你好", "e\u0301", "\u2028", "\0", "\ud800"])).map(
        " ".join
    )
    | st.text(st.sampled_from("<s>/unkpad \u2581\t\u00a0"))
)
MODELS = pytest.mark.parametrize("model", ["unigram", "bpe"])


def sentences(count: int = 400) -> list[str]:
    draw = random.Random(1)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(count)]


def config(**changes: object) -> DataConfig:
    return DataConfig.model_validate({"tokenizer": "subword", "normalization": "nfkc", **changes})


@pytest.fixture(scope="module")
def fitted() -> dict[str, SubwordTokenizer]:
    return {
        model: SubwordTokenizer.fit([*sentences(), *CONTROL * 20], config(subword_model=model))
        for model in ("unigram", "bpe")
    }


@MODELS
@QUICK
@given(text=TEXTS)
@example(text="<s> </s> <unk> <pad> \u2581")
@example(text="x\u2581 \u2581y")
@example(text=" ".join(CONTROL))
def test_any_text_comes_back_in_its_normal_form_and_none_is_a_special_id(fitted: dict, model: str, text: str) -> None:
    tokenizer = fitted[model]
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == tokenizer.normalize(text)
    assert tokenizer.unknown(text) == [] and not {PAD, UNK, BOS, EOS} & set(ids)


@MODELS
@QUICK
@given(texts=st.lists(TEXTS, max_size=5), seed=st.integers(0, 2**32 - 2))
def test_samples_are_a_function_of_texts_and_seed_and_mean_the_same(
    fitted: dict, model: str, texts: list[str], seed: int
) -> None:
    tokenizer = fitted[model]
    rows = tokenizer.sample(texts, seed)
    assert rows == tokenizer.sample(texts, seed)
    for text, ids in zip(texts, rows, strict=True):
        assert tokenizer.decode(ids) == tokenizer.normalize(text)
        assert not {PAD, UNK, BOS, EOS} & set(ids)


@MODELS
def test_samples_are_the_same_in_every_process(fitted: dict, model: str, tmp_path: Path) -> None:
    """Otherwise a resumed run would continue with other subwords than an uninterrupted run."""
    fitted[model].save(tmp_path / "tokenizer.json")
    text = " ".join(WORDS)
    code = (
        "import pathlib, sys; from nmt.tokenizers.registry import load_tokenizer; "
        "print(load_tokenizer(pathlib.Path(sys.argv[1])).sample([sys.argv[2]] * 5, 7))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "tokenizer.json"), text]
    assert subprocess.check_output(command, text=True).strip() == str(fitted[model].sample([text] * 5, 7))


@pytest.mark.parametrize("text", ["Der kleine Hund", "läuft weil", "gesehen x5x😀 ,", "▁ <0x41>"])
@MODELS
def test_samples_have_the_frequencies_of_sentencepiece(fitted: dict, model: str, text: str) -> None:
    """Shares of common segmentations among 4,000 differ from sentencepiece by under five standard deviations."""
    tokenizer, count = fitted[model], 4_000
    pieces = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    normalized = tokenizer.normalize(text)
    theirs = collections.Counter(
        tuple(pieces.encode(normalized, enable_sampling=True, alpha=SAMPLING_ALPHA[model], nbest_size=-1))
        for _ in range(count)
    )
    ours = collections.Counter(map(tuple, tokenizer.sample([text] * count, 3)))
    for ids, times in theirs.most_common(20):
        share = (times + ours[ids]) / (2 * count)
        assert abs(times - ours[ids]) / count < 5 * (2 * share * (1 - share) / count) ** 0.5 + 1e-9
    rare = sum(times for ids, times in ours.items() if theirs[ids] == 0)
    assert rare <= sum(times for times in theirs.values() if times <= 3) + 5 * count**0.5


@MODELS
def test_frequent_words_are_whole_with_a_mark_for_each_space(fitted: dict, model: str) -> None:
    tokenizer = fitted[model]
    ids = tokenizer.encode("Der kleine Hund")
    assert tokenizer.pieces(ids) == ["\u2581Der", "\u2581kleine", "\u2581Hund"]
    assert tokenizer.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]
    assert tokenizer.decode([BOS, *ids, EOS, *ids]) == tokenizer.decode([PAD, *ids, PAD]) == "Der kleine Hund"
    assert isinstance(tokenizer.decode(range(4, tokenizer.size)), str)


@MODELS
def test_without_byte_fallback_unseen_characters_are_unknown_and_named(model: str) -> None:
    tokenizer = SubwordTokenizer.fit(sentences(), config(subword_model=model, byte_fallback=False))
    assert UNK in tokenizer.encode("Hund 你")
    assert tokenizer.unknown("Hund 你") == ["你"]
    assert "<unk>" in tokenizer.decode(tokenizer.encode("Hund 你"))
    assert not {PAD, BOS, EOS} & set(tokenizer.encode(" ".join(CONTROL)))


@MODELS
def test_a_size_is_kept(model: str) -> None:
    assert SubwordTokenizer.fit(sentences(), config(subword_model=model, vocabulary_size=300)).size == 300


@MODELS
@pytest.mark.parametrize("texts", [["a"], ["a b", "c"], ["你好世界" * 10], [chr(0x4E00 + n) for n in range(3000)]])
def test_a_corpus_too_small_for_the_size_gets_a_smaller_one(model: str, texts: list[str]) -> None:
    tokenizer = SubwordTokenizer.fit(texts, config(subword_model=model))
    assert tokenizer.decode(tokenizer.encode(texts[0])) == texts[0]


def test_the_size_follows_the_corpus() -> None:
    assert [default_vocabulary_size(pairs, 80) for pairs in (10, 3_000, 29_000, 136_000, 2_000_000, 9_000_000)] == [
        1_000, 2_000, 4_000, 8_000, 16_000, 32_000,
    ]  # fmt: skip
    assert default_vocabulary_size(1_000, 5_000) == 10_000


def test_fitting_again_gives_the_same_model(fitted: dict) -> None:
    again = SubwordTokenizer.fit([*sentences(), *CONTROL * 20], config())
    assert again.model == fitted["unigram"].model


@pytest.mark.parametrize("normalization", ["none", "nfc", "nfkc", "ascii-words"])
def test_the_normalization_travels_with_the_model(tmp_path: Path, normalization: str) -> None:
    tokenizer = fit_tokenizer(sentences(), config(normalization=normalization))
    tokenizer.save(tmp_path / "here" / "tokenizer.source.json")
    loaded = load_tokenizer(Path(shutil.move(tmp_path / "here", tmp_path / "there")) / "tokenizer.source.json")
    assert loaded.size == tokenizer.size
    for text in ["Der ﬁne Hund läuft!", " ".join(CONTROL)]:
        assert loaded.encode(text) == tokenizer.encode(text)
        assert loaded.normalize(text) == tokenizer.normalize(text)


def test_a_damaged_model_is_refused(tmp_path: Path, fitted: dict) -> None:
    path, model = tmp_path / "tokenizer.json", tmp_path / "tokenizer.model"
    fitted["unigram"].save(path)
    whole = model.read_bytes()
    for damaged in (whole[:-1], b"", b"x" * 100):
        model.write_bytes(damaged)
        with pytest.raises(DataError, match=r"tokenizer\.model has changed"):
            load_tokenizer(path)
    model.write_bytes(whole)
    path.write_text(json.dumps({**json.loads(path.read_text()), "algorithm": "other"}))
    with pytest.raises(DataError, match="damaged"):
        load_tokenizer(path)


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
def test_a_model_with_pieces_that_are_no_text_is_refused(algorithm: str) -> None:
    """Otherwise the first translation with such a piece would fail."""
    config = DataConfig(tokenizer="subword", normalization="none", subword_model=algorithm, vocabulary_size=300)
    model = fit_tokenizer(["größer und größer", "am größten"], config).model
    damaged = model.replace("ö".encode(), b"\xc3\xc3")
    assert damaged != model
    with pytest.raises(DataError, match=r"has pieces that are not UTF-8"):
        SubwordTokenizer(damaged, "none", algorithm)


# --- characters


def test_characters_are_ids_the_space_too(tmp_path: Path) -> None:
    tokenizer = fit_tokenizer(["ab b", "b"], DataConfig(tokenizer="char", normalization="none"))
    assert isinstance(tokenizer, CharacterTokenizer)
    assert tokenizer.words == ["b", " ", "a"]
    assert tokenizer.decode(tokenizer.encode("ba  ab")) == "ba ab"
    assert tokenizer.unknown("abc</s>") == ["c", "<", "/", "s", ">"]
    tokenizer.save(tmp_path / "t.json")
    loaded = load_tokenizer(tmp_path / "t.json")
    assert (loaded.unit, loaded.encode("ba ab")) == ("characters", tokenizer.encode("ba ab"))


def test_a_vocabulary_of_words_can_be_limited() -> None:
    tokenizer = fit_tokenizer(["a a b b c"], DataConfig(tokenizer="word", normalization="none", vocabulary_size=8))
    assert tokenizer.size == 7
    limited = fit_tokenizer(list("abcdefgh"), DataConfig(tokenizer="char", normalization="none", vocabulary_size=8))
    assert limited.size == 8


@pytest.mark.corpora
def test_every_line_of_25_languages_comes_back(corpora: Path) -> None:
    """Subwords are trained on a quarter of the text of each language, by the default settings."""
    files = sorted((corpora / "ntrex").glob("newstest2019-*.txt.gz"))
    assert len(files) == 25
    for file in files:
        lines = [line for line in gzip.decompress(file.read_bytes()).decode().splitlines() if line.strip()]
        tokenizer = fit_tokenizer(lines[::4], DataConfig(tokenizer="subword", normalization="nfc"))
        wrong = [line for line in lines if tokenizer.decode(tokenizer.encode(line)) != nfc(line)]
        assert not wrong, f"{file.name}: {wrong[:3]}"


def test_texts_longer_than_sentencepieces_limit_count_too() -> None:
    long = " ".join(f"ωμέγα{number}" for number in range(600))
    assert len(long.encode()) > DEFAULT_LONGEST
    tokenizer = SubwordTokenizer.fit(
        [long] * 5 + ["go there"] * 5, DataConfig(normalization="nfc", vocabulary_size=400)
    )
    assert len(tokenizer.encode("ωμέγα")) < len("ωμέγα".encode())


def test_a_limit_that_is_the_default_is_not_stored_since_it_would_change_every_tokenizer() -> None:
    tokenizer = SubwordTokenizer.fit(["go there"] * 5, DataConfig(normalization="nfc", vocabulary_size=400))
    assert b"\x90\x01\xe0\x20" not in tokenizer.model  # field 18, max_sentence_length, with the value 4,192
