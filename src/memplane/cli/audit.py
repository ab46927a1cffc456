"""The audit log of a space, and the proxy logs of a pod."""

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
        typer.Option(
            "--since", metavar="DATE", help="Start time (ISO 8601); for a pod also a duration: 24h."
        ),
    ] = None,
    until: Until = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Maximum number of results (default 100).")
    ] = None,
    log: Annotated[
        list[str] | None,
        typer.Option(
            "--log", metavar="FILE", help="Read a proxy log instead of a space; - is stdin; repeatable."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="Read the logs of this pod (claw-pod.yml) instead of a space.",
        ),
    ] = None,
    claw: Annotated[
        str | None, typer.Option("--claw", metavar="ID", help="Pod only: show this agent.")
    ] = None,
    type_: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="Pod only: show events of this type, such as memory_op."),
    ] = None,
) -> None:
    """Show the audit log of a space, newest first, without content; or the proxy logs of a pod."""
    if log or file is not None:
        if until is not None or limit is not None:
            raise InvalidRequest(
                "--until and --limit apply to a space; for a pod, use --since, --claw and --type"
            )
        from memplane.adapters.clawdapus.operator import audit as audit_pod  # imports YAML and an HTTP client

        audit_pod(call, file, log or [], since=since, claw=claw, type_=type_)
        return
    if claw is not None or type_ is not None:
        raise InvalidRequest("--claw and --type apply to a pod; pass --file or --log")
    found = call.existing_space().ledger.audit(since=since, until=until, limit=limit or _LIMIT_DEFAULT)
    rows = [
        (when(it.at), it.actor, it.adapter, it.action, f"{it.outcome} {it.detail}".strip(), it.target or "")
        for it in found
    ]
    call.out.answer(
        {"audit": found}, table("at", "actor", "interface", "action", "outcome", "target", rows=rows)
    )
