"""Commands for a Clawdapus pod."""

from pathlib import Path
from typing import Annotated

import typer

from memplane.terminal.call import CommandContext
from memplane.terminal.command import command

app = typer.Typer()
memory = typer.Typer(help="Backfill a pod's memory service, or forget entries in it.", no_args_is_help=True)
app.add_typer(memory, name="memory")

PodFile = Annotated[
    Path,
    typer.Option("--file", "-f", metavar="FILE", help="The pod's claw-pod.yml, in the pod's directory."),
]
MemoryService = Annotated[
    str, typer.Argument(metavar="SERVICE", help="Name of the memory service in the pod.")
]
Agents = Annotated[
    list[str] | None,
    typer.Option("--agent", metavar="ID", help="Only this agent; repeatable, or comma-separated."),
]
Url = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", help="URL of the service (default: the port that the pod publishes)."
    ),
]
AuthToken = Annotated[
    str | None,
    typer.Option("--auth-token", metavar="TOKEN", help="Bearer token (default: the manifest's)."),
]
OperationLog = Annotated[
    Path | None,
    typer.Option(
        "--log",
        metavar="FILE",
        help="Append a memory_op line for each call to this file, for `memplane audit`.",
    ),
]


@command(
    app,
    examples=[
        "memplane up",
        "memplane up --file desk/claw-pod.yml",
        "memplane up --describe mem-svc=./mem-svc.json",
    ],
)
def up(
    call: CommandContext,
    file: PodFile = Path("claw-pod.yml"),
    describe: Annotated[
        list[str] | None,
        typer.Option(
            "--describe",
            metavar="SERVICE=FILE",
            help="Descriptor of a service that is not built here; repeatable.",
        ),
    ] = None,
    history_url: Annotated[
        str | None,
        typer.Option(
            "--history-url",
            metavar="URL",
            help="URL where memory services read histories (default: cllama's address).",
        ),
    ] = None,
) -> None:
    """Compile a pod: write each agent's memory manifest and credentials for the proxy."""
    from memplane.adapters.clawdapus import operator  # imports YAML and an HTTP client

    operator.up(call, file, describe or [], history_url)


@command(
    memory,
    examples=[
        "memplane memory backfill mem-svc",
        "memplane memory backfill mem-svc --after 2026-04-01T00:00:00Z --agent analyst",
        "memplane memory backfill mem-svc --url http://127.0.0.1:8700 --auth-token $TOKEN",
    ],
)
def backfill(
    call: CommandContext,
    service: MemoryService,
    after: Annotated[
        str | None, typer.Option("--after", metavar="RFC3339", help="Only entries after this time.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="Maximum number of entries per agent; 0 is all.")] = 0,
    agent: Agents = None,
    url: Url = None,
    auth_token: AuthToken = None,
    restart: Annotated[
        bool,
        typer.Option("--restart", help="Start from the beginning instead of continuing an interrupted run."),
    ] = False,
    log: OperationLog = None,
    file: PodFile = Path("claw-pod.yml"),
) -> None:
    """Send session histories to a memory service, redacted. Continues an interrupted run."""
    from memplane.adapters.clawdapus import operator  # imports YAML and an HTTP client

    operator.backfill(
        call,
        file,
        service,
        after=after,
        limit=limit,
        agents=agent or [],
        url=url,
        token=auth_token,
        restart=restart,
        log=log,
    )


@command(
    memory,
    examples=[
        'memplane memory forget mem-svc --entry-id hist1_abc123 --reason "operator request"',
        "memplane memory forget mem-svc --agent analyst --entry-id hist1_a --entry-id hist1_b",
    ],
)
def forget(
    call: CommandContext,
    service: MemoryService,
    entry_id: Annotated[
        list[str] | None, typer.Option("--entry-id", metavar="ID", help="Entry id; repeatable.")
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Reason, recorded in the tombstone.")
    ] = "",
    agent: Agents = None,
    url: Url = None,
    auth_token: AuthToken = None,
    log: OperationLog = None,
    file: PodFile = Path("claw-pod.yml"),
) -> None:
    """Forget entries in a memory service, and exclude them from later backfills."""
    from memplane.adapters.clawdapus import operator  # imports YAML and an HTTP client

    operator.forget(
        call,
        file,
        service,
        entry_ids=entry_id or [],
        reason=reason,
        agents=agent or [],
        url=url,
        token=auth_token,
        log=log,
    )
