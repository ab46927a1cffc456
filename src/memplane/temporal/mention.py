"""What is found: an expression, where it stands, and the range of time it names."""

from typing import Literal, NamedTuple

from memplane.clock import Instant

Granularity = Literal[
    "year", "season", "quarter", "month", "week", "weekend", "day", "part_of_day", "hour", "minute", "second"
]
Kind = Literal["absolute", "relative", "range", "duration", "recurring"]
Prefer = Literal["past", "future", "none"]


class TimeMention(NamedTuple):
    """`text[start:end]` names the time from `begin` up to, not including, `until`.

    `granularity` is how precisely it was said: a year is not its first of January. A `duration` has no place of its
    own in time; its range touches the reference only to show its length. A `recurring` one shows its occurrence
    nearest to the reference on the preferred side.
    """

    start: int
    end: int
    raw: str
    begin: Instant
    until: Instant
    granularity: Granularity
    kind: Kind
