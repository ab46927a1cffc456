"""File names for owner ids: reversible, traversal-proof, collision-free on any file system.

Lower-case letters, digits and `-` are kept; every other byte of the UTF-8 form becomes `_` and two hex digits,
so that `Bob` and `bob` differ on a file system that ignores case. A name that would be too long (SQLite opens
no path over 512 bytes) becomes `+` and the SHA-256 of the name, and a file next to it that ends in `.name`
contains the name.
"""

import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from memplane.errors import InvalidRequest
from memplane.storage.names import checked_name

SUFFIX = ".db"
LABEL_SUFFIX = ".name"
DIGEST_MARK = "+"

_NAME_CHARS_MAX = 200
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-")
_ESCAPE = re.compile(rb"_([0-9a-f]{2})")


def encode_name(name: str, *, field: str) -> str:
    raw = checked_name(name, field)
    return "".join(chr(byte) if byte in _PLAIN else f"_{byte:02x}" for byte in raw)


def decode_name(encoded: str) -> str:
    raw = _ESCAPE.sub(lambda match: bytes([int(match.group(1), 16)]), encoded.encode("ascii"))
    return raw.decode("utf-8")


def directory_name(tenant: str) -> str:
    encoded = encode_name(tenant, field="tenant")
    if len(encoded) > _NAME_CHARS_MAX:
        raise InvalidRequest(
            f"tenant: the name is too long for a folder; choose a shorter one than {tenant!r}", field="tenant"
        )
    return encoded


def space_path(folder: Path, owner: str) -> Path:
    encoded = encode_name(owner, field="space")
    if len(encoded) > _NAME_CHARS_MAX:
        encoded = DIGEST_MARK + sha256(owner.encode("utf-8")).hexdigest()
    return folder / f"{encoded}{SUFFIX}"


def label_path(path: Path) -> Path | None:
    """The file with the owner's name, if the path does not contain it."""
    return path.with_suffix(LABEL_SUFFIX) if path.name.startswith(DIGEST_MARK) else None


def owners_below(folder: Path) -> list[str]:
    """Every owner with a file here, in the order of their bytes. Other files are ignored."""
    owners = []
    for path in folder.glob(f"*{SUFFIX}"):
        with suppress(UnicodeError, FileNotFoundError, InvalidRequest):
            label = label_path(path)
            owner = decode_name(path.stem) if label is None else label.read_text(encoding="utf-8")
            if space_path(folder, owner) == path:
                owners.append(owner)
    return sorted(owners)


def tenants_below(folder: Path) -> list[str]:
    """Every tenant with a folder here. Other folders are ignored."""
    tenants = []
    for path in folder.glob("[!.]*"):
        with suppress(UnicodeError):
            if path.is_dir() and encode_name(tenant := decode_name(path.name), field="tenant") == path.name:
                tenants.append(tenant)
    return sorted(tenants)
