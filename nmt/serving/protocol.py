"""Requests and answers of the LibreTranslate protocol, and of the endpoint for the web page."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

AUTO = "auto"
JSON = "application/json"
MOST_FIELDS = 1_000
"""Most fields of a form or query."""
_LIST_ITEM = re.compile(r"\[\d*\]$")
"""End of the name of a field that has an item of a list, as PHP and jQuery send it."""
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


class ErrorAnswer(BaseModel):
    """Answer to a request that is refused or fails."""

    error: str = Field(description="The problem, in the words of LibreTranslate if it has the same error.")
    detail: str = Field(description="The rule, and the remedy.")


class RequestError(Exception):
    """A request that is refused or fails."""

    def __init__(self, status: int, error: str, detail: str) -> None:
        """Create an error with the HTTP status, the problem, and the rule with the remedy."""
        super().__init__(error)
        self.status, self.answer = status, ErrorAnswer(error=error, detail=detail)


def refusal(error: RequestError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Return the answer to a request that is refused."""
    return JSONResponse(error.answer.model_dump(), error.status, headers)


MOST_KEPT = 1_000
"""Most words of a request that stay as they are."""


def _lines(value: object) -> object:
    """Return the lines of a text that are not blank; a form has no lists."""
    return [line for line in value.splitlines() if line.strip()] if isinstance(value, str) else value or []


Kept = Annotated[list[str], Field(max_length=MOST_KEPT), BeforeValidator(_lines)]
Texts = Annotated[list[str], Field(min_length=1)]


class DetectRequest(BaseModel):
    """Parameters of ``POST /detect``."""

    # Clients of other services send further parameters, which have no effect here.
    model_config = ConfigDict(extra="ignore", frozen=True)

    api_key: str | None = Field(None, description="API key, if the service asks for one.")
    q: str | Texts = Field(description="Text, or several texts in the same language.", examples=["Hello world!"])


class DetailsRequest(DetectRequest):
    """Parameters of ``POST /details``."""

    q: str = Field(description="Text.", examples=["Hello world!"])
    source: str = Field(description="Code of the source language, or auto.", min_length=1, examples=["en"])
    target: str = Field(description="Code of the target language.", min_length=1, examples=["de"])
    alternatives: int = Field(0, description="Number of further translations of the text, or of each sentence.")
    glossary: str | None = Field(None, description="Name of a glossary of the service, whose terms are kept.")
    keep: Kept = Field(
        [], description="Words and phrases that stay as they are: a list, or a text with a line for each."
    )

    @field_validator("alternatives", mode="before")
    @classmethod
    def _empty_as_default(cls, value: object) -> object:
        return 0 if value in (None, "") else value


class TranslateRequest(DetailsRequest):
    """Parameters of ``POST /translate``."""

    q: str | Texts = Field(description="Text or texts to translate.", examples=["Hello world!"])  # type: ignore[assignment]
    format: Literal["text", "html", "", None] = Field("text", description="Kind of text.")
    confidence: bool = Field(False, description="Whether to return the confidence in the translations.")


class FileRequest(BaseModel):
    """Parameters of ``POST /translate_file``, besides the file."""

    api_key: str | None = Field(None, description="API key, if the service asks for one.")
    source: str = Field(description="Code of the source language, or auto.", min_length=1, examples=["en"])
    target: str = Field(description="Code of the target language.", min_length=1, examples=["de"])
    glossary: str | None = Field(None, description="Name of a glossary of the service, whose terms are kept.")
    fuzzy: bool = Field(False, description="Whether translations in a gettext catalogue are marked as fuzzy.")
    keep: Kept = Field(
        [], description="Words and phrases that stay as they are: a list, or a text with a line for each."
    )


class FileAnswer(BaseModel):
    """Answer of ``POST /translate_file``."""

    translatedFileUrl: str  # noqa: N815 - a name of the protocol
    note: str | None = Field(None, description="What the document has besides, and is not translated.")


class DetectedLanguage(BaseModel):
    """Detected language of a text."""

    confidence: float = Field(description="Probability in percent.")
    language: str


class TranslateAnswer(BaseModel):
    """Answer of ``POST /translate``. It has lists if the request has a list of texts."""

    translatedText: str | list[str]  # noqa: N815 - a name of the protocol
    alternatives: list[str] | list[list[str]] | None = None
    confidence: float | list[float | None] | None = Field(
        None, description="Probability that the translation is good; the lowest value of its sentences."
    )
    detectedLanguage: DetectedLanguage | list[DetectedLanguage] | None = None  # noqa: N815 - a name of the protocol


class Language(BaseModel):
    """A language of the service."""

    code: str
    name: str
    targets: list[str] = Field(description="Codes of the target languages for this source language.")
    direction: Literal["ltr", "rtl", "auto"] = Field(description="Direction of writing; auto if it is unknown.")


class TranslationDetails(BaseModel):
    """Translation of a sentence."""

    text: str
    score: float | None = Field(description="Log-probability, with the penalties of beam search.")
    unknown: list[str] = Field(description="Words of the source that the model does not know.")
    finished: bool = Field(description="Whether the model ended the translation; false if the length limit did.")
    confidence: float | None = Field(
        description="Probability that the translation is good; null if the model is not calibrated."
    )
    check: bool = Field(description="Whether the confidence is below the service's threshold.")
    words: list[tuple[str, float]] = Field(
        description="Words as the model wrote them, with their probabilities of occurring in a reference."
    )


class SentenceDetails(BaseModel):
    """A sentence with its translations. Shapes: T target tokens, S source tokens."""

    source: str
    separator: str = Field(description="Text after the sentence.")
    target_separator: str = Field(description="Text after its translation: Chinese and Japanese have no space there.")
    translations: list[TranslationDetails] = Field(description="Translations, best first.")
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


Parameters = TypeVar("Parameters", bound=DetectRequest)


async def read_parameters(request: Request, kind: type[Parameters]) -> Parameters:
    """Return the parameters of a request: JSON in its body, or a form and the query of its address.

    Raises:
        RequestError: if the body has another content type, or wrong parameters.
    """
    media_type = (request.headers.get("content-type") or "").lower().partition(";")[0].strip()
    try:
        if media_type == JSON or media_type.endswith("+json"):
            return kind.model_validate_json(await request.body())
        if media_type in FORMS or request.url.query:
            return kind.model_validate(await _form(request, kind, media_type))
    except ValidationError as error:
        raise _problem(error) from None
    raise RequestError(400, f"Content-Type is {media_type[:100] or 'missing'}", f"Send {JSON} or {' or '.join(FORMS)}.")


async def read_file(request: Request) -> tuple[FileRequest, str, bytes]:
    """Return the parameters of a request, and the name and content of the file in its multipart form.

    Raises:
        RequestError: if the body has another content type, no file, or wrong parameters.
    """
    try:
        form = await request.form(max_files=1, max_fields=MOST_FIELDS)
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            raise RequestError(400, "Invalid request: missing file parameter", f"Send file in {FORMS[1]}.")
        values = {**request.query_params, **form}
        return FileRequest.model_validate(values), file.filename, await file.read()
    except ValidationError as error:
        raise _problem(error) from None
    except (HTTPException, ValueError, LookupError) as error:
        raise RequestError(400, "The form is damaged", f"{str(error)[:200]}.") from None


async def _form(request: Request, kind: type[BaseModel], media_type: str) -> dict[str, Any]:
    """Return the parameters of a form and the query of the address; the form has precedence."""
    body = await request.body()
    fields: Sequence[tuple[str, Any]] = []
    try:
        query = parse_qsl(request.url.query, keep_blank_values=True, max_num_fields=MOST_FIELDS)
        if media_type == FORMS[0]:  # starlette reads unescaped UTF-8, as curl sends it, as Latin-1
            fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
        elif media_type in FORMS:
            form = await request.form(max_files=0, max_fields=MOST_FIELDS, max_part_size=len(body) + 1)
            fields = form.multi_items()
        names = {name for name, _ in fields}
        fields = [*fields, *(field for field in query if field[0] not in names)]
        "".join(str(text) for _, text in fields).encode()  # refuses lone surrogates, which UTF-7 can contain
    except Exception as error:  # the parsers raise various errors
        detail = error.detail if hasattr(error, "detail") else error
        raise RequestError(400, "The form is damaged", f"{str(detail)[:200]}.") from None
    received: dict[str, list[Any]] = {}
    is_list = False
    for key, text in fields:
        name = _LIST_ITEM.sub("", key)
        if name in kind.model_fields:
            received.setdefault(name, []).append(text)
            is_list = is_list or (name == "q" and key != name)
    return {
        name: texts if name == "q" and (is_list or len(texts) > 1) else texts[0] for name, texts in received.items()
    }


def _problem(error: ValidationError) -> RequestError:
    """Return the error for wrong parameters, in the words of LibreTranslate if it has the same error."""
    problems = error.errors(include_url=False)
    # An empty list is not a text either, so that it has two problems.
    problem = next((problem for problem in problems if problem["type"] == "too_short"), problems[0])
    if problem["type"] in ("json_invalid", "model_type"):
        return RequestError(400, "Invalid JSON format", f"{problem['msg'][:200]}. Send an object with the parameters.")
    name, received = str(problem["loc"][0]), problem["input"]
    if problem["type"] in ("missing", "string_too_short", "too_short"):
        return RequestError(400, f"Invalid request: missing {name} parameter", f"Send {name}, as JSON or in a form.")
    message, expected = {
        "format": (f"{str(received)[:100]} format is not supported", "text or html"),
        "alternatives": ("Invalid request: alternatives parameter is not a number", "a whole number"),
        "keep": (f"The parameter keep is {str(received)[:100]}", f"a list of at most {MOST_KEPT:,} texts"),
        "confidence": (f"The parameter confidence is {repr(received)[:100]}", "true or false"),
    }.get(name, (f"The parameter {name} is {repr(received)[:100]}", "text"))
    return RequestError(400, message, f"It must be {expected}.")
