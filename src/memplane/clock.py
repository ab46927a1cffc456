"""Time as an injected dependency: the engine reads the time only through a `Clock`, so tests can control it."""

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from memplane.errors import InvalidRequest

Instant = int
"""Microseconds since 1970 in UTC, as stored and compared."""

Moment = datetime | str | float
"""A time as callers give it: a datetime, ISO 8601 text or Unix seconds; see `parse_instant`."""

Clock = Callable[[], Instant]

SECOND = 1_000_000
DAY = 86_400 * SECOND

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_YEAR_MIN, _YEAR_MAX = 1, 9999

INSTANT_MAX: Instant = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""The latest representable moment."""
STATED_MAX: Instant = (datetime(9000, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""The latest moment accepted from a file. Some files write the end of time for "never", and entries that follow need
a later time."""


def system_clock() -> Instant:
    return time.time_ns() // 1_000


def to_datetime(instant: Instant) -> datetime:
    return _EPOCH + timedelta(microseconds=instant)


def to_instant(moment: datetime) -> Instant:
    """Convert an aware datetime in any zone; a naive one is taken as UTC."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MICROSECOND


def just_after(instant: Instant) -> Instant:
    """The next moment, or the same one at the end of the range."""
    return min(instant + 1, INSTANT_MAX)


def parse_instant(value: Moment, *, field: str) -> Instant:
    """Accept a datetime, an ISO 8601 string or Unix seconds; reject anything else."""
    try:
        if isinstance(value, datetime):
            return _within_years(to_instant(value))
        if isinstance(value, str):
            return _within_years(to_instant(datetime.fromisoformat(value.strip())))
        if isinstance(value, bool) or not math.isfinite(value):
            raise ValueError
        return to_instant(_EPOCH + timedelta(seconds=value))
    except (ValueError, OverflowError, TypeError) as exc:
        raise InvalidRequest(
            f"{field}: {value!r} is not a date; give ISO 8601 such as 2026-11-15T08:30:00Z, "
            f"in the years {_YEAR_MIN} to {_YEAR_MAX}",
            field=field,
        ) from exc


def zoned_instant(text: str) -> Instant:
    """Parse a timestamp from a file or log; raise `ValueError` if it has no time zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return to_instant(moment)


def _within_years(instant: Instant) -> Instant:
    """An offset can push a date in the first or last year out of the range of UTC."""
    to_datetime(instant)
    return instant


def iso(moment: Instant | datetime) -> str:
    """`2026-11-15T06:35:06.385Z`: milliseconds, as JSON clients expect."""
    instant = to_instant(moment) if isinstance(moment, datetime) else moment
    return to_datetime(instant).isoformat(timespec="milliseconds").replace("+00:00", "Z")
