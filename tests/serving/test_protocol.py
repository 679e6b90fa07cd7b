"""The protocol over HTTP, with fake models: answers, errors and limits."""

import asyncio
import concurrent.futures
import contextlib
import gzip
import http.client
import json
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fake_service import fake_model
from running_service import RunningService, fake_service

from nmt.serving.detection import Detector
from nmt.serving.service import Service, ServiceSettings
from nmt.serving.texts import SplitTexts

MOST = 2_000


@pytest.fixture(scope="module")
def service() -> Iterator[RunningService]:
    with fake_service(max_characters=MOST, max_document_characters=2 * MOST) as running:
        yield running


def error(answer: httpx.Response, status: int) -> str:
    """Return the message of a refusal, after checking its status."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == ["error", "detail"]
    return "{error}. {detail}".format(**answer.json())


# --- translations


def test_a_string_and_a_list(service: RunningService) -> None:
    assert service.translate("one") == {"translatedText": "de:ONE"}
    assert service.translate(["one", "", "two"]) == {"translatedText": ["de:ONE", "", "de:TWO"]}
    assert service.translate("") == {"translatedText": ""}


def test_glossaries_and_confidence(service: RunningService) -> None:
    with_terms = {"source": "en", "target": "de", "glossary": "numbers"}
    assert service.post("/translate", q="one", **with_terms).json() == {"translatedText": "de:ONE terms"}
    answer = service.post("/translate", q=["one", "two", ""], confidence=True, alternatives=1, **with_terms).json()
    assert answer["translatedText"] == ["de:ONE terms", "de:TWO", ""]
    assert answer["confidence"] == [0.75, 0.25, None]
    [details] = service.post("/details", q="two", **with_terms).json()["sentences"]
    [best] = details["translations"]
    assert (best["confidence"], best["check"], best["words"]) == (0.25, True, [["de:TWO", 0.5]])
    refused = service.post("/translate", q="one", source="en", target="de", glossary="other")
    assert error(refused, 400) == "There is no glossary other. The service has numbers."
    refused = service.post("/translate", q="one", source="en", target="de", confidence="perhaps")
    assert "true or false" in error(refused, 400)


def test_words_that_stay(service: RunningService) -> None:
    request = {"source": "en", "target": "de"}
    for keep in (["two"], "two", "three\n\ntwo\n"):
        answer = service.post("/translate", q=["one", "two"], keep=keep, **request).json()
        assert answer["translatedText"] == ["de:ONE", "de:TWO terms"]
    both = service.post("/translate", q=["one", "two"], keep=["two"], glossary="numbers", **request).json()
    assert both["translatedText"] == ["de:ONE terms", "de:TWO terms"]
    as_form = service.client.post("/translate", data={"q": "two", "keep": "two\nthree", **request})
    assert as_form.json() == {"translatedText": "de:TWO terms"}
    for keep in ([], "", None):
        assert service.translate("two", keep=keep) == {"translatedText": "de:TWO"}
    refused = service.post("/translate", q="two", keep=["two", "other"], **request)
    assert "keep 'other' has the word 'other', which the model never saw" in error(refused, 400)
    refused = service.post("/translate", q="two", keep=["two"] * 1_001, **request)
    assert "a list of at most 1,000 texts" in error(refused, 400)


def test_forms(service: RunningService) -> None:
    values = {"q": "one & two=ü", "source": "en", "target": "de", "alternatives": "1", "format": ""}
    as_form = service.client.post("/translate", data=values)
    as_parts = service.client.post("/translate", files={name: (None, value) for name, value in values.items()})
    as_json = service.post("/translate", **values)
    # As curl -d sends it: UTF-8 that is not percent-encoded.
    typed = "q=one %26 two=ü&source=en&target=de&alternatives=1&format="
    headers = {"content-type": "application/x-www-form-urlencoded"}
    as_typed = service.client.post("/translate", content=typed.encode(), headers=headers)
    expected = {"translatedText": "de:ONE & TWO=Ü", "alternatives": ["de:ONE & TWO=Ü 2"]}
    assert as_form.json() == as_parts.json() == as_json.json() == as_typed.json() == expected


def test_lists_of_forms_and_parameters_in_the_address(service: RunningService) -> None:
    pair = {"source": "en", "target": "de"}
    two = {"translatedText": ["de:ONE", "de:TWO"]}
    for names in (("q", "q"), ("q[]", "q[]"), ("q[0]", "q[1]")):
        body = "&".join(f"{name}={text}" for name, text in zip(names, ("one", "two"), strict=True))
        headers = {"content-type": "application/x-www-form-urlencoded"}
        assert service.client.post("/translate", params=pair, content=body, headers=headers).json() == two
        assert service.client.post(f"/translate?{body}&source=en&target=de").json() == two
    assert service.client.post("/translate", data={"q[]": "one", **pair}).json() == {"translatedText": ["de:ONE"]}
    many = service.client.post("/translate", data={"q[]": ["one"] * 200, **pair}).json()
    assert many == {"translatedText": ["de:ONE"] * 200}
    # The form has precedence. JSON is complete, as for LibreTranslate.
    answer = service.client.post("/translate", params={"q": "two", "format": "html", **pair}, data={"q": "one<br>"})
    assert answer.json() == {"translatedText": "de:ONE<br>"}
    assert "missing source" in error(service.client.post("/translate", params=pair, json={"q": "one"}), 400)
    answer = service.client.post("/translate_file", params=pair, files={"file": ("a.html", b"one")})
    assert answer.json()["translatedFileUrl"].endswith(".de.html")
    assert service.client.post("/detect", params={"q": FRENCH}).json()[0]["language"] == "fr"


def test_white_space_lines_and_paragraphs_stay(service: RunningService) -> None:
    text = "  One.  Two.\r\n\r\n\tthree\n\n... 😀\n"
    assert service.translate(text)["translatedText"] == "  de:ONE.  de:TWO.\r\n\r\n\tde:THREE\n\n... 😀\n"


def test_html(service: RunningService) -> None:
    text = '<p title="one">One &lt; <b>two</b>.</p><!-- c --><p translate="no">three</p>'
    assert service.translate(text, format="html", alternatives=1) == {
        "translatedText": '<p title="de:ONE">de:ONE &lt; <b>TWO</b>.</p><!-- c --><p translate="no">three</p>',
        "alternatives": ['<p title="de:ONE 2">de:ONE &lt; <b>TWO</b>. 2</p><!-- c --><p translate="no">three</p>'],
    }
    page = '<html lang="en"><input placeholder=one><p lang="fr">two'
    expected = '<html lang="de"><input placeholder="de:ONE"><p lang="fr">de:TWO'
    assert service.translate(page, format="html")["translatedText"] == expected


def sent(service: RunningService, name: str, content: bytes, **values: str) -> httpx.Response:
    fields = {"source": "en", "target": "de", **values}
    return service.client.post("/translate_file", data=fields, files={"file": (name, content)})


def test_a_document_is_translated_as_by_libretranslate(service: RunningService) -> None:
    settings = service.client.get("/frontend/settings").json()
    assert settings["filesTranslation"] and {".html", ".srt", ".docx"} <= {*settings["supportedFilesFormat"]}
    answer = sent(service, "page.HTML", b"<p>One <b>two</b>.</p>\r\n", source="auto")
    url = answer.json()["translatedFileUrl"]
    assert url.startswith(f"{service.url}/download_file/") and url.endswith(".de.html")
    page = service.client.get(url)
    assert page.content == b"<p>de:ONE <b>TWO</b>.</p>\r\n"
    assert page.headers["content-disposition"].startswith("attachment; ")
    assert list(answer.json()) == ["translatedFileUrl"]
    url = sent(service, "A.txt", "One two.\n\n  Öne\r\n".encode()).json()["translatedFileUrl"]
    assert url.endswith(".de.txt") and service.client.get(url).content == "de:ONE TWO.\n\n  de:ÖNE\r\n".encode()
    assert {".txt", ".xlf", ".json", ".po"} <= {*settings["supportedFilesFormat"]}
    answer = sent(service, "page.html", b"<script>1</script>" + b"one two. " * 300)  # more than a text may have
    assert answer.json()["note"] == "Not translated: 1 script."
    assert service.client.get(answer.json()["translatedFileUrl"]).content.count(b"ONE TWO.") == 300


def test_a_template_becomes_a_catalogue_with_fuzzy_marks(service: RunningService) -> None:
    answer = sent(service, "a.pot", b'msgid "one"\nmsgstr ""\n', fuzzy="true")
    url = answer.json()["translatedFileUrl"]
    assert url.endswith(".de.po")
    assert service.client.get(url).content == b'#, fuzzy\nmsgid "one"\nmsgstr "de:ONE"\n'


@pytest.mark.parametrize(
    ("name", "content", "values", "words"),
    [
        ("a.exe", b"a", {}, "Invalid request: file format not supported. Send one of .html, "),
        ("a.docx", b"a", {}, "Invalid request: the file is damaged. a.docx is not a Word document"),
        ("a.html", b"a" * 4_001, {}, "Invalid request: request (4001) exceeds text limit (4000)"),
        ("a.html", b"a", {"target": "zz"}, "zz is not supported. "),
        ("a.html", b"a", {"source": ""}, "Invalid request: missing source parameter. "),
        ("", b"a", {}, "Invalid request: missing file parameter. "),
    ],
)
def test_wrong_files(service: RunningService, name: str, content: bytes, values: dict[str, str], words: str) -> None:
    assert words in error(sent(service, name, content, **values), 400)


def test_alternatives(service: RunningService) -> None:
    assert service.translate("one", alternatives=2)["alternatives"] == ["de:ONE 2", "de:ONE 3"]
    assert service.translate(["one", "!"], alternatives=1)["alternatives"] == [["de:ONE 2"], []]
    assert "alternatives" not in service.translate("one", alternatives=-1)


ENGLISH, FRENCH = "The house is on the other side of the street.", "La maison est de l'autre côté de la rue."


def test_the_source_language_is_detected(service: RunningService) -> None:
    answer = service.translate(FRENCH, source="auto")
    assert answer["detectedLanguage"]["language"] == "fr"
    assert 50 < answer["detectedLanguage"]["confidence"] <= 100
    answer = service.translate([ENGLISH, FRENCH], source="auto")
    assert [detected["language"] for detected in answer["detectedLanguage"]] == ["en", "fr"]


GERMAN = "Das Haus ist auf der anderen Seite der Straße."


def test_a_text_in_the_target_language_stays(service: RunningService) -> None:
    answer = service.translate(GERMAN, source="auto")
    assert (answer["translatedText"], answer["detectedLanguage"]["language"]) == (GERMAN, "de")
    page = f"<p lang=de-AT title='a'>{GERMAN}<br> &nbsp;"
    answer = service.translate([page, ENGLISH], source="auto", format="html", alternatives=1, confidence=True)
    assert answer["translatedText"] == [page, f"de:{ENGLISH.upper()}"]
    assert (answer["alternatives"], answer["confidence"]) == ([[], [f"de:{ENGLISH.upper()} 2"]], [None, 0.75])
    texts = ["Das Haus ist auf der Straße.", "Berlin", "The house is on the street."]
    assert service.translate(texts, source="auto")["translatedText"] == [*texts[:2], f"de:{texts[2].upper()}"]
    assert service.translate(GERMAN, source="de-AT") == {"translatedText": GERMAN}
    assert service.translate("one\n", source="EN", target="en_US") == {"translatedText": "one\n"}
    [details] = service.post("/details", q=GERMAN, source="auto", target="de").json()["sentences"]
    assert (details["source"], details["translations"][0]["text"], details["target_tokens"]) == (GERMAN, GERMAN, [])
    url = sent(service, "a.html", page.encode(), source="auto").json()["translatedFileUrl"]
    assert service.client.get(url).content == page.encode()


@pytest.mark.parametrize("text", ["", "123", "?! 😀", "12:45 – 10³", "٣٤", "१२"])
def test_the_service_says_when_it_cannot_tell_the_language(service: RunningService, text: str) -> None:
    answer = service.translate(text, source="auto")
    assert answer == {
        "translatedText": answer["translatedText"],
        "detectedLanguage": {"confidence": 0, "language": "en"},
    }
    if not any(map(str.isalnum, text)):
        assert answer["translatedText"] == text
    assert {detected["confidence"] for detected in service.post("/detect", q=text or " ").json()} == {0}


@pytest.mark.parametrize(("target", "text"), [
    ("de", "Ein Mann liest ein Buch im Park."), ("zh-Hans", "一个男人在公园里看书。"),
    ("ar", "رجل يقرأ كتابا في الحديقة."), ("hi", "एक आदमी पार्क में किताब पढ़ रहा है।"),
    ("tr", "Bir adam parkta kitap okuyor."),
])  # fmt: skip
def test_the_target_language_is_detected(target: str, text: str) -> None:
    detector = Detector()
    english = "A man is reading a book in the park."
    assert detector.detect_each([text], ["en"], target)[0].language == target
    assert detector.detect_each([english], ["en"], target)[0].language == "en"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("im thirsty", ["en", "de"]), ("im tired", ["en", "de"]), ("i dont know", ["en"]), ("im haus", ["de"]),
        ("ich bin durstig", ["de"]), ("Im Haus ist es kalt.", ["de"]), ("I'm thirsty", ["en"]),
    ],
)  # fmt: skip
def test_words_that_contradict_each_other_make_two_languages_equally_likely(text: str, expected: list[str]) -> None:
    detected = Detector().detect(text, ["en", "de"])
    likeliest = [language for language in detected if language.confidence == detected[0].confidence]
    assert [language.language for language in likeliest] == expected


@pytest.mark.corpora
def test_languages_are_distinguished(corpora: Path) -> None:
    pairs = np.load(corpora / "english-german-both.pkl", allow_pickle=True)[:1_000]
    files = [corpora / "multi30k" / f"test_2016_flickr.{language}.gz" for language in ("en", "de")]
    captions = [gzip.decompress(path.read_bytes()).decode().splitlines()[:300] for path in files]
    detector = Detector()
    for sides, threshold in ((pairs.T.tolist(), 0.95), (captions, 0.99)):
        for language, texts in zip(("en", "de"), sides, strict=True):
            languages = [detector.detect(text, ["en", "de"])[0].language for text in texts]
            assert languages.count(language) / len(texts) > threshold, language


def test_codes_in_other_spellings_and_varieties_are_understood(service: RunningService) -> None:
    for source, target in (("en-US", "de"), ("EN", "de_CH"), ("eng", "deu")):
        assert service.translate("one", source=source, target=target)["translatedText"] == "de:ONE"
    detailed = service.post("/details", q="one", source="fr-CA", target="de-DE").json()
    assert detailed["sentences"][0]["translations"][0]["text"] == "de:ONE"
    answer = service.post("/translate", q="one", source="en", target="zh-Hans")
    assert error(answer, 400).startswith("zh-Hans is not supported")
    assert service.translate(FRENCH, source="AUTO")["detectedLanguage"]["language"] == "fr"


def test_codes_of_libretranslate_are_understood() -> None:
    service = Service([fake_model("en", "zh-Hant"), fake_model("pt-BR", "en")], ServiceSettings())

    async def pair_of(source: str, target: str) -> tuple[str, str]:
        [pair], _ = await service._pairs(["a"], source, target)
        return pair

    assert asyncio.run(pair_of("en", "zt")) == ("en", "zh-Hant")
    assert asyncio.run(pair_of("pb", "EN")) == ("pt-BR", "en")
    assert asyncio.run(pair_of("pt", "en-GB")) == ("pt-BR", "en")


def test_what_is_not_known_of_a_language_is_noted_once() -> None:
    pairs = [("en", "de"), ("shp", "es"), ("shp", "en"), ("tr", "de"), ("zh-Hans", "en")]
    service = Service([fake_model(*pair) for pair in pairs], ServiceSettings())
    assert service.notes() == [
        "sentences of Shipibo-Konibo (shp) are split by the rules of English, so a sentence may end after an "
        "abbreviation: sentencex has no rules for the language",
        "sentences of Turkish (tr) are split by the rules of English, so a sentence may end after an abbreviation: "
        "sentencex has no rules for the language",
        "the language detector does not know Shipibo-Konibo (shp); requests should give the source",
    ]
    assert Service([fake_model("en", "de")], ServiceSettings()).notes() == []


def test_detect(service: RunningService) -> None:
    first, second, _ = service.post("/detect", q=FRENCH).json()
    assert first["language"] == "fr"
    assert service.post("/detect", q=GERMAN).json()[0]["language"] == "de"
    assert first["confidence"] > second["confidence"]
    assert service.post("/detect", q=[FRENCH, FRENCH]).json()[0]["language"] == "fr"
    assert {detected["language"] for detected in service.client.post("/detect", data={"q": "\0 ?"}).json()} == {
        "fr",
        "en",
        "de",
    }
    assert error(service.post("/detect"), 400).startswith("Invalid request: missing q parameter. ")


def test_languages(service: RunningService) -> None:
    assert service.client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["de", "fr"], "direction": "ltr"},
        {"code": "fr", "name": "French", "targets": ["de"], "direction": "ltr"},
        {"code": "de", "name": "German", "targets": [], "direction": "ltr"},
    ]


def test_details(service: RunningService) -> None:
    answer = service.post("/details", q=" One two.\n\n?!\nthree", source="en", target="de", alternatives=1).json()
    start, first, marks, last = answer["sentences"]
    assert (start["source"], start["separator"], start["translations"][0]["text"]) == ("", " ", "")
    assert (marks["source"], marks["translations"][0]["text"], marks["attention"]) == ("?!", "?!", None)
    assert first["separator"] == first["target_separator"] == "\n\n"
    assert [translation["text"] for translation in first["translations"]] == ["de:ONE TWO.", "de:ONE TWO. 2"]
    assert [translation["score"] for translation in first["translations"]] == [0.0, -1.0]
    assert first["translations"][0]["unknown"] == ["One", "two."]
    assert last["source_tokens"] == last["target_tokens"] == ["three"]
    assert first["source_tokens"] == ["<unk>", " <unk>"]
    assert [len(row) for row in first["attention"]] == [2, 2]
    single = service.post("/details", q="one", source="auto", target="de").json()
    assert single["detectedLanguage"]["language"] in ("en", "fr")
    assert len(single["sentences"][0]["translations"]) == 1


def test_other_endpoints(service: RunningService) -> None:
    assert service.client.get("/health").json() == {"status": "ok"}
    assert service.client.get("/frontend/settings").json()["keyRequired"] is False
    page = service.client.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<html" in page.text
    assert service.client.head("/").headers["content-length"] == str(len(page.content))
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert service.client.get("/static/index.html").content == page.content


def test_the_interface_is_described(service: RunningService) -> None:
    paths = service.client.get("/spec").json()["paths"]
    assert set(paths) == {
        "/translate",
        "/translate_file",
        "/detect",
        "/details",
        "/languages",
        "/health",
        "/frontend/settings",
    }
    body = paths["/translate"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["q", "source", "target"]


def test_metrics(service: RunningService) -> None:
    service.translate("One. Two.")
    lines = dict(line.rsplit(" ", 1) for line in service.client.get("/metrics").text.splitlines() if line[0] != "#")
    assert float(lines['nmt_requests_total{endpoint="/translate",status="200"}']) >= 1
    assert float(lines['nmt_sentences_total{source="en",target="de"}']) >= 2
    assert float(lines["nmt_batch_sentences_count"]) >= 1
    assert float(lines["nmt_queue_requests"]) == float(lines["nmt_queue_sentences"]) == 0
    assert all(name.startswith("nmt_") for name in lines)


# --- refusals


@pytest.mark.parametrize(
    ("values", "status", "words"),
    [
        # The words of LibreTranslate, which its clients match
        ({"source": ..., "target": ...}, 400, "Invalid request: missing q parameter. Send q, as JSON or in a form."),
        ({"q": []}, 400, "Invalid request: missing q parameter. "),
        ({"q": "a", "source": ...}, 400, "Invalid request: missing source parameter. "),
        ({"q": "a", "target": ""}, 400, "Invalid request: missing target parameter. "),
        ({"q": "a", "source": "zz"}, 400, "zz is not supported. The service translates en to de, fr to de, en to fr."),
        ({"q": "a", "target": "zz"}, 400, "zz is not supported. "),
        ({"q": "a", "source": "auto", "target": "auto"}, 400, "auto is not supported. "),
        ({"q": "a", "source": "fr", "target": "en"}, 400,
         "English (en) is not available as a target language from French (fr). "),
        ({"q": "a", "source": "auto", "target": "en"}, 400, "English (en) is not available as a target language. "),
        ({"q": "a", "format": "xml"}, 400, "xml format is not supported. It must be text or html."),
        ({"q": "a", "alternatives": "abc"}, 400, "Invalid request: alternatives parameter is not a number. "),
        ({"q": "a", "alternatives": 4}, 400, "Invalid request: alternatives parameter must be <= 3. Received 4."),
        ({"q": "a", "alternatives": 10**30}, 400, "Invalid request: alternatives parameter must be <= 3. "),
        ({"q": "a" * 2_001}, 400, "Invalid request: request (2001) exceeds text limit (2000). "),
        ({"q": ["a" * 1_000, "b" * 1_001]}, 400, "Invalid request: request (2001) exceeds text limit (2000). "),
        ({"q": [""] * 2_001}, 400, "Invalid request: request (2001) exceeds text limit (2000). "),
        ({"q": "\ud800"}, 400, "Invalid JSON format. "),
        # Our own
        ({"q": None}, 400, "The parameter q is None. It must be text."),
        ({"q": 7}, 400, "It must be text"),
        ({"q": ["a", 7]}, 400, "It must be text"),
        ({"q": {"a": 1}}, 400, "It must be text"),
        ({"q": "a", "source": ["en"]}, 400, "It must be text"),
        ({"q": "a", "more": "b" * 50_000}, 413, "The body has more than 40384 bytes. "),
        ({"q": "one. poison. two"}, 500, "The service failed to answer this request. The reason is in its log."),
    ],
)  # fmt: skip
def test_wrong_parameters(service: RunningService, values: dict[str, Any], status: int, words: str) -> None:
    parameters = {"source": "en", "target": "de", **values}
    body = json.dumps({name: value for name, value in parameters.items() if value is not ...})
    answer = service.client.post("/translate", content=body, headers={"content-type": "application/json"})
    assert words in error(answer, status)
    assert service.translate("one") == {"translatedText": "de:ONE"}


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b""), ("application/json", b"{"), ("application/json", b"[]"), ("application/json", b"1"),
        ("application/json", b"\xff\xfe"), ("application/json", b"[" * 20_000), ("application/json", b"9" * 20_000),
        ("application/json", b'{"a":' * 3_000), ("text/plain", b"{}"), ("", b"q=a"), ("\xff", b"q=a"),
        ("multipart/form-data", b"x"), ("multipart/form-data; boundary=x", b"--x\r\n\r\n"),
        ("multipart/form-data; charset=utf-7; boundary=x",
         b'--x\r\ncontent-disposition: form-data; name="q"\r\n\r\n+2AA-'
         b"\r\n--x--\r\n"),
        ("multipart/form-data; boundary=x", b'--x\r\ncontent-disposition: form-data; name="q"; filename="/etc/passwd"'
         b"\r\n\r\na\r\n--x--\r\n"),
        ("application/x-www-form-urlencoded", b"&" * 20_000), ("application/x-www-form-urlencoded", b"a=b&" * 5_000),
        ("application/x-www-form-urlencoded", b"q=%ff%"), ("application/x-www-form-urlencoded", b"\xff"),
    ],
)  # fmt: skip
def test_wrong_bodies(service: RunningService, content_type: str, body: bytes) -> None:
    headers = {"content-type": content_type.encode("latin-1")}
    told = error(service.client.post("/translate", content=body, headers=headers), 400)
    assert told.startswith("Invalid JSON format. ") or content_type != "application/json"
    assert "surrogates not allowed" in told or "utf-7" not in content_type


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404), ("POST", "/nowhere/../../etc/passwd", 404), ("GET", "/static/../app.py", 404),
        ("GET", "/static/%2e%2e/app.py", 404), ("GET", "/static/..%2fapp.py", 404), ("GET", "/static//etc/passwd", 404),
        ("GET", "/static/", 404), ("GET", "/static/%00", 404),
        ("GET", "/translate", 405), ("TRACE", "/translate", 405), ("OPTIONS", "/translate", 405),
        ("GET", "/detect", 405), ("POST", "/languages", 405), ("POST", "/health", 405), ("POST", "/spec", 405),
        # As on a LibreTranslate server that disables them
        ("POST", "/suggest", 403), ("GET", "/translate_file", 405), ("GET", "/download_file/a.txt", 404),
        ("GET", "/download_file/..%2f..%2fetc%2fpasswd", 404),
    ],
)  # fmt: skip
def test_wrong_paths_and_methods(service: RunningService, method: str, path: str, status: int) -> None:
    refused = service.client.request(method, path)
    error(refused, status)
    allowed = "POST" if path in ("/translate", "/translate_file", "/detect") else "GET"
    assert status != 405 or allowed in refused.headers["allow"].split(", ")


def test_a_text_of_the_largest_length_fits_into_a_body_in_every_encoding(service: RunningService) -> None:
    assert service.translate("a" * MOST)["translatedText"].count("A") == MOST
    for path in ("/details", "/detect"):
        assert "exceeds text limit" in error(service.post(path, q="a" * 2_001, source="en", target="de"), 400)
    text = "\U0001f600" * MOST
    assert service.translate(text) == {"translatedText": text}
    answer = service.client.post("/translate", data={"q": text, "source": "en", "target": "de"})
    assert answer.json() == {"translatedText": text}


LONG = b'{"q": "' + b"a" * 20_000_000 + b'"}'  # more than the buffers of a connection hold


def by_http_client(url: str, body: Any, **headers: str) -> tuple[int, bytes]:
    with contextlib.closing(http.client.HTTPConnection(url.removeprefix("http://"))) as connection:
        connection.request("POST", "/translate", body, {"content-type": "application/json", **headers})
        answer = connection.getresponse()
        return answer.status, answer.read()


def by_httpx(url: str, body: bytes) -> tuple[int, bytes]:
    headers = {"content-type": "application/json"}
    answer = httpx.post(f"{url}/translate", content=body, headers=headers, trust_env=False)
    return answer.status_code, answer.content


@pytest.mark.parametrize(
    "send",
    [
        by_http_client, by_httpx,
        lambda url, body: by_http_client(url, body, connection="close"),  # as urllib, of LibreTranslate's client
        lambda url, body: by_http_client(url, iter([body[:9_999_999], body[9_999_999:]])),  # in chunks
    ],
)  # fmt: skip
def test_a_client_whose_body_is_too_long_reads_why(
    service: RunningService, send: Callable[[str, bytes], tuple[int, bytes]]
) -> None:
    status, answer = send(service.url, LONG)
    assert (status, list(json.loads(answer))) == (413, ["error", "detail"])


def test_a_body_that_never_ends_is_cut_off(service: RunningService) -> None:
    """The answer comes at once, and the connection closes within limits."""
    head = b"POST /%b HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 1%b\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        connection.sendall(head % (b"translate", b"0" * 12) + b" " * 50_000)
        assert connection.recv(65536).startswith(b"HTTP/1.1 413 ")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            for _ in range(2_000):
                connection.sendall(b" " * 100_000)
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        connection.sendall(head % (b"nowhere", b"0"))
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 404 ") and b"\r\nconnection: close\r\n" in answer


def test_other_sites_are_refused(service: RunningService) -> None:
    for headers in (
        {"origin": "http://evil.com"}, {"origin": "null"}, {"host": "evil.com"},
        {"host": "evil.com", "origin": "http://evil.com", "sec-fetch-site": "same-origin"},
    ):  # fmt: skip
        answer = service.client.post("/translate", data={"q": "a", "source": "en", "target": "de"}, headers=headers)
        error(answer, 403)
        assert "access-control-allow-origin" not in answer.headers
    preflight = {"origin": "http://evil.com", "access-control-request-method": "POST"}
    error(service.client.request("OPTIONS", "/translate", headers=preflight), 403)
    own = {"origin": service.url, "sec-fetch-site": "same-origin"}
    assert service.client.post("/detect", data={"q": "a"}, headers=own).status_code == 200


# --- services with settings of their own


@pytest.fixture(scope="module")
def strict_service() -> Iterator[RunningService]:
    """A service with API keys, allowed sites, and few connections."""
    access = {"api_keys": ["right"], "hosts": ["example.org"], "origins": ["https://example.org"]}
    with fake_service(**access, max_connections=30) as running:
        yield running


def test_keys(strict_service: RunningService) -> None:
    service = strict_service
    assert service.translate("one", api_key="right") == {"translatedText": "de:ONE"}
    values, missing = (
        {"q": "one", "source": "en", "target": "de"},
        "Please contact the server operator to get an API key.",
    )
    for path in ("/translate", "/detect", "/details"):
        assert missing in error(service.post(path, **values), 400)
        assert missing in error(service.post(path, **values, api_key=""), 400)
        assert "Invalid API key." in error(service.post(path, **values, api_key="rightright"), 403)
    assert service.client.get("/frontend/settings").json()["keyRequired"] is True
    assert len(service.client.get("/languages").json()) == 3


def test_sites_that_are_allowed(strict_service: RunningService) -> None:
    headers = {"origin": "https://example.org", "host": "example.org"}
    answer = strict_service.client.post("/detect", data={"q": "one", "api_key": "right"}, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://example.org"
    preflight = {**headers, "access-control-request-method": "POST"}
    answer = strict_service.client.request("OPTIONS", "/translate", headers=preflight)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == "https://example.org"
    assert "Content-Type" in answer.headers["access-control-allow-headers"]


def test_a_service_with_many_connections_refuses_requests(strict_service: RunningService) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(socket.create_connection(("127.0.0.1", strict_service.port), timeout=30))
        while (status := strict_service.client.get("/health").status_code) == 200:  # connections are being accepted
            time.sleep(0.01)
        assert status == 503
    while strict_service.client.get("/health").status_code == 503:
        time.sleep(0.01)


def test_full_queues_timeouts_disconnected_or_silent_clients_and_shutdown() -> None:
    with (
        fake_service(max_queue=2, timeout=1.0, batch_size=1) as service,
        concurrent.futures.ThreadPoolExecutor() as pool,
    ):

        def wait_for(line: str) -> None:
            while line not in service.client.get("/metrics").text:
                time.sleep(0.01)

        endless = {"q": "slow one. " * 100, "source": "en", "target": "de"}
        late = [pool.submit(service.post, "/translate", **endless) for _ in range(2)]
        wait_for("nmt_queue_requests 2.0")
        refused = service.post("/translate", q="one", source="en", target="de")
        assert "queue is full" in error(refused, 503)
        assert refused.headers["retry-after"] == "1"
        for answer in late:
            assert "took more than" in error(answer.result(), 504)
        assert service.translate("one") == {"translatedText": "de:ONE"}

        for _ in range(2):
            with pytest.raises(httpx.ReadTimeout):
                service.client.post("/translate", json=endless, timeout=0.05)
        wait_for('nmt_requests_total{endpoint="/translate",status="499"} 2.0')
        assert "nmt_queue_sentences 0.0" in service.client.get("/metrics").text

        silent = socket.create_connection(("127.0.0.1", service.port), timeout=30)  # shutdown does not wait for it
        silent.sendall(b"POST /translate HTTP/1.1\r\n")
        unfinished = pool.submit(service.translate, "slow one. slow two.")
        wait_for("nmt_queue_requests 1.0")
        service.process.send_signal(signal.SIGTERM)
        assert unfinished.result() == {"translatedText": "de:SLOW ONE. de:SLOW TWO."}
        assert service.process.wait(20) == 0  # before connections are cut off
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{service.url}/health", trust_env=False)
        silent.close()


# --- HTTP itself


def raw(service: RunningService, *parts: bytes) -> bytes:
    """Send bytes, and return the first bytes of the answer; no bytes if the connection is closed."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=15) as connection:
        try:
            for part in parts:
                connection.sendall(part)
            return connection.recv(65536)
        except (BrokenPipeError, ConnectionResetError):
            return b""


@pytest.mark.parametrize(
    "request_",
    [
        b"\r\n\r\nx\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000,
        b"POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
)  # fmt: skip
def test_bytes_that_are_no_http_are_refused(service: RunningService, request_: bytes) -> None:
    assert raw(service, request_).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 403 "))


def test_sentences_of_a_text_are_joined_as_the_target_language_does() -> None:
    for target, gap in {"de": " ", "ja": ""}.items():
        model = fake_model("en", target)
        texts = SplitTexts(["One. Two.\nThree.  "], model.pair, model, "".join)
        assert texts.render([None] * 3, 0) == f"One.{gap}Two.\nThree.  "
    model = fake_model("zh", "en")
    assert SplitTexts(["我来。你去。"], model.pair, model, "".join).render([None] * 2, 0) == "我来。 你去。"
