"""Every time expression of a text, resolved against a reference."""

from datetime import UTC, tzinfo

from memplane.clock import Instant, to_datetime, to_instant
from memplane.extract.time.calendar import LocalSpan, Prefer, TimeMention
from memplane.extract.time.doubt import doubtful
from memplane.extract.time.expressions import OPEN_FUTURE, OPEN_PAST, Expression, expression
from memplane.extract.time.frame import TimeContext
from memplane.extract.time.holidays import NAME_STARTS, named
from memplane.extract.time.numeric import DAYS_MAX, free
from memplane.extract.time.tokens import TokenLine
from memplane.extract.time.words import COLD, HOT, listed

# Where an expression may start, and whether a weak one has enough around it to be believed.


_SOON = 5
_SHORT_LINE = 8
_ALONE_MAX = 24
_ANCHOR_REACH = 40
"""How many words later `the next day` may still count from a time; never in another paragraph."""
_FILLER = frozenset(
    listed(
        "on in at the around about approximately by of for from a an during since until ~ just now early "
        "earliest latest this ( ) , . ! ? : ; - to"
    )
)
_MONTH_CONTEXT = frozenset(
    listed("in since until till by during early late mid every each before after around")
)
_DAY_CONTEXT = frozenset(["on", "since", "until", "till", "every", "each", "before", "from"])


def warmth(line: TokenLine) -> list[bool]:
    """For each token, whether an expression may start there: most cannot, which is what makes the search quick."""
    hot = [
        token.number is not None or token.text in HOT or (token.text[:3] in NAME_STARTS and named(line, at))
        for at, token in enumerate(line.tokens)
    ]
    if len(hot) <= _SHORT_LINE:
        return [warm or token.text in COLD for warm, token in zip(hot, line.tokens, strict=True)]
    warm, last = [False] * len(hot), len(hot) + _SOON
    for at in range(len(hot) - 1, -1, -1):
        warm[at] = hot[at] or (last - at < _SOON and line.tokens[at].text in COLD)
        last = at if hot[at] else last
    return warm


def proves(line: TokenLine, found: Expression) -> bool:
    """Whether this is meant as a time: by its own words, by the word before it, or because there is nothing else."""
    if doubtful(line, found.start, found.end, found.frame):
        return False
    if found.strong:
        return True
    if _alone(line, found):
        return not _lone_number(line, found)
    return _introduced(line, found)


def _introduced(line: TokenLine, found: Expression) -> bool:
    """Whether the word before a weak expression is one that precedes times: `in may`, `on sun`, `by 3/4`."""
    before, frame = line.word(found.start - 1), found.frame
    if frame.season is not None:
        over = before == "the" and line.word(found.start - 2) in {"in", "during", "over", "since"}
        return over or before in _MONTH_CONTEXT - {"by"}
    if frame.month is not None and frame.days is None:
        return before in _MONTH_CONTEXT
    if frame.days is not None and frame.month is not None:
        return _slash(line, found) and before in _DAY_CONTEXT | {"by"}
    return frame.weekday is not None and before in _DAY_CONTEXT


def _slash(line: TokenLine, found: Expression) -> bool:
    return any(line.word(at) in {"/", "-"} for at in range(found.start, found.end))


def _alone(line: TokenLine, found: Expression) -> bool:
    if len(line) > _ALONE_MAX:
        return False
    return all(line.word(at) in _FILLER for at in (*range(found.start), *range(found.end, len(line))))


def _lone_number(line: TokenLine, found: Expression) -> bool:
    """A number alone is a number; `16.12` may be a date where both halves have two digits."""
    if found.end - found.start == 1 and line.number(found.start) is not None:
        return (line.number(found.start) or 0) <= DAYS_MAX
    padded = line.digits(found.start) == line.digits(found.start + 2) == len("16")
    dotted = line.word(found.start + 1) == "." and found.frame.days is not None
    return dotted and not padded and found.end - found.start <= len("d.m")


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
    context = TimeContext(now, prefer, zone, day_first)
    line = TokenLine(text)
    mentions: list[TimeMention] = []
    warm = warmth(line)
    at = anchored_at = 0
    while at < len(line):
        if context.anchor is not None and (at - anchored_at > _ANCHOR_REACH or line.breaks(at)):
            context = context._replace(anchor=None)
        found = _at(line, at, context) if warm[at] else None
        if found is None:
            at += 1
            continue
        at, mention, span = found
        mentions.append(mention)
        if (
            mention.kind not in {"recurring", "duration"}
            and span.begin > OPEN_PAST
            and span.until < OPEN_FUTURE
        ):
            context, anchored_at = context._replace(anchor=span), at
    return mentions


def _at(line: TokenLine, at: int, context: TimeContext) -> tuple[int, TimeMention, LocalSpan] | None:
    if line.number(at) is not None and not free(line, at):
        return None
    try:
        found = expression(line, at, context)
        if found is None or not proves(line, found):
            return None
        return found.end, _mention(line, found, context.zone), found.span
    except (OverflowError, ValueError):
        # The years 1 to 9999 end somewhere: times beyond are not representable.
        return None


def _mention(line: TokenLine, found: Expression, zone: tzinfo) -> TimeMention:
    start, end = line.tokens[found.start].start, line.tokens[found.end - 1].end
    begin, until = (to_instant(moment.replace(tzinfo=zone)) for moment in found.span[:2])
    if until <= begin:
        raise ValueError("a time that does not exist where clocks were put forward")
    return TimeMention(
        start, end, line.text[start:end], begin, until, found.span.grain, found.kind, found.every
    )
