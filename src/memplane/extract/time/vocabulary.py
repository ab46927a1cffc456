"""Which words can open an expression at all."""

from memplane.extract.time.words import (
    CARDINAL,
    EDGE,
    EDGE_SHORT,
    MODIFIER,
    MONTH,
    ORDINAL,
    PART,
    SEASON,
    TENS,
    UNIT,
    WEEKDAY,
    WEEKDAYS_PLURAL,
    listed,
)

_TELLING = frozenset(
    listed(
        "today today's yesterday yesterday's tomorrow tomorrow's tomorrows tmrw tomorow tommorow "
        "tommorrow tonight tonight's tonite now noon midday midnight ago weekends weekdays q o'clock "
        "oclock am pm past twenties thirties forties fifties sixties seventies eighties nineties"
    )
)
HOT = (
    _TELLING
    | EDGE_SHORT.keys()
    | MONTH.keys()
    | PART.keys()
    | SEASON.keys()
    | TENS.keys()
    | UNIT.keys()
    | WEEKDAY.keys()
    | WEEKDAYS_PLURAL.keys()
    | {f"{name}'s" for name in (*MONTH, *WEEKDAY, *SEASON, *UNIT)}
    | {f"{name}ish" for name in PART}
)
"""Words that speak of time themselves."""
COLD = (
    frozenset(
        listed(
            "the a an in on at over since until untill till til before after by from between through thru for "
            "every each within all rest earlier later right just half couple few another about around two"
        )
    )
    | CARDINAL.keys()
    | EDGE.keys()
    | MODIFIER.keys()
    | ORDINAL.keys()
)
"""Words that may open an expression, and open other things more often: a hot one must follow soon."""
