"""What an expression has said so far. Parts come in any order, so each fills slots of one frame."""

from collections.abc import Callable
from datetime import datetime, tzinfo
from typing import NamedTuple

import msgspec

from memplane.extract.time.calendar import LocalSpan, Prefer
from memplane.extract.time.words import DayPart


class TimeContext(NamedTuple):
    """What a frame is resolved against: the local reference time and what to do with what is left open."""

    now: datetime
    prefer: Prefer
    zone: tzinfo
    day_first: bool | None
    anchor: LocalSpan | None = None
    """The last time mentioned before, which `two days later` counts from."""


class Clock(NamedTuple):
    """A time of day as it was written; `half` is 0 for a.m., 1 for p.m., None if not given."""

    hour: int
    minute: int | None = None
    second: int | None = None
    half: int | None = None
    padded: bool = False
    """Written so that it can only be meant on the 24-hour clock, such as 08:40 or 17h."""


Yearly = Callable[[int], LocalSpan | None]


class Frame(msgspec.Struct, frozen=True):
    """The slots. `strong` says that the words alone prove a time was meant; a weak frame needs company."""

    year: int | None = None
    month: int | None = None
    days: tuple[int, int] | None = None
    weekday: int | None = None
    nth: tuple[int, str] | None = None
    """Third Monday, last week, fifth last day: the count and what is counted."""
    run: int | None = None
    """How many in a row: four of `the last four months of`."""
    week: int | None = None
    quarter: int | None = None
    decade: int | None = None
    season: int | None = None
    holiday: Yearly | None = None
    offset: int | None = None
    """-1 for last, 0 for this, 1 for next, -2 for the one before last: of what this frame names."""
    swap: tuple[int, int] | None = None
    """The day and month of an ambiguous 3/4, read the other way round."""
    anchor: LocalSpan | None = None
    edge: str | None = None
    part: DayPart | None = None
    clock: Clock | None = None
    clock_until: Clock | None = None
    clock_open: int | None = None
    """1 for `after 9pm`, -1 for `before 9pm`, on a day named with it."""
    days_later: int | None = None
    zone: tzinfo | None = None
    strong: bool = True

    def dated(self) -> bool:
        """Whether something names a day or a longer stretch."""
        return any(getattr(self, name) is not None for name in _DATED)

    def relative(self) -> bool:
        """Whether the reference, and not only the preference, decides what is meant."""
        return (
            self.anchor is not None or self.offset is not None or (self.weekday is not None and not self.days)
        )

    def daily(self) -> bool:
        """Whether a single day is named, so that a bare number next to it may be an hour."""
        if self.days is not None or self.weekday is not None or self.holiday is not None:
            return True
        return self.anchor is not None and self.anchor.grain in {"day", "part_of_day"}


_DATED = (
    "year",
    "month",
    "days",
    "weekday",
    "nth",
    "week",
    "quarter",
    "decade",
    "season",
    "holiday",
    "anchor",
)
_SLOTS = tuple(name for name in Frame.__struct_fields__ if name != "strong")


def merge(one: Frame, two: Frame) -> Frame | None:
    """Both together, or None where they would fill the same slot: then they are two expressions."""
    slots = {}
    for name in _SLOTS:
        first, second = getattr(one, name), getattr(two, name)
        if first is not None and second is not None:
            return None
        slots[name] = second if first is None else first
    edged = slots["edge"] is not None and slots["year"] is not None  # `late 2018`
    both = Frame(**slots, strong=one.strong or two.strong or edged or slots["days"] is not None)
    return both if _fits(both) else None


def _holds_moment(frame: Frame) -> bool:
    return frame.anchor is not None and frame.anchor.grain in {"hour", "minute", "second"}


def _fits(frame: Frame) -> bool:
    """Whether slots of different kinds make sense together: `a Monday in March` is two expressions, not one day."""
    if (
        sum(
            slot is not None
            for slot in (frame.month, frame.quarter, frame.season, frame.decade, frame.holiday)
        )
        > 1
    ):
        return False
    if (
        (frame.part or frame.clock)
        and frame.dated()
        and not (frame.daily() or frame.nth or _holds_moment(frame))
    ):
        return False
    if frame.anchor is not None and (
        frame.year is not None or (frame.anchor.grain == "second" and frame.days)
    ):
        return False
    if frame.year is not None and frame.offset is not None:  # `I read 1984 last summer`
        return False
    if frame.weekday is None or frame.days is not None or frame.nth is not None:
        return True
    return frame.month is None and frame.year is None and frame.season is None and frame.quarter is None
