"""Owner ids become file names: reversible, traversal-proof, collision-free on any file system.

Lower-case letters, digits and `-` stand for themselves; every other byte of the UTF-8 form is `_` and two hex
digits, so that `Bob` and `bob` differ where the file system ignores case. A long name continues in
sub-folders. Every file ends in `.db`, and `.` is never in a name, so a folder cannot meet a file.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from memplane.errors import InvalidRequest

OWNER_BYTES_MAX = 1_024
SUFFIX = ".db"

_PART_CHARS_MAX = 200
_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-")
_ESCAPE = re.compile(rb"_([0-9a-f]{2})")


def encode_name(name: str, *, field: str) -> str:
    raw = _utf8(name, field)
    return "".join(chr(byte) if byte in _PLAIN else f"_{byte:02x}" for byte in raw)


def decode_name(encoded: str) -> str:
    raw = _ESCAPE.sub(lambda match: bytes([int(match.group(1), 16)]), encoded.encode("ascii"))
    return raw.decode("utf-8")


def space_path(folder: Path, owner: str) -> Path:
    encoded = encode_name(owner, field="space")
    parts = [encoded[i : i + _PART_CHARS_MAX] for i in range(0, len(encoded), _PART_CHARS_MAX)]
    return folder.joinpath(*(part + "+" for part in parts[:-1]), parts[-1] + SUFFIX)


def owners_below(folder: Path) -> Iterator[str]:
    """Every owner with a file here, sorted by file name; other files are passed over."""
    for path in sorted(folder.rglob(f"*{SUFFIX}")):
        parts = path.relative_to(folder).with_suffix("").parts
        if any(part.startswith(".") for part in parts):
            continue
        yield decode_name("".join(part.removesuffix("+") for part in parts))


def _utf8(name: str, field: str) -> bytes:
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"{field}: give a non-empty name", field=field)
    try:
        raw = name.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise InvalidRequest(
            f"{field}: the name holds half a character (a lone surrogate); decode it as UTF-8 first",
            field=field,
        ) from exc
    if len(raw) > OWNER_BYTES_MAX:
        raise InvalidRequest(
            f"{field}: the name has {len(raw)} bytes in UTF-8; at most {OWNER_BYTES_MAX} are possible",
            field=field,
        )
    return raw
