"""Requests and answers of the LibreTranslate protocol, and of the details for the page."""

import json
from typing import Any, Literal, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

MAX_FIELDS = 100
AUTO = "auto"


class RequestError(Exception):
    """Request that is not answered as asked for."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        """Take the HTTP status, the message, and the seconds after which to try again."""
        super().__init__(message)
        self.status, self.message = status, message
        self.headers = {} if retry_after is None else {"retry-after": str(retry_after)}


class _Request(BaseModel):
    # Clients of other services send further parameters, which are of no concern here.
    model_config = ConfigDict(extra="ignore", frozen=True)

    api_key: str | None = Field(None, description="API key, if the service asks for one.")


class TranslateRequest(_Request):
    """Parameters of ``POST /translate``."""

    q: str | list[str] = Field(description="Text or texts to translate.", examples=["Hello world!"])
    source: str = Field(description="Code of the source language, or auto.", examples=["en"])
    target: str = Field(description="Code of the target language.", examples=["de"])
    format: Literal["text", "html"] = Field("text", description="Kind of text.")
    alternatives: int = Field(0, description="Number of further translations of each text.")

    @field_validator("format", mode="before")
    @classmethod
    def _default_format(cls, value: object) -> object:
        return value or "text"

    @field_validator("alternatives", mode="before")
    @classmethod
    def _default_alternatives(cls, value: object) -> object:
        return 0 if value in (None, "") else value

    @property
    def texts(self) -> list[str]:
        """All texts."""
        return [self.q] if isinstance(self.q, str) else self.q


class DetectRequest(_Request):
    """Parameters of ``POST /detect``."""

    q: str = Field(description="Text.", examples=["Hello world!"])


class DetailsRequest(_Request):
    """Parameters of ``POST /details``."""

    q: str = Field(description="Text to translate.", examples=["Hello world!"])
    source: str = Field(description="Code of the source language, or auto.", examples=["en"])
    target: str = Field(description="Code of the target language.", examples=["de"])
    alternatives: int = Field(0, description="Number of further translations of each sentence.")


class ErrorAnswer(BaseModel):
    """Answer to a request that is refused or fails."""

    error: str


class DetectedLanguage(BaseModel):
    """Language of a text."""

    confidence: float = Field(description="Probability in percent.")
    language: str


class TranslateAnswer(BaseModel):
    """Answer of ``POST /translate``. It has lists if the request has a list of texts."""

    translatedText: str | list[str]  # noqa: N815 - a name of the protocol
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None  # noqa: N815 - a name of the protocol


class Language(BaseModel):
    """Language of the service."""

    code: str
    name: str
    targets: list[str] = Field(description="Codes of the languages that it is translated to.")


class TranslationDetails(BaseModel):
    """Translation of a sentence."""

    text: str
    score: float | None = Field(description="Log-probability, with the penalties of beam search.")
    unknown: list[str] = Field(description="Words of the source that the model does not know.")
    finished: bool = Field(description="Whether the model ended the translation, not its length limit.")


class SentenceDetails(BaseModel):
    """Sentence with its translations. T target tokens, S source tokens."""

    source: str
    separator: str = Field(description="Text after the sentence.")
    translations: list[TranslationDetails] = Field(description="The best first.")
    source_tokens: list[str]
    target_tokens: list[str] = Field(description="Tokens of the best translation.")
    attention: list[list[float]] | None = Field(
        description="T rows of S weights: attention of the last layer, averaged over its heads. null for a model "
        "without attention, and for a very long sentence."
    )


class DetailsAnswer(BaseModel):
    """Answer of ``POST /details``."""

    sentences: list[SentenceDetails]
    detectedLanguage: DetectedLanguage | None = None  # noqa: N815 - a name of the protocol


class Health(BaseModel):
    """Answer of ``GET /health``."""

    status: Literal["ok"] = "ok"


Parameters = TypeVar("Parameters", bound=_Request)


async def read_parameters(request: Request, kind: type[Parameters]) -> Parameters:
    """Return the parameters in the body of a request: JSON or a form.

    Raises:
        RequestError: for a body of another kind, or with other parameters.
    """
    content_type = (request.headers.get("content-type") or "").lower()
    media_type = content_type.partition(";")[0].strip()
    if media_type == "application/json" or media_type.endswith("+json"):
        values = _json_object(await request.body())
    elif media_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        values = await _form(request, kind)
    else:
        raise RequestError(
            400, f"Content-Type is {media_type[:100] or 'missing'}. Send application/json, "
            "application/x-www-form-urlencoded or multipart/form-data."
        )  # fmt: skip
    try:
        parameters = kind.model_validate(values)
    except ValidationError as error:
        raise RequestError(400, _problem(error)) from None
    for text in _strings(parameters.model_dump()):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            code = ord(text[error.start])
            raise RequestError(400, f"A text has the half character {code:#x}. Text is Unicode.") from None
    return parameters


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        values = json.loads(body)
    except RecursionError:
        raise RequestError(400, "The body is JSON with too many levels. Send one object.") from None
    except ValueError as error:
        raise RequestError(400, f"The body is not JSON: {str(error)[:200]}.") from None
    if not isinstance(values, dict):
        raise RequestError(400, "The body is JSON but no object. Send an object with the parameters.")
    return values


async def _form(request: Request, kind: type[BaseModel]) -> dict[str, Any]:
    try:
        form = await request.form(max_files=0, max_fields=MAX_FIELDS, max_part_size=len(await request.body()) + 1)
    except Exception as error:  # the parser has errors of several kinds
        detail = error.detail if hasattr(error, "detail") else error
        raise RequestError(400, f"The form is damaged: {str(detail)[:200]}.") from None
    values: dict[str, Any] = {}
    for name in set(form) & set(kind.model_fields):
        received = form.getlist(name)
        values[name] = received if name == "q" and len(received) > 1 else received[0]
    return values


def _problem(error: ValidationError) -> str:
    """Return the first problem in words."""
    problem = error.errors(include_url=False)[0]
    name, received = str(problem["loc"][0]), repr(problem["input"])[:100]
    if problem["type"] == "missing":
        return f"The parameter {name} is missing."
    if name == "q":
        return f"The parameter q is no text: it is {received}."
    if name == "format":
        return f"The format {received} is not supported. Send text or html."
    if name == "alternatives":
        return f"The parameter alternatives is no whole number: it is {received}."
    return f"The parameter {name} is no text: it is {received}."


def _strings(values: dict[str, Any]) -> list[str]:
    lists = [value if isinstance(value, list) else [value] for value in values.values()]
    return [text for texts in lists for text in texts if isinstance(text, str)]
