"""Where an expression may start, and whether a weak one has enough around it to be believed."""

from memplane.temporal.expressions import Expression
from memplane.temporal.holidays import named
from memplane.temporal.numeric import DAYS_MAX
from memplane.temporal.tokens import Line
from memplane.temporal.vocabulary import COLD, HOT
from memplane.temporal.words import listed

_SOON = 5
_SHORT_LINE = 8
_ALONE_MAX = 24
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


def warmth(line: Line) -> list[bool]:
    """For each token, whether an expression may start there: most cannot, which is what makes the search quick."""
    hot = [
        token.number is not None or token.text in HOT or named(line, at)
        for at, token in enumerate(line.tokens)
    ]
    if len(hot) <= _SHORT_LINE:
        return [warm or token.text in COLD for warm, token in zip(hot, line.tokens, strict=True)]
    warm, last = [False] * len(hot), len(hot) + _SOON
    for at in range(len(hot) - 1, -1, -1):
        warm[at] = hot[at] or (last - at < _SOON and line.tokens[at].text in COLD)
        last = at if hot[at] else last
    return warm


def proves(line: Line, found: Expression) -> bool:
    """Whether this is meant as a time: by its own words, by the word before it, or because nothing else stands there."""
    if found.strong:
        return True
    if _alone(line, found):
        return not _lone_number(line, found)
    return _introduced(line, found)


def _introduced(line: Line, found: Expression) -> bool:
    """Whether the word before a weak expression is one that stands before times: `in may`, `on sun`, `by 3/4`."""
    before, frame = line.word(found.start - 1), found.frame
    if frame.season is not None:
        over = before == "the" and line.word(found.start - 2) in {"in", "during", "over", "since"}
        return over or before in _MONTH_CONTEXT - {"by"}
    if frame.month is not None and frame.days is None:
        return before in _MONTH_CONTEXT
    if frame.days is not None and frame.month is not None:
        return _slash(line, found) and before in _DAY_CONTEXT | {"by"}
    return frame.weekday is not None and before in _DAY_CONTEXT


def _slash(line: Line, found: Expression) -> bool:
    return any(line.word(at) in {"/", "-"} for at in range(found.start, found.end))


def _alone(line: Line, found: Expression) -> bool:
    if len(line) > _ALONE_MAX:
        return False
    return all(line.word(at) in _FILLER for at in (*range(found.start), *range(found.end, len(line))))


def _lone_number(line: Line, found: Expression) -> bool:
    """A number with nothing beside it is a number; `16.12` may be a date where both halves have two digits."""
    if found.end - found.start == 1 and line.number(found.start) is not None:
        return (line.number(found.start) or 0) <= DAYS_MAX
    padded = line.digits(found.start) == line.digits(found.start + 2) == len("16")
    dotted = line.word(found.start + 1) == "." and found.frame.days is not None
    return dotted and not padded and found.end - found.start <= len("d.m")
