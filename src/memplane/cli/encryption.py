"""The encryption key.

It has its own group, so that it is not mistaken for an API key (`memplane key`). A key is never an argument,
because arguments appear in shell histories and process lists.
"""

import secrets
from pathlib import Path
from typing import Annotated

import typer

from memplane.errors import SettingsInvalid
from memplane.terminal.call import CommandContext
from memplane.terminal.command import command
from memplane.terminal.output import line

app = typer.Typer()
encryption = typer.Typer(help="Generate and rotate the encryption key.", no_args_is_help=True)
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
    """Print a new key of 64 hexadecimal digits. Keep it safe: without it, the data cannot be read."""
    made = secrets.token_hex(_KEY_BYTES)
    call.out.answer_text({"key": made}, made)


@command(
    encryption,
    examples=[
        "memplane encryption rotate --new-key-file new.key      # also encrypts unencrypted files",
        "memplane encryption rotate --new-key-env NEW_KEY",
        "memplane encryption rotate --decrypt",
    ],
)
def rotate(
    call: CommandContext,
    new_key_file: Annotated[
        Path | None, typer.Option("--new-key-file", metavar="FILE", help="File that contains the new key.")
    ] = None,
    new_key_env: Annotated[
        str | None,
        typer.Option("--new-key-env", metavar="VAR", help="Environment variable that contains the new key."),
    ] = None,
    decrypt: Annotated[bool, typer.Option("--decrypt", help="Remove the encryption.")] = False,
) -> None:
    """Re-encrypt every space with a new key; the current key is MEMPLANE_KEY or MEMPLANE_KEY_FILE.

    First stop everything else that uses the data directory. If interrupted, run it again.
    """
    if [new_key_file is not None, new_key_env is not None, decrypt].count(True) != 1:
        raise typer.BadParameter("give exactly one of --new-key-file, --new-key-env and --decrypt")
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
        raise SettingsInvalid(f"cannot read {file}: {exc}") from exc


def _rest(count: int) -> str:
    return f"; {count} unchanged" if count else ""


def _next(new_key: str | None) -> str:
    if new_key is None:
        return "Now unset MEMPLANE_KEY and MEMPLANE_KEY_FILE."
    return "Now set MEMPLANE_KEY_FILE or MEMPLANE_KEY to the new key."
