"""What may be a key: the same on disk and in a container."""


def checked_key(key: str) -> str:
    """A relative path with `/` between its parts. Raises `ValueError` for one that leads elsewhere."""
    if any(part in {"", ".", ".."} for part in key.split("/")) or "\0" in key:
        raise ValueError(f"{key!r} is no key: a part of it is empty, `.` or `..`, so it would lead elsewhere")
    return key
