"""Language models behind OpenAI's chat interface as teachers: prompt, examples, and checks of the answers."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from nmt.config.languages import language_name
from nmt.config.teacher import TeacherConfig
from nmt.errors import DataError
from nmt.storage.text import as_cell, decode_utf8, text_lines
from nmt.teachers.requests import Requests
from nmt.teachers.server import REFUSED, UNUSABLE, Answer, Languages, ServerTeacher, refuse_without_languages
from nmt.teachers.teacher import CUT_OFF

PROMPT = """\
Translate every sentence of this JSON list from {source_language} to {target_language}. Answer with nothing but a JSON \
list of the translations, in the same order: {count} in all.

{source}"""
"""Usual instruction."""
NO_LIST, WRONG_COUNT = "answer without a list of translations", "wrong number of translations"
NO_TEXT, REPEATED = "empty translation", "the same translation for several lines"
"""Problems of answers."""
MOST_ALIKE = 2
"""Most different sentences of a request that may have the same translation, such as "Hi!" and "Hello!"."""
_REFUSAL = re.compile(
    r"(?:i['’]m|i am) (?:sorry|unable|not able)|i (?:cannot|can['’]t)|as an? (?:ai\b|(?:large )?language model)|sorry",
    re.IGNORECASE,
)
_LIST = TypeAdapter(list[str])


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Tokens(BaseModel):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Completion(BaseModel):
    choices: list[_Choice]
    usage: _Tokens | None = None


class ChatTeacher(ServerTeacher):
    """A language model behind OpenAI's chat interface as a teacher."""

    def __init__(
        self, config: TeacherConfig, languages: Languages, candidates: int, requests: Requests | None = None
    ) -> None:
        """Read the prompt and the examples. Nothing is sent.

        Args:
            config: description of the teacher.
            languages: language codes.
            candidates: most translations of a line.
            requests: sender of the requests; None: the usual one.

        Raises:
            DataError: if the prompt or the examples cannot be used; names the file.
            NmtError: if the prompt needs the languages and they are unknown.
        """
        prompt = _read_prompt(config.prompt) if config.prompt else PROMPT
        if "_language}" in prompt:
            refuse_without_languages(languages, "The prompt")
        for name, code in zip(("{source_language}", "{target_language}"), languages, strict=True):
            prompt = prompt.replace(name, language_name(code or ""))
        examples = [*_read_examples(config.examples)] if config.examples else []
        self._prompt, self._examples = prompt, examples
        super().__init__(
            config, languages, candidates, requests,
            model=config.model, temperature=config.temperature, prompt=_digest(prompt), examples=_digest(examples),
        )  # fmt: skip

    def ask(self, sentences: Sequence[str]) -> Answer:
        """Return the answer to a single request, as for ``ServerTeacher``."""
        body = {"messages": self._messages(sentences), "temperature": self.config.temperature}
        if self.config.model:
            body["model"] = self.config.model
        if self.candidates > 1:
            body["n"] = self.candidates
        key = self.requests.key
        received = self.requests.post("/chat/completions", body, {"Authorization": f"Bearer {key}"} if key else {})
        try:
            completion = _Completion.model_validate(received)
        except ValidationError:
            return Answer([], UNUSABLE)
        checked = [_check(choice, sentences) for choice in completion.choices]
        usable = [texts for texts, problem in checked if not problem]
        problem = "" if usable else next((problem for _, problem in checked), UNUSABLE)
        tokens = completion.usage or _Tokens()
        return Answer([*zip(*usable, strict=True)], problem, tokens.prompt_tokens, tokens.completion_tokens)

    def _messages(self, sentences: Sequence[str]) -> list[dict[str, str]]:
        """Return the turns of the conversation: the examples with their translations, then the sentences."""
        turns = []
        if self._examples:
            sources, targets = zip(*self._examples, strict=True)
            turns = [_turn("user", self._fill(sources)), _turn("assistant", _as_list(targets))]
        return [*turns, _turn("user", self._fill(sentences))]

    def _fill(self, sentences: Sequence[str]) -> str:
        """Return the prompt for some sentences."""
        prompt = self._prompt.replace("{count}", str(len(sentences)))
        return prompt.replace("{source}", _as_list(sentences))  # last, since sentences may contain such words, too


def _turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _as_list(sentences: Sequence[str]) -> str:
    return json.dumps(sentences, ensure_ascii=False)


def _check(choice: _Choice, sentences: Sequence[str]) -> tuple[list[str], str]:
    """Return the translations in an answer, and the problem of the answer."""
    content = choice.message.content or choice.message.refusal or ""
    content = content.rpartition("</think>")[2]
    content = as_cell(content).strip()  # JSON forbids line breaks in texts, but some models write them
    start, end = content.find("["), content.rfind("]") + 1
    if choice.finish_reason == "length":
        return [], CUT_OFF
    try:
        translations = _LIST.validate_json(content[start:end])
    except ValidationError:
        is_refusal = _REFUSAL.match(content) or choice.finish_reason == "content_filter"
        return [], REFUSED if is_refusal else NO_LIST
    if len(translations) != len(sentences):
        return [], WRONG_COUNT
    if not all(map(str.strip, translations)):
        return [], NO_TEXT
    pairs = set(zip(translations, sentences, strict=True))
    sources = Counter(translation for translation, _ in pairs)
    if max(sources.values()) > MOST_ALIKE:
        return [], REPEATED
    return translations, ""


# --- prompt and examples


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def _read_prompt(path: Path) -> str:
    """Return the instruction in a file."""
    prompt = decode_utf8(path.read_bytes(), str(path)).removeprefix("\ufeff")
    if "{source}" not in prompt:
        raise DataError(
            f"{path} has no {{source}}. A prompt needs it where the JSON list of sentences is to stand. Add it."
        )
    return prompt


def _read_examples(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the pairs in a file."""
    for number, line in enumerate(text_lines(path.read_bytes(), str(path)), 1):
        source, _, target = line.partition("\t")
        if line.strip() and (not source.strip() or not target.strip() or "\t" in target):
            raise DataError(
                f"{path}, line {number} is {line[:60]!r}. A line of examples is a sentence, a TAB and its translation. "
                "Correct or remove it."
            )
        if line.strip():
            yield source, target
