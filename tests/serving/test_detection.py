"""Detection of languages whose scripts have no spaces or no case, and of languages that the detector lacks."""

import gzip
import re
from pathlib import Path

import pytest

from nmt.serving.detection import Detector, is_short, languages_by_script

LANGUAGES = ["en", "de", "zh-Hans", "ja", "ko", "th", "hi", "ar", "he", "tr", "ru"]
TEXTS = {
    "en": "How are you today?", "de": "Wie geht es Ihnen heute?", "zh-Hans": "酒吧的消失情有可原",
    "ja": "カメラが好きです",
    "ko": "안녕하세요", "th": "สวัสดีครับ", "hi": "आप कैसे हैं?", "ar": "كيف حالك اليوم؟", "he": "מה שלומך היום?",
    "tr": "Bugün nasılsınız?",
    "ru": "Как у вас дела?",
}  # fmt: skip


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector()


@pytest.mark.parametrize("language", TEXTS)
def test_a_short_text_is_detected(detector: Detector, language: str) -> None:
    detected = detector.detect(TEXTS[language], LANGUAGES)
    assert detected[0].language == language
    assert [one.language for one in detected if one.confidence > 100] == []


def test_each_text_of_a_list_is_detected(detector: Detector) -> None:
    texts = [text * 3 for text in TEXTS.values()]
    assert [one.language for one in detector.detect_each(texts, LANGUAGES[1:], LANGUAGES[0])] == LANGUAGES
    assert is_short("a" * 40) and not is_short("a" * 41)
    assert is_short("字" * 13) and not is_short("字" * 14)


@pytest.mark.parametrize(("text", "languages"), [
    ("東京", {"zh", "yue", "wuu", "ja"}), ("今天天气很好", {"zh", "yue", "wuu"}), ("私は学生です", {"ja"}),
    ("カメラ", {"ja"}), ("iPhone 15 很好很好很好的", {"zh", "yue", "wuu"}),
    ("The word カメラ means camera.", set()), ("안녕", set()), ("", set()), ("123 。", set()),
])  # fmt: skip
def test_scripts_tell_chinese_from_japanese(text: str, languages: set[str]) -> None:
    assert languages_by_script(text) == languages


def test_a_language_that_the_detector_lacks_is_the_least_likely(detector: Detector) -> None:
    assert detector.detect(TEXTS["en"], ["shp", "en"])[0].language == "en"
    detected = detector.detect("東京", ["shp", "ja"])
    assert [one.language for one in detected] == ["ja", "shp"] and detected[1].confidence == 0


@pytest.mark.corpora
@pytest.mark.parametrize(("name", "code", "other"), [("zho-CN", "zh", "ja"), ("jpn", "ja", "zh")])
def test_clauses_of_chinese_and_japanese(corpora: Path, detector: Detector, name: str, code: str, other: str) -> None:
    content = gzip.decompress((corpora / "ntrex" / f"newstest2019-ref.{name}.txt.gz").read_bytes())
    clauses = [clause.strip() for clause in re.split("[，。、？！：；\\n]", content.decode())]
    long = [clause for clause in clauses if len(clause) > 4 and languages_by_script(clause)][:2_000]
    detected = [detector.detect(clause, ["en", code, other])[0].language for clause in long]
    assert detected.count(code) > 0.99 * len(long)
