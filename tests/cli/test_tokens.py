"""``nmt tokens`` shows every token of a sentence with its id and meaning."""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import MakeRun, run_nmt
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from nmt.cli.app import main
from nmt.config.data import DataConfig
from nmt.runs.directory import find_run
from nmt.tokenizers.base import BOS, EOS, FIRST_WORD, UNK, Tokenizer, tokens_of
from nmt.tokenizers.registry import fit_tokenizer, load_tokenizer

SENTENCE = "im one ☃ xylophone"
Tokens = Callable[..., str]


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tokens:
    """Return a function that runs ``nmt tokens`` with arguments and returns standard output."""

    def run(*arguments: str, terminal: bool = False, stdin: str | None = None) -> str:
        monkeypatch.setattr(sys, "argv", ["nmt", "tokens", *arguments])
        monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
        monkeypatch.setenv("COLUMNS", "60")
        with tempfile.TemporaryFile("w+", encoding="utf-8") as file:
            file.write(stdin or "")
            file.seek(0)
            if stdin is not None:
                monkeypatch.setattr(sys, "stdin", file)
            with pytest.raises(SystemExit) as left:
                main()
        assert not left.value.code
        return capsys.readouterr().out

    return run


@pytest.fixture
def base(trained_project: Path, monkeypatch: pytest.MonkeyPatch) -> Tokenizer:
    """Return the source tokenizer of run "base". The test runs in the project of that run."""
    monkeypatch.chdir(trained_project)
    return load_tokenizer(find_run("base").tokenizer_path("source"))


def test_a_line_has_pieces_and_ids_as_the_model_reads_them(base: Tokenizer, typed: Tokens) -> None:
    one_id, im_id = base.encode("one im")
    assert typed("--run", "base", "Im one!", "im xylophone one") == (
        f"<s> im one </s>\t2 {im_id} {one_id} 3\n<s> im xylophone one </s>\t2 {im_id} 1 {one_id} 3\n"
    )
    assert typed(stdin="one\n\nim\n") == f"<s> one </s>\t2 {one_id} 3\n<s> </s>\t2 3\n<s> im </s>\t2 {im_id} 3\n"


def test_a_dataset_has_sentences_without_bos_and_eos_and_is_asked_where_no_run_is(
    base: Tokenizer, typed: Tokens, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_id, im_id = base.encode("one im")
    assert typed("--dataset", "english-german-both", "im one") == f"im one\t{im_id} {one_id}\n"
    (tmp_path / "data").symlink_to(Path("data").absolute())
    monkeypatch.chdir(tmp_path)
    assert json.loads(typed("--json", "im"))["dataset"] == "english-german-both"


def test_sides_have_tokenizers_of_their_own(base: Tokenizer, typed: Tokens) -> None:
    ich = load_tokenizer(find_run("base").tokenizer_path("target")).encode("ich")[0]
    assert typed("--side", "target", "ich") == f"<s> ich </s>\t2 {ich} 3\n"
    assert typed("--side", "source", "ich") == "<s> ich </s>\t2 1 3\n"


def test_unknown_words_and_lengths_are_reported(base: Tokenizer) -> None:
    assert run_nmt("tokens", "im xylophone", "?!", "one " * 501).err == (
        "nmt: 'im xylophone': unknown to the tokenizer: xylophone\n"
        "nmt: '?!': no tokens are left after normalization\n"
        f"nmt: {('one ' * 501)[:60]!r}: 501 tokens; training leaves out pairs of more than data.max_tokens=500\n"
    )


def test_the_limit_of_learned_positions_is_reported(make_run: MakeRun) -> None:
    run = make_run("word", positions="learned", max_positions=6)
    assert run_nmt("tokens", "--run", run.name, "im one two three", "im one two three four").err == (
        "nmt: 'im one two three four': 7 tokens with <s> and </s>; the model reads at most 6\n"
    )


def test_on_a_terminal_ids_stand_below_pieces(base: Tokenizer, typed: Tokens) -> None:
    one_id, im_id = base.encode("one im")
    shown = typed("--run", "base", "Im one xylophone", terminal=True)
    assert [line.split() for line in shown.splitlines()] == [
        ["<s>", "im", "one", "xylophone", "</s>"], ["2", str(im_id), str(one_id), "1", "3"], ["unknown"],
    ]  # fmt: skip
    lines = typed("--run", "base", "im one two three " * 8, terminal=True).splitlines()
    assert max(map(len, lines)) <= 60
    pieces = " ".join(line for line in lines if not line.strip().replace(" ", "").isdecimal())
    assert pieces.split() == ["<s>", *["im", "one", "two", "three"] * 8, "</s>"]


def test_bytes_are_joined_to_the_character_that_they_spell(make_run: MakeRun, typed: Tokens) -> None:
    run = make_run("subword")
    output: dict[str, Any] = json.loads(typed("--run", run.name, "--json", SENTENCE, "你"))
    assert output["run"] == run.name
    assert (output["side"], output["unit"]) == ("source", "subwords")
    first, second = output["sentences"]
    assert (first["text"], first["normalized"]) == (SENTENCE, SENTENCE)
    snowman = [token for token in first["tokens"] if token["kind"] == "byte"]
    assert [token["piece"] for token in snowman[:3]] == ["<0xE2>", "<0x98>", "<0x83>"]
    assert [token["character"] for token in snowman[:3]] == ["☃"] * 3
    assert [token["character"] for token in second["tokens"] if token["kind"] == "byte"] == ["你"] * 3
    for sentence in (first, second):
        assert [token["id"] for token in sentence["tokens"] if token["kind"] == "special"] == [BOS, EOS]
    shown = typed("--run", run.name, "one ☃你", terminal=True)
    assert shown.count("☃") == shown.count("你") == 3


TOKENIZERS: dict[str, Tokenizer] = {
    name: fit_tokenizer(
        ["der kleine Hund läuft", "die grüne Wiese", "ein Hund", "one two"] * 20,
        DataConfig.model_validate({"normalization": "nfkc", **keys}),
    )
    for name, keys in {
        "word": {"tokenizer": "word"},
        "char": {"tokenizer": "char"},
        "bytes": {"tokenizer": "subword", "vocabulary_size": 320},
        "no bytes": {"tokenizer": "subword", "vocabulary_size": 60, "byte_fallback": False},
    }.items()
}


@pytest.mark.parametrize("name", TOKENIZERS)
@example("😀 Hund☃☃ 你好")
@example("<0xE2> </s> <unk> ▁ ⁇")
@example("\ud800 e\u0301 \u2028")
@given(text=st.text() | st.lists(st.sampled_from(["Hund", "☃", "你", "é", "  ", "<0x41>"])).map("".join))
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_tokens_are_those_of_the_tokenizer_each_of_one_kind(name: str, text: str) -> None:
    tokenizer = TOKENIZERS[name]
    tokens = tokens_of(tokenizer, text)
    assert [token.id for token in tokens] == tokenizer.encode(text)
    for token in tokens:
        assert token.piece
        assert (token.kind == "unknown") == (token.id == UNK)
        assert token.id == UNK or token.id >= FIRST_WORD
        assert (token.kind == "byte") == (token.character is not None) == (token.place is not None)
        assert token.kind == "byte" or name == "no bytes" or " " not in token.piece
    if name == "bytes":
        whole = [token.character if token.place and token.place[0] == 1 else None for token in tokens]
        pairs = zip(tokens, whole, strict=True)
        spelled = "".join(token.piece if token.kind == "piece" else character or "" for token, character in pairs)
        assert spelled.replace("▁", " ").strip() == tokenizer.normalize(text)
