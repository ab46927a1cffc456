"""Create, list and revoke API keys.

A secret is shown once and is never an argument, because arguments appear in shell histories and process lists.
"""

import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from memplane.auth.keys import Grant
from memplane.auth.principal import ADAPTERS, Right, Secret
from memplane.clock import Instant, to_datetime
from memplane.config import reason_of
from memplane.errors import SettingsInvalid
from memplane.storage.catalog.credentials import KeyRecord
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.options import COMMON, complete_space, read_ttl
from memplane.terminal.output import line, table, when
from memplane.types import TENANT_DEFAULT

app = typer.Typer()
key = typer.Typer(help="Create, list and revoke API keys.", no_args_is_help=True)
app.add_typer(key, name="key")

_SECRET_BYTES_MAX = 4_096


class KeyView(msgspec.Struct, kw_only=True):
    """A key as the CLI shows it, without its secret."""

    id: str
    name: str
    agent: str | None
    tenant: str
    subject: str
    spaces: tuple[str, ...] | None
    doors: tuple[str, ...] | None
    rights: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None


class NewKey(KeyView, kw_only=True):
    """A new key with its secret, which is shown only once."""

    key: str


Opened = Annotated[
    list[str] | None,
    typer.Option(
        "--space",
        "-s",
        metavar="NAME",
        help="Space that the key can access; repeatable.",
        autocompletion=complete_space,
        rich_help_panel=COMMON,
    ),
]
Agent = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="NAME",
        help="Create an agent token, AGENT:SECRET, for the agent's space or those in --space.",
    ),
]
Rights = Annotated[
    list[Right] | None,
    typer.Option("--right", "-r", help="Right of the key; repeatable (default: read and write)."),
]
Adapters = Annotated[
    list[str] | None,
    typer.Option(
        "--interface",
        "--door",
        metavar="NAME",
        help=f"Interface that the key can use; repeatable (default: all): {', '.join(sorted(ADAPTERS))}.",
    ),
]
Subject = Annotated[
    str | None,
    typer.Option(
        "--subject", metavar="NAME", help="Space for requests that name none (default: the key's only space)."
    ),
]
Ttl = Annotated[
    timedelta | None,
    typer.Option(
        "--ttl", metavar="TIME", parser=read_ttl, help="Lifetime, such as 90d (default: until revoked)."
    ),
]
SecretFile = Annotated[
    Path | None,
    typer.Option(
        "--secret-file", metavar="FILE", help="Use an existing agent token from a file, or - from stdin."
    ),
]


@command(
    key,
    examples=[
        "memplane key create laptop --space alice",
        "memplane key create dashboard --all-spaces --right read --ttl 90d",
        "memplane key create --agent weston > weston.token",
        "memplane key create --agent notes-history -s weston -s allen --right read",
        "memplane key create root --right admin",
    ],
)
def create(
    call: CommandContext,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name shown in lists.")] = "",
    space: Opened = None,
    all_spaces: Annotated[bool, typer.Option("--all-spaces", help="Give access to every space.")] = False,
    agent: Agent = None,
    right: Rights = None,
    adapter: Adapters = None,
    subject: Subject = None,
    tenant: Annotated[
        str, typer.Option("--tenant", metavar="NAME", help="Tenant of the key.")
    ] = TENANT_DEFAULT,
    ttl: Ttl = None,
    secret_file: SecretFile = None,
) -> None:
    """Create a key and print it once. Only its hash is stored."""
    spaces = [*(space or []), *([call.space_option] if call.space_option is not None else [])]
    rights = right or [Right.READ, Right.WRITE]
    some = bool(spaces) or agent is not None
    if some == all_spaces and Right.ADMIN not in rights:
        raise typer.BadParameter("give --space, --agent or --all-spaces; --right admin needs none of them")
    grant = Grant(
        name=name,
        agent=agent,
        tenant=tenant,
        subject=subject,
        spaces=spaces or None,
        adapters=adapter or None,
        rights=rights,
        ttl=ttl,
    )
    secret = None if secret_file is None else _secret(secret_file)
    minted = call.identity.create_key(grant, secret=secret)
    bearer = minted.bearer.reveal()
    call.out.answer_text(msgspec.convert({**_fields(minted.key), "key": bearer}, NewKey), bearer)
    call.out.note(
        f"Key {minted.key.id} has access to {_opens(minted.key)}. Save it now: it is not shown again."
    )


@command(key, "list", examples=["memplane key list", "memplane key list --all --json"])
def list_(
    call: CommandContext,
    everything: Annotated[bool, typer.Option("--all", help="Include revoked keys.")] = False,
) -> None:
    """List API keys, without their secrets."""
    found = [
        _key_view(record) for record in call.identity.list_keys() if everything or record.revoked is None
    ]
    call.out.answer({"keys": found}, table(*_COLUMNS, rows=[_row(shown) for shown in found]))


@command(key, examples=["memplane key revoke 3f0c9a5be17d4420"])
def revoke(
    call: CommandContext,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Key id, as shown by `memplane key list`.")],
) -> None:
    """Revoke a key. Running servers reject it from now on."""
    revoked = _key_view(call.identity.revoke(key_id))
    call.out.answer(revoked, line(("Revoked", "green"), f" {revoked.id}, {revoked.name}."))


_COLUMNS = ("id", "name", "spaces", "interfaces", "rights", "created", "expires", "used")


def _row(shown: KeyView) -> tuple[object, ...]:
    ends = "revoked" if shown.revoked_at is not None else when(shown.expires_at)
    return (
        shown.id,
        shown.name,
        _opens(shown),
        "all" if shown.doors is None else ", ".join(shown.doors),
        ", ".join(shown.rights),
        when(shown.created_at),
        ends,
        when(shown.used_at),
    )


def _key_view(record: KeyRecord) -> KeyView:
    return msgspec.convert(_fields(record), KeyView)


def _fields(record: KeyRecord) -> dict[str, object]:
    same = ("id", "name", "agent", "tenant", "subject", "spaces", "doors", "rights")
    times = ("created", "expires", "used", "revoked")
    return {name: getattr(record, name) for name in same} | {
        f"{name}_at": _moment(getattr(record, name)) for name in times
    }


def _moment(instant: Instant | None) -> datetime | None:
    return None if instant is None else to_datetime(instant)


def _opens(shown: KeyView | KeyRecord) -> str:
    spaces = "every space" if shown.spaces is None else ", ".join(shown.spaces)
    return spaces if shown.tenant == TENANT_DEFAULT else f"{spaces} of {shown.tenant}"


def _secret(file: Path) -> Secret:
    try:
        if str(file) == "-":
            raw = sys.stdin.buffer.read(_SECRET_BYTES_MAX)
        else:
            with file.expanduser().open("rb") as opened:
                raw = opened.read(_SECRET_BYTES_MAX)
        return Secret(raw.decode("ascii").strip())
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsInvalid(f"cannot read a token from {file}: {reason_of(exc)}") from exc
