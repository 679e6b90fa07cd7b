"""``nmt serve`` on the command line, with a trained run and a public client."""

import contextlib
import json
import os
import signal
import sys
import threading
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import nmt, small_pairs
from fake_service import fake_model
from libretranslatepy import LibreTranslateAPI
from running_service import SERVE, RunningService, started

from nmt.api import load
from nmt.serving.app import make_application
from nmt.serving.guard import Access
from nmt.serving.server import address, bind, run
from nmt.serving.service import Service, ServiceSettings
from nmt.text.translator import Translator


@pytest.fixture(scope="module")
def service(trained_project: Path) -> Iterator[RunningService]:
    with started([*SERVE, "base"], cwd=trained_project) as running:
        yield running


@pytest.fixture(scope="module")
def translator(trained_project: Path) -> Translator:
    with contextlib.chdir(trained_project):
        return load("base")


def test_the_public_client_works_unchanged(service: RunningService, translator: Translator) -> None:
    client = LibreTranslateAPI(service.url)
    assert {language["code"]: language["targets"] for language in client.languages()} == {"en": ["de"], "de": []}
    sentences = [source for source, _ in small_pairs(20)]
    expected = "".join(f"{line}\n" for line in translator.translate(sentences))
    text = "\n".join(sentences) + "\n"
    assert client.translate(text, "en", "de") == expected
    assert client.translate(text, "auto", "de") == expected
    german = "Der Hund läuft im Park."
    assert client.translate(german, "auto", "de") == client.translate(german, "DE", "de") == german
    assert [detected["language"] for detected in client.detect("im thirsty")] == ["en", "de"]
    for text, target, status, problem in (
        ("im thirsty", "zz", 400, "zz is not supported"),
        ("im thirsty " * 1_000_000, "de", 413, "The body has more than 256384 bytes"),
    ):
        with pytest.raises(urllib.error.HTTPError) as refused:
            client.translate(text, "en", target)
        assert (refused.value.code, json.load(refused.value)["error"]) == (status, problem)


def test_alternatives_and_details_come_from_beam_search(service: RunningService, translator: Translator) -> None:
    decoding = translator.config.decoding.model_copy(update={"beam_size": 4})
    beam = translator.reconfigured(decoding)
    [expected] = beam.translate_n_best(["im one two"], 3)
    values = {"q": "im one two", "source": "en", "target": "de"}
    [sentence] = service.post("/details", **values, alternatives=2).json()["sentences"]
    texts = [translation.text for translation in expected]
    scores = [translation.score for translation in expected]
    assert [translation["text"] for translation in sentence["translations"]] == texts
    assert [translation["score"] for translation in sentence["translations"]] == pytest.approx(scores, abs=1e-3)
    rows, columns = sentence["target_tokens"], sentence["source_tokens"]
    assert "".join(columns) == "im one two"
    assert [len(row) for row in sentence["attention"]] == [len(columns)] * len(rows)
    assert all(0 <= weight <= 1 for row in sentence["attention"] for weight in row)
    answer = service.post("/translate", **values, alternatives=2).json()
    assert answer == {"translatedText": texts[0], "alternatives": texts[1:]}


def test_a_service_restores_signal_handlers_and_ends_its_threads() -> None:
    answers = []

    def use() -> None:
        answers.append(httpx.get(address(bound), trust_env=False).status_code)
        values = {"q": "<p>one</p>", "source": "auto", "target": "de", "format": "html"}
        answers.append(httpx.post(f"{address(bound)}/translate", json=values, trust_env=False).json()["translatedText"])
        os.kill(os.getpid(), signal.SIGTERM)

    def state() -> list[Any]:
        return [signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT), set(threading.enumerate())]

    before = state()
    client = threading.Thread(target=use)
    with bind("127.0.0.1", 0) as bound:
        run(make_application(Service([fake_model()], ServiceSettings()), Access(), client.start), bound)
    for thread in set(threading.enumerate()) - before[-1]:
        thread.join(10)  # the client, and threads that read files until their event loop ends
    assert answers == [200, "<p>de:ONE</p>"]
    assert state() == before


@pytest.mark.slow
def test_an_export_is_served_without_tensorflow_to_other_machines_with_a_key(project: Path) -> None:
    nmt("export", "--run", "base", "--to", "ctranslate2", "--output", "exported", cwd=project)
    with contextlib.chdir(project):
        [expected] = load("base").translate(["im thirsty"])
    (project / "keys.txt").write_text("secret\n")
    command = [*SERVE, "./exported", "--host", "0.0.0.0", "--api-keys", "keys.txt"]
    with started(command, cwd=project) as service:
        assert service.translate("im thirsty", api_key="secret") == {"translatedText": expected}
        assert service.post("/translate", q="im thirsty", source="en", target="de").status_code == 400
        values = {"q": "im one two", "source": "en", "target": "de", "alternatives": 1, "api_key": "secret"}
        [sentence] = service.post("/details", **values).json()["sentences"]
        assert len(sentence["translations"]) == 2
        assert len(sentence["attention"]) == len(sentence["target_tokens"])
        if sys.platform == "linux":
            assert "tensorflow" not in Path(f"/proc/{service.process.pid}/maps").read_text()
