"""Bad input is normal input: one clear sentence each, before anything is written."""

from collections.abc import Iterable

from memplane.config import Settings
from memplane.errors import InvalidRequest
from memplane.governance.fence import strip_injected
from memplane.types import STORABLE_KINDS, Kind, Role


def check_text(value: str, *, field: str, chars_max: int | None = None, bytes_max: int | None = None) -> str:
    """Real text: not empty, not half a character, no NUL, not too long."""
    if not isinstance(value, str):
        raise InvalidRequest(f"{field}: give text, not {type(value).__name__}", field=field)
    if not value or value.isspace():
        raise InvalidRequest(f"{field} is empty; give some text", field=field)
    if chars_max is not None and len(value) > chars_max:
        raise InvalidRequest(
            f"{field} has {len(value):,} characters and at most {chars_max:,} are kept; shorten it",
            field=field,
        )
    check_encodable(value, field=field, bytes_max=bytes_max)
    return value


def check_name(value: str | None, *, field: str, chars_max: int = 512) -> str | None:
    """The name of a conversation, project or session; None stays None."""
    return None if value is None else check_text(value, field=field, chars_max=chars_max)


def check_encodable(value: str, *, field: str, bytes_max: int | None = None) -> None:
    if "\x00" in value:
        raise InvalidRequest(f"{field} holds a NUL byte; remove it, text does not contain one", field=field)
    try:
        size = len(value) if value.isascii() else len(value.encode("utf-8"))
    except UnicodeEncodeError as exc:
        raise InvalidRequest(
            f"{field} holds half a character at position {exc.start} (a lone surrogate); "
            "decode the source as UTF-8 or UTF-16 before handing it over",
            field=field,
        ) from exc
    if bytes_max is not None and size > bytes_max:
        raise InvalidRequest(
            f"{field} has {size:,} bytes and at most {bytes_max:,} fit into one entry; split it", field=field
        )


def check_asked(**names: str | None) -> None:
    """What a read asks by: text that could be there."""
    for field, value in names.items():
        if value is not None:
            check_encodable(value, field=field)


def check_news(value: str, *, field: str) -> str:
    """More than what memory itself put into a prompt: keeping that again would breed."""
    if not strip_injected(value):
        raise InvalidRequest(f"{field} holds only recalled memory; say what is new", field=field)
    return value


def check_kind(value: str) -> Kind:
    try:
        return Kind(value)
    except ValueError as exc:
        raise InvalidRequest(f"unknown kind {value!r}; use one of {', '.join(Kind)}", field="kind") from exc


def check_storable_kind(value: str) -> Kind:
    if value not in STORABLE_KINDS:
        raise InvalidRequest(f"unknown kind {value!r}; use one of {', '.join(STORABLE_KINDS)}", field="kind")
    return Kind(value)


def check_list(values: Iterable[str], *, field: str) -> tuple[str, ...]:
    if isinstance(values, str):
        raise InvalidRequest(f"{field}: give a list, not one text", field=field)
    return tuple(values)


def check_limit(limit: int, limit_max: int | None = None) -> None:
    if limit < 1 or (limit_max is not None and limit > limit_max):
        wanted = "1 or more" if limit_max is None else f"1 to {limit_max}"
        raise InvalidRequest(f"limit: give {wanted}, not {limit}", field="limit")


def check_role(value: str) -> str:
    try:
        return Role(value).value
    except ValueError as exc:
        raise InvalidRequest(f"unknown role {value!r}; use one of {', '.join(Role)}", field="role") from exc


def check_tags(values: Iterable[str], settings: Settings) -> tuple[str, ...]:
    tags = tuple(dict.fromkeys(check_list(values, field="tags")))
    if len(tags) > settings.tags_max:
        raise InvalidRequest(f"{len(tags)} tags; at most {settings.tags_max} are kept", field="tags")
    for tag in tags:
        check_text(tag, field="tag", chars_max=settings.tag_chars_max)
    return tags
