"""The operator's commands for a Clawdapus pod."""

from pathlib import Path
from typing import Annotated

import typer

from memplane.terminal.call import CommandContext
from memplane.terminal.command import command

app = typer.Typer()
memory = typer.Typer(help="Replay to a pod's memory service, or make it forget.", no_args_is_help=True)
app.add_typer(memory, name="memory")

PodFile = Annotated[
    Path,
    typer.Option("--file", "-f", metavar="FILE", help="The pod's claw-pod.yml; all else is beside it."),
]
MemoryService = Annotated[
    str, typer.Argument(metavar="SERVICE", help="The memory service, as the pod names it.")
]
Agents = Annotated[
    list[str] | None,
    typer.Option(
        "--agent", metavar="ID", help="Only this agent; may be repeated, or hold several with commas."
    ),
]
Url = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", help="Where the service is, if it is not where the pod publishes it."
    ),
]
AuthToken = Annotated[
    str | None,
    typer.Option("--auth-token", metavar="TOKEN", help="The bearer token, instead of the manifest's."),
]
OperationLog = Annotated[
    Path | None,
    typer.Option(
        "--log", metavar="FILE", help="Append a memory_op line for each call, for `memplane audit`."
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
            help="The descriptor of a service that is not built here; may be repeated.",
        ),
    ] = None,
    history_url: Annotated[
        str | None,
        typer.Option(
            "--history-url",
            metavar="URL",
            help="Where memory services read histories; else cllama's address.",
        ),
    ] = None,
) -> None:
    """Compile a pod: who subscribes to which memory, with which credentials, for a proxy to read."""
    from memplane.adapters.clawdapus import operator  # brings YAML and an HTTP client

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
        str | None, typer.Option("--after", metavar="RFC3339", help="Only entries later than this.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="At most so many for each agent; 0 is all.")] = 0,
    agent: Agents = None,
    url: Url = None,
    auth_token: AuthToken = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew, also where an earlier run broke off.")
    ] = False,
    log: OperationLog = None,
    file: PodFile = Path("claw-pod.yml"),
) -> None:
    """Replay session histories to a memory service, scrubbed. A run that broke off goes on where it was."""
    from memplane.adapters.clawdapus import operator  # brings YAML and an HTTP client

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
        list[str] | None, typer.Option("--entry-id", metavar="ID", help="The entry; may be repeated.")
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; the tombstone has it.")] = "",
    agent: Agents = None,
    url: Url = None,
    auth_token: AuthToken = None,
    log: OperationLog = None,
    file: PodFile = Path("claw-pod.yml"),
) -> None:
    """Have a memory service forget entries, and note it, so that no backfill brings them back."""
    from memplane.adapters.clawdapus import operator  # brings YAML and an HTTP client

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
