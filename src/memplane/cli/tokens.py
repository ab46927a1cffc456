"""JSON Web Tokens, signed with a secret from the environment or a file, never from an argument."""

from datetime import timedelta
from typing import Annotated

import typer

from memplane.auth.claims import TTL_DEFAULT_S, TokenClaims
from memplane.clock import iso, to_datetime
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.options import read_ttl
from memplane.terminal.output import when

app = typer.Typer()
token = typer.Typer(help="Create JSON Web Tokens.", no_args_is_help=True)
app.add_typer(token, name="token")


@command(
    token,
    examples=[
        "memplane token mint alice",
        "memplane token mint operator --scope admin --ttl 1h",
        "memplane token mint openclaw --client openclaw --ttl 30d > openclaw.token",
    ],
)
def mint(
    call: CommandContext,
    subject: Annotated[
        str,
        typer.Argument(metavar="SUBJECT", help="Subject: the `sub` claim, and the space that it can access."),
    ],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope", metavar="SCOPE", help="Scope, such as admin, memory:read or memory:write; repeatable."
        ),
    ] = None,
    ttl: Annotated[
        timedelta | None,
        typer.Option("--ttl", metavar="TIME", parser=read_ttl, help="Lifetime (default 24h)."),
    ] = None,
    client: Annotated[str | None, typer.Option("--client", metavar="NAME", help="Client program.")] = None,
    full_name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Full name of the person or program.")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="NAME", help="Tenant (default: the default tenant).")
    ] = None,
) -> None:
    """Create a token and print it. A token cannot be revoked; a key can.

    Set the signing secret in MEMPLANE_JWT_SECRET_FILE or MEMPLANE_JWT_SECRET.
    """
    claims = TokenClaims(sub=subject, scopes=scope or None, client=client, name=full_name, tenant=tenant)
    ttl_s = TTL_DEFAULT_S if ttl is None else int(ttl.total_seconds())
    made, ends = call.identity.mint_token(claims, ttl_s=ttl_s)
    call.out.answer_text({"token": made.reveal(), "subject": subject, "expires_at": iso(ends)}, made.reveal())
    call.out.note(f"For {subject}, until {when(to_datetime(ends))}.")
