"""Days that a person picks, in UTC, counted from 1970."""

from memplane.clock import DAY, INSTANT_MAX, Instant, parse_instant


def day_given(text: str, *, field: str) -> int | None:
    """The day a field says; None where it was left empty."""
    return parse_instant(text, field=field) // DAY if text.strip() else None


def end_of(day: int) -> Instant:
    """The last moment of it."""
    return min((day + 1) * DAY - 1, INSTANT_MAX)
