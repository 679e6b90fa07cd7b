"""The page in a browser: headless Chromium, driven as a user does, before a stub of the service."""

import random
import re
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from page_stub import LANGUAGES, PAGE, Reply, running_stub, sentence, tokens_of
from running_service import SERVE, started

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

    def point_at(self, element: WebElement) -> None:
        ActionChains(self.driver, duration=0).move_to_element(element).perform()

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

    def check(self) -> None:
        """Check that there was no script error and no foreign request."""
        names = self.run("return performance.getEntries().map((entry) => entry.name)")
        assert not [name for name in names if "://" in name and not name.startswith(self.service.url)]
        errors = [line["message"] for line in self.driver.get_log("browser") if line["level"] == "SEVERE"]
        assert not [error for error in errors if "status of" not in error and "net::ERR" not in error]

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


@pytest.fixture
def page(driver: Chrome) -> Iterator[Page]:
    """The page, freshly loaded; afterwards, no test may have caused a script error or a foreign request."""
    with running_stub() as stub:
        page = Page(driver, stub)
        page.emulate(prefers_color_scheme="light")
        page.resize(1280, 900)
        driver.get_log("browser")
        page.open()
        yield page
        page.check()


def test_typed_text_is_translated_and_an_older_answer_never_replaces_a_newer_one(page: Page) -> None:
    assert page.find("#copy").get_property("disabled")
    page.type("im thirsty")
    page.shows("IM THIRSTY")
    assert page.service.asked[-1] == {"q": "im thirsty", "source": "en", "target": "de", "alternatives": 3}
    page.type(Keys.CONTROL + "a" + Keys.NULL + Keys.DELETE)
    page.shows("")
    assert page.find("#copy").get_property("disabled")
    page.service.asked.clear()
    page.run(
        "const s = document.getElementById('source');"
        "for (const letter of 'one two') { s.value += letter; s.dispatchEvent(new InputEvent('input')); }"
    )
    page.shows("ONE TWO")
    assert [asked["q"] for asked in page.service.asked] == ["one two"], "key presses without a pause are one request"
    released = threading.Event()
    page.service.replies += [Reply(released=released), Reply()]
    page.paste("first")
    page.until(lambda: page.service.asked[1:])
    assert page.find("#target").get_attribute("aria-busy") == "true"
    page.paste("second")
    page.shows("SECOND")
    page.record("#target")
    released.set()
    page.until(lambda: "first" in page.service.answered)
    page.translate("third")
    assert set(page.recorded("#target")) == {"THIRD"}
    assert [asked["q"] for asked in page.service.asked] == ["one two", "first", "second", "third"]
    assert page.find("#target").get_attribute("aria-busy") == "false"
    files = {f"/static/{path.name}" for path in PAGE.iterdir()} - {"/static/index.html"}
    assert {*page.service.paths, "/static/icon.svg"} == {"/", "/languages", "/frontend/settings", "/details", *files}


def test_alternatives_are_taken_and_remarks_are_those_of_the_translation_shown(page: Page) -> None:
    first = sentence("im thirsty.", "Ich bin durstig.", "Ich habe Durst.", "Mir ist durstig.", separator=" ")
    second = sentence("me too.", "Ich auch.", "Auch ich.")
    text = "im thirsty. me too."
    page.translate(text, {"sentences": [first, second]})
    assert page.text("#alternatives-source") == "me too."  # the sentence at the caret
    page.all("#target .word")[0].click()
    assert page.text("#alternatives-source") == "im thirsty."
    assert [score.text for score in page.all(".score")] == [f"{MINUS}0.25", f"{MINUS}1.25", f"{MINUS}2.25"]
    buttons = page.all("#alternatives-list button")
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

    answer = sentence("Im Quux, thirsty", "Ich bin durstig", "Ich habe Durst")
    for translation in answer["translations"]:
        translation |= {"unknown": ["quux"], "score": None}
    answer["translations"][0]["finished"] = False
    page.service.answers["Im Quux, thirsty"] = {"sentences": [answer]}
    page.paste("Im Quux, thirsty")
    page.shows("Ich bin durstigcut off")
    assert [word.get_property("textContent") for word in page.all("#mirror .unknown")] == ["Quux"]
    unknown, cut_off = [item.text for item in page.all("#remarks li")]
    assert unknown.endswith("quux") and cut_off.startswith("Cut off")
    assert [score.text for score in page.all(".score")] == ["", ""]
    page.all("#alternatives-list button")[1].click()
    page.shows("Ich habe Durst")
    assert [item.text for item in page.all("#remarks li")] == [unknown]
    page.all("#target .word")[0].click()
    assert "best translation only" in page.text("#attention")
    page.translate("one", {"sentences": [sentence("one", "eins", attention=None)]})
    page.all("#target .word")[0].click()
    assert "no attention" in page.text("#attention")


def test_marks_on_words_follow_the_attention(page: Page) -> None:
    """The word "thirsty" has two tokens: its columns are added up, the rows of "DURSTIG" averaged."""

    def marked(word: str, side: str, marks: dict[str, float], caption: str) -> None:
        page.until(lambda: page.chosen() == [word])
        assert page.marks(side) == pytest.approx(marks, abs=1e-3)
        assert page.text("#attention") == caption

    def nothing_marked() -> None:
        page.until(lambda: not (page.chosen() or page.marks("#mirror") or page.marks("#target")))
        assert not page.text("#attention")

    page.translate("im really thirsty", {"sentences": [sentence("im really thirsty", "ICH ECHT DURSTIG")]})
    page.run("document.activeElement.blur()")
    page.point_at(page.all("#target .word")[2])
    marked("DURSTIG", "#mirror", {"thirsty": 1}, "DURSTIG ← thirsty 70%")
    page.point_at(page.all("#target .word")[1])
    marked("ECHT", "#mirror", {"really": 1, "thirsty": 0.125}, "ECHT ← really 80%, thirsty 10%")
    page.point_at(page.find("h1"))
    nothing_marked()
    page.find("#source").click()
    page.point_at(page.all("#mirror .word")[2])
    marked("thirsty", "#target", {"DURSTIG": 1, "ECHT": 1 / 7}, "thirsty → DURSTIG 70%, ECHT 10%")
    page.point_at(page.find("h1"))
    page.type(Keys.HOME)
    page.until(lambda: page.chosen() == ["im"])
    page.type(Keys.ARROW_RIGHT * 4)
    marked("really", "#target", {"ECHT": 1, "ICH": 0.125}, "really → ECHT 80%, ICH 10%")
    page.type(Keys.ESCAPE)
    nothing_marked()

    page.translate("one two\nthree four")
    released = threading.Event()
    page.service.replies.append(Reply(released=released))
    page.paste("one two\nthree four five")  # the words of the sentences that it still holds are marked
    words = [word.get_property("textContent") for word in page.all("#mirror .word")]
    assert words == ["one", "two", "three", "four"]
    assert page.text("#mirror") == "one two\nthree four five\u200b"
    released.set()
    page.shows("ONE TWO\nTHREE FOUR FIVE")


def test_texts_become_words_and_attention_of_words_equals_that_of_a_reference(page: Page) -> None:
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
        attention = np.array([[dice.random() for _ in source_tokens] for _ in target_tokens])
        of_row = np.equal.outer(range(len(target.split())), rows)
        of_column = np.equal.outer(columns, range(len(source.split())))
        expected = of_row @ attention @ of_column / of_row.sum(axis=1, keepdims=True)
        found = page.driver.execute_async_script(
            "const [source, target, given, done] = arguments;"
            "import('/static/words.js').then(({ splitWords, attentionOfWords }) => {"
            "  const spaces = (text) => [...text.matchAll(/\\S+/g)]"
            "    .map((match) => ({ start: match.index, end: match.index + match[0].length }));"
            "  const split = splitWords(source).map(({ start, end }) => source.slice(start, end));"
            "  done([attentionOfWords(given, source, spaces(source), target, spaces(target)), split]); })",
            source, target,
            {"source_tokens": source_tokens, "target_tokens": target_tokens, "attention": attention.tolist()},
        )  # fmt: skip
        np.testing.assert_allclose(found[0], expected, atol=1e-12, err_msg=f"{source_tokens} {target_tokens}")
        assert "".join(found[1]) == source.replace(" ", "")

    split = (
        "const [text, done] = arguments; import('/static/words.js').then(({ splitWords }) =>"
        " done(splitWords(text).map(({ start, end }) => text.slice(start, end))))"
    )
    texts = {
        "Well, I'm here ... (now)!": ["Well", ",", "I'm", "here", "...", "(", "now", ")!"],
        "مرحبا بالعالم": ["مرحبا", "بالعالم"],
        " \n\t": [],
        "今日は天気がいい。": ["今日", "は", "天気", "が", "いい", "。"],
    }
    without_segmenter = {**texts, "今日は天気がいい。": ["今日は天気がいい", "。"]}  # as in old browsers
    for change, expected in (("", texts), ("delete Intl.Segmenter", without_segmenter)):
        page.run(change)
        assert {text: page.driver.execute_async_script(split, text) for text in texts} == expected


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


def test_a_translation_is_copied_or_the_browser_forbids_it(page: Page) -> None:
    page.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardSanitizedWrite"]})
    for text, copied in (("one.\n\ntwo", "ONE.\n\nTWO"), ("three", "THREE")):
        page.translate(text)
        page.run("document.getElementById('copy').focus()")
        page.keys(Keys.ENTER)
        page.until(lambda: page.text("#copied") and page.text("#copy-label") == "Copied")
        assert page.focus() == "copy"
        page.find("#clear").click()
        page.keys(Keys.CONTROL, "v")
        page.until(lambda expected=copied: page.find("#source").get_property("value") == expected)
        # A page that comes by http from another machine has no clipboard.
        page.run("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.shows("THREE")
    page.run("document.execCommand = () => false")
    page.find("#copy").click()
    page.until(lambda: "does not allow copying" in page.text("#status"))
    assert page.text("#copy-label") == "Copy"


def test_what_the_service_refuses_is_said_beside_the_last_translation(page: Page) -> None:
    for number, (reply, message) in enumerate(
        [
            (Reply(400, {"error": f"The text is too long {HTML}"}), f"The text is too long {HTML}"),
            (Reply(500, b"<h1>Oops</h1>"), "failed with status 500"),
            (Reply(200, b"<h1>Proxy</h1>"), "not JSON"),
            (Reply(200, {"detail": 1}), "without sentences"),
            (Reply(200, {"sentences": [1]}), "cannot show the answer"),
        ]
    ):
        page.translate(f"one {number}")
        assert page.text("#status") == "" and "stale" not in page.find("#target").get_attribute("class")
        page.service.replies.append(reply)
        page.paste("two")
        page.until(lambda expected=message: expected in page.text("#status"))
        assert page.text("#target") == f"ONE {number}" and "stale" in page.find("#target").get_attribute("class")
    assert page.find("#status").get_attribute("role") == "status"
    page.driver.get_log("browser")  # the page logs that it does not understand the last answer


def test_a_service_that_is_busy_or_silent_is_asked_again_later_or_at_once(page: Page) -> None:
    busy = Reply(503, {"error": "busy"}, {"Retry-After": "3600"})
    page.service.languages = busy
    page.open(ready=False)
    page.until(lambda: "overloaded" in page.text("#status"))
    page.service.languages = LANGUAGES
    page.type("one")
    page.shows("ONE")
    for reply, message in ((busy, "overloaded. Trying again in 60 s"), (Reply(0), "does not answer")):
        page.service.replies += [reply] * 3
        page.paste(f"{message} one")
        page.until(lambda expected=message: expected in page.text("#status") and "again in" in page.text("#status"))
        page.service.replies.clear()
        page.keys(Keys.CONTROL, Keys.ENTER)
        page.shows(f"{message} one".upper())
    page.service.replies.append(Reply(503, {"error": "busy"}, {"Retry-After": "1"}))
    page.record("#status")
    page.paste("two")
    page.shows("TWO")
    assert any("again in 1 s" in shown for shown in page.recorded("#status"))
    assert page.text("#status") == ""
    assert [asked["q"] for asked in page.service.asked][-2:] == ["two", "two"]


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
    page.service.settings = {"keyRequired": True, "alternativesLimit": 1}
    page.open()
    assert page.find("#key-form").is_displayed()
    page.find("#key").send_keys("secret" + Keys.ENTER)
    page.translate("two")
    assert (page.service.asked[-1]["api_key"], page.service.asked[-1]["alternatives"]) == ("secret", 1)


def test_text_is_never_read_as_html(page: Page) -> None:
    for path in PAGE.iterdir():
        text = path.read_text()
        assert not re.search(r"(inner|outer|Adjacent)HTML|document\.write|\beval\(|new Function", text), path
        assert set(re.findall(r"\w+://[^\s\"'<>]*", text)) <= {"http://www.w3.org/2000/svg"}, path
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


def test_languages_are_chosen_swapped_detected_and_written_in_their_direction(page: Page) -> None:
    def options(selector: str) -> list[str]:
        return [option.text for option in page.all(f"{selector} option")]

    def tags() -> tuple[str | None, str | None]:
        return page.find("#source").get_attribute("lang"), page.find("#target").get_attribute("lang")

    assert options("#source-language") == ["English", "German", "Detect language"]
    assert options("#target-language") == ["German", "Arabic"]
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
    page.translate("hello world", {"sentences": [sentence("hello world", "مرحبا بالعالم")]})
    sides = page.run("return ['#source', '#target'].map((s) => getComputedStyle(document.querySelector(s)).direction)")
    assert sides == ["ltr", "rtl"]
    page.all("#target .word")[0].click()
    page.keys(Keys.ARROW_LEFT)
    assert page.focus() == "بالعالم"
    page.service.replies.append(Reply(body={"sentences": [], "detectedLanguage": {"language": "de", "confidence": 90}}))
    page.find("#source-language").send_keys("Detect")
    page.until(lambda: options("#source-language")[2] == "Detected: German")
    assert page.service.asked[-1]["source"] == "auto"

    page.service.languages = [{"code": "source", "name": "source", "targets": ["source", "target"]}]  # unknown ones
    page.open()
    page.translate("one")
    assert tags() == ("", "") and page.find("#swap").get_property("disabled")
    assert options("main") == ["Source", "Target"]


LONG = "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen and many\n\nother words " * 8 + "\n" + "x" * 200


@pytest.mark.parametrize("width", [360, 1280])
def test_long_texts_fit_and_words_of_the_mirror_lie_on_those_of_the_text_area(page: Page, width: int) -> None:
    page.resize(width, 640)
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
    heights = page.run(
        "return ['mirror', 'source'].map((id) => { const e = document.getElementById(id);"
        "e.style.alignSelf = 'start'; e.style.height = id === 'source' ? '0' : 'auto'; return e.scrollHeight; })"
    )
    assert heights[0] == pytest.approx(heights[1], abs=1)  # whole pixels


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
MOVING = """
return [...document.querySelectorAll('*')].filter((e) => ['', '::before', '::after'].some((part) => {
  const s = getComputedStyle(e, part);
  return s.animationName !== 'none' || parseFloat(s.transitionDuration) > 0; })).length
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_controls_have_names_and_nothing_moves_if_so_wished(page: Page, scheme: str) -> None:
    assert page.run(MOVING) > 0
    page.emulate(prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
    assert page.run(MOVING) == 0
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
    controls = page.all("button, select, input, textarea")
    assert len(controls) > 6
    assert all(control.accessible_name for control in controls)
    assert page.find("html").get_attribute("lang") == "en"


@pytest.mark.slow
def test_the_page_before_the_service_itself(driver: Chrome, trained_project: Path) -> None:
    """A run that has learned its corpus, the command that serves it to other machines, and the page."""
    with started([*SERVE, "base", "--host", "0.0.0.0"], cwd=trained_project) as service:
        page = Page(driver, SimpleNamespace(url=f"http://127.0.0.1:{service.port}/"))
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
        page.check()
        assert service.client.get("/health", headers={"host": "any.name"}).status_code == 403
        assert service.client.get("/health", headers={"host": "192.0.2.1"}).status_code == 200
        service.process.send_signal(signal.SIGINT)
        _, errors = service.process.communicate(timeout=60)
        assert service.process.returncode == 0
    assert errors.startswith("nmt: the service is reachable from other machines at http://0.0.0.0:")
    assert "API keys are off" in errors
