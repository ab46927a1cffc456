"""Every time expression of a text, resolved against a reference."""

from datetime import UTC, tzinfo

from memplane.clock import Instant, to_datetime, to_instant
from memplane.temporal.expressions import Expression, expression
from memplane.temporal.frame import Context
from memplane.temporal.mention import Prefer, TimeMention
from memplane.temporal.numeric import free
from memplane.temporal.tokens import Line
from memplane.temporal.triggers import proves, warmth


def find_times(
    text: str,
    reference: Instant,
    *,
    prefer: Prefer = "past",
    zone: tzinfo = UTC,
    day_first: bool | None = None,
) -> list[TimeMention]:
    """The expressions of `text` in order, none overlapping another.

    `prefer` decides what the words leave open (`in March`, `on Monday`); words that say past or future themselves are
    not touched by it. `zone` is where the speaker's days begin. `day_first` reads 3/4 as 3 April; where it is None, the
    weekday or the preferred side of the reference decides, and else the American reading.
    """
    try:
        now = to_datetime(reference).astimezone(zone).replace(tzinfo=None)
    except (OverflowError, ValueError):
        return []
    context = Context(now, prefer, zone, day_first)
    line = Line(text)
    mentions: list[TimeMention] = []
    warm = warmth(line)
    at = 0
    while at < len(line):
        found = _at(line, at, context) if warm[at] else None
        if found is None:
            at += 1
            continue
        mentions.append(found[1])
        at = found[0]
    return mentions


def _at(line: Line, at: int, context: Context) -> tuple[int, TimeMention] | None:
    if line.number(at) is not None and not free(line, at):
        return None
    try:
        found = expression(line, at, context)
        if found is None or not proves(line, found):
            return None
        return found.end, _mention(line, found, context.zone)
    except (OverflowError, ValueError):
        # The years 1 to 9999 end somewhere: what lies beyond is no time we can tell.
        return None


def _mention(line: Line, found: Expression, zone: tzinfo) -> TimeMention:
    start, end = line.tokens[found.start].start, line.tokens[found.end - 1].end
    begin, until = (to_instant(moment.replace(tzinfo=zone)) for moment in found.span[:2])
    if until <= begin:
        raise ValueError("a time that does not exist where clocks were put forward")
    return TimeMention(start, end, line.text[start:end], begin, until, found.span.grain, found.kind)
