"""Input validation: one clear error per mistake, raised before anything is written."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from memplane.config import Settings
from memplane.errors import InvalidRequest
from memplane.safety.fence import strip_injected
from memplane.safety.redact import find_secrets
from memplane.safety.sanitize import visible
from memplane.types import STORABLE_KINDS, Kind, Role, State, Tier, Visibility

_COUNT_MAX = 100_000


def check_text(value: str, *, field: str, chars_max: int | None = None, bytes_max: int | None = None) -> str:
    """Valid text: not empty, no lone surrogate, no NUL, not too long."""
    if not isinstance(value, str):
        raise InvalidRequest(f"{field}: give text, not {type(value).__name__}", field=field)
    if not visible(value).strip():
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
    if value is None:
        return None
    return check_no_secret(check_text(value, field=field, chars_max=chars_max), field=field)


def check_encodable(value: str, *, field: str, bytes_max: int | None = None) -> None:
    if "\x00" in value:
        raise InvalidRequest(f"{field} contains a NUL byte; remove it", field=field)
    try:
        size = len(value) if value.isascii() else len(value.encode("utf-8"))
    except UnicodeEncodeError as exc:
        raise InvalidRequest(
            f"{field} contains half a character at position {exc.start} (a lone surrogate); "
            "decode the source as UTF-8 or UTF-16 first",
            field=field,
        ) from exc
    if bytes_max is not None and size > bytes_max:
        raise InvalidRequest(
            f"{field} has {size:,} bytes and at most {bytes_max:,} fit into one entry; split it", field=field
        )


def check_query(**names: str | None) -> None:
    """The arguments of a read: text that could exist in the store."""
    for field, value in names.items():
        if value is not None:
            check_encodable(value, field=field)


def check_caller(value: str, *, field: str) -> None:
    if not isinstance(value, str):
        raise InvalidRequest(f"{field}: give text, not {type(value).__name__}", field=field)
    check_encodable(value, field=field, bytes_max=1_024)


def check_no_secret(value: str, *, field: str) -> str:
    """A name appears everywhere, and redacting a secret in it would lose the name."""
    if find_secrets(value):
        raise InvalidRequest(f"{field} looks like a secret; choose another name", field=field)
    return value


def check_depth(value: Any, *, field: str, depth_max: int = 64) -> None:
    """A deeper value could be written but not read back."""
    level = [value]
    for _ in range(depth_max):
        level = [inner for item in level if isinstance(item, dict | list | tuple) for inner in _members(item)]
        if not level:
            return
    raise InvalidRequest(f"{field} is nested over {depth_max} levels deep; make it flatter", field=field)


def _members(item: Any) -> Iterable[Any]:
    return item.values() if isinstance(item, dict) else item


def check_not_injected(value: str, *, field: str) -> str:
    """Reject text that is only injected memory: storing it again would multiply it."""
    if not strip_injected(value):
        raise InvalidRequest(f"{field} contains only injected memory; nothing new to store", field=field)
    return value


def check_kind(value: str) -> Kind:
    try:
        return Kind(value)
    except ValueError as exc:
        raise InvalidRequest(f"unknown kind {value!r}; use one of {', '.join(Kind)}", field="kind") from exc


def check_state(value: str) -> State:
    try:
        return State(value)
    except ValueError as exc:
        raise InvalidRequest(
            f"unknown state {value!r}; use one of {', '.join(State)}", field="state"
        ) from exc


def check_tier(value: str) -> Tier:
    try:
        return Tier(value)
    except ValueError as exc:
        raise InvalidRequest(f"unknown tier {value!r}; use one of {', '.join(Tier)}", field="tier") from exc


def check_storable_kind(value: str) -> Kind:
    if value not in STORABLE_KINDS:
        raise InvalidRequest(f"unknown kind {value!r}; use one of {', '.join(STORABLE_KINDS)}", field="kind")
    return Kind(value)


def check_list(values: Iterable[str], *, field: str) -> tuple[str, ...]:
    if isinstance(values, str):
        raise InvalidRequest(f"{field}: give a list, not one text", field=field)
    found = tuple(values)
    for value in found:
        if not isinstance(value, str):
            raise InvalidRequest(f"{field}: give texts, not {type(value).__name__}", field=field)
    return found


def check_ids(values: Iterable[str], *, field: str, count_max: int = 1_000) -> list[str]:
    """Ids, without duplicates."""
    found = list(dict.fromkeys(check_list(values, field=field)))
    if len(found) > count_max:
        raise InvalidRequest(f"{field}: at most {count_max:,} ids at once", field=field)
    for value in found:
        check_encodable(value, field=field)
    return found


def check_rating(value: int | None) -> None:
    if value is not None and (isinstance(value, bool) or value not in range(1, 6)):
        raise InvalidRequest(f"rating: give 1 to 5, not {value!r}", field="rating")


def check_limit(limit: int, limit_max: int = 1_000_000) -> None:
    if not 1 <= limit <= limit_max:
        raise InvalidRequest(f"limit: give 1 to {limit_max:,}, not {limit}", field="limit")


def check_counts(**counts: int) -> None:
    """Result limits: zero is valid, negative is not."""
    for field, count in counts.items():
        if not 0 <= count <= _COUNT_MAX:
            raise InvalidRequest(f"{field}: give 0 to {_COUNT_MAX:,}, not {count}", field=field)


def check_role(value: str) -> str:
    try:
        return Role(value).value
    except ValueError as exc:
        raise InvalidRequest(f"unknown role {value!r}; use one of {', '.join(Role)}", field="role") from exc


def check_scope(value: str, *, conversation: str | None, project: str | None) -> Visibility:
    """The scope of a turn or memory. A limited scope must name its conversation or project."""
    try:
        reach = Visibility(value)
    except ValueError as exc:
        raise InvalidRequest(
            f"unknown scope {value!r}; use one of {', '.join(Visibility)}", field="scope"
        ) from exc
    named = {Visibility.CONVERSATION: conversation, Visibility.PROJECT: project}
    if reach in named and named[reach] is None:
        raise InvalidRequest(
            f"scope {reach.value} needs a {reach.value}: name it, or leave out the scope", field="scope"
        )
    return reach


def check_window(value: timedelta | None, *, keyed: bool) -> int | None:
    """How long an idempotency key is valid, in microseconds; None: forever."""
    if value is None:
        return None
    if not keyed:
        raise InvalidRequest(
            "idempotency_window needs an idempotency_key, and no id",
            field="idempotency_window",
        )
    if not isinstance(value, timedelta) or value <= timedelta(0):
        raise InvalidRequest(
            f"idempotency_window: give a positive duration, not {value!r}",
            field="idempotency_window",
        )
    return value // timedelta(microseconds=1)


def check_tags(values: Iterable[str], settings: Settings) -> tuple[str, ...]:
    tags = tuple(dict.fromkeys(check_list(values, field="tags")))
    if len(tags) > settings.tags_max:
        raise InvalidRequest(f"{len(tags)} tags; at most {settings.tags_max} are kept", field="tags")
    for tag in tags:
        check_text(tag, field="tag", chars_max=settings.tag_chars_max)
    return tags
