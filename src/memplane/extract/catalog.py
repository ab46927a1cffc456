"""The predicate catalog: predicates, how they are expressed, and which queries ask for them."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from memplane.errors import InvalidRequest
from memplane.extract.english import stem
from memplane.types import Kind

_CLASS = re.compile(r"@([a-z_]+)")
_WORD = re.compile(r"(?<![.'-])[\w+#.'-]*[\w+#]")
"""A run of marks is only tried from its first one, so that a wall of them stays linear."""
_NAME_WORDS_MAX = 4
_UNIONS = frozenset({"tool", "framework", "technology", "exclusive"})
"""Classes made of other classes, which do not identify a thing."""
_TABLES = frozenset({"classes", "excludes"})
"""Top-level tables of the file that are not predicates."""


class Predicate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One relation a subject can have."""

    name: str
    kind: Kind = Kind.FACT
    cardinality: str = "many"
    importance: float = 0.5
    hot: bool = False
    cues: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    my: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    @property
    def one(self) -> bool:
        return self.cardinality == "one"


class VerbPattern(NamedTuple):
    """A pattern for the text after a verb."""

    predicate: str
    pattern: re.Pattern[str]


class PredicateCatalog:
    """All predicates, and the tables of the extractor."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self.predicates: dict[str, Predicate] = {}
        self._classes = _classes(tables.get("classes", {}))
        self._class_of = {
            word: name
            for name, words in reversed(self._classes.items())
            if name not in _UNIONS
            for word in words
        }
        self._pair_starts = {word.partition(" ")[0] for word in self._class_of if " " in word}
        self._exclusive = frozenset(tables.get("classes", {}).get("exclusive", ()))
        self._excludes: dict[str, list[str]] = tables.get("excludes", {})
        self._says: dict[str, list[VerbPattern]] = {}
        self._my: list[VerbPattern] = []
        self._cues: dict[str, list[str]] = {}
        for name, table in tables.items():
            if name not in _TABLES:
                self._add(_predicate(name, table))

    def __getitem__(self, name: str) -> Predicate:
        """The predicate; an unknown one is a plain fact."""
        return self.predicates.get(name) or Predicate(name=name)

    def by_verb(self, verb: str, rest: str) -> tuple[str, str] | None:
        """Predicate and value for a verb and the text after it."""
        for says in self._says.get(verb, ()):
            found = says.pattern.match(rest)
            if found:
                value = found.group(1) if says.pattern.groups and found.group(1) is not None else rest
                return says.predicate, value.strip()
        return None

    def by_noun(self, noun: str) -> tuple[str, str] | None:
        """Predicate and topic for the noun in `my … is …`."""
        for says in self._my:
            found = says.pattern.match(noun)
            if found:
                return says.predicate, (found.group(1) or "") if says.pattern.groups else ""
        return None

    def has_topics(self, name: str) -> bool:
        """Whether a subject can have several values, one per topic: a favorite color and a favorite food."""
        return any(says.predicate == name and says.pattern.groups > 0 for says in self._my)

    def class_of(self, text: str) -> str:
        """The class of the first thing a phrase names: `operating_system` for `Linux as my main machine`."""
        words = [word.lower() for word in _WORD.findall(text)[:12]]
        for at, word in enumerate(words):
            pair = f"{word} {words[at + 1]}" if at + 1 < len(words) else ""
            if pair and word in self._pair_starts:
                found = self._class_of.get(pair) or self._class_of.get(_singular_pair(pair))
                if found:
                    return found
            found = self._class_of.get(word) or self._class_of.get(stem(word))
            if found:
                return found
        return ""

    def named_classes(self, text: str) -> frozenset[str]:
        """The classes a phrase names: all of `alcohol`, not just one drink."""
        said = f" {' '.join(map(stem, text.split()))} "
        return frozenset(name for name in self._classes if f" {name.replace('_', ' ')} " in said)

    def classes_of(self, text: str) -> frozenset[str]:
        """Every class that contains something in the phrase."""
        words = [word.lower() for word in _WORD.findall(text)[:12]]
        pairs = [f"{left} {right}" for left, right in pairwise(words)]
        names = {*words, *pairs, *map(stem, words), *map(_singular_pair, pairs)}
        return frozenset(
            name for name, members in self._classes.items() if names & members and name not in _UNIONS
        )

    def is_exclusive(self, name: str) -> bool:
        """Whether people have one of that class at a time: a phone, an editor, a car."""
        return f"@{name}" in self._exclusive

    def excluded_by(self, text: str) -> frozenset[str]:
        """The classes a diet excludes: meat and dairy for `vegan`."""
        said = text.lower()
        return frozenset(name for diet, names in self._excludes.items() if diet in said for name in names)

    def by_question(self, question: str) -> list[str]:
        """Predicates a query asks for, best first."""
        words = [word.lower() for word in _WORD.findall(question)]
        score: dict[str, int] = {}
        for length in range(1, _NAME_WORDS_MAX):
            for at in range(len(words) - length + 1):
                for name in self._cues.get(" ".join(words[at : at + length]), ()):
                    score[name] = score.get(name, 0) + length
        return sorted(score, key=lambda name: (-score[name], -self[name].importance, name))

    def _add(self, predicate: Predicate) -> None:
        self.predicates[predicate.name] = predicate
        for cue in predicate.cues:
            self._cues.setdefault(cue.lower(), []).append(predicate.name)
        for line in predicate.says:
            verbs, _, pattern = line.partition(":")
            says = VerbPattern(predicate.name, self._compile(predicate.name, pattern.strip()))
            for verb in verbs.split("|"):
                self._says.setdefault(verb.strip(), []).append(says)
        self._my.extend(
            VerbPattern(predicate.name, self._compile(predicate.name, f"(?:{line})$"))
            for line in predicate.my
        )

    def _compile(self, name: str, pattern: str) -> re.Pattern[str]:
        """A pattern that is only a class matches it in the first words; elsewhere a class is its words."""
        whole = re.fullmatch(r"(.*?)@([a-z_]+)", pattern)
        if whole and "(" not in whole[1].replace("(?:", ""):
            pattern = rf"{whole[1]}((?:[\w'.-]+,? ){{0,5}}?{self._words(whole[2])}.*)"
        else:
            pattern = _CLASS.sub(lambda found: self._words(found[1]), pattern)
        try:
            return re.compile(pattern, re.IGNORECASE)
        except re.error as error:
            raise InvalidRequest(
                f"the pattern {pattern!r} of predicate {name!r} is not valid: {error}"
            ) from error

    def _words(self, name: str) -> str:
        if name not in self._classes:
            raise InvalidRequest(f"a pattern names the class {name!r}, which is not in the catalog")
        words = sorted(self._classes[name], key=lambda word: (-len(word), word))
        return r"(?<![\w-])(?:" + "|".join(map(re.escape, words)) + r")(?:e?s)?(?![\w-])"


def load_catalog(extra: Path | None = None) -> PredicateCatalog:
    """The shipped catalog with the additions and replacements of the user's file, whose predicates are tried first."""
    if extra is None:
        return _shipped_catalog()
    try:
        own = tomllib.loads(extra.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidRequest(f"the catalog {extra} cannot be read: {error}") from error
    shipped = _shipped()
    merged = {name: {**shipped[name], **own.pop(name, {})} for name in sorted(_TABLES)}
    return PredicateCatalog(
        {**own, **{name: table for name, table in shipped.items() if name not in own}, **merged}
    )


@cache
def _shipped() -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "catalog.toml").read_text("utf-8"))


@cache
def _shipped_catalog() -> PredicateCatalog:
    return PredicateCatalog(_shipped())


def _predicate(name: str, table: Any) -> Predicate:
    try:
        predicate = msgspec.convert({"name": name, **table}, Predicate)
    except (msgspec.ValidationError, TypeError) as error:
        raise InvalidRequest(f"predicate {name!r} is not valid: {error}") from error
    if predicate.cardinality not in {"one", "many"} or not 0 <= predicate.importance <= 1:
        raise InvalidRequest(f"predicate {name!r} needs cardinality one or many and importance from 0 to 1")
    return predicate


def _classes(tables: Mapping[str, list[str]]) -> dict[str, frozenset[str]]:
    def words(name: str) -> Iterator[str]:
        for word in tables[name]:
            if word.startswith("@"):
                yield from tables[word[1:]]
            else:
                yield word

    return {name: frozenset(words(name)) for name in tables}


def _singular_pair(pair: str) -> str:
    left, _, right = pair.partition(" ")
    return f"{left} {stem(right)}" if right else ""
