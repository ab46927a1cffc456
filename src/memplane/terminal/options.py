"""Options shared by several commands, and parsers for their values."""

import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any

import msgspec
import typer

from memplane.errors import InvalidRequest, MemplaneError
from memplane.terminal.call import CommandContext, Wiring
from memplane.types import STORABLE_KINDS, Role, Visibility

COMMON = "Common options"

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_TTL = re.compile(r"(\d{1,9})([smhdw])")
_DIGEST = re.compile(r"([1-9]\d{0,17}):([0-9a-fA-F]{64})")


def complete_space(context: typer.Context, incomplete: str) -> list[str]:
    """Return space names for shell completion, or none if the data cannot be opened."""
    wiring = context.find_object(Wiring)
    data = context.params.get("data") or context.find_root().params.get("data")
    if wiring is None:
        return []
    names: list[str] = []
    with suppress(MemplaneError, OSError):
        plane = wiring.open(data, wiring.environment)
        names = [name for name in plane.spaces() if name.startswith(incomplete) and name.isprintable()]
        plane.close()
    return names


def complete_kind(incomplete: str) -> list[str]:
    return [kind for kind in STORABLE_KINDS if kind.startswith(incomplete)]


def complete_role(incomplete: str) -> list[str]:
    return [role for role in Role if role.startswith(incomplete)]


def complete_scope(incomplete: str) -> list[str]:
    return [reach for reach in Visibility if reach.startswith(incomplete)]


def read_ttl(value: str) -> timedelta:
    """Parse a duration: a whole number and a unit, such as `12h`, `30d` or `2w`."""
    found = _TTL.fullmatch(value.strip())
    if found is None:
        raise typer.BadParameter(
            f"{value!r} is not a duration; give a number and s, m, h, d or w, such as 30d"
        )
    return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])


def read_expected(values: list[str]) -> dict[int, str]:
    """Parse `SEQ:DIGEST`, as `ledger verify` prints it."""
    expected: dict[int, str] = {}
    for value in values:
        found = _DIGEST.fullmatch(value.strip())
        if found is None:
            raise typer.BadParameter(
                f"{value!r} is not SEQ:DIGEST, such as 12:3f9c… with 64 hexadecimal digits"
            )
        expected[int(found[1])] = found[2].lower()
    return expected


def read_metadata(value: str | None) -> Mapping[str, Any] | None:
    if value is None:
        return None
    try:
        return msgspec.json.decode(value, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError) as exc:
        raise typer.BadParameter(f"--metadata is not a JSON object: {exc}") from exc


def read_content(call: CommandContext, given: str) -> str:
    """Return the argument, or for `-` all of stdin without its last line ending."""
    if given != "-":
        return given
    if sys.stdin.isatty():
        call.out.note("Type the content, then press Ctrl-D on a new line.")
    bytes_max = call.plane.settings.entry_bytes_max
    raw = sys.stdin.buffer.read(bytes_max + 2)
    raw = raw.removesuffix(b"\n").removesuffix(b"\r")
    if len(raw) > bytes_max:
        raise InvalidRequest(f"stdin exceeds the limit of {bytes_max:,} bytes per entry; split it")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise InvalidRequest(
            f"stdin is not UTF-8 (byte {exc.start}); convert it first, for example with iconv"
        ) from exc


Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="DIR|URL",
        help="Data directory or postgresql://… URL (default: MEMPLANE_DATA, then ~/.memplane).",
        rich_help_panel=COMMON,
    ),
]
SpaceArgument = Annotated[
    str | None,
    typer.Argument(metavar="[SPACE]", help="Space (default: --space).", autocompletion=complete_space),
]
SpaceName = Annotated[
    str | None,
    typer.Option(
        "--space",
        "-s",
        metavar="NAME",
        help="Space (default: MEMPLANE_SPACE, then 'default').",
        autocompletion=complete_space,
        rich_help_panel=COMMON,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=COMMON)]

Conversation = Annotated[
    str | None, typer.Option("--conversation", "-c", metavar="NAME", help="Conversation.")
]
Project = Annotated[str | None, typer.Option("--project", "-p", metavar="NAME", help="Project.")]
LISTED_DEFAULT = 100
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of results.")]
Offset = Annotated[int, typer.Option("--offset", min=0, metavar="N", help="Skip this many results.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="Tag; repeatable.")]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="DATE", help="Start time, inclusive (ISO 8601; default zone: UTC)."),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="DATE", help="End time, exclusive (ISO 8601; default zone: UTC)."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
