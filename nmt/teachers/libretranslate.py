"""LibreTranslate servers, and ``nmt serve``, as teachers."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from nmt.config.teacher import TeacherConfig
from nmt.teachers.requests import Requests
from nmt.teachers.server import UNUSABLE, Answer, Languages, ServerTeacher, refuse_without_languages


class _Translations(BaseModel):
    """Answer to a list of texts. A server that knows no alternatives leaves them out."""

    translatedText: list[str]  # noqa: N815 - a name of the protocol
    alternatives: list[list[str]] | None = None


class LibreTranslateTeacher(ServerTeacher):
    """A LibreTranslate server, or ``nmt serve``, as a teacher."""

    def __init__(
        self, config: TeacherConfig, languages: Languages, candidates: int, requests: Requests | None = None
    ) -> None:
        """Describe the teacher, as for ``ServerTeacher``; raises NmtError without language codes."""
        refuse_without_languages(languages, "A LibreTranslate server")
        super().__init__(config, languages, candidates, requests)

    def ask(self, sentences: Sequence[str]) -> Answer:
        """Return the answer to a single request, as for ``ServerTeacher``."""
        source, target = self.languages
        body: dict[str, Any] = {"q": [*sentences], "source": source, "target": target, "format": "text"}
        if self.candidates > 1:
            body["alternatives"] = self.candidates - 1
        if self.requests.key:
            body["api_key"] = self.requests.key
        try:
            answer = _Translations.model_validate(self.requests.post("/translate", body, {}))
        except ValidationError:
            return Answer([], UNUSABLE)
        best = answer.translatedText
        others = answer.alternatives or [[] for _ in best]
        if not len(best) == len(others) == len(sentences) or not all(map(str.strip, best)):
            return Answer([], UNUSABLE)
        return Answer([[text, *filter(str.strip, more)] for text, more in zip(best, others, strict=True)])
