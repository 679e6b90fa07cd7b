"""The web page in headless Chromium, with user input and a stub of the service."""

import random
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from chromium import Chromium
from page_stub import LANGUAGES, Reply, Stub, sentence
from running_service import SERVE, started
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from nmt.serving.app import PAGE

HTML = "<img src=x onerror=\"document.title='run'\">"
MINUS = "\N{MINUS SIGN}"


class Page:
    """The page from the view of a user."""

    def __init__(self, driver: Chromium, service: Any) -> None:
        self.driver, self.service = driver, service
        driver.get_log("browser")
        driver.requested()

    def open(self) -> None:
        self.driver.get(self.service.url)
        self.until(lambda: self.find("#target-language").get_attribute("value"))

    def until(self, condition: Callable[[], object]) -> Any:
        return WebDriverWait(self.driver, 20, poll_frequency=0.02).until(lambda _: condition())

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements("css selector", selector)

    def text(self, selector: str) -> str:
        return self.find(selector).get_property("textContent")

    def texts(self, selector: str) -> list[str]:
        return [element.get_property("textContent") for element in self.all(selector)]

    def run(self, code: str, *arguments: object) -> Any:
        return self.driver.execute_script(code, *arguments)

    def paste(self, text: str) -> None:
        """Replace the source text, without waiting."""
        self.run(
            "const s = document.getElementById('source'); s.focus(); s.value = arguments[0];"
            "s.selectionStart = s.selectionEnd = s.value.length; s.dispatchEvent(new InputEvent('input'))", text,
        )  # fmt: skip

    def shows(self, translation: str) -> None:
        """Wait until the translation is shown."""
        self.until(lambda: self.text("#target") == translation)

    def translate(self, text: str, *sentences: dict[str, Any]) -> None:
        """Paste a text, and wait for its translation: these sentences, or by default the stub's."""
        if sentences:
            self.service.answers[text] = {"sentences": sentences}
        self.paste(text)
        self.keys(Keys.CONTROL, Keys.ENTER)
        answer = self.service.answer(text)["sentences"]
        self.shows("".join(part["translations"][0]["text"] + part["separator"] for part in answer))

    def keys(self, *keys: str) -> None:
        """Press keys together, at the current focus."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def point_at(self, element: WebElement) -> None:
        ActionChains(self.driver, duration=0).move_to_element(element).perform()

    def focus(self) -> str:
        """Return the id of the element with the focus, or its text if it has no id."""
        return self.run("const e = document.activeElement; return e.id || e.textContent")

    def marks(self, side: str) -> dict[str, float]:
        """Return the linked words of a pane with the strengths of their marks."""
        return self.run(
            "return Object.fromEntries([...document.querySelectorAll(arguments[0] + ' .linked')]"
            ".map((e) => [e.textContent, Number(e.style.getPropertyValue('--strength'))]))", side,
        )  # fmt: skip

    def check(self) -> None:
        """Check that there were no script errors and no requests to other sites."""
        assert not [address for address in self.driver.requested() if not address.startswith(self.service.url)]
        errors = [line["message"] for line in self.driver.get_log("browser") if line["level"] == "SEVERE"]
        assert not [error for error in errors if "status of" not in error and "net::ERR" not in error]


@pytest.fixture
def page(driver: Chromium) -> Iterator[Page]:
    """The freshly loaded page. After a test, there must be no script errors and no requests to other sites."""
    with Stub() as stub:
        threading.Thread(target=stub.serve_forever, args=(0.05,), daemon=True).start()
        page = Page(driver, stub)
        driver.emulate(1280)
        page.open()
        yield page
        stub.shutdown()
        page.check()


def test_typed_text_is_translated_and_an_older_answer_never_replaces_a_newer_one(page: Page) -> None:
    page.find("#source").send_keys("im thirsty")
    page.shows("IM THIRSTY")
    assert page.service.asked[-1] == {"q": "im thirsty", "source": "en", "target": "de", "alternatives": 3}
    page.find("#clear").click()
    page.shows("")
    assert page.find("#copy").get_property("disabled")
    page.service.asked.clear()
    page.run(
        "const s = document.getElementById('source');"
        "for (const letter of 'one two') { s.value += letter; s.dispatchEvent(new InputEvent('input')); }"
    )
    page.shows("ONE TWO")
    released = threading.Event()
    page.service.replies += [Reply(released=released), Reply()]
    page.paste("first")
    page.until(lambda: page.service.asked[1:])
    assert page.find("#target").get_attribute("aria-busy") == "true"
    page.paste("second")
    page.shows("SECOND")
    page.run(
        "const e = document.getElementById('target'); window.shown = [];"
        "new MutationObserver(() => shown.push(e.textContent)).observe(e, { childList: true, subtree: true })"
    )
    released.set()
    page.until(lambda: "first" in page.service.answered)
    page.translate("third")
    assert set(page.run("return shown")) == {"THIRD"}
    # Key presses without a pause make a single request.
    assert [request["q"] for request in page.service.asked] == ["one two", "first", "second", "third"]
    assert page.find("#target").get_attribute("aria-busy") == "false"


def test_alternatives_can_be_selected_and_remarks_describe_the_shown_translation(page: Page) -> None:
    first = sentence("im thirsty.", "Ich bin durstig.", "Ich habe Durst.", "Mir ist durstig.", separator=" ")
    page.translate("im thirsty. me too.", first, sentence("me too.", "Ich auch.", "Auch ich."))
    assert page.text("#alternatives-source") == "me too."  # the sentence at the caret
    page.all("#target .word")[0].click()
    assert page.text("#alternatives-source") == "im thirsty."
    assert page.texts(".score") == [f"{MINUS}0.25", f"{MINUS}1.25", f"{MINUS}2.25"]
    buttons = page.all("#alternatives-list button")
    buttons[1].click()
    page.shows("Ich habe Durst. Ich auch.")
    page.keys(Keys.TAB)
    page.keys(Keys.ENTER)
    page.shows("Mir ist durstig. Ich auch.")
    assert [button.get_attribute("aria-pressed") for button in buttons] == ["false", "false", "true"]
    changed = "im thirsty. me too. now"
    page.service.answers[changed] = {"sentences": [first, sentence("me too. now", "Ich auch jetzt.")]}
    page.paste(changed)
    page.shows("Mir ist durstig. Ich auch jetzt.")  # the unchanged sentence keeps its alternative

    answer = sentence("Im Quux, thirsty", "Ich bin durstig", "Ich habe Durst")
    answer["translations"][0] |= {"unknown": ["quux"], "score": None, "finished": False}
    page.service.answers["Im Quux, thirsty"] = {"sentences": [answer]}
    page.paste("Im Quux, thirsty")
    page.shows("Ich bin durstigcut off")
    assert page.texts("#mirror .unknown") == ["Quux"]
    unknown, cut_off = page.texts("#remarks li")
    assert unknown.endswith("quux") and cut_off.startswith("Cut off")
    assert page.texts(".score") == ["", f"{MINUS}1.25"]
    page.all("#alternatives-list button")[1].click()
    page.shows("Ich habe Durst")
    assert page.texts("#remarks li") == [unknown]
    page.all("#target .word")[0].click()
    assert "best translation only" in page.text("#attention")
    page.translate("one", sentence("one", "eins", attention=None))
    page.all("#target .word")[0].click()
    assert "no attention" in page.text("#attention")


def test_marks_on_words_follow_the_attention(page: Page) -> None:
    def marked(word: str, side: str, marks: dict[str, float], caption: str) -> None:
        page.until(lambda: page.texts(".chosen") == [word])
        assert page.marks(side) == marks
        assert page.text("#attention") == caption

    page.translate("im really thirsty", sentence("im really thirsty", "ICH ECHT DURSTIG"))
    page.point_at(page.all("#target .word")[1])
    marked("ECHT", "#mirror", {"really": 1, "thirsty": 0.125}, "ECHT ← really 80%, thirsty 10%")
    page.point_at(page.find("h1"))
    page.until(lambda: not page.all(".chosen, .linked"))
    page.find("#source").click()
    page.point_at(page.all("#mirror .word")[2])
    marked("thirsty", "#target", {"DURSTIG": 1, "ECHT": 0.125}, "thirsty → DURSTIG 80%, ECHT 10%")
    page.point_at(page.find("h1"))
    page.keys(Keys.HOME)
    page.until(lambda: page.texts(".chosen") == ["im"])
    page.keys(Keys.ARROW_RIGHT * 4)
    marked("really", "#target", {"ECHT": 1, "ICH": 0.125}, "really → ECHT 80%, ICH 10%")
    page.keys(Keys.ESCAPE)
    page.until(lambda: not page.all(".chosen, .linked"))
    assert not page.text("#attention")

    page.translate("one two\nthree four")
    page.service.replies.append(Reply(released=threading.Event()))
    page.paste("one two\nthree four five")  # word elements remain for unchanged words
    assert page.texts("#mirror .word") == ["one", "two", "three", "four"]
    assert page.text("#mirror") == "one two\nthree four five\u200b"


def test_texts_are_split_into_words_and_their_attention_equals_a_reference(page: Page) -> None:
    """Texts differ from their tokens in case, accents and punctuation, and some words are unknown."""
    dice = random.Random(1)
    words = ["Für", "im", "thirsty", "Äpfel", "x", "don\u2019t", "naïveté", "42", "日本", "Ωmega", "straße"]
    plain = str.maketrans("üÄäïé", "uAaie", "\u2019")

    def in_browser(code: str, *arguments: object) -> Any:
        imported = "const given = [...arguments], done = given.pop(); import('/static/words.js')"
        return page.driver.execute_async_script(f"{imported}.then((words) => done({code}))", *arguments)

    def split(*texts: str) -> list[list[str]]:
        spans = "given.map((text) => words.splitWords(text).map(({ start, end }) => text.slice(start, end)))"
        return in_browser(spans, *texts)

    def spans(text: str) -> list[dict[str, int]]:
        return [{"start": word.start(), "end": word.end()} for word in re.finditer(r"\S+", text)]

    def text_and_tokens() -> tuple[str, list[str], list[int]]:
        sequence = [dice.choice(words) for _ in range(dice.randint(1, 12))]
        tokens, places = [], []
        for place, word in enumerate(sequence):
            letters = word.translate(plain).lower()
            pieces = [f" {letters[:4]}", letters[4:]] if len(letters) > 5 else [f" {letters}"]
            pieces = ["<unk>"] if dice.random() < 0.2 else pieces
            tokens += pieces
            places += [place] * len(pieces)
        return " ".join(sequence), [*tokens, "</s>"], [*places, -1]

    for _ in range(40):
        (source, source_tokens, columns), (target, target_tokens, rows) = text_and_tokens(), text_and_tokens()
        attention = np.array([[dice.random() for _ in source_tokens] for _ in target_tokens])
        of_row = np.equal.outer(range(len(target.split())), rows)
        of_column = np.equal.outer(columns, range(len(source.split())))
        expected = of_row @ attention @ of_column / of_row.sum(axis=1, keepdims=True)
        answer = {"source_tokens": source_tokens, "target_tokens": target_tokens, "attention": attention.tolist()}
        result = in_browser("words.attentionOfWords(...given)", answer, source, spans(source), target, spans(target))
        np.testing.assert_allclose(result, expected, atol=1e-12, err_msg=f"{source_tokens} {target_tokens}")
        assert "".join(*split(source)) == source.replace(" ", "")

    texts = ["Well, I'm here ... (now)!", "مرحبا بالعالم", " \n\t", "今日は天気がいい。"]
    expected_words = [["Well", ",", "I'm", "here", "...", "(", "now", ")!"], ["مرحبا", "بالعالم"], []]
    assert split(*texts) == [*expected_words, ["今日", "は", "天気", "が", "いい", "。"]]
    page.run("delete Intl.Segmenter")  # as in an old browser
    assert split(*texts) == [*expected_words, ["今日は天気がいい", "。"]]


def test_everything_works_by_keyboard(page: Page) -> None:
    sentences = sentence("one two", "EINS ZWEI", separator="\n"), sentence("three", "DREI", "3")
    page.translate("one two\nthree", *sentences)
    page.run("document.getElementById('source-language').focus()")
    # In the translation, Tab stops at the sentence of the caret.
    for stop in ["swap", "target-language", "source", "clear", "DREI", "copy", f"DREI{MINUS}0.25"]:
        page.keys(Keys.TAB)
        assert page.focus() == stop
        assert page.run(
            "const s = getComputedStyle(document.activeElement); const p = document.activeElement.closest('.source');"
            "return s.outlineStyle !== 'none' || (p && getComputedStyle(p).boxShadow !== 'none')"
        )
    page.keys(Keys.SHIFT, Keys.TAB, Keys.TAB)
    for key, word in [(Keys.HOME, "EINS"), (Keys.ARROW_LEFT, "EINS"), (Keys.ARROW_RIGHT, "ZWEI"), (Keys.END, "DREI"),
                      (Keys.ARROW_RIGHT, "DREI"), (Keys.ARROW_LEFT, "ZWEI")]:  # fmt: skip
        page.keys(key)
        assert (page.focus(), page.texts(".word.chosen")) == (word, [word])
    assert page.marks("#mirror") == {"two": 1}
    page.keys(Keys.END)
    assert page.text("#alternatives-source") == "three"
    page.keys(Keys.ESCAPE)
    assert (page.focus(), page.all(".chosen, .linked")) == ("DREI", [])


def test_a_translation_is_copied_or_the_browser_forbids_it(page: Page) -> None:
    page.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardSanitizedWrite"]})
    for text, copied in (("one.\n\ntwo", "ONE.\n\nTWO"), ("three", "THREE")):
        page.translate(text)
        page.find("#copy").send_keys(Keys.ENTER)
        page.until(lambda: page.text("#copied") and page.text("#copy-label") == "Copied")
        assert page.focus() == "copy"
        page.find("#clear").click()
        page.keys(Keys.CONTROL, "v")
        page.until(lambda expected=copied: page.find("#source").get_property("value") == expected)
        # A page from another machine by http has no clipboard.
        page.run("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.shows("THREE")
    page.run("document.execCommand = () => false")
    page.find("#copy").click()
    page.until(lambda: "does not allow copying" in page.text("#status"))
    assert page.text("#copy-label") == "Copy"


def test_errors_of_the_service_are_shown_next_to_the_last_translation(page: Page) -> None:
    replies = {
        f"Too long. Cut {HTML}": Reply(400, {"error": "Too long", "detail": f"Cut {HTML}"}),
        "failed with status 500": Reply(500, b"<h1>Oops</h1>"),
        "not JSON": Reply(200, b"<h1>Proxy</h1>"),
        "without sentences": Reply(200, {"detail": 1}),
        "cannot show the answer": Reply(200, {"sentences": [1]}),
    }
    for message, reply in replies.items():
        page.translate(message)
        assert page.text("#status") == "" and not page.all(".stale")
        page.service.replies.append(reply)
        page.paste("two")
        page.until(lambda expected=message: expected in page.text("#status"))
        assert page.texts("#target.stale") == [message.upper()]
    assert page.find("#status").get_attribute("role") == "status"
    page.driver.get_log("browser")  # discards the error that the page logs about the last answer


def test_requests_to_a_busy_or_silent_service_are_repeated_later_or_at_once(page: Page) -> None:
    busy = Reply(503, {"error": "busy"}, {"Retry-After": "3600"})
    page.service.languages = busy
    page.driver.get(page.service.url)
    page.until(lambda: "overloaded" in page.text("#status"))
    page.service.languages = Reply(body=LANGUAGES)
    page.translate("one")
    for reply, message in ((busy, "overloaded. Trying again in 60 s"), (Reply(0), "does not answer")):
        page.service.replies += [reply] * 3
        page.paste(f"{message} one")
        page.until(lambda expected=message: expected in page.text("#status") and "again in" in page.text("#status"))
        page.service.replies.clear()
        page.keys(Keys.CONTROL, Keys.ENTER)
        page.shows(f"{message} one".upper())
    page.service.replies.append(busy._replace(headers={"Retry-After": "1"}))
    page.paste("two")
    page.shows("TWO")
    assert page.text("#status") == ""
    assert [request["q"] for request in page.service.asked][-2:] == ["two", "two"]


def test_the_page_asks_for_a_key_and_keeps_it_only_in_memory(page: Page) -> None:
    assert not page.find("#key-form").is_displayed()
    missing = "Please contact the server operator to get an API key"
    page.service.replies += [Reply(400, {"error": missing}), Reply(403, {"error": "Invalid API key"})]
    page.paste("one")
    page.until(page.find("#key-form").is_displayed)
    assert page.text("#status") == missing
    assert page.focus() == "source"
    page.find("#key").send_keys("wrong" + Keys.ENTER)
    page.until(lambda: page.text("#status") == "Invalid API key")
    page.find("#key").clear()
    page.find("#key").send_keys("secret" + Keys.ENTER)
    page.shows("ONE")
    assert [request.get("api_key") for request in page.service.asked] == [None, "wrong", "secret"]
    assert not page.find("#key-form").is_displayed() and page.focus() == "source"
    assert page.run("return [localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]
    page.service.settings = Reply(body={"keyRequired": True, "alternativesLimit": 1})
    page.open()
    assert page.find("#key-form").is_displayed()
    page.find("#key").send_keys("secret" + Keys.ENTER)
    page.translate("two")
    assert (page.service.asked[-1]["api_key"], page.service.asked[-1]["alternatives"]) == ("secret", 1)


def test_text_is_never_parsed_as_html(page: Page) -> None:
    risky = r"(inner|outer|Adjacent)HTML|document\.write|\beval\(|new Function"
    assert not [path for path in PAGE.iterdir() if re.search(risky, path.read_text())]
    languages = [{"code": "en", "name": HTML, "targets": ["de"]}, {"code": "de", "name": HTML, "targets": ["en"]}]
    page.service.languages = Reply(body=languages)
    page.open()
    answer = sentence(HTML, HTML, HTML + "2")
    answer["translations"][0]["unknown"] = [HTML]
    page.translate(HTML, answer)
    page.all("#target .word")[1].click()
    assert page.text("#target") == HTML and HTML in page.text("#remarks") and HTML in page.text("#alternatives-list")
    assert page.all("img") == []
    assert page.driver.title == "Translate · nmt"


def test_languages_can_be_selected_swapped_and_detected_and_have_their_writing_direction(page: Page) -> None:
    def tags() -> tuple[str | None, str | None]:
        return page.find("#source").get_attribute("lang"), page.find("#target").get_attribute("lang")

    assert page.texts("#source-language option") == ["English", "German", "Detect language"]
    assert page.texts("#target-language option") == ["German", "Arabic"]
    page.translate("one")
    page.find("#swap").click()
    page.until(lambda: page.find("#source").get_property("value") == "ONE")
    page.shows("ONE")
    assert (page.service.asked[-1]["source"], page.service.asked[-1]["target"]) == tags() == ("de", "en")
    assert page.find("#target-language").get_property("disabled")
    page.find("#source-language").send_keys("Eng")
    page.find("#target-language").send_keys("Arab")
    page.until(lambda: page.service.asked[-1]["target"] == "ar")
    assert page.find("#swap").get_property("disabled")
    page.translate("hello world", sentence("hello world", "مرحبا بالعالم"))
    sides = page.run("return ['#source', '#target'].map((s) => getComputedStyle(document.querySelector(s)).direction)")
    assert sides == ["ltr", "rtl"]
    page.all("#target .word")[0].click()
    page.keys(Keys.ARROW_LEFT)
    assert page.focus() == "بالعالم"
    page.service.replies.append(Reply(body={"sentences": [], "detectedLanguage": {"language": "de", "confidence": 90}}))
    page.find("#source-language").send_keys("Detect")
    page.until(lambda: page.texts("#source-language option")[2] == "Detected: German")
    assert page.service.asked[-1]["source"] == "auto"

    unknown = [{"code": "source", "name": "source", "targets": ["source", "target"]}]
    page.service.languages = Reply(body=unknown)
    page.open()
    page.translate("one")
    assert tags() == ("", "") and page.find("#swap").get_property("disabled")
    assert (
        page.run("return ['source', 'mirror', 'target'].map((id) => document.getElementById(id).dir)") == ["auto"] * 3
    )
    assert page.texts("option") == ["Source", "Target"]


SCRIPTS = [
    # language, direction, text, and words of it as they are marked; each begins with a Latin name
    ("ar", "rtl", "NATO وافقت 12 دولة.", ["NATO", "وافقت", "12", "دولة", "."]),
    ("he", "rtl", "NATO אמר ש-12 מדינות.", ["NATO", "אמר", "ש", "-", "12", "מדינות", "."]),
    ("ja", "ltr", "NATOは計画に同意。", ["NATO", "は", "計画", "に", "同意", "。"]),
    ("zh", "ltr", "NATO已同意计划。", ["NATO", "已", "同意", "计划", "。"]),
    ("th", "ltr", "NATO เห็นด้วยกับแผนน้ำ", ["NATO", "เห็น", "ด้วย", "กับ", "แผน", "น้ำ"]),
    ("hi", "ltr", "NATO की योजना हुई।", ["NATO", "की", "योजना", "हुई", "।"]),
    ("am", "ltr", "NATO ተስማማ።", ["NATO", "ተስማማ", "።"]),
    ("tr", "ltr", "NATO İstanbul'da.", ["NATO", "İstanbul'da", "."]),
]


@pytest.mark.parametrize(("code", "direction", "text", "words"), SCRIPTS)
def test_texts_have_direction_and_words_of_their_language(
    page: Page, code: str, direction: str, text: str, words: list[str]
) -> None:
    page.service.languages = Reply(body=[
        {"code": "en", "name": "English", "direction": "ltr", "targets": [code]},
        {"code": code, "name": "Other", "direction": direction, "targets": ["en"]},
    ])  # fmt: skip
    page.open()
    page.translate("one two", sentence("one two", text, f"{text} 2"))
    page.find("#swap").click()
    page.until(lambda: page.find("#source").get_property("value") == text)
    page.find("#swap").click()
    page.translate("one two")
    shown = page.run(
        "return ['#source', '#mirror', '#target', '.alternative'].map((s) => document.querySelector(s))"
        ".map((e) => [e.lang, e.dir, getComputedStyle(e).direction])"
    )
    assert shown == [["en", "ltr", "ltr"]] * 2 + [[code, direction, direction]] * 2
    assert page.texts("#target .word") == words


def test_right_to_left_words_are_isolated_in_english_remarks(page: Page) -> None:
    page.find("#target-language").send_keys("Arab")
    answer = sentence("one", "نعم")
    answer["translations"][0] |= {"unknown": ["واحد", "اثنان"], "finished": False, "confidence": 0.3, "check": True}
    page.service.answers["one"] = {"sentences": [answer]}
    page.paste("one")
    page.until(lambda: page.all("#remarks bdi"))
    assert page.texts("#remarks bdi") == ["واحد", "اثنان"]
    assert page.texts("#remarks li")[0] == "Not in the model's vocabulary: واحد, اثنان"
    first, second = (page.run("return arguments[0].getBoundingClientRect().x", bdi) for bdi in page.all("#remarks bdi"))
    assert first < second, "the list is read from left to right"
    assert page.run("return [...document.querySelectorAll('.cut')].map((e) => [e.lang, e.dir])") == [["en", "ltr"]] * 2


def test_characters_that_the_service_rates_give_the_doubt_of_their_word(page: Page) -> None:
    answer = sentence("one", "计划很好。")
    rated = [["计", 0.9], ["划", 0.1], ["很", 0.8], ["好。", 0.7]]
    answer["translations"][0] |= {"words": rated, "unknown": ["दीन", "龘"]}
    answer["source"] = "दिन दीन 龘龘山"
    page.service.answers[answer["source"]] = {"sentences": [answer]}
    page.paste(answer["source"])
    page.shows("计划很好。")
    titles = {word.get_property("textContent"): word.get_attribute("title")[:3] for word in page.all(".rated")}
    assert titles == {"计划": "10%", "很好": "70%"}
    unknown = page.texts("#mirror .unknown")
    assert "दीन" in unknown and "दिन" not in unknown, "vowel signs distinguish words"
    assert "".join(unknown).startswith("दीन龘")


LONG = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen and many\n\nother words " * 8 + "\n" + "x" * 200
INK = "getComputedStyle(e.closest('#mirror') ? document.getElementById('source') : e).color"
TEXTS = """[...document.querySelectorAll('body *')].filter((e) =>
  (e.id === 'source' || [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()))
  && e.checkVisibility({ visibilityProperty: true }) && !e.closest('.hidden, option, noscript, :disabled'))"""


def test_doubtful_words_have_another_colour_and_doubtful_translations_a_mark(page: Page) -> None:
    page.open()
    answer = sentence("one two", "Eins zwei.", "Eins")
    answer["translations"][0] |= {"confidence": 0.31, "check": True, "words": [["Eins", 0.95], ["zwei.", 0.1]]}
    page.service.answers["one two"] = {"sentences": [answer]}
    page.paste("one two")
    page.shows("Eins zwei.check: 31%")
    sure, doubtful = (page.run("return getComputedStyle(arguments[0]).color", word) for word in page.all(".rated"))
    assert sure != doubtful
    assert [word.get_attribute("title")[:10] for word in page.all(".rated")] == ["95% likely", "10% likely"]
    page.all("#alternatives-list button")[1].click()
    page.shows("Eins")
    assert not page.all(".rated")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_long_texts_fit_and_have_contrast_and_controls_have_names(page: Page, width: int, scheme: str) -> None:
    language = {"name": "A language with a very long name", "targets": ["de", "en"]}
    page.service.languages = Reply(body=[{"code": "en", **language}, {"code": "de", **language}])
    page.driver.emulate(width, scheme)
    page.open()
    assert (page.driver.luminance("body") > 0.5) == (scheme == "light")
    placeholder = "getComputedStyle(e, '::placeholder').color"
    contrasts = page.driver.contrasts("document.querySelectorAll('#source')", placeholder)
    answer = sentence(LONG, LONG, "y" * 300)
    answer["translations"][0].update(unknown=["many", "z" * 300], finished=False)
    page.service.answers[LONG] = {"sentences": [answer]}
    page.paste(LONG)
    page.until(lambda: page.all("#target .word"))
    page.all("#target .word")[0].click()
    assert len(page.marks("#mirror")) == 2
    contrasts += page.driver.contrasts(TEXTS, INK)
    page.service.replies.append(Reply(403, {"error": "API key " + "k" * 300}))
    page.keys(Keys.CONTROL, Keys.ENTER)
    assert page.run("return document.getAnimations().length") == 0  # for a user who prefers reduced motion
    page.until(page.find("#key-form").is_displayed)
    contrasts += page.driver.contrasts(TEXTS, INK)
    assert len(contrasts) > 40
    assert not [(name, ratio) for name, ratio in contrasts if ratio < 4.5]
    assert page.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert not page.driver.outside("option, .progress")
    # The words of the mirror lie under the words of the text area.
    heights = page.run(
        "return ['mirror', 'source'].map((id) => { const e = document.getElementById(id);"
        "e.style.alignSelf = 'start'; e.style.height = id === 'source' ? '0' : 'auto'; return e.scrollHeight; })"
    )
    assert heights[0] == pytest.approx(heights[1], abs=1)  # whole pixels
    assert all(control.accessible_name for control in page.all("button, select, input, textarea"))
    assert page.find("html").get_attribute("lang") == "en"


@pytest.mark.slow
def test_the_page_with_the_real_service(driver: Chromium, trained_project: Path) -> None:
    """A trained run, the command that serves it to other machines, and the page."""
    with started([*SERVE, "base", "--host", "0.0.0.0"], cwd=trained_project) as service:
        page = Page(driver, SimpleNamespace(url=f"http://127.0.0.1:{service.port}/"))
        page.open()
        page.find("#source").send_keys("im thirsty. im one two three")
        page.until(lambda: len(page.all("#target .sentence")) == 2 and page.all("#alternatives-list button"))
        page.all("#target .word")[0].click()
        page.until(lambda: page.all(".chosen") and page.marks("#mirror"))
        assert "%" in page.text("#attention")
        assert len(page.texts(".score")) == 4
        page.paste("quux")
        page.until(lambda: "quux" in page.text("#remarks"))
        page.check()
        assert service.client.get("/health", headers={"host": "any.name"}).status_code == 403
        assert service.client.get("/health", headers={"host": "192.0.2.1"}).status_code == 200
        service.process.send_signal(signal.SIGINT)
        _, errors = service.process.communicate(timeout=60)
        assert service.process.returncode == 0
    assert errors.startswith("nmt: the service is reachable from other machines at http://0.0.0.0:")
    assert "API keys are off" in errors
