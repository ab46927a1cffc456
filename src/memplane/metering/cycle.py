"""Days, and billing cycles made of them. A day is a number: how many there were since 1970, in UTC."""

from datetime import UTC, date, datetime, timedelta

import msgspec

_EPOCH = date(1970, 1, 1)


class Cycle(msgspec.Struct, frozen=True):
    """From its first day until the day the next one begins with."""

    first: int
    next: int

    @property
    def reset_date(self) -> str:
        """`2026-04-01T00:00:00Z`."""
        midnight = datetime.combine(to_date(self.next), datetime.min.time(), UTC)
        return midnight.strftime("%Y-%m-%dT%H:%M:%SZ")


def to_date(day: int) -> date:
    return _EPOCH + timedelta(days=day)


def to_day(moment: date) -> int:
    return (moment - _EPOCH).days


def cycle_of(day: int, cycle_day: int) -> Cycle:
    """The cycle that a day is in. Every month has a 28th, so `cycle_day` is at most that."""
    today = to_date(day)
    begun = today.replace(day=cycle_day)
    if begun > today:
        begun = (today.replace(day=1) - timedelta(days=1)).replace(day=cycle_day)
    following = (begun.replace(day=1) + timedelta(days=31)).replace(day=cycle_day)
    return Cycle(to_day(begun), to_day(following))
