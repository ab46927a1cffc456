"""What a standing instruction is about, and whether a newer one replaces it.

`Answer in English from now on` ends `always answer in French`: both are about the language of answers. The matter of an instruction
is the class of its words (matters.toml) and whatever else it names; without a class, everything it names. A newer instruction
replaces an older one only if both are equal. If they only overlap, both are kept, and shown with their days. A withdrawal, such as
`you don't need to answer in French any more`, ends what it names and asks for nothing itself.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum, auto
from functools import cache, lru_cache
from importlib import resources

import msgspec

from memplane.clock import Instant, to_instant
from memplane.extract.english import STOP_WORDS, stem
from memplane.extract.instructions import Ending, withdrawal_of
from memplane.recall.standing import instructs, word_list
from memplane.storage.store import Reader
from memplane.types import Memory

_SHORT_CHARS_MAX = 4
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_NUMBER = re.compile(r"\d[\d.,:]*")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_CLAUSE_END = re.compile(r"[,;.\uff0c\u3001]|$")
_ANY_LONGER = re.compile(r"\b(?:any|no) longer\b|\bany ?more\b")
_EITHER_SIDE = frozenset({"language", "length", "name"})
"""Matters on which every instruction says how it should be, so that allowing one value ends another."""


class Relation(Enum):
    """What a newer instruction means for an older one."""

    OTHER = auto()
    """It is about something else."""
    REPLACES = auto()
    UNCLEAR = auto()
    """It may replace it, or hold beside it."""


class Wish(msgspec.Struct, frozen=True):
    """One instruction, read for comparison."""

    matters: frozenset[str]
    values: Mapping[str, frozenset[str]]
    """Languages and names."""
    rest: frozenset[str]
    """Stems of what else it names, such as `email`, and of its condition."""
    first: str
    """The first of them, usually the verb."""
    negative: bool
    ending: Ending | None = None
    """How it withdraws an older one, if it does."""
    forbids: bool = False
    """A withdrawal that asks for something if there is nothing to withdraw: `stop answering in French`."""


class StandingWishes(msgspec.Struct, frozen=True):
    """Which of several instructions hold."""

    replaced: Mapping[str, Memory]
    """For an instruction that no longer holds, the one that holds instead, or its withdrawal."""
    withdrawals: frozenset[str]
    """Ids of those that ask for nothing."""
    unclear: Mapping[str, datetime]
    """The times of those that overlap with another one, by id."""
    before: Mapping[str, frozenset[str]]
    """The older ones about the same matter, by id: what applied to a turn still does, in its new form."""

    def asks(self, id_: str) -> bool:
        """Whether an instruction still holds, or may."""
        return id_ not in self.replaced and id_ not in self.withdrawals


class _Lists(msgspec.Struct, frozen=True):
    languages: Mapping[str, re.Pattern[str]]
    matters: Mapping[str, re.Pattern[str]]
    counted: re.Pattern[str]
    naming: re.Pattern[str]
    negative: re.Pattern[str]
    general: re.Pattern[str]


@cache
def _lists() -> _Lists:
    file = resources.files("memplane.recall").joinpath("matters.toml")
    lists: dict[str, dict[str, str]] = tomllib.loads(file.read_text("utf-8"))
    counted, naming, negative = lists["counted"], lists["naming"], lists["negative"]
    phrases = "|".join(map(_literal, naming["phrases"].split()))
    unspaced_names = "|".join(naming["unspaced"].split())
    return _Lists(
        {name: _any_of(words) for name, words in lists["language"].items()},
        {name: _any_of(words) for name, words in lists["matters"].items()},
        re.compile(
            rf"(?:\d+|\b(?:{'|'.join(map(_literal, counted['numbers'].split()))}))[ -]"
            rf"(?:{'|'.join(map(_literal, counted['units'].split()))})\b"
        ),
        re.compile(
            rf"\b(?:{phrases}) (?:(?:by|the|my|as) )*(?P<name>[^\s,.!]+(?: (?-i:[^\W\d_a-zà-þа-я])\w+)*)"
            rf"|(?:{unspaced_names})(?P<unspaced>\w+)",
            re.IGNORECASE,
        ),
        re.compile(
            rf"\b(?:{'|'.join(map(_literal, negative['words'].split()))})\b|{'|'.join(negative['unspaced'].split())}"
        ),
        re.compile(
            rf"\b(?:{'|'.join(map(_literal, sorted(lists['general']['words'].split(), key=len, reverse=True)))})\b"
        ),
    )


def _literal(entry: str) -> str:
    return re.escape(entry.replace("_", " "))


def _any_of(words: str) -> re.Pattern[str]:
    return re.compile("|".join(map(_beginning, words.split())))


def _beginning(entry: str) -> str:
    if _UNSPACED.match(entry):
        return _literal(entry)
    ending = r"(?:s|es)?\b" if len(entry) <= _SHORT_CHARS_MAX else r"\w*"
    return rf"\b{_literal(entry)}{ending}"


@lru_cache(maxsize=1_024)
def read_wish(text: str) -> Wish:
    """The matter of an instruction, and what it says about it."""
    lists, said = _lists(), text.replace("\u2019", "'")
    withdrawn = withdrawal_of(said)
    if withdrawn is not None:
        said = withdrawn.what
    values: dict[str, frozenset[str]] = {}
    if named := lists.naming.search(said):
        values["name"] = frozenset({(named["name"] or named["unspaced"]).casefold()})
        said = said[: named.start()] + " " + said[named.end() :]
    said = _ANY_LONGER.sub(" ", said.casefold())
    said, condition = _apart(said)
    negative = lists.negative.search(said) is not None
    said = lists.negative.sub(" ", said)
    said, counted = lists.counted.subn(" ", said)
    matters = set(values) | ({"length"} if counted else set())
    languages = frozenset(name for name, words in lists.languages.items() if words.search(said))
    if languages:
        values["language"] = languages
        matters.add("language")
        for name in languages:
            said = lists.languages[name].sub(" ", said)
    for name, words in lists.matters.items():
        said, found = words.subn(" ", said)
        if found:
            matters.add(name)
    rest = [*_named(said), *(f"if {word}" for word in _named(condition, general=False))]
    if matters:
        rest = [word for word in rest if not (word == "code" and "indentation" in matters)]
    return Wish(
        frozenset(matters),
        values,
        frozenset(rest),
        rest[0] if rest else "",
        negative,
        None if withdrawn is None else withdrawn.ending,
        withdrawn is not None and withdrawn.forbids,
    )


def _apart(said: str) -> tuple[str, str]:
    """An instruction without its condition, and the condition."""
    found = word_list("condition").search(said)
    if found is None:
        return said, ""
    end = _CLAUSE_END.search(said, found.end())
    stop = len(said) if end is None else end.start()
    return said[: found.start()] + " " + said[stop:], said[found.start() : stop]


def _named(said: str, *, general: bool = True) -> list[str]:
    """The stems of what a text names. A word in no list counts: it may be what the instruction is about."""
    if _UNSPACED.search(said):
        return [found.group() for found in word_list("domain").finditer(said)]
    if general:
        said = _lists().general.sub(" ", said)
    return [
        stem(word)
        for word in _WORD.findall(said)
        if word not in STOP_WORDS
        and not (general and (word_list("always").match(word) or word_list("answering").match(word)))
    ] + _NUMBER.findall(said)


def relation(new: Wish, old: Wish) -> Relation:
    """What the newer of two instructions means for the older one."""
    if new.matters or old.matters:
        return _of_matters(new, old)
    return _of_objects(new, old)


def _of_matters(new: Wish, old: Wish) -> Relation:
    shared = new.matters & old.matters
    if not shared or not (new.rest <= old.rest or old.rest <= new.rest):
        return Relation.OTHER
    if not _opposed(new, old, shared):
        return Relation.OTHER
    same = new.rest == old.rest and old.matters <= new.matters
    if same and (new.matters == old.matters or not (new.negative or old.negative)):
        return Relation.REPLACES
    return Relation.UNCLEAR


def _opposed(new: Wish, old: Wish, shared: frozenset[str]) -> bool:
    """Whether both say something about the same value, or a different one where there is only one."""
    valued = [matter for matter in shared if matter in new.values and matter in old.values]
    equal = all(new.values[matter] & old.values[matter] for matter in valued)
    if new.ending is Ending.RELEASE:
        return equal and new.negative == old.negative
    if new.ending is Ending.PERMISSION:
        return (equal and old.negative != new.negative) or (
            bool(shared & _EITHER_SIDE) and not (valued and (equal or old.negative))
        )
    return equal or not (new.negative or old.negative)


def _of_objects(new: Wish, old: Wish) -> Relation:
    if not new.rest or not old.rest:
        return Relation.OTHER
    if new.rest == old.rest:
        if new.ending is None or (new.ending is Ending.RELEASE) == (new.negative == old.negative):
            return Relation.REPLACES
        return Relation.OTHER
    if new.ending is not None:
        within = new.rest < old.rest and new.first == old.first
        return Relation.UNCLEAR if within else Relation.OTHER
    one_differs = len(new.rest - old.rest) == len(old.rest - new.rest) == 1
    alike = one_differs and len(new.rest & old.rest) > 1 and new.first == old.first
    return Relation.UNCLEAR if alike else Relation.OTHER


def standing_wishes(memories: Sequence[Memory], said_at: Mapping[str, datetime]) -> StandingWishes:
    """Which instructions hold, by what was said after them. `said_at` has the last time of those that were repeated."""
    times = {memory.id: said_at.get(memory.id, memory.updated_at) for memory in memories}
    holding: list[Memory] = []
    ended: dict[str, Memory] = {}
    withdrawals: set[str] = set()
    pairs: list[tuple[str, str]] = []
    before: dict[str, frozenset[str]] = {}
    for memory in sorted(memories, key=lambda each: (times[each.id], each.seq)):
        related = {old.id: _between(memory, old) for old in holding}
        gone = [id_ for id_, how in related.items() if how is Relation.REPLACES]
        maybe = [id_ for id_, how in related.items() if how is Relation.UNCLEAR]
        ended |= dict.fromkeys(gone, memory)
        pairs += [(id_, memory.id) for id_ in maybe]
        before[memory.id] = frozenset(gone + maybe).union(*(before[id_] for id_ in gone + maybe))
        holding = [old for old in holding if old.id not in gone]
        wish = read_wish(memory.text)
        if wish.ending is None or maybe or (wish.forbids and not gone):
            holding.append(memory)
        else:
            withdrawals.add(memory.id)
    shared = {id_ for pair in pairs if not ended.keys() & pair for id_ in pair}
    return StandingWishes(
        {id_: _last(memory, ended) for id_, memory in ended.items()},
        frozenset(withdrawals),
        {id_: times[id_] for id_ in shared},
        before,
    )


def _between(new: Memory, old: Memory) -> Relation:
    """A pinned instruction holds until it is unpinned, and one of a project is not ended by one for everywhere."""
    found = relation(read_wish(new.text), read_wish(old.text))
    if found is Relation.REPLACES and (old.pinned or old.within not in {None, new.within}):
        return Relation.UNCLEAR
    return found


def _last(memory: Memory, ended: Mapping[str, Memory]) -> Memory:
    while memory.id in ended:
        memory = ended[memory.id]
    return memory


def wishes_of(reader: Reader, memories: Iterable[Memory], as_of: Instant | None = None) -> StandingWishes:
    """The same for instructions of a space. Saying one again counts; when is read only if it matters."""
    instructions = [memory for memory in memories if instructs(memory)]
    found = standing_wishes(instructions, {})
    if not (found.replaced or found.unclear or found.withdrawals):
        return found
    said_at: dict[str, datetime] = {}
    for evidence in reader.claims.evidence([memory.id for memory in instructions if memory.derived]):
        at = evidence.own.created_at
        if as_of is None or to_instant(at) <= as_of:
            said_at[evidence.memory] = max(at, said_at.get(evidence.memory, at))
    return standing_wishes(instructions, said_at) if said_at else found
