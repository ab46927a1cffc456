"""What the summary of a day needs after the raw day is removed: the last message in each direction of each thread.
The summary decides which of them wait for an answer."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import msgspec

from memplane.clock import DAY, SECOND, Instant, to_instant
from memplane.compaction.judging import RawEntry, scope_of
from memplane.compaction.retention import day_start
from memplane.errors import MemplaneError
from memplane.ledger.history import parse_line
from memplane.ledger.payloads import INTERACTION, PromotePayload, TurnPayload, decode
from memplane.safety.sanitize import one_line, shortened
from memplane.storage.ledger import EntryTime
from memplane.storage.numbers import TURNS_PER_ENTRY_MAX, turn_number
from memplane.storage.review import QUARANTINED_TURNS_MAX
from memplane.storage.store import Reader
from memplane.types import Entry, Kind, Memory, Op, Role, Turn

# What was said, by the time it was said at, in pages that never part a second.


class EntryPage(msgspec.Struct, frozen=True):
    """Entries in the order of time. Session histories have timestamps in seconds, and readers ask for what came
    after the last one they saw, so a page never ends within a second."""

    entries: list[EntryTime]
    more: bool


def entries_since(reader: Reader, after: Instant, limit: int) -> EntryPage:
    silent = [
        said
        for said in map(entries_without_turn, reader.ledger.hidden())
        if said is not None and said.at > after
    ]
    found = sorted([*reader.ledger.turn_entries_between(after, None, limit=limit), *silent], key=_order)[
        :limit
    ]
    if len(found) < limit:
        return EntryPage(found, more=False)
    until = found[-1].at - found[-1].at % SECOND + SECOND
    page = reader.ledger.turn_entries_between(after, until, limit=None) + [
        said for said in silent if said.at < until
    ]
    more = any(said.at >= until for said in silent) or bool(
        reader.ledger.turn_entries_between(until - 1, None, limit=1)
    )
    return EntryPage(sorted(page, key=_order), more=more)


def _order(said: EntryTime) -> tuple[Instant, int]:
    return said.at, said.seq


def entries_without_turn(entry: Entry) -> EntryTime | None:
    """Entries without a turn are recorded too: a managed turn that failed, a reply without text."""
    if entry.op not in (Op.TURN, Op.HISTORY) or entry.body is None:
        return None
    try:
        if entry.op is Op.HISTORY:
            return EntryTime(entry.seq, parse_line(entry.body, trust_ids=True).at)
        said = decode(entry)
    except (MemplaneError, msgspec.MsgspecError, ValueError):
        return None
    assert isinstance(said, TurnPayload)
    return EntryTime(entry.seq, said.at - said.at % SECOND)


# A raw day in the store: entries not judged yet, and entries that may be removed.


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of a day, with what it holds and what of that was judged."""

    seq: int
    id: str
    memories: tuple[Memory, ...]
    judged: frozenset[str]
    flagged: bool = False
    """Whether it is in quarantine: then it stays until it is reviewed. Lines kept of a day have no flags, so they
    would be returned like any other."""

    @property
    def is_pinned(self) -> bool:
        """Whether it stays for what is pinned of it."""
        return any(memory.pinned for memory in self.memories)

    @property
    def unjudged(self) -> tuple[Memory, ...]:
        return tuple(memory for memory in self.memories if memory.id not in self.judged)

    @property
    def is_judged(self) -> bool:
        """Whether everything about it was decided."""
        return bool(self.judged) and not self.unjudged


def items_of(reader: Reader, day: str) -> list[Item]:
    """Every entry in which something was said that day, also where nothing of it can be shown."""
    since = day_start(day)
    until = since + DAY
    found = {raw.seq: raw.id for raw in reader.compaction.raw_between(since, until)}
    for entry in reader.ledger.hidden():
        said = entries_without_turn(entry)
        if said is not None and since <= said.at < until:
            found[entry.seq] = entry.id
    memories: defaultdict[int, dict[str, Memory]] = defaultdict(dict)
    seqs = list(found)
    for memory in (*reader.memories.of_entries(seqs), *reader.claims.evidence_at(seqs)):
        if memory.derived:
            memories[memory.seq].setdefault(memory.id, memory)
    flagged = {n // TURNS_PER_ENTRY_MAX for n in reader.review.quarantined_turns(limit=QUARANTINED_TURNS_MAX)}
    flagged |= {seq for seq, each in memories.items() if any(memory.quarantined for memory in each.values())}
    judged: defaultdict[str, set[str]] = defaultdict(set)
    for it in reader.compaction.judgements(list(found.values())):
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
    waiting = [item for item in items_of(reader, day) if not item.is_judged and not item.flagged][:limit]
    entries = {entry.seq: entry for entry in reader.ledger.at([item.seq for item in waiting])}
    return [_raw_entry(reader, item, entries[item.seq]) for item in waiting if item.seq in entries]


def judged_entries(reader: Reader, day: str, *, limit: int) -> list[tuple[int, str]]:
    """(seq, id) of the next entries of a day that were judged as a whole, and so may go."""
    may_go = [item for item in items_of(reader, day) if item.is_judged and not item.is_pinned]
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
    return reader.turns.between(turn_number(seq, 0), turn_number(seq, TURNS_PER_ENTRY_MAX - 1))


def _quoted(reader: Reader, episode: Memory) -> tuple[str, ...]:
    return tuple(sorted(entry.id for entry in reader.ledger.at(reader.episodes.cited_seqs(episode.id))))


def _document(entry: Entry) -> str | None:
    if entry.op is not Op.TURN or entry.body is None:
        return None
    said = decode(entry)
    return said.document if isinstance(said, TurnPayload) else None


SHORT_CHARS_MAX = 280
"""Of what was said; a summary is no place for all of it."""

_LINE_FIELDS = ("channel", "direction", "sender", "recipient")
_CHAT = "chat_id"


def shortened_line(text: str) -> str:
    """On one line, and not for long."""
    return shortened(" ".join(one_line(text).split()), SHORT_CHARS_MAX)


def latest_in_threads(reader: Reader, day: str, seqs: Iterable[int]) -> list[PromotePayload]:
    """The lines of these entries. Several lines of a thread may be kept: the last one of all counts, so that days
    compacted in parts, or on several machines, give the same result."""
    last: dict[tuple[Any, ...], tuple[Turn, dict[str, Any] | None]] = {}
    for entry in reader.ledger.at(list(seqs)):
        line = _line_of(entry)
        thread = () if line is None else (*map(line.get, _LINE_FIELDS), line.get("metadata", {}).get(_CHAT))
        for turn in turns_of(reader, entry.seq):
            place = (turn.role, turn.conversation, turn.project, turn.speaker, turn.within, thread)
            known = last.get(place)
            if turn.role in (Role.USER, Role.ASSISTANT) and (
                known is None or _thread_order(known[0]) < _thread_order(turn)
            ):
                last[place] = (turn, line)
    return [_thread_line(day, turn, line) for turn, line in last.values()]


def _thread_order(turn: Turn) -> tuple[Any, ...]:
    return turn.at, turn.entry_id, turn.ordinal


def _line_of(entry: Entry) -> dict[str, Any] | None:
    """What identifies the thread of a line that another program wrote."""
    said = decode(entry) if entry.op is Op.TURN and entry.body else None
    line = (said.metadata or {}).get(INTERACTION) if isinstance(said, TurnPayload) else None
    if not isinstance(line, dict):
        return None
    fields: dict[str, Any] = {name: line[name] for name in _LINE_FIELDS if isinstance(line.get(name), str)}
    metadata = line.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get(_CHAT), str):
        fields["metadata"] = {_CHAT: metadata[_CHAT]}
    return fields


def _thread_line(day: str, turn: Turn, line: dict[str, Any] | None) -> PromotePayload:
    return PromotePayload(
        day=day,
        kind=turn.role,
        text=shortened_line(turn.text),
        at=to_instant(turn.at),
        sources=(turn.entry_id,),
        conversation=turn.conversation,
        project=turn.project,
        scope=scope_of(turn.within),
        speaker=turn.speaker,
        line=line,
    )
