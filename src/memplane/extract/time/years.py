"""Years: 2014, two thousand and eight, nineteen oh-six, in '98, in eighty-nine; and years in a row, 2014-2018, 1939-45."""

from memplane.extract.time.calendar import MONTHS, LocalSpan, season_span, year_span
from memplane.extract.time.frame import Frame, TimeContext
from memplane.extract.time.numeric import CENTURY, YEAR_DIGITS, YEAR_MAX, YEAR_OLD, free, full_year
from memplane.extract.time.tokens import TokenLine, cardinal, small
from memplane.extract.time.words import CARDINAL, SEASON, TENS, listed

Rule = tuple[int, Frame]

_CENTURIES = frozenset({18, 19, 20})
_TEN = 10
_YEARS_MAX = 150
_SHORT_LEAD = frozenset(
    {"in", "since", "until", "till", "of", "from", "before", "after", "by", "to", "summer", "winter"}
)
_AFTER_YEAR = frozenset(
    listed(
        "and or but was were is i we he she they you it when that because so after before until to in at on with "
        "as for the a my our his her their then"
    )
)


def ends_phrase(line: TokenLine, at: int) -> bool:
    """Whether a number in words stands for itself here, and does not count what follows it."""
    return not line.word(at).isalpha() or line.word(at) in _AFTER_YEAR


def spelled_year(line: TokenLine, at: int, *, lead: str) -> Rule | None:
    """`two thousand ten`, `nineteen ninety-four`, `twenty twenty`; `eighty-nine` only after `in` and the like."""
    if line.number(at) is not None:
        return None
    if (
        lead == "year"
        and (line.word(at), line.word(at + 1)) == ("two", "thousand")
        and ends_phrase(line, at + 2)
    ):
        return at + 2, Frame(year=2000)
    found = _thousands(line, at) or _hundreds(line, at)
    if found is None:
        return _short(line, at, lead)
    end, year = found
    if line.word(end) == "-" or line.word(end) in {"hundred", "thousand", "percent"}:
        return None
    opens = at == 0 or line.word(at - 1) in {".", "!", "?", ";", ":"}
    strong = ends_phrase(line, end) and (
        lead in _SHORT_LEAD or lead == "year" or (opens and line.word(end).isalpha())
    )
    return end, Frame(year=year, strong=strong)


def _thousands(line: TokenLine, at: int) -> tuple[int, int] | None:
    if line.word(at) != "two" or line.word(at + 1) != "thousand":
        return None
    start = at + 2 + (line.word(at + 2) == "and")
    found = cardinal(line, start)
    if found is None or found[1] >= CENTURY or line.number(start) is not None:
        return None
    return found[0], 2000 + found[1]


def _hundreds(line: TokenLine, at: int) -> tuple[int, int] | None:
    """`nineteen ninety-four`, `twenty eighteen`, `nineteen oh-six`, `nineteen hundred`."""
    word = line.word(at)
    century = CARDINAL.get(word) or (TENS.get(word) if word == "twenty" else None)
    if century not in _CENTURIES:
        return None
    start = at + 1 + (line.word(at + 1) == "-")
    if line.word(start) == "hundred":
        rest = small(line, start + 2) if line.word(start + 1) == "and" else None
        end, year = rest or (start + 1, 0)
        return (end, century * CENTURY + year) if century < max(_CENTURIES) else None
    if line.word(start) in {"oh", "o"}:
        start += 1 + (line.word(start + 1) == "-")
        found = small(line, start)
        return (found[0], century * CENTURY + found[1]) if found and 0 < found[1] < _TEN else None
    found = small(line, start)
    if found is None or found[1] < _TEN:
        return None
    return found[0], century * CENTURY + found[1]


def _short(line: TokenLine, at: int, lead: str) -> Rule | None:
    """`in eighty-nine`: two words, after a word that precedes years, and nothing is counted."""
    if line.word(at) not in TENS or lead not in {"in", "since", "of"} or TENS[line.word(at)] < 40:  # noqa: PLR2004  twenty-two is a number of things
        return None
    found = small(line, at)
    if found is None or found[0] == at + 1 or not ends_phrase(line, found[0]):
        return None
    return found[0], Frame(year=1900 + found[1])


def apostrophe_year(line: TokenLine, at: int, context: TimeContext, *, lead: str) -> Rule | None:
    """`in '98`, from the apostrophe or the digits on."""
    if line.number(at) is not None and line.word(at - 1) == "'":
        at, lead = at - 1, line.word(at - 2)
    if (
        line.word(at) != "'"
        or lead not in _SHORT_LEAD
        or not line.glued(at + 1)
        or line.digits(at + 1) != len("98")
    ):
        return None
    if line.word(at + 2) in {"s", "'"} and line.glued(at + 2):
        return None
    return at + 2, Frame(year=full_year(line.word(at + 1), context.now.year))


def years_in_a_row(line: TokenLine, at: int) -> tuple[int, LocalSpan] | None:
    """`2014-2018`, `1939-45`, `the 2008-09 winter`; `2008-09` alone is a month."""
    first = line.number(at)
    if (
        first is None
        or line.digits(at) != YEAR_DIGITS
        or not YEAR_OLD <= first <= YEAR_MAX
        or not free(line, at)
    ):
        return None
    sign, word = line.word(at + 1), line.word(at + 3)
    last = _last_year(line, at, first) if sign in {"-", "/"} and not _goes_on(line, at + 3) else None
    if (
        last is None
        or not first < last <= min(first + _YEARS_MAX, YEAR_MAX)
        or (sign == "/" and last != first + 1)
    ):
        return None
    if word in SEASON and last == first + 1:
        return at + 4, season_span(first, SEASON[word])
    return at + 3, LocalSpan(year_span(first).begin, year_span(last).until, "year")


def _last_year(line: TokenLine, at: int, first: int) -> int | None:
    """The second of two years, of which the century may be left out."""
    last, word = line.number(at + 2), line.word(at + 3)
    if last is None or line.digits(at + 2) == YEAR_DIGITS:
        return last
    month = 1 <= last <= MONTHS and word not in SEASON and word != "season"
    joined = line.digits(at + 2) == len("45") and line.glued(at + 1) and line.glued(at + 2)
    return None if month or not joined else first // CENTURY * CENTURY + last


def _goes_on(line: TokenLine, at: int) -> bool:
    """Whether digits follow, as in a phone number or a full date, or a unit, as in `1500-2000 words`."""
    if line.glued(at) and line.word(at) in {"-", "/", ".", ":", "%"} and line.glued(at + 1):
        return line.number(at + 1) is not None or line.word(at) == "%"
    return line.number(at) is not None or (line.glued(at) and line.word(at).isalpha())
