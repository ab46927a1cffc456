"""What looks like a time and is none: names of people, ratios, verses, adjectives."""

from memplane.extract.english import is_finite
from memplane.extract.time.frame import Frame
from memplane.extract.time.tokens import TokenLine
from memplane.extract.time.words import DECADE, EDGE, HOT, MONTH, listed

_PEOPLE = frozenset({"april", "may", "june", "august", "jan"})
_BEFORE_PERSON = frozenset(
    listed(
        "with told tell asked ask met meet called call texted miss missed love hugged saw aunt uncle sister cousin mrs "
        "miss ms mr dr dear hi hey hello thanks and"
    )
)
_MONTH_VERBS = frozenset(
    listed(
        "is was are were will has had have came went felt started starts began ended ends brought brings turned saw"
    )
)
"""What months do as well as people: `April was cold`, `June brought rain`."""
_ADJECTIVE_LEADS = frozenset({"a", "an", "so", "very", "more", "most", "such", "that"})
_RATIO_LEADS = frozenset(
    listed("ratio score scored odds won lost beat leading verse chapter version v psalm psalms")
)
_BOOKS = frozenset(
    listed(
        "genesis exodus leviticus numbers deuteronomy joshua judges ruth samuel kings chronicles job proverbs ecclesiastes "
        "isaiah jeremiah ezekiel daniel hosea matthew mark luke john acts romans corinthians galatians ephesians "
        "philippians colossians thessalonians timothy titus hebrews james peter jude revelation surah quran"
    )
)
_OWNERS = frozenset({"his", "her", "my", "their", "your", "our", "its"})


def doubtful(line: TokenLine, start: int, end: int, frame: Frame) -> bool:
    """Whether the words around an expression say that no time is meant."""
    if frame == Frame():
        return False
    if frame.decade is not None and start > 0:
        return _age(line, start, end)
    if frame.clock is not None and frame.clock.half is None and not frame.dated() and frame.part is None:
        return _ratio(line, start, end)
    if frame.weekday is not None and end - start == 1:
        return _title(line, start, end)
    alone = (
        frame.month is not None
        and (frame.year, frame.days, frame.offset, frame.edge, frame.nth) == (None,) * 5
    )
    return alone and end - start == 1 and (_person(line, start) or _adjective(line, start))


def _age(line: TokenLine, start: int, end: int) -> bool:
    """`in her early thirties`."""
    while start > 0 and (line.word(start - 1) in EDGE or line.word(start - 1) == "-"):
        start -= 1
    spelled_out = any(line.word(at) in DECADE for at in range(start, end))
    return spelled_out and line.word(start - 1) in _OWNERS


def _ratio(line: TokenLine, start: int, end: int) -> bool:
    """`10:30 by weight`, `a ratio of 10:30`, `John 3:16`."""
    before = line.word(start - 2) if line.word(start - 1) in {"of", "by", "is"} else line.word(start - 1)
    by = line.word(end) == "by" and line.word(end + 1) in {"weight", "volume", "mass", "count"}
    verse = before in _BOOKS and line.capital(start - 1)
    return by or before in _RATIO_LEADS or verse or line.word(start - 1) == "in"  # `he ran it in 4:05`


def _person(line: TokenLine, at: int) -> bool:
    """`April said`, `dinner with June`: a name that is a month's too."""
    if line.word(at) not in _PEOPLE or not line.capital(at):
        return False
    before, after = line.word(at - 1), line.word(at + 1)
    if before in _BEFORE_PERSON:
        return before != "and" or line.word(at - 2) not in MONTH or _person(line, at - 2)
    opens = at == 0 or not before.isalpha()
    if opens and after == "and" and line.word(at + 2) in {"i", "me"}:
        return True
    return opens and after not in _MONTH_VERBS and is_finite(after)


def _title(line: TokenLine, start: int, end: int) -> bool:
    """`the Sunday Times`; `the Friday John left` is rare."""
    titled = line.capital(end) and line.word(end) not in HOT and line.word(end) != "i"
    return titled and line.capital(start) and line.word(start - 1) == "the" and not line.breaks(end)


def _adjective(line: TokenLine, at: int) -> bool:
    """`an august figure`, `a march on the capital`."""
    return (
        not line.capital(at)
        and line.word(at - 1) in _ADJECTIVE_LEADS
        and line.word(at) in {"august", "march", "may"}
    )
