"""A service of a run with several language pairs: each is a pair of the protocol, and all share the model."""

import contextlib
import json
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import nmt
from libretranslatepy import LibreTranslateAPI
from running_service import SERVE, RunningService, started

from nmt.errors import ConflictError, NmtError
from nmt.serving.models import SCORED, open_models, warm_up
from nmt.serving.service import Service, ServiceSettings
from nmt.text.translator import USUAL

SENTENCES = {"en": "im one two three", "de": "ich bin eins zwei drei", "fr": "je suis un deux trois"}
PAIRS = [("en", "de"), ("en", "fr"), ("de", "en"), ("fr", "en")]


@pytest.fixture(scope="module")
def service(multilingual_project: Path) -> Iterator[RunningService]:
    terms = multilingual_project / "terms.tsv"
    terms.write_text("two\tsieben\n")
    with started([*SERVE, "four", "--glossary", f"terms={terms}"], cwd=multilingual_project) as running:
        yield running


def test_the_public_client_translates_each_pair(service: RunningService) -> None:
    client = LibreTranslateAPI(service.url)
    targets = {language["code"]: language["targets"] for language in client.languages()}
    assert targets == {"en": ["de", "fr"], "de": ["en"], "fr": ["en"]}
    for source, target in PAIRS:
        assert client.translate(SENTENCES[source], source, target) == SENTENCES[target]
    for target in ("de", "fr"):
        assert client.translate(SENTENCES["en"], "auto", target) == SENTENCES[target]
    for source in ("de", "fr"):
        assert client.translate(SENTENCES[source], "auto", "en") == SENTENCES["en"]
    assert client.detect(SENTENCES["fr"])[0]["language"] == "fr"
    with pytest.raises(urllib.error.HTTPError) as refused:  # never seen together
        client.translate(SENTENCES["de"], "de", "fr")
    assert json.load(refused.value)["error"] == "French (fr) is not available as a target language from German (de)"


def test_an_ensemble_is_served_as_one_model(multilingual_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(multilingual_project)
    model, *others = open_models("four+four", None, {"target_language": "fr", "source_language": "en"}, 1)
    assert model.description.startswith("run four+four, ") and not others
    [result] = model.translate([SENTENCES["en"]], USUAL)
    assert result.translations[0].text == SENTENCES["fr"]


def test_alternatives_glossaries_documents_and_details_are_of_the_pair(service: RunningService) -> None:
    values = {"q": SENTENCES["en"], "source": "en", "target": "fr"}
    answer = service.post("/translate", **values, alternatives=2).json()
    assert answer["translatedText"] == SENTENCES["fr"] and answer["alternatives"]
    assert "sieben" in service.translate(SENTENCES["en"], glossary="terms")["translatedText"]
    kept = service.post("/translate", **values, keep=["two"]).json()["translatedText"]
    assert "two" in kept.split()
    [sentence] = service.post("/details", **values).json()["sentences"]
    assert "".join(sentence["source_tokens"]).strip() == SENTENCES["en"]
    assert {len(row) for row in sentence["attention"]} == {len(sentence["source_tokens"])}
    files = {"file": ("a.html", f"<p>{SENTENCES['fr']}</p>".encode())}
    sent = service.client.post("/translate_file", data={"source": "fr", "target": "en"}, files=files).json()
    assert service.client.get(sent["translatedFileUrl"]).text == f"<p>{SENTENCES['en']}</p>"
    metrics = service.client.get("/metrics").text
    assert 'nmt_sentences_total{source="en",target="fr"}' in metrics
    assert 'nmt_sentences_total{source="fr",target="en"}' in metrics


def test_all_pairs_share_the_weights_and_the_compiled_searches(multilingual_project: Path) -> None:
    with contextlib.chdir(multilingual_project):
        models = open_models("four", None, {}, 3)
        assert [tuple(model.pair) for model in models] == PAIRS
        engines = [model._translator.engine for model in models]
        assert len({id(engine.model) for engine in engines}) == 1  # type: ignore[attr-defined]
        warm_up(models)
        compiled = engines[0]._compiled  # type: ignore[attr-defined]
        count = len(compiled)
        for model in models:
            for options in (USUAL, SCORED, model.alternatives):
                [result] = model.translate([SENTENCES[model.pair.source]], options)
                assert result.translations[0].text == SENTENCES[model.pair.target]
        assert len(compiled) == count and all(engine._compiled is compiled for engine in engines)  # type: ignore[attr-defined]
        assert all(function.experimental_get_tracing_count() == 1 for function in compiled.values())
        with pytest.raises(ConflictError, match="Two models translate en to de: run four, average, and run four"):
            Service([*models, *open_models("four", None, {}, 3)], ServiceSettings())


def test_settings_choose_pairs_and_one_that_was_never_seen(multilingual_project: Path) -> None:
    def pairs(**languages: str) -> list[tuple[str, str]]:
        return [tuple(model.pair) for model in open_models("four", None, languages, 3)]

    with contextlib.chdir(multilingual_project):
        assert pairs(target_language="en") == [("de", "en"), ("fr", "en")]
        assert pairs(source_language="en", target_language="fra") == [("en", "fr")]
        assert pairs(source_language="de", target_language="fr") == [("de", "fr")]
        with pytest.raises(NmtError, match="does not know this language"):
            pairs(target_language="tr")


@pytest.mark.slow
def test_an_export_has_the_same_pairs(multilingual_project: Path, tmp_path: Path) -> None:
    folder = str(tmp_path / "exported")
    nmt("export", "--run", "four", "--to", "ctranslate2", "--output", folder, cwd=multilingual_project)
    with started([*SERVE, folder], cwd=multilingual_project) as service:
        client = LibreTranslateAPI(service.url)
        for source, target in PAIRS:
            assert client.translate(SENTENCES[source], source, target) == SENTENCES[target]
