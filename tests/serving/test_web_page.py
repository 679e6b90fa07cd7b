"""The page in a browser: headless Chromium, driven as a user does, before a stub of the service."""

import random
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from page_stub import PAGE, Reply, Stub, running_stub, sentence, tokens_of

selenium = pytest.importorskip("selenium", reason="needs the package selenium, of the extra dev")

from selenium.webdriver import Chrome, ChromeOptions, ChromeService  # noqa: E402 - it may be absent
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.remote.webelement import WebElement  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
HTML = "<img src=x onerror=\"document.title='run'\">"
SECONDS = 20
MINUS = "\N{MINUS SIGN}"


class Page:
    """The page as a user sees it."""

    def __init__(self, driver: Chrome, service: Any) -> None:
        self.driver, self.service = driver, service

    def open(self, *, ready: bool = True) -> None:
        self.driver.get(self.service.url)
        if ready:
            self.until(lambda: self.find("#target-language").get_attribute("value"))

    def until(self, condition: Callable[[], object]) -> Any:
        return WebDriverWait(self.driver, SECONDS, poll_frequency=0.02).until(lambda _: condition())

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements("css selector", selector)

    def text(self, selector: str) -> str:
        return self.find(selector).get_property("textContent")

    def run(self, code: str, *arguments: object) -> Any:
        return self.driver.execute_script(code, *arguments)

    def type(self, text: str) -> None:
        """Type into the source, without waiting."""
        self.find("#source").send_keys(text)

    def paste(self, text: str) -> None:
        """Replace the source by a text, without waiting."""
        self.run(
            "const s = document.getElementById('source'); s.focus(); s.value = arguments[0];"
            "s.selectionStart = s.selectionEnd = s.value.length; s.dispatchEvent(new InputEvent('input'))", text,
        )  # fmt: skip

    def shows(self, translation: str) -> None:
        """Wait until the translation is shown."""
        self.until(lambda: self.text("#target") == translation)

    def translate(self, text: str, answer: dict[str, Any] | None = None) -> None:
        """Type a text, and wait for its translation."""
        if answer:
            self.service.answers[text] = answer
        self.paste(text)
        self.keys(Keys.CONTROL, Keys.ENTER)
        sentences = self.service.answer(text)["sentences"]
        self.shows("".join(one["translations"][0]["text"] + one["separator"] for one in sentences))

    def keys(self, *keys: str) -> None:
        """Press keys together, wherever the focus is."""
        chain = ActionChains(self.driver, duration=0)
        for key in keys[:-1]:
            chain.key_down(key)
        chain.send_keys(keys[-1])
        for key in keys[:-1]:
            chain.key_up(key)
        chain.perform()

    def focus(self) -> str:
        """Id of the element with the focus, else its text."""
        return self.run("const e = document.activeElement; return e.id || e.textContent")

    def marks(self, side: str) -> dict[str, float]:
        """Linked words of a pane with the strength of their marks."""
        return self.run(
            "return Object.fromEntries([...document.querySelectorAll(arguments[0] + ' .linked')]"
            ".map((e) => [e.textContent, Number(e.style.getPropertyValue('--strength'))]))", side,
        )  # fmt: skip

    def chosen(self) -> list[str]:
        return [element.get_property("textContent") for element in self.all(".word.chosen")]

    def record(self, selector: str) -> None:
        """Record every text that an element shows from now on."""
        self.run(
            "const e = document.querySelector(arguments[0]); e.shown = [];"
            "new MutationObserver(() => e.shown.push(e.textContent))"
            ".observe(e, { childList: true, characterData: true, subtree: true })", selector,
        )  # fmt: skip

    def recorded(self, selector: str) -> list[str]:
        return self.run("return document.querySelector(arguments[0]).shown", selector)

    def emulate(self, **features: str) -> None:
        """Emulate media features, prefers_color_scheme for example."""
        values = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": values})

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    program = shutil.which("chromedriver")
    if not browser or not program:
        pytest.skip("needs chromium and chromedriver: apt-get install chromium chromium-driver")
    options = ChromeOptions()
    options.binary_location = browser
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    with Chrome(options=options, service=ChromeService(program)) as driver:
        yield driver


@pytest.fixture(scope="module")
def service() -> Iterator[Stub]:
    with running_stub() as stub:
        yield stub


@pytest.fixture
def page(driver: Chrome, service: Stub) -> Iterator[Page]:
    """The page, freshly loaded; afterwards, no test may have caused a script error or a foreign request."""
    service.reset()
    page = Page(driver, service)
    page.emulate(prefers_color_scheme="light")
    page.resize(1280, 900)
    driver.get_log("browser")
    page.open()
    yield page
    names = page.run("return performance.getEntries().map((entry) => entry.name)")
    assert not [name for name in names if "://" in name and not name.startswith(service.url)]
    errors = [line["message"] for line in driver.get_log("browser") if line["level"] == "SEVERE"]
    assert not [error for error in errors if "status of" not in error and "net::ERR" not in error]


def test_typing_shows_the_translation(page: Page) -> None:
    assert page.find("#copy").get_property("disabled")
    page.type("im thirsty")
    page.shows("IM THIRSTY")
    assert page.service.asked[-1] == {"q": "im thirsty", "source": "en", "target": "de", "alternatives": 3}
    page.type(Keys.CONTROL + "a" + Keys.NULL + Keys.DELETE)
    page.shows("")
    assert page.find("#copy").get_property("disabled")


def test_nothing_is_loaded_but_the_files_of_the_page(page: Page) -> None:
    page.translate("im thirsty")
    names = {path.name for path in PAGE.iterdir()}
    assert names == {"index.html", "icon.svg", "page.css", *(path.name for path in PAGE.glob("*.js"))}
    loaded = {
        "/",
        "/languages",
        "/frontend/settings",
        "/details",
        *(f"/static/{name}" for name in names - {"index.html"}),
    }
    assert set(page.service.paths) <= loaded
    assert set(page.service.paths) >= loaded - {"/static/icon.svg"}
    for path in PAGE.iterdir():
        assert "//" not in re.sub(
            r'"http://www.w3.org/2000/svg"|^ *// .*|; // .*|{ // .*', "", path.read_text(), flags=re.M
        )


def test_key_presses_without_a_pause_are_one_request(page: Page) -> None:
    page.run(
        "const s = document.getElementById('source');"
        "for (const letter of 'im thirsty') { s.value += letter; s.dispatchEvent(new InputEvent('input')); }"
    )
    page.shows("IM THIRSTY")
    assert [asked["q"] for asked in page.service.asked] == ["im thirsty"]


def test_an_older_answer_never_replaces_a_newer_one(page: Page) -> None:
    released = threading.Event()
    page.service.replies += [Reply(released=released), Reply()]
    page.paste("first")
    page.until(lambda: page.service.asked)
    assert page.find("#target").get_attribute("aria-busy") == "true"
    page.paste("second")
    page.shows("SECOND")
    page.record("#target")
    released.set()
    page.until(lambda: "first" in page.service.answered)
    page.translate("third")
    assert set(page.recorded("#target")) == {"THIRD"}
    assert [asked["q"] for asked in page.service.asked] == ["first", "second", "third"]
    assert page.find("#target").get_attribute("aria-busy") == "false"


def test_an_alternative_is_taken_by_click_and_by_key(page: Page) -> None:
    first = sentence("im thirsty.", "Ich bin durstig.", "Ich habe Durst.", "Mir ist durstig.", separator=" ")
    second = sentence("me too.", "Ich auch.", "Auch ich.")
    text = "im thirsty. me too."
    page.translate(text, {"sentences": [first, second]})
    assert page.text("#alternatives-source") == "me too."  # the sentence at the caret
    page.all("#target .word")[0].click()
    assert page.text("#alternatives-source") == "im thirsty."
    buttons = page.all("#alternatives-list button")
    assert [button.get_property("innerText").split("\n")[-1] for button in buttons] == [
        f"{MINUS}0.25", f"{MINUS}1.25", f"{MINUS}2.25",
    ]  # fmt: skip
    buttons[1].click()
    page.shows("Ich habe Durst. Ich auch.")
    page.keys(Keys.TAB)
    page.keys(Keys.ENTER)
    page.shows("Mir ist durstig. Ich auch.")
    assert [button.get_attribute("aria-pressed") for button in buttons] == ["false", "false", "true"]
    assert page.focus() == buttons[2].get_property("textContent")
    changed = f"{text} now"
    page.service.answers[changed] = {"sentences": [first, sentence("me too. now", "Ich auch jetzt.")]}
    page.paste(changed)
    page.shows("Mir ist durstig. Ich auch jetzt.")  # the sentence that stayed the same keeps it


def test_marks_on_words_follow_the_attention(page: Page) -> None:
    """The word "thirsty" has two tokens: its columns are added up, the rows of "DURSTIG" averaged."""
    page.translate("im really thirsty", {"sentences": [sentence("im really thirsty", "ICH ECHT DURSTIG")]})
    page.run("document.activeElement.blur()")
    words = page.all("#target .word")
    ActionChains(page.driver, duration=0).move_to_element(words[2]).perform()
    page.until(lambda: page.chosen() == ["DURSTIG"])
    assert page.marks("#mirror") == {"thirsty": 1}
    assert page.text("#attention") == "DURSTIG ← thirsty 70%"
    ActionChains(page.driver, duration=0).move_to_element(words[1]).perform()
    page.until(lambda: page.chosen() == ["ECHT"])
    assert page.marks("#mirror") == {"really": 1, "thirsty": 0.125}
    assert page.text("#attention") == "ECHT ← really 80%, thirsty 10%"
    ActionChains(page.driver, duration=0).move_to_element(page.find("h1")).perform()
    page.until(lambda: page.chosen() == [] and not page.marks("#mirror") and not page.text("#attention"))


def test_marks_follow_the_pointer_and_the_caret_over_the_source(page: Page) -> None:
    page.translate("im really thirsty", {"sentences": [sentence("im really thirsty", "ICH ECHT DURSTIG")]})
    page.find("#source").click()
    ActionChains(page.driver, duration=0).move_to_element(page.all("#mirror .word")[2]).perform()
    page.until(lambda: page.chosen() == ["thirsty"])
    assert page.marks("#target") == {"DURSTIG": 1, "ECHT": pytest.approx(1 / 7, abs=1e-3)}
    assert page.text("#attention") == "thirsty → DURSTIG 70%, ECHT 10%"
    ActionChains(page.driver, duration=0).move_to_element(page.find("h1")).perform()
    page.type(Keys.HOME)
    page.until(lambda: page.chosen() == ["im"])
    page.type(Keys.ARROW_RIGHT * 4)
    page.until(lambda: page.chosen() == ["really"])
    assert page.marks("#target") == {"ECHT": 1, "ICH": 0.125}
    page.type(Keys.ESCAPE)
    page.until(lambda: page.chosen() == [] and not page.marks("#target"))


def test_words_are_marked_in_the_sentences_that_the_text_still_holds(page: Page) -> None:
    page.translate("one two\nthree four")
    released = threading.Event()
    page.service.replies.append(Reply(released=released))
    page.paste("one two\nthree four five")
    assert page.run("return [...document.querySelectorAll('#mirror .word')].map((e) => e.textContent)") == [
        "one", "two", "three", "four",
    ]  # fmt: skip
    assert page.text("#mirror") == "one two\nthree four five\u200b"
    released.set()
    page.shows("ONE TWO\nTHREE FOUR FIVE")


def test_attention_of_words_equals_that_of_a_reference(page: Page) -> None:
    """Texts differ from their tokens in case, accents and punctuation, and some words are unknown."""
    dice = random.Random(1)
    words = ["Für", "im", "thirsty", "Äpfel", "x", "don\u2019t", "naïveté", "42", "日本", "Ωmega", "straße"]
    plain = str.maketrans("üÄäï\u2019é", "uAai'e")

    def text_and_tokens() -> tuple[str, list[str], list[int]]:
        chosen = [dice.choice(words) for _ in range(dice.randint(1, 12))]
        tokens, places = tokens_of(" ".join(chosen).translate(plain).replace("'", ""))
        unknown = {place for place in range(len(chosen)) if dice.random() < 0.2}
        for place in unknown:
            at = places.index(place)
            tokens = [token for token, word in zip(tokens, places, strict=True) if word != place]
            places = [word for word in places if word != place]
            tokens.insert(at, "<unk>")
            places.insert(at, place)
        return " ".join(chosen), tokens, places

    for _ in range(40):
        (source, source_tokens, columns), (target, target_tokens, rows) = text_and_tokens(), text_and_tokens()
        attention = [[dice.random() for _ in source_tokens] for _ in target_tokens]
        n, m = len(target.split()), len(source.split())
        expected = [
            [
                sum(
                    attention[t][s] for t, row in enumerate(rows) if row == i
                    for s, column in enumerate(columns) if column == j
                ) / rows.count(i)
                for j in range(m)
            ]
            for i in range(n)
        ]  # fmt: skip
        found = page.driver.execute_async_script(
            "const [source, target, given, done] = arguments;"
            "import('/static/words.js').then(({ splitWords, attentionOfWords }) => {"
            "  const spaces = (text) => [...text.matchAll(/\\S+/g)]"
            "    .map((match) => ({ start: match.index, end: match.index + match[0].length }));"
            "  const split = splitWords(source).map(({ start, end }) => source.slice(start, end));"
            "  done([attentionOfWords(given, source, spaces(source), target, spaces(target)), split]); })",
            source, target,
            {"source_tokens": source_tokens, "target_tokens": target_tokens, "attention": attention},
        )  # fmt: skip
        for row, expected_row in zip(found[0], expected, strict=True):
            assert row == pytest.approx(expected_row), (source, source_tokens, target, target_tokens)
        assert "".join(found[1]) == source.replace(" ", "")


def test_words_of_a_text(page: Page) -> None:
    split = (
        "const [text, done] = arguments; import('/static/words.js').then(({ splitWords }) =>"
        " done(splitWords(text).map(({ start, end }) => text.slice(start, end))))"
    )
    texts = {
        "Well, I'm here ... (now)!": ["Well", ",", "I'm", "here", "...", "(", "now", ")!"],
        "مرحبا بالعالم": ["مرحبا", "بالعالم"],
        " \n\t": [],
    }
    japanese = "今日は天気がいい。"
    assert page.driver.execute_async_script(split, japanese) == ["今日", "は", "天気", "が", "いい", "。"]
    for text, words in texts.items():
        assert page.driver.execute_async_script(split, text) == words
    page.run("delete Intl.Segmenter")  # which old browsers lack
    for text, words in texts.items():
        assert page.driver.execute_async_script(split, text) == words
    assert page.driver.execute_async_script(split, japanese) == [japanese[:-1], "。"]


def test_everything_works_by_keyboard(page: Page) -> None:
    page.translate("one two\nthree", {
        "sentences": [sentence("one two", "EINS ZWEI", separator="\n"), sentence("three", "DREI", "3")],
    })  # fmt: skip
    page.run("document.getElementById('source-language').focus()")
    stops = [page.focus()]
    for _ in range(7):
        page.keys(Keys.TAB)
        stops.append(page.focus())
        assert page.run(
            "const s = getComputedStyle(document.activeElement); const p = document.activeElement.closest('.source');"
            "return s.outlineStyle !== 'none' || (p && getComputedStyle(p).boxShadow !== 'none')"
        )
    # The stop among the translations is in the sentence at the caret.
    controls = ["source-language", "swap", "target-language", "source", "clear"]
    assert stops == [*controls, "DREI", "copy", f"DREI{MINUS}0.25"]
    page.keys(Keys.SHIFT, Keys.TAB)
    page.keys(Keys.SHIFT, Keys.TAB)
    for key, word in [(Keys.HOME, "EINS"), (Keys.ARROW_LEFT, "EINS"), (Keys.ARROW_RIGHT, "ZWEI"), (Keys.END, "DREI"),
                      (Keys.ARROW_RIGHT, "DREI"), (Keys.ARROW_LEFT, "ZWEI"), (Keys.ARROW_LEFT, "EINS")]:  # fmt: skip
        page.keys(key)
        assert (page.focus(), page.chosen()) == (word, [word])
    assert page.marks("#mirror") == {"one": 1, "two": 0.125}
    page.keys(Keys.END)
    assert page.text("#alternatives-source") == "three"
    page.keys(Keys.ESCAPE)
    assert (page.focus(), page.chosen(), page.marks("#mirror")) == ("DREI", [], {})
    asked = len(page.service.asked)
    page.keys(Keys.CONTROL, Keys.ENTER)
    page.until(lambda: len(page.service.asked) == asked + 1)


@pytest.mark.parametrize("clipboard", ["api", "selection"])
def test_copy_button(page: Page, clipboard: str) -> None:
    page.translate("one.\n\ntwo")
    page.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardSanitizedWrite"]})
    if clipboard == "selection":  # as in a page that comes by http from another machine
        page.run("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    width = page.find("#copy").size["width"]
    page.run("document.getElementById('copy').focus()")
    page.record("#copy-label")
    page.record("#copied")
    page.keys(Keys.ENTER)
    page.until(lambda: page.recorded("#copied"))
    assert (page.recorded("#copied")[0], page.recorded("#copy-label")[0]) == ("Translation copied", "Copied")
    assert (page.focus(), page.find("#copy").size["width"]) == ("copy", width)
    page.find("#clear").click()
    page.keys(Keys.CONTROL, "v")
    page.until(lambda: page.find("#source").get_property("value") == "ONE.\n\nTWO")


def test_copying_that_the_browser_forbids_is_said(page: Page) -> None:
    page.translate("one")
    page.run("Object.defineProperty(navigator, 'clipboard', { value: undefined }); document.execCommand = () => false")
    page.find("#copy").click()
    page.until(lambda: "does not allow copying" in page.text("#status"))
    assert page.text("#copy-label") == "Copy"


def test_errors_stand_in_the_status_line(page: Page) -> None:
    places = "return ['.sheet', '#alternatives', '#remarks'].map((s) => document.querySelector(s).offsetTop)"
    for number, (reply, message) in enumerate(
        [
            (Reply(400, {"error": f"The text is too long {HTML}"}), f"The text is too long {HTML}"),
            (Reply(500, b"<h1>Oops</h1>"), "The service failed with status 500."),
            (Reply(200, b"<h1>Proxy</h1>"), "The service sent an answer that is not JSON."),
            (Reply(200, {"detail": 1}), "The service sent an answer without sentences."),
            (Reply(200, {"sentences": [1]}), "The page cannot show the answer of the service."),
        ]
    ):
        page.translate(f"one {number}")
        assert page.text("#status") == "" and "stale" not in page.find("#target").get_attribute("class")
        before = page.run(places)
        page.service.replies.append(reply)
        page.paste("two")
        page.until(lambda expected=message: page.text("#status") == expected)
        assert "stale" in page.find("#target").get_attribute("class")
        assert page.run(places) == before
    assert page.find("#status").get_attribute("role") == "status"
    page.driver.get_log("browser")  # the page logs that it does not understand the last answer


def test_an_overloaded_service_is_asked_again_later(page: Page) -> None:
    page.service.replies += [Reply(503, {"error": "busy"}, {"Retry-After": "1"})]
    page.record("#status")
    page.paste("one")
    page.shows("ONE")
    assert "The service is overloaded. Trying again in 1 s." in page.recorded("#status")
    assert page.text("#status") == ""
    assert len(page.service.asked) == 2


@pytest.mark.parametrize("reply", [Reply(503, {"error": "busy"}, {"Retry-After": "3600"}), Reply(0)])
def test_the_user_need_not_wait(page: Page, reply: Reply) -> None:
    page.service.replies += [reply, reply, reply]
    page.paste("one")
    page.until(lambda: "Trying again in" in page.text("#status"))
    assert ("overloaded. Trying again in 60 s" if reply.status else "does not answer") in page.text("#status")
    page.service.replies.clear()
    page.keys(Keys.CONTROL, Keys.ENTER)
    page.shows("ONE")


def test_languages_that_are_late_are_waited_for(page: Page) -> None:
    page.service.languages = Reply(503, {"error": "busy"}, {"Retry-After": "3600"})
    page.open(ready=False)
    page.until(lambda: "overloaded" in page.text("#status"))
    page.service.languages = [{"code": "source", "name": "source", "targets": ["target"]}]
    page.type("one")
    page.shows("ONE")
    assert page.service.asked[-1]["target"] == "target"


def test_a_key_is_asked_for_and_kept_in_memory_alone(page: Page) -> None:
    assert not page.find("#key-form").is_displayed()
    page.service.replies += [Reply(403, {"error": "An API key is needed."}), Reply(403, {"error": "Unknown key."})]
    page.run("document.getElementById('source').focus()")
    page.paste("one")
    page.until(page.find("#key-form").is_displayed)
    assert page.text("#status") == "An API key is needed."
    assert page.focus() == "source"
    page.find("#key").send_keys("wrong" + Keys.ENTER)
    page.until(lambda: page.text("#status") == "Unknown key.")
    page.find("#key").clear()
    page.find("#key").send_keys("secret" + Keys.ENTER)
    page.shows("ONE")
    assert [asked.get("api_key") for asked in page.service.asked] == [None, "wrong", "secret"]
    assert not page.find("#key-form").is_displayed() and page.focus() == "source"
    assert page.run("return [localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]


def test_a_service_says_what_it_needs_and_allows(page: Page) -> None:
    page.service.settings = {"keyRequired": True, "alternativesLimit": 1}
    page.open()
    assert page.find("#key-form").is_displayed()
    page.find("#key").send_keys("secret" + Keys.ENTER)
    page.translate("one")
    assert [(asked["api_key"], asked["alternatives"]) for asked in page.service.asked] == [("secret", 1)]


def test_text_is_never_read_as_html(page: Page) -> None:
    for path in PAGE.glob("*.js"):
        assert not re.search(r"(inner|outer|Adjacent)HTML|document\.write|\beval\(|new Function", path.read_text()), (
            path
        )
    languages = [{"code": "en", "name": HTML, "targets": ["de"]}, {"code": "de", "name": HTML, "targets": ["en"]}]
    page.service.languages = languages
    page.open()
    answer = sentence(HTML, HTML, HTML + "2")
    answer["translations"][0]["unknown"] = [HTML]
    page.translate(HTML, {"sentences": [answer]})
    page.all("#target .word")[1].click()
    assert page.text("#target") == HTML and HTML in page.text("#remarks") and HTML in page.text("#alternatives-list")
    assert page.all("img") == []
    assert page.driver.title == "Translate · nmt"


def test_unknown_words_and_translations_cut_off_are_marked(page: Page) -> None:
    answer = sentence("Im Quux, thirsty", "Ich bin durstig", "Ich habe Durst")
    for translation in answer["translations"]:
        translation["unknown"] = ["quux"]
    answer["translations"][0]["finished"] = False
    page.service.answers["Im Quux, thirsty"] = {"sentences": [answer]}
    page.type("Im Quux, thirsty")
    page.shows("Ich bin durstigcut off")
    assert [word.get_property("textContent") for word in page.all("#mirror .unknown")] == ["Quux"]
    assert [item.text for item in page.all("#remarks li")] == [
        "Not in the model's vocabulary: quux",
        "Cut off: the model reached its length limit before it ended the sentence.",
    ]
    page.all("#alternatives-list button")[1].click()
    page.shows("Ich habe Durst")
    assert [item.text for item in page.all("#remarks li")] == ["Not in the model's vocabulary: quux"]
    page.all("#target .word")[0].click()
    assert page.text("#attention") == "Ich: attention is known of the best translation only"


def test_a_model_without_attention_and_scores(page: Page) -> None:
    answer = sentence("one", "eins", "ein", attention=None)
    for translation in answer["translations"]:
        translation["score"] = None
    page.translate("one", {"sentences": [answer]})
    page.all("#target .word")[0].click()
    assert page.text("#attention") == "eins: no attention"
    assert [score.text for score in page.all(".score")] == ["", ""]


def test_languages_are_chosen_and_swapped(page: Page) -> None:
    def options(selector: str) -> list[str]:
        return [option.text for option in page.all(f"{selector} option")]

    assert options("#source-language") == ["English", "German", "Detect language"]
    assert options("#target-language") == ["German", "Arabic"]
    page.translate("one")
    page.find("#swap").click()
    page.until(lambda: page.find("#source").get_property("value") == "ONE")
    page.shows("ONE")
    assert (page.service.asked[-1]["source"], page.service.asked[-1]["target"]) == ("de", "en")
    assert (page.find("#source").get_attribute("lang"), page.find("#target").get_attribute("lang")) == ("de", "en")
    assert page.find("#target-language").get_property("disabled")
    page.find("#source-language").send_keys("Eng")
    page.find("#target-language").send_keys("Arab")
    page.until(lambda: page.service.asked[-1]["target"] == "ar")
    assert page.find("#swap").get_property("disabled")
    page.service.replies.append(Reply(body={"sentences": [], "detectedLanguage": {"language": "de", "confidence": 90}}))
    page.find("#source-language").send_keys("Detect")
    page.until(lambda: options("#source-language")[2] == "Detected: German")
    assert page.service.asked[-1]["source"] == "auto"


def test_unknown_languages_have_no_tag(page: Page) -> None:
    page.service.languages = [{"code": "source", "name": "source", "targets": ["source", "target"]}]
    page.open()
    page.translate("one")
    assert (page.find("#source").get_attribute("lang"), page.find("#target").get_attribute("lang")) == ("", "")
    assert page.find("#swap").get_property("disabled")
    assert [option.text for option in page.all("option")] == ["Source", "Target"]


def test_scripts_from_right_to_left(page: Page) -> None:
    page.translate("hello world", {"sentences": [sentence("hello world", "مرحبا بالعالم")]})
    sides = page.run("return ['#source', '#target'].map((s) => getComputedStyle(document.querySelector(s)).direction)")
    assert sides == ["ltr", "rtl"]
    page.all("#target .word")[0].click()
    page.keys(Keys.ARROW_LEFT)
    assert page.focus() == "بالعالم"


LONG = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen and many\n\nother words " * 8 + "\n"


@pytest.mark.parametrize("width", [360, 1280])
def test_words_of_the_mirror_lie_on_those_of_the_text_area(page: Page, width: int) -> None:
    page.resize(width, 800)
    page.translate(LONG + "x" * 200)
    styles = page.run(
        "return ['mirror', 'source'].map((id) => { const s = getComputedStyle(document.getElementById(id)); return ["
        "s.font, s.padding, s.borderWidth, s.whiteSpace, s.overflowWrap, s.letterSpacing, s.wordBreak, s.tabSize,"
        "s.width, s.unicodeBidi, s.textAlign]; })"
    )
    assert styles[0] == styles[1]
    heights = page.run(
        "return ['mirror', 'source'].map((id) => { const e = document.getElementById(id);"
        "e.style.alignSelf = 'start'; e.style.height = id === 'source' ? '0' : 'auto'; return e.scrollHeight; })"
    )
    assert heights[0] == pytest.approx(heights[1], abs=1)  # whole pixels


def test_a_phone_shows_everything_without_scrolling_sideways(page: Page) -> None:
    page.resize(360, 640)
    page.service.languages = [
        {"code": code, "name": f"A language with a very long name {code}", "targets": ["de", "en"]}
        for code in ("en", "de")
    ]
    page.open()
    answer = sentence(LONG, LONG, "y" * 300)
    answer["translations"][0]["unknown"] = ["z" * 300]
    page.translate(LONG, {"sentences": [answer]})
    page.all("#target .word")[0].click()
    page.service.replies.append(Reply(403, {"error": "k" * 300}))
    page.type(".")
    page.until(page.find("#key-form").is_displayed)
    assert page.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    outside = page.run(
        "return [...document.querySelectorAll('main *')].filter((e) => !e.closest('option, .progress')"
        "  && e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)"
        "  .map((e) => e.outerHTML.slice(0, 80))"
    )
    assert not outside


CONTRASTS = """
const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const luminance = (colors) => {  // of colors painted over each other
  for (const color of colors) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); }
  const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
  return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
};
const backgrounds = (e) => (e ? [...backgrounds(e.parentElement), getComputedStyle(e).backgroundColor] : []);
const contrast = (e, ink) => {
  const [a, b] = [luminance(backgrounds(e)), luminance([...backgrounds(e), ink])];
  return [`${e.tagName} ${e.id} ${e.className} ${e.textContent.slice(0, 20)}`,
    (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
};
const source = document.getElementById('source');
const result = [];
for (const e of document.querySelectorAll('body *')) {
  const own = e === source || [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  const seen = e.checkVisibility({ visibilityProperty: true }) && !e.closest('.hidden, option, noscript, :disabled');
  if (!own || !seen) continue;
  // The text of the mirror is that of the text area in front.
  result.push(contrast(e, getComputedStyle(e.closest('#mirror') ? source : e).color));
  if (e === source) result.push(contrast(e, getComputedStyle(e, '::placeholder').color));
}
return result;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_both_color_schemes(page: Page, scheme: str) -> None:
    page.emulate(prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
    contrasts = page.run(CONTRASTS)
    answer = sentence("one two\nthree", "eins zwei drei", "1 2 3")
    answer["translations"][0].update(unknown=["two"], finished=False)
    page.service.answers["one two\nthree"] = {"sentences": [answer, sentence("four")]}
    page.paste("one two\nthree")
    page.until(lambda: page.all("#target .word"))
    page.all("#target .word")[0].click()
    contrasts += page.run(CONTRASTS)
    assert page.marks("#mirror") == {"one": 1, "two": 0.125}
    page.service.replies.append(Reply(403, {"error": "An API key is needed."}))
    page.keys(Keys.CONTROL, Keys.ENTER)
    page.until(page.find("#key-form").is_displayed)
    contrasts += page.run(CONTRASTS)
    assert len(contrasts) > 40
    assert not [(name, ratio) for name, ratio in contrasts if ratio < 4.5]
    paper = page.run("return getComputedStyle(document.body).backgroundColor")
    bright = sum(int(part) for part in paper.removeprefix("rgb(").rstrip(")").split(",")) > 384
    assert bright == (scheme == "light")


def test_reduced_motion_is_respected(page: Page) -> None:
    moving = (
        "return [...document.querySelectorAll('*')].filter((e) => ['', '::before', '::after'].some((part) => {"
        "  const s = getComputedStyle(e, part);"
        "  return s.animationName !== 'none' || parseFloat(s.transitionDuration) > 0; })).length"
    )
    assert page.run(moving) > 0
    page.emulate(prefers_reduced_motion="reduce")
    assert page.run(moving) == 0


def test_every_control_has_a_name(page: Page) -> None:
    page.translate("one", {"sentences": [sentence("one", "eins", "ein")]})
    page.service.replies.append(Reply(403, {"error": "An API key is needed."}))
    page.type("!")
    page.until(page.find("#key-form").is_displayed)
    controls = page.all("button, select, input, textarea")
    assert len(controls) > 6
    assert all(control.accessible_name for control in controls)
    assert page.find("html").get_attribute("lang") == "en"


@pytest.mark.slow
def test_the_page_before_the_service_itself(driver: Chrome, trained_project: Path) -> None:
    """A run that has learned its corpus, the command that serves it, and the page."""
    pytest.importorskip("nmt.serving.app", reason="needs the service and the packages of the extra serve")
    command = [sys.executable, "-u", "-c", "from nmt.cli.app import main; main()", "serve", "base", "--port", "0"]
    with subprocess.Popen(command, cwd=trained_project, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            ready = next(line for line in process.stdout if line.startswith("Ready at "))
            page = Page(driver, SimpleNamespace(url=ready.split()[2].rstrip("/") + "/"))
            driver.get_log("browser")
            page.open()
            page.type("im thirsty. im one two three")
            page.until(lambda: len(page.all("#target .sentence")) == 2 and page.all("#alternatives-list button"))
            page.all("#target .word")[0].click()
            page.until(lambda: page.chosen() and page.marks("#mirror"))
            assert "%" in page.text("#attention")
            scores = [score.text.replace(MINUS, "-") for score in page.all(".score")]
            assert len(scores) == 4 and scores == sorted(scores, key=float, reverse=True)
            page.paste("quux")
            page.until(lambda: "quux" in page.text("#remarks"))
            page.paste("x" * 30_000)
            page.until(lambda: "30000" in page.text("#status"))
            names = page.run("return performance.getEntries().map((entry) => entry.name)")
            assert not [name for name in names if "://" in name and not name.startswith(page.service.url)]
            errors = [line["message"] for line in driver.get_log("browser") if line["level"] == "SEVERE"]
            assert not [error for error in errors if "status of" not in error]
        finally:
            process.terminate()
    assert process.returncode == 0
