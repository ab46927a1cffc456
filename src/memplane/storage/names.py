"""Names of tenants and owners: any text."""

from memplane.errors import InvalidRequest

NAME_BYTES_MAX = 1_024


def checked_name(name: str, field: str) -> bytes:
    """Check a name; returns it in UTF-8."""
    if not isinstance(name, str) or not name:
        raise InvalidRequest(f"{field}: give a non-empty name", field=field)
    try:
        raw = name.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise InvalidRequest(
            f"{field}: the name holds half a character (a lone surrogate); decode it as UTF-8 first",
            field=field,
        ) from exc
    if len(raw) > NAME_BYTES_MAX:
        raise InvalidRequest(
            f"{field}: the name has {len(raw)} bytes in UTF-8; at most {NAME_BYTES_MAX} are possible",
            field=field,
        )
    return raw
