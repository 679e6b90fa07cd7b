"""Public corpora by name, from a local server with recorded answers: found, allowed, downloaded, noticed if changed."""

import http.server
import io
import json
import re
import shlex
import tarfile
import threading
import urllib.parse
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sacrebleu.dataset
from conftest import run_nmt
from sacrebleu.dataset import base
from sacrebleu.dataset.plain_text import PlainTextDataset

from nmt.config.languages import three_letter_code
from nmt.data.dataset import open_dataset
from nmt.data.languages import language_pair
from nmt.data.sources import hugging_face, public, public_corpora

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
PAIRS = [(f"{a} {b} men!", f"{a.upper()} {b} Leute!") for a in WORDS for b in WORDS]


def moses(*languages: str, corpus: str = "Tatoeba") -> bytes:
    """Return an archive as OPUS has it; OPUS sorts the two languages."""
    content = io.BytesIO()
    pair = "-".join(sorted(languages))
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("README", "Corpus Name: Tatoeba")
        archive.writestr("LICENSE", "CC-BY 2.0 FR")
        for side, language in enumerate(languages):
            archive.writestr(f"{corpus}.{pair}.{language}", "".join(f"{texts[side]}\n" for texts in PAIRS))
    return content.getvalue()


def entry(corpus: str, size: int, address: str) -> dict[str, object]:
    """Return an entry of an answer of OPUS's interface, with all of its fields."""
    return {
        "alignment_pairs": 100, "corpus": corpus, "documents": "", "id": 31736, "latest": "True",
        "preprocessing": "moses", "size": size, "source": "de", "source_tokens": 73463, "target": "en",
        "target_tokens": 68625, "url": f"{address}/{corpus}.zip", "version": "v2023-04-12",
    }  # fmt: skip


class Server(http.server.ThreadingHTTPServer):
    """Server of files by path. ``corpora`` are those of its interface of OPUS."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.files: dict[str, bytes] = {}
        self.corpora: list[object] = []
        self.requests: list[str] = []


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        url = urllib.parse.urlsplit(self.path)
        asked = dict(urllib.parse.parse_qsl(url.query))
        body = self.server.files.get(url.path)
        if url.path == "/opusapi/" and body is None:
            found = [corpus for corpus in self.server.corpora if matches(corpus, asked)]
            body = json.dumps({"corpora": found}).encode()
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the name is the library's

    def log_message(self, format: str, *args: Any) -> None:
        """Stay silent."""


def matches(corpus: Any, asked: dict[str, str]) -> bool:
    """Answer as OPUS does: the languages are sorted, "latest" is a version."""
    if sorted([asked["source"], asked["target"]]) != [corpus["source"], corpus["target"]]:
        return False
    is_version = asked["version"] in ("latest", corpus["version"])
    return (
        asked["preprocessing"] == "moses" and is_version and asked.get("corpus", corpus["corpus"]) == corpus["corpus"]
    )


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between two attempts
    with Server() as server:
        monkeypatch.setattr(public_corpora, "OPUS", f"{server.address}/opusapi/")
        monkeypatch.setattr(public_corpora, "MANYTHINGS", f"{server.address}/anki/")
        monkeypatch.setattr(hugging_face, "PARQUET_FILES", f"{server.address}/parquet")
        server.corpora = [entry("Tatoeba", 328, server.address), entry("CCAligned", 522_860, server.address)]
        server.files["/Tatoeba.zip"] = moses("en", "de")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def prepared(advice: str) -> Any:
    """Follow the advice that a download prints, and return the dataset."""
    (command,) = re.findall(r"^Prepare it: nmt (prepare .*)$", advice, re.MULTILINE)
    outcome = run_nmt(*shlex.split(command), "--name", "followed")
    assert outcome.code == 0, outcome
    return open_dataset("followed").manifest


@pytest.mark.parametrize("pair", ["en-de", "de-en", "eng-deu"])
def test_a_corpus_of_opus_is_fetched_and_prepared_in_the_direction_that_was_asked(server: Server, pair: str) -> None:
    outcome = run_nmt("fetch", "opus:Tatoeba", pair)
    path = Path("data/Tatoeba-v2023-04-12.de-en.zip")
    assert (outcome.code, outcome.out) == (0, f"{path}\n")
    assert "LICENSE in the archive" in outcome.err
    manifest = prepared(outcome.err)
    source, target = language_pair(pair)
    assert list(manifest.languages.values()) == [source, target]
    assert manifest.read == 100
    record = json.loads(path.with_name(f"{path.name}.fetched.json").read_text())
    assert record["bytes"] == path.stat().st_size and record["address"] == f"{server.address}/Tatoeba.zip"
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(server.requests[0]).query))
    assert asked == {
        "corpus": "Tatoeba", "source": source, "target": target, "preprocessing": "moses", "version": "latest"
    }  # fmt: skip


def test_a_version_is_named_after_the_corpus(server: Server) -> None:
    assert run_nmt("fetch", "opus:Tatoeba/v2023-04-12", "en-de").code == 0
    assert run_nmt("fetch", "opus:Tatoeba/v1", "en-de").code == 2


def test_a_file_that_changes_later_is_noticed(server: Server) -> None:
    assert run_nmt("fetch", "opus:Tatoeba", "en-de").code == 0
    path = Path("data/Tatoeba-v2023-04-12.de-en.zip")
    content = path.read_bytes()
    path.write_bytes(content + b"mine")
    outcome = run_nmt("fetch", "opus:Tatoeba", "en-de")
    assert outcome.code == 2 and "is not the file that" in outcome.err
    assert path.read_bytes() == content + b"mine"
    path.unlink()
    server.files["/Tatoeba.zip"] = moses("en", "de", corpus="Other")
    outcome = run_nmt("fetch", "opus:Tatoeba", "en-de")
    assert outcome.code == 2 and "does not match the known hash" in outcome.err
    assert "fetched.json" in outcome.err and not path.exists()
    path.with_name(f"{path.name}.fetched.json").unlink()  # the remedy
    assert run_nmt("fetch", "opus:Tatoeba", "en-de").code == 0
    assert path.read_bytes() == server.files["/Tatoeba.zip"]


def test_a_large_corpus_is_shown_before_it_is_downloaded(server: Server) -> None:
    server.files["/CCAligned.zip"] = moses("en", "de", corpus="CCAligned")
    outcome = run_nmt("fetch", "opus:CCAligned", "en-de")
    assert outcome.code == 2 and "535.4 MB" in outcome.err and "--large" in outcome.err and "licence" in outcome.err
    assert "/CCAligned.zip" not in server.requests and not Path("data").exists()
    assert run_nmt("fetch", "opus:CCAligned", "en-de", "--large").code == 0


def test_an_unknown_corpus_of_opus_is_answered_with_those_there_are(server: Server) -> None:
    outcome = run_nmt("fetch", "opus:Tatoebe", "en-de")
    assert outcome.code == 2 and "did you mean 'Tatoeba'?" in outcome.err and "CCAligned, Tatoeba" in outcome.err
    outcome = run_nmt("fetch", "opus:Tatoeba", "en-tr")
    assert outcome.code == 2 and "It has none" in outcome.err


@pytest.mark.parametrize(
    "answer",
    [b"<html>", b"[]", b"{}", b'{"corpora": 1}', b'{"corpora": [1]}', b'{"corpora": [{"corpus": "a", "size": "1"}]}',
     b"\xff", b"[" * 100_000],
)  # fmt: skip
def test_an_answer_that_is_not_as_documented_is_refused(server: Server, answer: bytes) -> None:
    server.files["/opusapi/"] = answer
    outcome = run_nmt("fetch", "opus:Tatoeba", "en-de")
    assert outcome.code == 2 and "answer" in outcome.err and len(outcome.err) < 1000
    assert not Path("data").exists()


@pytest.mark.parametrize("version", ["../../up", "", "a/b", "v" * 200])
def test_an_answer_cannot_choose_another_folder(server: Server, version: str) -> None:
    server.corpora = [{**entry("Tatoeba", 1, server.address), "version": version}]
    outcome = run_nmt("fetch", "opus:Tatoeba", "en-de")
    assert outcome.code == 2 if version else outcome.code == 0
    assert all(path.parent == Path("data") for path in Path().rglob("*.zip"))


def test_an_archive_without_both_sides_is_said(server: Server) -> None:
    server.files["/Tatoeba.zip"] = moses("en", "fr")
    outcome = run_nmt("fetch", "opus:Tatoeba", "en-de")
    assert outcome.code == 2 and "one file that ends in .de" in outcome.err


# --- Tatoeba


@pytest.mark.parametrize("pair", ["en-de", "de-en"])
def test_pairs_of_tatoeba_are_fetched_and_prepared(server: Server, pair: str) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("deu.txt", "".join(f"{en}\t{de}\tCC-BY 2.0\n" for en, de in PAIRS))
        archive.writestr("_about.txt", "notes")
    server.files["/anki/deu-eng.zip"] = content.getvalue()
    outcome = run_nmt("fetch", "tatoeba", pair)
    assert (outcome.code, outcome.out) == (0, "data/deu-eng.zip\n") and "CC BY 2.0 FR" in outcome.err
    assert list(prepared(outcome.err).languages.values()) == pair.split("-")
    dataset = open_dataset("followed")
    first = (dataset.folder / "test.source.txt").read_text().split()[0]
    assert first.islower() == (pair == "en-de")


def test_codes_of_tatoeba() -> None:
    assert [three_letter_code(code) for code in ("hi", "ar", "tr", "ast", "xx")] == ["hin", "ara", "tur", "ast", "xx"]


def test_a_file_that_the_user_has_put_there_is_recorded(server: Server) -> None:
    Path("data").mkdir()
    Path("data/cmn-eng.zip").write_bytes(b"mine")
    server.files["/anki/cmn-eng.zip"] = b"theirs"
    assert run_nmt("fetch", "tatoeba", "en-zh").out == "data/cmn-eng.zip\n"
    assert Path("data/cmn-eng.zip").read_bytes() == b"mine"
    assert json.loads(Path("data/cmn-eng.zip.fetched.json").read_text())["bytes"] == 4


def test_a_file_that_is_not_there_is_said(server: Server) -> None:
    outcome = run_nmt("fetch", "tatoeba", "en-tlh")
    assert outcome.code == 2 and "answers 404" in outcome.err


# --- the Hugging Face Hub


def hub_answer(server: Server, *configs: str, **changes: object) -> bytes:
    """Put files of a data set on the server, and return the answer of the Hub's interface about them."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    files = []
    for config in configs:
        for split, pairs in (("train", PAIRS[:90]), ("validation", PAIRS[90:])):
            content = io.BytesIO()
            rows = [{"en": source, "de": target} for source, target in pairs]
            parquet.write_table(pyarrow.table({"translation": rows}), content)
            server.files[f"/{config}/{split}/0000.parquet"] = content.getvalue()
            files.append({
                "dataset": "user/books", "config": config, "split": split, "filename": "0000.parquet",
                "url": f"{server.address}/{config}/{split}/0000.parquet", "size": len(content.getvalue()),
            })  # fmt: skip
    return json.dumps({"parquet_files": files, "pending": [], "failed": [], "partial": False, **changes}).encode()


@pytest.mark.parametrize("pair", ["en-de", "de-en"])
def test_a_data_set_of_the_hub_is_fetched_and_prepared(server: Server, pair: str) -> None:
    server.files["/parquet"] = hub_answer(server, "de-en", "en-fr")
    outcome = run_nmt("fetch", "huggingface:user/books", pair)
    files = [f"data/user_books.de-en.{split}.0000.parquet" for split in ("train", "validation")]
    assert (outcome.code, outcome.out.split()) == (0, files)
    assert "licence is stated at https://huggingface.co/datasets/user/books" in outcome.err
    manifest = prepared(outcome.err)
    assert list(manifest.languages.values()) == pair.split("-") and manifest.read == 100
    assert server.requests[0] == "/parquet?dataset=user%2Fbooks"


def test_a_subset_of_a_data_set_is_named_where_the_languages_do_not_tell(server: Server) -> None:
    server.files["/parquet"] = hub_answer(server, "v1-de-en", "v2-de-en")
    outcome = run_nmt("fetch", "huggingface:user/books", "en-de")
    assert outcome.code == 2 and "v1-de-en, v2-de-en" in outcome.err
    assert run_nmt("fetch", "huggingface:user/books:v2-de-en", "en-de").code == 0
    outcome = run_nmt("fetch", "huggingface:user/books:v3", "en-de")
    assert outcome.code == 2 and "no subset 'v3'" in outcome.err


def test_a_data_set_that_is_large_or_not_wholly_there_is_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for answer in (hub_answer(server, "de-en", partial=True), b'{"parquet_files": [{"url": 1}]}', b"[]"):
        server.files["/parquet"] = answer
        outcome = run_nmt("fetch", "huggingface:user/books", "en-de")
        assert outcome.code == 2 and "yourself" in outcome.err and "Traceback" not in outcome.err
    server.files["/parquet"] = hub_answer(server, "de-en")
    monkeypatch.setattr(public, "LARGE", 10)
    outcome = run_nmt("fetch", "huggingface:user/books", "en-de")
    assert outcome.code == 2 and "--large" in outcome.err and not Path("data").exists()


# --- sacrebleu


@pytest.fixture
def small_set(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlainTextDataset:
    """A test set of sacrebleu whose archive is on the server."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in (("a.en", "Go!\nStop!\n"), ("a.de", "Geh!\nHalt!\n")):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    server.files["/set.tar.gz"] = content.getvalue()
    monkeypatch.setattr(base, "SACREBLEU_DIR", str(tmp_path / "cache"))
    small = PlainTextDataset(
        "small/test", data=[f"{server.address}/set.tar.gz"], description="A test set.",
        langpairs={"en-de": ["a.en", "a.de"]},
    )  # fmt: skip
    monkeypatch.setattr(sacrebleu.dataset, "DATASETS", {"small/test": small})
    return small


def test_a_test_set_of_sacrebleu_is_two_files_for_the_option_test(server: Server, small_set: PlainTextDataset) -> None:
    outcome = run_nmt("fetch", "sacrebleu:small/test", "en-de")
    files = ["data/small_test.en-de.en", "data/small_test.en-de.de"]
    assert (outcome.code, outcome.out.split()) == (0, files)
    assert "states no licence" in outcome.err
    assert f"--test {files[0]} --test {files[1]}" in outcome.err
    assert Path(files[1]).read_text() == "Geh!\nHalt!\n"
    requests = len(server.requests)
    assert run_nmt("fetch", "sacrebleu:small/test", "en-de").code == 0
    assert len(server.requests) == requests
    Path(files[0]).write_text("mine")
    outcome = run_nmt("fetch", "sacrebleu:small/test", "en-de")
    assert outcome.code == 2 and Path(files[0]).read_text() == "mine"


def test_a_test_set_with_another_checksum_is_refused(small_set: PlainTextDataset) -> None:
    small_set.md5 = ["0" * 32]
    outcome = run_nmt("fetch", "sacrebleu:small/test", "en-de")
    assert outcome.code == 2 and "sacrebleu could not download" in outcome.err and "cache" in outcome.err


def test_a_large_test_set_is_shown_before_it_is_downloaded(
    small_set: PlainTextDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public, "LARGE", 10)
    outcome = run_nmt("fetch", "sacrebleu:small/test", "en-de")
    assert outcome.code == 2 and "--large" in outcome.err and not Path("data").exists()


# --- lists


def test_the_list_shows_sizes_and_licences(server: Server, small_set: PlainTextDataset) -> None:
    outcome = run_nmt("fetch", "--list", "en-de")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0].startswith("nmt fetch sacrebleu:small/test en-de")
    assert "nmt fetch tatoeba en-de" in lines[1] and "CC BY 2.0 FR" in lines[1]
    assert "nmt fetch opus:CCAligned en-de  100 pairs, 535.4 MB" in outcome.out
    assert "nmt fetch opus:Tatoeba en-de" in run_nmt("fetch", "--list").out.replace("CORPUS", "Tatoeba")


def test_without_a_network_the_message_is_plain(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_corpora, "OPUS", "http://127.0.0.1:1/opusapi/")
    outcome = run_nmt("fetch", "--list", "en-de")
    assert outcome.code == 2 and "cannot be reached: Connection refused. nmt fetch needs a network" in outcome.err
    assert "sacrebleu:wmt20" in outcome.out  # what needs none is listed
