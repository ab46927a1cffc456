"""A raw day as the store has it: what nobody judged yet, and what may go."""

from collections import defaultdict

import msgspec

from memplane.clock import DAY
from memplane.enrich.judging import RawEntry
from memplane.ledger.payloads import Said, decode
from memplane.memory.retention import begin_of
from memplane.memory.said import silent_said
from memplane.storage.base import Reader
from memplane.storage.index import TURNS_PER_ENTRY_MAX, turn_number
from memplane.storage.rulings import APART_MAX
from memplane.types import Entry, Kind, Memory, Op, Turn


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a day, with what it holds and what of that was judged."""

    seq: int
    id: str
    memories: tuple[Memory, ...]
    judged: frozenset[str]
    flagged: bool = False
    """Whether it is in quarantine: it stays until somebody looks at it. What is kept of a day has no flags of its own, so
    that a line of it would be told like any other."""

    @property
    def is_pinned(self) -> bool:
        """Whether it stays for what is pinned of it."""
        return any(memory.pinned for memory in self.memories)

    @property
    def unjudged(self) -> tuple[Memory, ...]:
        return tuple(memory for memory in self.memories if memory.id not in self.judged)

    @property
    def is_settled(self) -> bool:
        """Whether everything about it was decided."""
        return bool(self.judged) and not self.unjudged


def items_of(reader: Reader, day: str) -> list[Item]:
    """Every entry in which something was said that day, also where nothing of it can be shown."""
    since = begin_of(day)
    until = since + DAY
    found = {raw.seq: raw.id for raw in reader.raw_between(since, until)}
    for entry in reader.hidden():
        said = silent_said(entry)
        if said is not None and since <= said.at < until:
            found[entry.seq] = entry.id
    memories: defaultdict[int, dict[str, Memory]] = defaultdict(dict)
    seqs = list(found)
    for memory in (*reader.memories_from(seqs), *reader.evidence_at(seqs)):
        if memory.derived:
            memories[memory.seq].setdefault(memory.id, memory)
    flagged = {n // TURNS_PER_ENTRY_MAX for n in reader.quarantined_turns(limit=APART_MAX)}
    flagged |= {seq for seq, each in memories.items() if any(memory.quarantined for memory in each.values())}
    judged: defaultdict[str, set[str]] = defaultdict(set)
    for it in reader.judged(list(found.values())):
        judged[it.entry].add(it.item)
    return [
        Item(
            seq=seq,
            id=id_,
            memories=tuple(memories[seq].values()),
            judged=frozenset(judged[id_]),
            flagged=seq in flagged,
        )
        for seq, id_ in found.items()
    ]


def undecided(reader: Reader, day: str, *, limit: int) -> list[RawEntry]:
    """The next entries of a day that something is to be decided about, in the order they were said."""
    waiting = [item for item in items_of(reader, day) if not item.is_settled and not item.flagged][:limit]
    entries = {entry.seq: entry for entry in reader.entries_at([item.seq for item in waiting])}
    return [_raw_entry(reader, item, entries[item.seq]) for item in waiting if item.seq in entries]


def settled(reader: Reader, day: str, *, limit: int) -> list[tuple[int, str]]:
    """(seq, id) of the next entries of a day that were judged as a whole, and so may go."""
    may_go = [item for item in items_of(reader, day) if item.is_settled and not item.is_pinned]
    return [(item.seq, item.id) for item in may_go[:limit]]


def _raw_entry(reader: Reader, item: Item, entry: Entry) -> RawEntry:
    turns = () if item.judged else tuple(turns_of(reader, item.seq))
    return RawEntry(
        id=item.id,
        turns=turns,
        memories=tuple(memory for memory in item.unjudged if memory.kind is not Kind.EPISODE),
        episodes=tuple(
            (memory, _quoted(reader, memory)) for memory in item.unjudged if memory.kind is Kind.EPISODE
        ),
        document=_document(entry),
    )


def turns_of(reader: Reader, seq: int) -> list[Turn]:
    return reader.turns_between(turn_number(seq, 0), turn_number(seq, TURNS_PER_ENTRY_MAX - 1))


def _quoted(reader: Reader, episode: Memory) -> tuple[str, ...]:
    return tuple(sorted(entry.id for entry in reader.entries_at(reader.cited_by(episode.id))))


def _document(entry: Entry) -> str | None:
    if entry.op is not Op.TURN or entry.body is None:
        return None
    said = decode(entry)
    return said.document if isinstance(said, Said) else None
