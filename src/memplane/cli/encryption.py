"""The encryption key. It has a group of its own, because `key` means what callers show: to rotate the one when the other
was meant would be a nasty surprise. A key is never an argument: arguments end up in shell histories and process lists."""

import secrets
from pathlib import Path
from typing import Annotated

import typer

from memplane.errors import SettingsInvalid
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.output import line

app = typer.Typer()
encryption = typer.Typer(help="Make and change the encryption key.", no_args_is_help=True)
app.add_typer(encryption, name="encryption")

_KEY_BYTES = 32


@command(
    encryption,
    examples=[
        "(umask 077; memplane encryption generate > memplane.key)",
        "export MEMPLANE_KEY_FILE=$PWD/memplane.key",
    ],
)
def generate(call: CommandContext) -> None:
    """Print a new key: 64 hexadecimal digits. Keep it safe; without it, memory cannot be read."""
    made = secrets.token_hex(_KEY_BYTES)
    call.out.answer_text({"key": made}, made)


@command(
    encryption,
    examples=[
        "memplane encryption rotate --new-key-file new.key      # plain files are encrypted",
        "memplane encryption rotate --new-key-env NEW_KEY",
        "memplane encryption rotate --decrypt",
    ],
)
def rotate(
    call: CommandContext,
    new_key_file: Annotated[
        Path | None, typer.Option("--new-key-file", metavar="FILE", help="A file that holds the new key.")
    ] = None,
    new_key_env: Annotated[
        str | None,
        typer.Option("--new-key-env", metavar="VAR", help="An environment variable that holds it."),
    ] = None,
    decrypt: Annotated[bool, typer.Option("--decrypt", help="Leave the files plain.")] = False,
) -> None:
    """Put every space under another key; the current one is MEMPLANE_KEY or MEMPLANE_KEY_FILE.

    Stop everything else that uses the data directory. If it is cut off, run it again: what is done stays done.
    """
    if [new_key_file is not None, new_key_env is not None, decrypt].count(True) != 1:
        raise typer.BadParameter("give --new-key-file, --new-key-env or --decrypt, one of the three")
    new_key = None if decrypt else _new_key(call, new_key_file, new_key_env or "")
    done: list[dict[str, object]] = []
    total = sum(1 for _ in call.plane.spaces())
    with call.out.progress("Re-encrypting") as advance:

        def progress(name: str, changed: bool) -> None:
            done.append({"space": name, "changed": changed})
            advance(len(done), total)

        count = call.plane.rotate_key(new_key, progress=progress)
    shown = line(
        ("Changed", "green"), f" {count} of {len(done)} spaces{_rest(len(done) - count)}. {_next(new_key)}"
    )
    call.out.answer({"changed": count, "spaces": done}, shown)


def _new_key(call: CommandContext, file: Path | None, variable: str) -> str:
    if file is None:
        value = call.wiring.environment.get(variable, "")
        if not value:
            raise SettingsInvalid(f"the environment variable {variable} is not set")
        return value
    try:
        return file.expanduser().read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsInvalid(f"{file} cannot be read: {exc}") from exc


def _rest(count: int) -> str:
    return f"; {count} had it already" if count else ""


def _next(new_key: str | None) -> str:
    if new_key is None:
        return "Unset MEMPLANE_KEY and MEMPLANE_KEY_FILE from now on."
    return "Set MEMPLANE_KEY_FILE or MEMPLANE_KEY to the new key from now on."
