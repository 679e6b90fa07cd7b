"""HTTP endpoints of the service, and its web page."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from nmt.config.languages import language_name
from nmt.documents.formats import supported_suffixes
from nmt.errors import NmtError
from nmt.serving.guard import Access, Guard, digest
from nmt.serving.protocol import (
    AUTO,
    FORMS,
    JSON,
    DetailsAnswer,
    DetailsRequest,
    DetectedLanguage,
    DetectRequest,
    ErrorAnswer,
    FileAnswer,
    FileRequest,
    Language,
    Parameters,
    RequestError,
    TranslateAnswer,
    TranslateRequest,
    read_file,
    read_parameters,
    refusal,
)
from nmt.serving.service import MOST_FILE, Service
from nmt.version import version

PAGE = Path(__file__).parent / "page"
CLIENT_LEFT = 499
"""HTTP status in the metrics if a client disconnects before its answer."""
ABSENT = {"suggest": (403, "Suggestions are disabled on this server.")}
"""LibreTranslate endpoints that nmt lacks, with the status and message of a server that disables them."""
Answer = TypeVar("Answer")


def make_application(service: Service, access: Access, on_ready: Callable[[], None]) -> ASGIApp:
    """Return the ASGI application of a service: all endpoints behind a guard.

    Args:
        service: the service, which starts and stops with the application.
        access: who may use it.
        on_ready: called when the service starts to answer requests.
    """

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with service:
            on_ready()
            yield

    app = FastAPI(
        title="nmt", description="Translation service. It speaks the LibreTranslate protocol.", version=version(),
        openapi_url="/spec", docs_url=None, redoc_url=None,  # FastAPI's pages load scripts from other sites
        exception_handlers=dict.fromkeys((RequestError, NmtError, ClientDisconnect, HTTPException, Exception), _refuse),
        lifespan=lifespan,
    )  # fmt: skip
    _add_protocol(app, service, access)
    _add_state(app, service, access)
    app.mount("/static", StaticFiles(directory=PAGE))
    endpoints = frozenset(route.path for route in app.routes if hasattr(route, "path"))
    with_cors = CORSMiddleware(app, allow_origins=access.origins, allow_methods=("GET", "POST"))
    return Guard(
        with_cors, access, service.settings.max_body, service.metrics, endpoints, {"/translate_file": MOST_FILE}
    )


async def _refuse(request: Request, error: Exception) -> Response:
    """Return the answer to a request that is refused or fails."""
    match error:
        case RequestError():
            return refusal(error, {"retry-after": "1"} if error.status == HTTPStatus.SERVICE_UNAVAILABLE else None)
        case NmtError():
            return refusal(RequestError(400, "Invalid request: the text cannot be translated", str(error)))
        case ClientDisconnect():
            return Response(status_code=CLIENT_LEFT)
        case HTTPException():
            path = request.url.path[:200]
            problems = {404: f"There is no {path} here", 405: f"{path} does not support {request.method}"}
            status, problem = error.status_code, problems.get(error.status_code, error.detail)
            if status == HTTPStatus.NOT_FOUND:
                status, problem = ABSENT.get(path[1:].partition("/")[0], (status, problem))
            return refusal(RequestError(status, problem, "/spec describes the service."), error.headers)
    return refusal(RequestError(500, "The service failed to answer this request", "The reason is in its log."))


def _add_protocol(app: FastAPI, service: Service, access: Access) -> None:
    async def respond(
        request: Request, kind: type[Parameters], work: Callable[[Parameters], Coroutine[Any, Any, Answer]]
    ) -> Answer:
        parameters = await read_parameters(request, kind)
        timeout = service.settings.timeout
        return await admitted(request, parameters.api_key, lambda: work(parameters), timeout)

    async def admitted(
        request: Request, key: str | None, work: Callable[[], Coroutine[Any, Any, Answer]], timeout: float
    ) -> Answer:
        if access.api_keys is not None and (not key or digest(key) not in access.api_keys):
            problem = (403, "Invalid API key") if key else (400, "Please contact the server operator to get an API key")
            raise RequestError(*problem, "Send a key of this service as api_key.")
        with service.place():
            return await _finish(request, work(), timeout)

    @app.post("/translate", response_model_exclude_none=True, **_openapi(TranslateRequest))
    async def translate(request: Request) -> TranslateAnswer:
        """Translate one or several texts."""
        return await respond(request, TranslateRequest, service.translate)

    @app.post("/translate_file", response_model_exclude_none=True, **_openapi(FileRequest, FORMS[1]))
    async def translate_file(request: Request) -> FileAnswer:
        """Translate a document, sent as the part "file" of a multipart form."""
        parameters, name, content = await read_file(request)
        client = (parameters.api_key if access.api_keys else None) or (request.client.host if request.client else "")
        file = await admitted(
            request, parameters.api_key, lambda: service.translate_file(parameters, name, content, client),
            service.settings.document_timeout,
        )  # fmt: skip
        return FileAnswer(translatedFileUrl=f"{request.base_url}download_file/{file.name}", note=file.note or None)

    @app.get("/download_file/{name}", include_in_schema=False)
    async def download_file(name: str) -> Response:
        """Return a translated document."""
        content = service.files.get(name)
        if content is None:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type="application/octet-stream", headers=headers)

    @app.post("/detect", **_openapi(DetectRequest))
    async def detect(request: Request) -> list[DetectedLanguage]:
        """Detect the language of a text among the source languages of the service."""
        return await respond(request, DetectRequest, service.detect)

    @app.post("/details", **_openapi(DetailsRequest))
    async def details(request: Request) -> DetailsAnswer:
        """Translate a text with scores, tokens and attention of each sentence."""
        return await respond(request, DetailsRequest, service.details)


def _add_state(app: FastAPI, service: Service, access: Access) -> None:
    @app.get("/languages")
    async def languages() -> list[Language]:
        """List the languages."""
        return service.languages()

    @app.get("/health")
    async def health() -> dict[str, str]:
        """Report that the service is running."""
        return {"status": "ok"}

    @app.get("/frontend/settings")
    async def frontend_settings() -> dict[str, Any]:
        """Return the settings that web pages need."""
        target, has_keys = service.pairs[0].target, access.api_keys is not None
        return {
            "apiKeys": has_keys, "keyRequired": has_keys, "charLimit": service.settings.max_characters,
            "alternativesLimit": service.settings.max_alternatives, "filesTranslation": True,
            "supportedFilesFormat": supported_suffixes(), "suggestions": False, "frontendTimeout": 500,
            "language": {
                "source": {"code": AUTO, "name": "Auto Detect"},
                "target": {"code": target, "name": language_name(target)},
            },
        }  # fmt: skip

    @app.get("/metrics", include_in_schema=False)
    async def all_metrics() -> Response:
        return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return FileResponse(PAGE / "index.html")


async def _finish(request: Request, work: Coroutine[Any, Any, Answer], timeout: float) -> Answer:
    """Return the result of work, which is cancelled if the client disconnects or the time runs out.

    Raises:
        ClientDisconnect: if the client disconnects.
        RequestError: if the time runs out.
    """
    task = asyncio.ensure_future(work)
    disconnect = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait({task, disconnect}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if disconnect.done():
            raise ClientDisconnect
        problem = f"The request took more than {timeout:g} s"
        raise RequestError(504, problem, "Send less text, or try again later.")
    finally:
        task.cancel()
        disconnect.cancel()


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _openapi(kind: type[BaseModel], *forms: str) -> dict[str, Any]:
    """Describe the body of a request and its error answers for the OpenAPI document."""
    content = {"schema": kind.model_json_schema()}
    errors = {
        status: {"model": ErrorAnswer, "description": HTTPStatus(status).phrase}
        for status in (400, 403, 413, 500, 503, 504)
    }
    body = {"required": True, "content": dict.fromkeys(forms or (JSON, *FORMS), content)}
    return {"responses": errors, "openapi_extra": {"requestBody": body}}
