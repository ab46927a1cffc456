"""Run the server."""

import ipaddress
import socket
import sys
from datetime import timedelta
from typing import Annotated

import msgspec
import typer

from memplane.config import Settings, is_url, settings_from
from memplane.errors import SettingsInvalid
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.output import line

app = typer.Typer()

_PORT_MAX = 65_535
_LINK_TTL = timedelta(minutes=15)
CONSOLE = "/console"
CONSOLE_ADAPTER = "console"


@command(
    app,
    examples=[
        "memplane serve",
        "memplane serve --port 9000 --workers 2 --data /srv/memplane",
        "memplane serve --data postgresql://memplane@db.example/memplane --no-worker",
        "memplane serve --no-auth                         # on this machine only",
    ],
)
def serve(
    call: CommandContext,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=_PORT_MAX, help="Port; 0 selects a free one.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, max=64, help="Number of server processes.")
    ] = None,
    supervise: Annotated[
        bool,
        typer.Option(
            "--supervise", help="Restart the process if it exits or stops responding, also a single one."
        ),
    ] = False,
    no_auth: Annotated[
        bool, typer.Option("--no-auth", help="Disable authentication; loopback only.")
    ] = False,
    no_worker: Annotated[
        bool,
        typer.Option("--no-worker", help="Do not enrich; leave it to `memplane worker`. PostgreSQL only."),
    ] = False,
) -> None:
    """Start the HTTP server. SIGTERM or Ctrl-C stops it after running requests finish."""
    settings = _settings(call, host, port, workers)
    wiring = call.wiring
    if no_worker:
        environment = {**wiring.environment, "MEMPLANE_SERVE_ENRICHES": "false"}
        wiring = msgspec.structs.replace(wiring, environment=environment)
    if not settings_from(wiring.environment).serve_enriches and not is_url(call.data or settings.data):
        raise SettingsInvalid(
            "--no-worker (MEMPLANE_SERVE_ENRICHES=false) needs PostgreSQL; the server itself enriches a data directory"
        )
    if no_auth and not _is_loopback(settings.host):
        raise SettingsInvalid(
            f"--no-auth is allowed only on a loopback address, and other machines can reach {settings.host}"
        )
    from memplane.adapters.all import all_adapters  # brings every adapter
    from memplane.server import launch  # imports a web server

    start = launch.ServeOptions(
        wiring=wiring, settings=settings, adapters=all_adapters, data=call.data, auth=not no_auth
    )
    if launch.is_one_of_several(start):
        launch.one_of_several(start)
        return
    launch.check_names(settings)
    bound = launch.listen(settings.host, settings.port)
    supervised = supervise or settings.supervise or settings.workers > 1
    run = launch.several if supervised else launch.alone
    code = run(start, bound, lambda: _greet(call, bound, auth=not no_auth))
    if code:
        raise typer.Exit(code)


@command(
    app,
    examples=["memplane console", "memplane console --url https://memory.example"],
)
def console(
    call: CommandContext,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="Server URL (default: from the settings)."),
    ] = None,
) -> None:
    """Print a link that signs a browser in to the console. It works once, within 15 minutes."""
    settings = settings_from(call.wiring.environment)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    link = console_link(call, (url or f"http://{host}:{settings.port}").rstrip("/"))
    call.out.answer_text({"console": link}, link)


def console_link(call: CommandContext, url: str) -> str:
    ticket = call.identity.ticket(adapter=CONSOLE_ADAPTER, ttl=_LINK_TTL)
    return f"{url}{CONSOLE}/enter?ticket={ticket.reveal()}"


def _settings(call: CommandContext, host: str | None, port: int | None, workers: int | None) -> Settings:
    given = {"host": host, "port": port, "workers": workers}
    changes = {name: value for name, value in given.items() if value is not None}
    return msgspec.structs.replace(settings_from(call.wiring.environment), **changes)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _greet(call: CommandContext, bound: socket.socket, *, auth: bool) -> None:
    """Print the address, the owner's key on the first start, and commands to try."""
    host, port = bound.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    key = _owner_key(call) if auth else None
    console = console_link(call, url) if auth else f"{url}{CONSOLE}"
    document = {
        "url": url,
        "data": call.place,
        "auth": auth,
        "owner_key": key,
        "console": console,
    }
    shown = [line("Memplane is running at ", (url, "bold"), f" with data in {call.place}")]
    if key is not None:
        shown += [line("Owner key, shown only once:"), line(f"  export MEMPLANE_TOKEN={key}")]
    elif auth:
        shown.append(line("Create an API key with `memplane key create laptop --space default`."))
    else:
        shown.append(line("Authentication is disabled: every client on this machine has full access."))
    shown.append(line(f"Console{' (one-time link)' if auth else ''}: {console}"))
    shown.append(line(f"Base URL for OpenAI clients: {url}/v1, for Anthropic clients: {url}"))
    shown += [line("Try:"), *(line(f"  {command}") for command in _try(url, auth=auth))]
    call.out.answer(document, *shown)
    sys.stdout.flush()


def _try(url: str, *, auth: bool) -> list[str]:
    """Commands that store through one interface and recall through another."""
    curl = "curl -s -H 'content-type: application/json'"
    curl += ' -H "authorization: Bearer $MEMPLANE_TOKEN"' if auth else ""
    fact = '{"key":"preferences/drink","value":"She drinks green tea"}'
    question = '{"agent_id":"default","messages":[{"role":"user","content":"What does she drink?"}]}'
    return [
        f"{curl} {url}/api/v1/memory/store -d '{fact}'",
        f"{curl} {url}/recall -d '{question}'",
        f"curl -s {url}/openapi.json     # API description; in a browser: {url}/docs",
    ]


def _owner_key(call: CommandContext) -> str | None:
    identity = call.plane.identity()
    try:
        minted = identity.owner_key()
    finally:
        identity.close()
    return None if minted is None else minted.bearer.reveal()
