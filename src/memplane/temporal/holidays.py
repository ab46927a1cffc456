"""Finding a holiday by the names people give it, with `last`, `next` or `weekend` beside it."""

from datetime import timedelta

from memplane.temporal.feasts import NAMED, THURSDAY
from memplane.temporal.frame import Frame, Yearly
from memplane.temporal.relative import unit_at
from memplane.temporal.spans import Span, period
from memplane.temporal.tokens import Line
from memplane.temporal.words import MODIFIER, WEEKDAY

Rule = tuple[int, Frame]


def _plain(word: str) -> str:
    """Without case, apostrophe or plural s, so that Mother's, Mothers' and Mothers are one name."""
    word = word.removesuffix("'s").replace("'", "")
    if word in WEEKDAY:
        return _WEEKDAY_NAMES[WEEKDAY[word]]
    return word[:-1] if len(word) > len("eid") and word.endswith("s") and not word.endswith("ss") else word


_WEEKDAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_BY_FIRST: dict[str, list[tuple[tuple[str, ...], Yearly]]] = {}
for _names, _rule in NAMED:
    for _name in _names.split(","):
        _key = tuple(_plain(word) for word in _name.replace(".", " ").split())
        _BY_FIRST.setdefault(_key[0], []).append((_key, _rule))
for _rules in _BY_FIRST.values():
    _rules.sort(key=lambda rule: len(rule[0]), reverse=True)
_WEAK = frozenset(
    {
        ("boss",),
        ("lent",),
        ("eid",),
        ("valentine",),
        ("new", "year"),
        ("passover",),
        ("king", "day"),
        ("great", "fast"),
    }
)


_FIRST_LETTERS = frozenset(name[:3] for name in _BY_FIRST)


def named(line: Line, at: int) -> bool:
    """Whether a holiday's name starts here: `good` alone does not make a Good Friday."""
    word = line.word(at)
    if word[:3] not in _FIRST_LETTERS:
        return False
    return any(_match(line, at, name) is not None for name, _ in _BY_FIRST.get(_plain(word), ()))


def holiday(line: Line, at: int) -> Rule | None:
    """A holiday's name, after `last`, `this` or `next` where that stands before it."""
    start, offset = at, None
    if line.word(at) in MODIFIER:
        start, offset = at + 1, MODIFIER[line.word(at)]
        if line.word(start) in {"past", "coming"}:
            start, offset = start + 1, MODIFIER[line.word(start)]
    if line.word(start)[:3] not in _FIRST_LETTERS:
        return None
    for name, rule in _BY_FIRST.get(_plain(line.word(start)), ()):
        end = _match(line, start, name)
        if end is not None:
            end, once = _weekend(line, end, rule)
            strong = name not in _WEAK or (name == ("new", "year") and line.word(end - 1) != "year")
            return end, Frame(holiday=once, offset=offset, strong=strong)
    return None


def _weekend(line: Line, at: int, rule: Yearly) -> tuple[int, Yearly]:
    """`Labor Day weekend`: the weekend nearest to it, and the day itself where it is next to that."""
    unit = unit_at(line, at)
    if unit is None or unit[1] != "weekend":
        return at, rule

    def make(year: int) -> Span | None:
        day = rule(year)
        if day is None:
            return None
        near = period(day.begin + timedelta(days=-3 if day.begin.weekday() < THURSDAY else 0), "weekend")
        return Span(min(near.begin, day.begin), max(near.until, day.until), "weekend")

    return unit[0], make


def _match(line: Line, at: int, name: tuple[str, ...]) -> int | None:
    for word in name:
        while at < len(line) and line.word(at) in {"-", ".", "'"}:
            at += 1
        if _plain(line.word(at)) != word:
            return None
        at += 1
    return at
