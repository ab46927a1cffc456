"""Measures how the work of a function grows with the length of its input, and derives hostile inputs from patterns."""

import ast
import gc
import importlib
import pkgutil
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]  # the parser of the running Python
from re import _parser as parser  # type: ignore[attr-defined]
from types import FrameType, ModuleType
from typing import Any

Make = Callable[[int], str]
"""A hostile text of about this many characters."""


class TooSlow(Exception):
    """A call used more CPU than any linear one would."""


def cpu_s(work: Callable[[], object], limit_s: float) -> float:
    """The CPU time of one call, at most the limit: a signal ends it there, also within a pattern."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    gc.disable()  # a collection in the middle depends on what else is alive
    begun = time.thread_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        work()
    except TooSlow:
        return limit_s
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        gc.enable()
    return time.thread_time() - begun


def excess(
    work: Callable[[str], object],
    make: Make,
    sizes: Sequence[int],
    *,
    floor_s: float = 0.02,
    ratio_max: float | None = None,
) -> str:
    """Empty if four times the text costs about four times the CPU, at every size; else the figures.

    Below the floor nothing is compared: noise would decide. A quadratic function leaves it soon."""
    for size in sizes:
        text, quarter = make(size), make(size // 4)
        large = cpu_s(partial(work, text), _LIMIT_S)
        if large < floor_s:
            continue
        small = max(min(cpu_s(partial(work, quarter), _LIMIT_S) for _ in range(2)), 1e-6)
        large = min(large, cpu_s(partial(work, text), _LIMIT_S))
        if large >= _LIMIT_S or large / small > (ratio_max or _RATIO_MAX):
            return f"{size // 4:,} characters {small * 1e3:.1f} ms, {size:,} characters {large * 1e3:.1f} ms"
        if large > _ENOUGH_S:
            break
    return ""


_ENOUGH_S = 0.5
"""A function that takes so long and is still linear is not asked for more."""
_LIMIT_S = 4.0
_RATIO_MAX = 8


# ── patterns ─────────────────────────────────────────────────────────────────────────────────────────────────────


def modules(package: str) -> Iterator[ModuleType]:
    root = importlib.import_module(package)
    for found in pkgutil.walk_packages(root.__path__, f"{package}."):
        if "__main__" not in found.name:
            try:
                yield importlib.import_module(found.name)
            except ImportError:
                continue


def patterns_of(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Every pattern that a module holds, by name: also those in tuples, mappings and records."""
    for name, value in sorted(vars(module).items()):
        if not name.startswith("__"):
            for place, pattern in _within(value, 0):
                yield f"{module.__name__}:{name}{place}", pattern


LATE = ".compiled"
"""The place of a pattern that is compiled when first needed; such patterns are matched where a hint stands."""


def _within(value: object, depth: int) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, re.Pattern):
        yield "", value
    elif depth > 4 or isinstance(value, str | bytes | ModuleType | type):
        return
    elif isinstance(value, Mapping):
        for key, held in value.items():
            yield from ((f"[{key!r}]{place}", found) for place, found in _within(held, depth + 1))
    elif isinstance(value, list | tuple | set | frozenset):
        for at, held in enumerate(value):
            yield from ((f"[{at}]{place}", found) for place, found in _within(held, depth + 1))
    else:
        names = getattr(type(value), "__struct_fields__", None) or getattr(value, "__dict__", None) or ()
        if type(value).__module__.startswith("memplane"):
            if isinstance(late := getattr(value, "compiled", None), re.Pattern):
                yield LATE, late
            for name in names:
                held = getattr(value, name, None)
                yield from ((f".{name}{place}", found) for place, found in _within(held, depth + 1))


_PROBES = " \n\t_-.,:;/\\\"'`()[]{}<>#*=+&@!?|%0aAzé\u200b\u0301\u4e00\x01"
_SAMPLES_MAX = 3
_ENDS = ("\x01", "\n", "")


def pumps(pattern: re.Pattern[Any]) -> list[tuple[str, str]]:
    """For every repeat without a bound, text that leads to it and text that it repeats over."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    flags = pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    found: dict[tuple[str, str], None] = {}
    _walk(parser.parse(text, flags & ~re.DEBUG), "", found)
    return list(found)


def hostile(pattern: re.Pattern[Any]) -> Iterator[tuple[str, Make]]:
    """Texts of any length that make a pattern backtrack, if it does."""
    seen: set[str] = set()
    for lead, body in pumps(pattern):
        for name, make in _shapes(lead, body):
            if (text := make(50)) not in seen:
                seen.add(text)
                yield name, make


def _shapes(lead: str, body: str) -> Iterator[tuple[str, Make]]:
    for end in _ENDS:
        yield (
            f"{lead!r} + {body!r} * n + {end!r}",
            lambda size, end=end: lead + body * (size // len(body)) + end,
        )
    unit = lead + body
    yield f"{unit!r} * n", lambda size: unit * (size // len(unit))
    longer = lead + body * 8
    yield f"{longer!r} * n", lambda size: longer * (size // len(longer))


def _walk(nodes: Any, lead: str, found: dict[tuple[str, str], None]) -> str:
    """Collect the repeats of a parsed pattern; return one text that matches all of it."""
    for op, args in nodes:
        if op in (codes.MAX_REPEAT, codes.MIN_REPEAT, getattr(codes, "POSSESSIVE_REPEAT", None)):
            low, high, body = args
            sample = _walk(body, lead, found)
            if high >= 16:
                for one in _samples(body)[:_SAMPLES_MAX]:
                    found[lead[-60:], one] = None
            lead += sample * max(low, 1 if low else 0)
        elif op is codes.SUBPATTERN:
            lead = lead + _walk(args[3], lead, found)
        elif op is codes.ATOMIC_GROUP:
            lead = lead + _walk(args, lead, found)
        elif op is codes.BRANCH:
            options = [_walk(option, lead, found) for option in args[1]]
            lead += next((option for option in options if option), "")
        elif op in (codes.ASSERT, codes.ASSERT_NOT):
            _walk(args[1], lead, found)
        elif op is codes.GROUPREF_EXISTS:
            lead += _walk(args[1], lead, found)
        else:
            lead += next(iter(_characters(op, args)), "")
    return _own(nodes)


def _own(nodes: Any) -> str:
    return next(iter(_samples(nodes)), "")


def _samples(nodes: Any) -> list[str]:
    """A few texts that a part of a pattern matches."""
    options = [""]
    for op, args in nodes:
        if op in (codes.MAX_REPEAT, codes.MIN_REPEAT, getattr(codes, "POSSESSIVE_REPEAT", None)):
            more = [one * max(args[0], 1) for one in _samples(args[2])[:_SAMPLES_MAX]]
        elif op is codes.SUBPATTERN:
            more = _samples(args[3])
        elif op is codes.ATOMIC_GROUP:
            more = _samples(args)
        elif op is codes.BRANCH:
            more = [one for option in args[1] for one in _samples(option)[:2]]
        else:
            more = _characters(op, args)
        if more:
            several = len(options) * len(more) <= 64
            options = (
                [before + one for before in options for one in more]
                if several
                else [before + more[0] for before in options]
            )
    return [option for option in options if option]


def _characters(op: Any, args: Any) -> list[str]:
    if op is codes.LITERAL:
        return [chr(args)]
    if op in (codes.NOT_LITERAL, codes.ANY, codes.IN):
        wanted = [(op, args)] if op is not codes.IN else list(args)
        fits = [probe for probe in _PROBES if _is_in(probe, wanted)]
        return fits or [chr(item[1][0] if item[0] is codes.RANGE else item[1]) for item in wanted[:1]
                        if item[0] in (codes.RANGE, codes.LITERAL)]  # fmt: skip
    return []


def _is_in(character: str, items: list[tuple[Any, Any]]) -> bool:
    negated = bool(items) and items[0][0] is codes.NEGATE
    number = ord(character)
    hit = False
    for op, args in items:
        if op is codes.LITERAL:
            hit |= number == args
        elif op is codes.NOT_LITERAL:
            hit |= number != args
        elif op is codes.RANGE:
            hit |= args[0] <= number <= args[1]
        elif op is codes.CATEGORY:
            hit |= _CATEGORIES[args](character)
        elif op is codes.ANY:
            hit |= character != "\n"
    return hit != negated


_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_NOT_SPACE: lambda one: not one.isspace(),
    codes.CATEGORY_DIGIT: str.isdecimal,
    codes.CATEGORY_NOT_DIGIT: lambda one: not one.isdecimal(),
    codes.CATEGORY_WORD: lambda one: one.isalnum() or one == "_",
    codes.CATEGORY_NOT_WORD: lambda one: not (one.isalnum() or one == "_"),
}


# ── use ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def anchored(packages: Sequence[ModuleType]) -> set[str]:
    """The names of patterns that are only ever matched at one place, never searched for."""
    uses: dict[str, set[str]] = {}
    for module in packages:
        tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
        methods = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        private = f"{module.__name__}:"
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                name = private + node.id if node.id.startswith("_") else node.id
                uses.setdefault(name, set()).add(methods.get(id(node), ""))
            elif isinstance(node, ast.Attribute) and node.attr.isupper():
                uses.setdefault(node.attr, set()).add("")
    return {name for name, how in uses.items() if how <= {"match", "fullmatch", "pattern"}}
