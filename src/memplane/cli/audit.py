"""Who did what: in a space, by its own records; in a pod, by what its proxies logged."""

from pathlib import Path
from typing import Annotated

import typer

from memplane.errors import InvalidRequest
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.options import Until
from memplane.terminal.output import table, when

app = typer.Typer()

_LIMIT_DEFAULT = 100


@command(
    app,
    examples=[
        "memplane audit",
        "memplane audit --since 2026-11-01 --limit 20 --json",
        "memplane audit --file claw-pod.yml --since 24h --type memory_op",
        "docker logs cllama | memplane audit --log - --claw analyst --json",
    ],
)
def audit(
    call: CommandContext,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="DATE", help="From this moment on; of a pod also so long ago: 24h."),
    ] = None,
    until: Until = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="At most so many, else 100.")
    ] = None,
    log: Annotated[
        list[str] | None,
        typer.Option(
            "--log", metavar="FILE", help="A proxy's log instead of a space; - is stdin; repeatable."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="FILE", help="A pod instead of a space: its claw-pod.yml."),
    ] = None,
    claw: Annotated[
        str | None, typer.Option("--claw", metavar="ID", help="Of a pod: this agent only.")
    ] = None,
    type_: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Of a pod: such events only, as memory_op.")
    ] = None,
) -> None:
    """Who did what in a space, the newest first, never the content. Or what a pod's proxies logged, with all of memory."""
    if log or file is not None:
        if until is not None or limit is not None:
            raise InvalidRequest(
                "--until and --limit are for a space; a pod takes --since, --claw and --type"
            )
        from memplane.adapters.clawdapus.operator import audit as audit_pod  # brings YAML and an HTTP client

        audit_pod(call, file, log or [], since=since, claw=claw, type_=type_)
        return
    if claw is not None or type_ is not None:
        raise InvalidRequest("--claw and --type are for a pod; name it with --file, or its log with --log")
    found = call.existing_space().ledger.audit(since=since, until=until, limit=limit or _LIMIT_DEFAULT)
    rows = [
        (when(it.at), it.actor, it.door, it.action, f"{it.outcome} {it.detail}".strip(), it.target or "")
        for it in found
    ]
    call.out.answer({"audit": found}, table("at", "actor", "door", "action", "outcome", "target", rows=rows))
