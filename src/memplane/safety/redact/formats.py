"""Formats of secrets as data: `formats.toml` becomes rules, and an index that finds the few that may match."""

import itertools
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple

from memplane.safety.redact.rule import (
    Check,
    Gate,
    Pattern,
    Rule,
    all_kinds,
    both_cases,
    encoded_jwt,
    extended_left,
    real,
    signed_header,
    with_digit,
)

LEFT = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
"""Where a token may start: not inside a word, but after an escaped line break or an encoded character."""
_LEFT_STRICT = r"(?:(?<![A-Za-z0-9_/.-])|(?<=\\[nrt]))"
"""As `LEFT`, for formats that paths and identifiers can hold too."""

_CHECKS: dict[str, Check] = {
    "real": real,
    "digit": with_digit,
    "cases": both_cases,
    "mixed": all_kinds,
    "header": signed_header,
    "jwt": encoded_jwt,
}

_CLASSES = {
    "digit": "0-9",
    "hex": "0-9a-f",
    "hexx": "0-9a-fA-F",
    "hexh": "0-9a-h",
    "alpha": "A-Za-z",
    "lower": "a-z0-9",
    "upper": "A-Z0-9",
    "alnum": "A-Za-z0-9",
    "alnumx": "A-Za-z0-9-",
    "word": r"\w",
    "url": r"\w-",
    "urlp": r"\w=-",
    "dot": r"\w.-",
    "tok": r"\w.=-",
    "b64": "A-Za-z0-9+/",
    "b64p": "A-Za-z0-9+/=",
    "b64u": r"\w+/=-",
    "uri": r"\w.~%+=-",
    "cookie": r"\w.%+/=-",
}
_ATOM = re.compile(
    r"'(?P<literal>[^']+)'|(?P<uuid>uuid)|(?P<name>[a-z0-9]+):(?P<min>[0-9]+)(?P<more>\+|-[0-9]+)?"
)
_UUID = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_INNER_LENGTH_MAX = 4_096
"""The most that is read before a fixed part; without a limit every prefix of a long text could be read to its end."""


class Atom(NamedTuple):
    """One part of a body. A literal has no class; `longest` is None where there is no upper limit."""

    literal: str
    name: str
    shortest: int
    longest: int | None

    def starts_with_one_of(self, characters: re.Pattern[str]) -> bool:
        first = self.literal[:1] if self.literal else ""
        candidates = first or (chr(code) for code in range(128) if self.members().fullmatch(chr(code)))
        return any(characters.fullmatch(candidate) for candidate in candidates)

    def members(self) -> re.Pattern[str]:
        return re.compile(f"[{_CLASSES[self.name]}]", re.ASCII)


def parse_body(body: str) -> list[Atom]:
    """The atoms of a body; raise `ValueError` where it is not clear at which character one ends."""
    atoms = []
    for word in body.split():
        match = _ATOM.fullmatch(word)
        if match is None or (match["name"] and match["name"] not in _CLASSES):
            raise ValueError(f"{body!r}: {word!r} is no atom")
        if match["name"]:
            shortest, more = int(match["min"]), match["more"]
            longest = shortest if not more else None if more == "+" else int(more[1:])
            atoms.append(Atom("", match["name"], shortest, longest))
        else:
            atoms.append(Atom(match["literal"] or "uuid", "uuid" if match["uuid"] else "", 0, 0))
    for one, two in itertools.pairwise(atoms):
        if one.name in _CLASSES and one.shortest != one.longest and two.starts_with_one_of(one.members()):
            raise ValueError(f"{body!r}: {two} can start inside {one}")
    return atoms


def _source(atoms: list[Atom]) -> str:
    parts = []
    for number, atom in enumerate(atoms):
        is_last = number == len(atoms) - 1
        if atom.literal:
            literal = _UUID if atom.name == "uuid" else re.escape(atom.literal)
            parts.append(literal + ("(?![0-9A-Za-z])" if is_last else ""))
        else:
            parts.append(_run(atom, is_last=is_last))
    return "".join(parts)


def _run(atom: Atom, *, is_last: bool) -> str:
    characters = _CLASSES[atom.name]
    padding = "={0,2}" if is_last and atom.name == "b64" else ""
    if not is_last:
        return f"[{characters}]{{{atom.shortest},{atom.longest or _INNER_LENGTH_MAX}}}+"
    if atom.longest is None:
        # All of it, or a part would be left in the text.
        return rf"[{characters}]{{{atom.shortest},}}+\w*+{padding}"
    return rf"[{characters}]{{{atom.shortest},{atom.longest}}}+{padding}(?![A-Za-z0-9]|[{characters}])"


def _check_of(name: str) -> Check:
    kind, _, argument = name.partition(" ")
    return partial(extended_left, int(argument)) if kind == "whole" else _CHECKS[kind]


def _rule_of(entry: dict[str, Any]) -> Rule:
    if "regex" in entry:
        pattern = Pattern(entry["regex"], re.ASCII)
        gate = Gate.MIXED if entry.get("short") else Gate.RUN
        check = _check_of(entry["check"])
        return Rule(entry["type"], entry["what"], tuple(entry["keyword"]), pattern, check, gate)
    prefixes = entry["prefix"]
    left = _LEFT_STRICT if entry.get("strict") else LEFT
    body = _source(parse_body(entry["body"]))
    pattern = Pattern(f"{left}((?:{'|'.join(map(re.escape, prefixes))}){body})", re.ASCII)
    hints = tuple(dict.fromkeys(prefix.lower() for prefix in prefixes))
    return Rule(entry["type"], entry["what"], hints, pattern, _check_of(entry["check"]), is_prefixed=True)


def read_formats() -> list[dict[str, Any]]:
    """The entries of `formats.toml`."""
    text = (files(__package__) / "formats.toml").read_text("utf-8")
    entries: list[dict[str, Any]] = tomllib.loads(text)["format"]
    return entries


def format_rules() -> Iterator[Rule]:
    return map(_rule_of, read_formats())


# The pre-scan. A token starts where a word starts, so the words of a text say which prefixes it can hold: one pass over
# the text, however many formats there are.

_KEY_LENGTH = 3
_NO_WORD = str.maketrans(
    {chr(code): " " for code in range(128) if not (chr(code).isalnum() or chr(code) == "_")}
)
_ENCODED = re.compile(r"\\[nrt]|%[0-9a-f]{2}")
_LEADING_WORD = re.compile(r"\w*", re.ASCII)


class PrefixIndex:
    """Prefixes by how they start. `find` returns what was filed under those that a text holds."""

    def __init__(self, prefixes: Iterable[tuple[str, int]]) -> None:
        self._by_key: dict[str, dict[str, list[int]]] = {}
        for prefix, order in prefixes:
            key = self.key_of(prefix)
            if key is None:
                raise ValueError(f"{prefix!r} is too short for the index")
            self._by_key.setdefault(key, {}).setdefault(prefix, []).append(order)

    @staticmethod
    def key_of(prefix: str) -> str | None:
        """The first characters of the word a prefix starts, or None if the word may go on in the body before them."""
        word = _LEADING_WORD.match(prefix)
        key = word[0][:_KEY_LENGTH] if word else ""
        return key if key and (len(key) == _KEY_LENGTH or len(key) < len(prefix)) else None

    def find(self, low: str) -> Iterator[int]:
        """What is filed under the prefixes in a text in lower case."""
        if "\\" in low or "%" in low:
            low = f"{low} {_ENCODED.sub(' ', low)}"
        if not low.isascii():
            low = low.encode("ascii", "replace").decode()
        starts = {word[:_KEY_LENGTH] for word in low.translate(_NO_WORD).split()}
        for key in starts & self._by_key.keys():
            for prefix, orders in self._by_key[key].items():
                if prefix in low:
                    yield from orders
