"""Signs at the end of sentences: a translation ends as its source does, with the signs of its own script."""

import re

from nmt.text.inline import CLOSING, QUOTES
from nmt.tokenizers.scripts import HAN, KANA

_KINDS = {
    ".": ".。．｡।॥۔։።။។༎།᙮", "?": "?？؟՞፧", "!": "!！՜", ":": ":：፡", ",": ",，،、፣", ";": ";；؛፤", "…": "…",
}  # fmt: skip
_KIND_OF = {sign: kind for kind, signs in _KINDS.items() for sign in signs}
_SIGNS = "".join(_KIND_OF)
_CLOSINGS = "".join(set(CLOSING) - set(_KIND_OF)) + QUOTES + " \xa0\u202f"
# Signs of languages and of scripts that differ from those of Latin. Thai and Lao end sentences without a stop.
_OF_LANGUAGE = {"el": {"?": ";"}, "ur": {".": "۔", "?": "؟", ",": "،"}}
_OF_SCRIPT = (
    (re.compile(f"[{HAN}{KANA}]"), dict(zip(".?!:,;", "。？！：，；", strict=True))),
    (re.compile("[\u0600-\u06ff]"), dict(zip("?,;", "؟،؛", strict=True))),
    (re.compile("[\u0900-\u0a7f\u0b00-\u0b7f]"), {".": "।"}),
    (re.compile("[\u0530-\u058f]"), {".": "։"}),
    (re.compile("[\u1200-\u137f]"), dict(zip(".,;", "።፣፤", strict=True))),
    (re.compile("[\u1000-\u109f]"), {".": "။"}),
    (re.compile("[\u1780-\u17ff]"), {".": "។"}),
    (re.compile("[\u0f00-\u0fff]"), {".": "།"}),
    (re.compile("[\u0e00-\u0eff]"), {".": ""}),
)


class Endings:
    """Ends the translations of a model as their sources end."""

    def __init__(self, source: set[str], target: set[str], languages: tuple[str, str]) -> None:
        """Create endings from the characters that a model reads and writes, and its languages."""
        self._reads_stops = "." in {_KIND_OF.get(sign) for sign in source}
        self._written = target
        self._languages = [language.partition("-")[0].lower() for language in languages]

    def match(self, source: str, translation: str) -> str:
        """Return a translation with the signs that its source has at the end, or without any.

        A model that reads no stops, or writes none, knows better: its translations stay as they are. So do
        abbreviations, and Spanish questions.
        """
        core, signs, closings = _split(translation)
        wanted, kind = self._kind(source, 0), self._kind(translation, 1)
        is_abbreviation = signs == "." and "." in core.rpartition(" ")[2]
        is_opened = "¿" in core or "¡" in core
        if wanted == kind or not (core and self._reads_stops) or is_abbreviation or is_opened:
            return translation
        own = _OF_LANGUAGE.get(self._languages[1])
        own = own or next((signs for letters, signs in _OF_SCRIPT if letters.search(core)), {})
        if "::" in wanted:  # which is no punctuation, but introduces code in reStructuredText
            own = {}
        ending = ""
        for sign in wanted:
            forms = [own.get(sign, sign), sign, "..." if sign == "…" else sign]
            written = [form for form in forms if self._written.issuperset(form)]
            if not written:
                return translation
            ending += written[0]
        return core + ending + closings

    def _kind(self, text: str, side: int) -> str:
        """Return the signs at the end of a text in Latin; a single "…" for several dots or several "…"."""
        signs = _split(text)[1]
        if len(signs) > 1 and (set(signs) == {"."} or set(signs) == {"…"}):
            return "…"
        kinds = "".join(_KIND_OF[sign] for sign in signs)
        return kinds.replace(";", "?") if self._languages[side] == "el" else kinds


def _split(text: str) -> tuple[str, str, str]:
    """Return a text before the signs at its end, these signs, and the quotes and brackets behind them."""
    visible = text.rstrip(_CLOSINGS)
    core = visible.rstrip(_SIGNS)
    return core.rstrip(), visible[len(core) :], text[len(visible) :]
