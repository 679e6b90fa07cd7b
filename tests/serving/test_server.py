"""``nmt serve`` as a user types it, with a trained run and a public client."""

import concurrent.futures
import contextlib
import signal
import sys
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from conftest import nmt, small_pairs
from libretranslatepy import LibreTranslateAPI
from running_service import RunningService, started

from nmt.api import load
from nmt.decoding.run_translator import RunTranslator

SERVE = [sys.executable, "-c", "from nmt.cli.app import main; main()", "serve", "--port", "0"]


@pytest.fixture(scope="module")
def service(trained_project: Path) -> Iterator[RunningService]:
    with started([*SERVE, "base"], cwd=trained_project) as running:
        yield running


@pytest.fixture(scope="module")
def translator(trained_project: Path) -> Iterator[RunTranslator]:
    with contextlib.chdir(trained_project):
        yield load("base", decoding={"beam_size": 4})


def test_the_public_client_works_unchanged(service: RunningService, trained_project: Path) -> None:
    client = LibreTranslateAPI(service.url)
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": []},
    ]
    sentences = [source for source, _ in small_pairs(20)]
    with contextlib.chdir(trained_project):
        expected = "".join(f"{line}\n" for line in load("base").translate(sentences))
    text = "\n".join(sentences) + "\n"
    assert client.translate(text, "en", "de") == expected
    assert client.translate(text, "auto", "de") == expected
    assert [each["language"] for each in client.detect("im thirsty")] == ["en"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        client.translate("im thirsty", "en", "xx")
    assert refused.value.code == 400


def test_many_clients_get_what_a_single_one_gets(service: RunningService) -> None:
    texts = [
        f"{first}\n\n{second}."
        for first, second in zip(*[iter([pair[0] for pair in small_pairs(48)])] * 2, strict=True)
    ]

    def translate(text: str) -> str:
        return str(LibreTranslateAPI(service.url).translate(text, "en", "de"))

    alone = [translate(text) for text in texts]
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        assert list(pool.map(translate, texts)) == alone


def test_alternatives_and_details_are_those_of_beam_search(service: RunningService, translator: RunTranslator) -> None:
    [expected] = translator.translate_n_best(["im one two"], 3)
    values = {"q": "im one two", "source": "en", "target": "de"}
    [sentence] = service.post("/details", **values, alternatives=2).json()["sentences"]
    assert [each["text"] for each in sentence["translations"]] == [each.text for each in expected]
    assert [each["score"] for each in sentence["translations"]] == pytest.approx(
        [each.score for each in expected], abs=1e-3
    )
    rows, columns = sentence["target_tokens"], sentence["source_tokens"]
    assert "".join(columns) == "im one two"
    assert [len(row) for row in sentence["attention"]] == [len(columns)] * len(rows)
    assert all(0 <= weight <= 1 for row in sentence["attention"] for weight in row)
    answer = service.post("/translate", **values, alternatives=2).json()
    assert answer == {
        "translatedText": expected[0].text, "alternatives": [each.text for each in expected[1:]]
    }  # fmt: skip


def test_a_port_in_use_is_a_message(service: RunningService, trained_project: Path) -> None:
    done = nmt("serve", "--port", str(service.port), cwd=trained_project, code=2)
    assert done.stderr.startswith(f"nmt: Port {service.port} of 127.0.0.1 is in use. ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_service_for_other_machines_says_so(trained_project: Path) -> None:
    keys = trained_project / "keys.txt"
    keys.write_text("secret\n")
    for extra, words in (
        ([], "API keys are off: anyone can use it."),
        (["--api-keys", "keys.txt"], "API keys are on."),
    ):
        with started([*SERVE, "--host", "0.0.0.0", *extra], cwd=trained_project) as service:
            url = f"http://127.0.0.1:{service.port}"
            assert httpx.get(f"{url}/health", headers={"host": "any.name"}, trust_env=False).status_code == 200
            service.process.send_signal(signal.SIGINT)
            _, errors = service.process.communicate(timeout=60)
            assert service.process.returncode == 0
        assert errors.startswith("nmt: the service is reachable from other machines at http://0.0.0.0:")
        assert errors.rstrip().endswith(words)


@pytest.mark.slow
def test_an_export_is_served_without_tensorflow(project: Path) -> None:
    nmt("export", "--run", "base", "--to", "ctranslate2", "--output", "exported", cwd=project)
    with contextlib.chdir(project):
        [expected] = load("base").translate(["im thirsty"])
    with started([*SERVE, "./exported"], cwd=project) as service:
        assert service.translate("im thirsty") == {"translatedText": expected}
        [sentence] = service.post("/details", q="im one two", source="en", target="de", alternatives=1).json()[
            "sentences"
        ]
        assert len(sentence["translations"]) == 2
        assert len(sentence["attention"]) == len(sentence["target_tokens"])
        if sys.platform == "linux":
            assert "tensorflow" not in Path(f"/proc/{service.process.pid}/maps").read_text()
