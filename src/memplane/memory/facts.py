"""Keyed facts: one live value per key, with a category and a time to live."""

from datetime import timedelta

from memplane.clock import SECOND, Instant
from memplane.errors import InvalidRequest
from memplane.ledger.payloads import PutPayload
from memplane.memory.checks import check_encodable, check_no_secret, check_not_injected, check_text
from memplane.types import RESERVED_CATEGORIES

CATEGORY_DEFAULT = "user_facts"
KEY_CHARS_MAX = 512
TTL_DEFAULT = timedelta(days=90)
TTL_MIN = timedelta(hours=1)
TTL_MAX = timedelta(days=365)


def checked_fact(
    key: str,
    value: str,
    *,
    category: str | None,
    tags: tuple[str, ...],
    ttl: timedelta | float | None,
    at: Instant,
    bytes_max: int,
) -> PutPayload:
    """Trimmed and complete, or an `InvalidRequest` for the first problem."""
    key, value = _text(key, "key"), _text(value, "value")
    if not key:
        raise InvalidRequest('key is required (e.g. "preferences/frontend-framework")', field="key")
    if not value:
        raise InvalidRequest("value is required (the fact text)", field="value")
    check_no_secret(
        check_not_injected(check_text(key, field="key", chars_max=KEY_CHARS_MAX), field="key"), field="key"
    )
    check_encodable(value, field="value", bytes_max=bytes_max)
    check_not_injected(value, field="value")
    category = _text(category or "", "category") or CATEGORY_DEFAULT
    check_no_secret(check_text(category, field="category", chars_max=KEY_CHARS_MAX), field="category")
    _check_not_reserved(key, category)
    life = checked_ttl(ttl)
    return PutPayload(key=key, value=value, category=category, tags=tags, at=at, expires=at + life)


def checked_ttl(ttl: timedelta | float | None) -> int:
    """In microseconds. None and zero mean the default: no fact lives forever."""
    try:
        life = ttl if isinstance(ttl, timedelta) else timedelta(seconds=ttl or 0)
    except (OverflowError, ValueError, TypeError) as exc:
        raise InvalidRequest(f"ttl: {ttl!r} is not a length of time", field="ttl") from exc
    if not life:
        life = TTL_DEFAULT
    if life < TTL_MIN:
        raise InvalidRequest("ttl too short; minimum is 1h0m0s", field="ttl")
    if life > TTL_MAX:
        raise InvalidRequest("ttl too long; maximum is 8760h0m0s", field="ttl")
    return int(life.total_seconds() * SECOND)


def _text(value: str, field: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{field}: give text, not {type(value).__name__}", field=field)
    return value.strip()


def _check_not_reserved(key: str, category: str) -> None:
    if category in RESERVED_CATEGORIES:
        raise InvalidRequest(
            f'category "{category}" is reserved for engine-written audit rows; pick a different name '
            "(e.g. user_facts, project_conventions, preferences)",
            field="category",
        )
    prefix = key.partition("/")[0]
    if "/" in key and prefix in RESERVED_CATEGORIES:
        raise InvalidRequest(
            f'keys under "{prefix}/" are reserved for engine-written audit rows; pick a different prefix',
            field="key",
        )
