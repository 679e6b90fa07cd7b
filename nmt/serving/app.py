"""Endpoints of the service."""

import asyncio
from collections.abc import Coroutine, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from nmt.serving import metrics as prometheus
from nmt.serving.access import Access, ApiKeys
from nmt.serving.guard import FAILED, Application, Guard
from nmt.serving.metrics import Metrics
from nmt.serving.page import INDEX, PageFile
from nmt.serving.protocol import (
    AUTO,
    DetailsAnswer,
    DetailsRequest,
    DetectedLanguage,
    DetectRequest,
    ErrorAnswer,
    Health,
    Language,
    RequestError,
    TranslateAnswer,
    TranslateRequest,
    read_parameters,
)
from nmt.serving.service import Service
from nmt.version import version

CLIENT_LEFT = 499
"""Status in the metrics for a client that left before its answer."""
NOT_STORED = {"cache-control": "no-store"}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": HTTPStatus(status).phrase}
    for status in (400, 403, 408, 413, 500, 503, 504)
}


def make_application(service: Service, access: Access, page: Mapping[str, PageFile], metrics: Metrics) -> Application:
    """Return the ASGI application of a service: all endpoints, with a guard around them."""
    app = FastAPI(
        title="nmt", description="Translation service. It speaks the LibreTranslate protocol.", version=version(),
        openapi_url="/spec", docs_url=None, redoc_url=None,  # FastAPI's pages load scripts from elsewhere
    )  # fmt: skip
    _add_errors(app)
    _add_protocol(app, service, access.api_keys)
    _add_page(app, page, metrics)
    endpoints = frozenset(route.path for route in app.routes if hasattr(route, "path") and "{" not in route.path)
    return Guard(app, access, service.settings.max_body, metrics, endpoints)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(RequestError)
    async def refused(request: Request, error: RequestError) -> Response:
        return JSONResponse({"error": error.message}, error.status, error.headers)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": FAILED}, 500)  # the guard logs the reason

    @app.exception_handler(HTTPException)
    async def not_served(request: Request, error: Exception) -> Response:
        status, headers = (error.status_code, error.headers) if isinstance(error, HTTPException) else (500, None)
        words = {
            404: f"There is no {request.url.path[:200]} here.",
            405: f"{request.url.path[:200]} takes another method.",
        }
        return JSONResponse({"error": words[status] if status in words else str(error)}, status, headers)


def _add_protocol(app: FastAPI, service: Service, api_keys: ApiKeys | None) -> None:
    def check_key(key: str | None) -> None:
        if api_keys is not None and (key is None or not api_keys.accepts(key)):
            raise RequestError(403, f"The API key is {'missing' if key is None else 'wrong'}. Send api_key.")

    @app.post("/translate", response_model=TranslateAnswer, responses=ERRORS, openapi_extra=_body(TranslateRequest))
    async def translate(request: Request) -> Response:
        """Translate a text or texts."""
        parameters = await read_parameters(request, TranslateRequest)
        check_key(parameters.api_key)
        with service.place():
            return await _finish(request, service.translate(parameters), service.settings.timeout)

    @app.post("/detect", response_model=list[DetectedLanguage], responses=ERRORS, openapi_extra=_body(DetectRequest))
    async def detect(request: Request) -> Response:
        """Detect the language of a text, among the source languages of the service."""
        parameters = await read_parameters(request, DetectRequest)
        check_key(parameters.api_key)
        with service.place():
            return await _finish(request, service.detect(parameters.q), service.settings.timeout)

    @app.post("/details", response_model=DetailsAnswer, responses=ERRORS, openapi_extra=_body(DetailsRequest))
    async def details(request: Request) -> Response:
        """Translate a text with scores, tokens and attention of each sentence."""
        parameters = await read_parameters(request, DetailsRequest)
        check_key(parameters.api_key)
        with service.place():
            return await _finish(request, service.details(parameters), service.settings.timeout)

    @app.get("/languages", response_model=list[Language])
    async def languages() -> Response:
        """List the languages."""
        return _json(service.languages())

    @app.get("/health", response_model=Health)
    async def health() -> Response:
        """Say that the service works."""
        return _json(Health())

    @app.get("/frontend/settings")
    async def frontend_settings() -> Response:
        """Return what pages need to know of the service."""
        names = {language.code: language.name for language in service.languages()}
        pair = service.pairs[0]
        return JSONResponse(
            {
                "apiKeys": api_keys is not None, "keyRequired": api_keys is not None,
                "charLimit": service.settings.max_characters, "alternativesLimit": service.settings.max_alternatives,
                "filesTranslation": False, "supportedFilesFormat": [], "suggestions": False,
                "frontendTimeout": 500,
                "language": {
                    "source": {"code": AUTO, "name": "Auto Detect"},
                    "target": {"code": pair.target, "name": names[pair.target]},
                },
            },
            headers=NOT_STORED,
        )  # fmt: skip


def _add_page(app: FastAPI, page: Mapping[str, PageFile], metrics: Metrics) -> None:
    def file(name: str) -> Response:
        if name not in page:
            raise HTTPException(404)
        return Response(page[name].content, media_type=page[name].content_type, headers={"cache-control": "no-cache"})

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return file(INDEX)

    @app.get("/static/{name:path}", include_in_schema=False)
    async def static(name: str) -> Response:
        return file(name)

    @app.get("/metrics", include_in_schema=False)
    async def all_metrics() -> Response:
        return Response(metrics.render(), media_type=prometheus.CONTENT_TYPE, headers=NOT_STORED)


async def _finish(request: Request, work: Coroutine[Any, Any, Any], timeout: float) -> Response:
    """Return the result of work as JSON. Work ends when the client leaves, and when the time is over.

    Raises:
        RequestError: if the time is over.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_client_leaves(request))
    try:
        await asyncio.wait({working, leaving}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return _json(working.result())
        if leaving.done():
            return Response(status_code=CLIENT_LEFT)
        raise RequestError(504, f"The request was not done within {timeout:g} s. Send less text, or try again later.")
    finally:
        working.cancel()
        leaving.cancel()


async def _client_leaves(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _json(content: BaseModel | list[Any]) -> JSONResponse:
    if isinstance(content, BaseModel):
        return JSONResponse(content.model_dump(exclude_none=not isinstance(content, DetailsAnswer)), headers=NOT_STORED)
    return JSONResponse([each.model_dump() for each in content], headers=NOT_STORED)


def _body(kind: type[BaseModel]) -> dict[str, Any]:
    """Return the description of a body for the OpenAPI document."""
    content = {"schema": kind.model_json_schema()}
    types = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
    return {"requestBody": {"required": True, "content": dict.fromkeys(types, content)}}
