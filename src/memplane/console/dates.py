"""Days that a person picks, in UTC, counted from 1970."""

from datetime import UTC, datetime

from memplane.clock import DAY, INSTANT_MAX, Instant, parse_instant, to_datetime, to_instant

_FIRST = to_instant(datetime.min.replace(tzinfo=UTC)) // DAY


def day_given(text: str, *, field: str) -> int | None:
    """The day a field says; None where it was left empty."""
    return parse_instant(text, field=field) // DAY if text.strip() else None


def end_of(day: int) -> Instant:
    """The last moment of it."""
    return min((day + 1) * DAY - 1, INSTANT_MAX)


def before(day: int, days: int) -> int:
    """So many days earlier; the first of all days, where there are not so many."""
    return max(_FIRST, day - days)


def written(day: int) -> str:
    """As a field of a form has it."""
    return to_datetime(day * DAY).date().isoformat()
