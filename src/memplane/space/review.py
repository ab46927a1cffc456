"""Decisions about what a space remembers: conflicts, drafts of compaction, quarantine, pins and names."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

import msgspec

from memplane.compaction.drafts import confirm_draft, reject_draft
from memplane.compaction.retention import day_start
from memplane.compaction.review import Learning, learnings_of
from memplane.errors import InvalidRequest, NotFound, StorageError
from memplane.ledger.ids import new_id
from memplane.ledger.payloads import PinPayload, PutPayload, ReleasePayload, ResolvePayload
from memplane.memory.checks import (
    check_caller,
    check_counts,
    check_limit,
    check_list,
    check_no_secret,
    check_query,
    check_text,
)
from memplane.memory.forget import checked_scope
from memplane.recall.name_index import NameDecision, list_names, name_key
from memplane.recall.names import SpeakerName
from memplane.recall.result import Conflict
from memplane.safety.quarantine import QuarantinedEntry, suspects, turns_of
from memplane.safety.sanitize import sanitized_memory, sanitized_turn, with_flags
from memplane.space.context import SpaceContext
from memplane.space.forgetting import finish_forget
from memplane.space.recall import enrich, enrich_briefly
from memplane.storage.compaction import JudgementRow
from memplane.storage.filter import Filter, ForgetScope
from memplane.storage.store import Reader, Writer
from memplane.types import RESERVED_CATEGORIES, SPEAKER_NAMES, Kind, Memory, Op, Receipt, State

_NAME_CHARS_MAX = 80


class Review:
    """`space.review`: conflicts, drafts of compaction, quarantine, pins and names. Each decision is an entry of the ledger, so that a replay
    and every replica come to the same result."""

    def __init__(self, context: SpaceContext) -> None:
        self._context = context

    def conflicts(self, *, of: str | None = None, limit: int | None = None) -> list[Conflict]:
        """Unresolved pairs of memories that contradict each other: all, those of one memory, or the first of them."""
        check_query(of=of)
        now = self._context.clock()
        with suppress(StorageError):
            enrich_briefly(self._context)
        with self._context.operation("conflicts") as reader:
            pairs = reader.claims.conflicts(() if of is None else (of,))[:limit]
            ids = list(dict.fromkeys(id_ for pair in pairs for id_ in pair))
            everything = Filter(now=now, audience=None)
            there = {
                memory.id: sanitized_memory(memory, now)
                for memory in reader.memories.get_many(ids, everything)
            }
        return [
            Conflict(left=there[left], right=there[right])
            for left, right in pairs
            if left in there and right in there
        ]

    def resolve(self, winner: str) -> Memory:
        """Resolve a conflict: the winner supersedes the memories that contradict it."""
        now = self._context.clock()
        enrich(self._context)

        def work(writer: Writer) -> None:
            losers = [
                other for pair in writer.claims.conflicts((winner,)) for other in pair if other != winner
            ]
            if not losers:
                raise NotFound("conflict of memory", winner)
            payload = ResolvePayload(winner=winner, losers=tuple(losers), at=now)
            self._context.recorder.record(writer, new_id("resolve", now), Op.RESOLVE, payload, now=now)

        self._context.write("resolve", work)
        enrich(self._context)
        with self._context.read() as reader:
            settled = reader.memories.get(winner)
        if settled is None:
            raise NotFound("memory", winner)
        return sanitized_memory(settled, now)

    def drafts(self) -> list[Learning]:
        """Behavioral memories that compaction proposes, and the decisions about them; undecided ones first."""
        with self._context.operation("learnings") as reader:
            return learnings_of(reader)

    def confirm(self, draft_id: str, *, by: str = "") -> Memory:
        """Make a memory of a draft. Confirming it again changes nothing."""
        check_query(id=draft_id)
        check_caller(by, field="by")
        return self._context.write(
            "confirm",
            lambda writer: confirm_draft(writer, self._context.recorder, draft_id, by or self._decider),
        )

    def reject(self, draft_id: str, *, by: str = "") -> None:
        """Make no memory of a draft; it may still be confirmed later. Rejecting it again changes nothing."""
        check_query(id=draft_id)
        check_caller(by, field="by")
        self._context.write(
            "reject",
            lambda writer: reject_draft(writer, self._context.recorder, draft_id, by or self._decider),
        )

    def judgements(
        self, day: str | None = None, *, limit: int = 1_000, offset: int = 0
    ) -> list[JudgementRow]:
        """Every decision of compaction about one day or all days, the newest day first: ids and reasons, no text."""
        check_limit(limit)
        if day is not None:
            day_start(day)
        with self._context.operation("judgements") as reader:
            return reader.compaction.judgements_on(day, limit=limit, offset=offset)

    def quarantine(self, *, limit: int = 100, offset: int = 0) -> list[QuarantinedEntry]:
        """Flagged entries without a decision, the newest first: `release` them, or erase them with
        `forget_quarantined`."""
        check_limit(limit)
        check_counts(offset=offset)
        with self._context.operation("quarantine") as reader:
            return suspects(reader, now=self._context.clock(), limit=limit, offset=offset)

    def quarantine_count(self) -> int:
        """How many entries are in quarantine."""
        with self._context.read() as reader:
            return reader.review.quarantined_count(now=self._context.clock())

    def release(self, id_: str) -> None:
        """Take an entry, with all memories derived from it, or one memory out of quarantine."""
        check_query(id=id_)
        now = self._context.clock()
        self._context.catch_up()

        def work(writer: Writer) -> None:
            if not _is_flagged(writer, id_):
                raise InvalidRequest(f"{id_!r} is not flagged; there is nothing to release", field="id")
            if not writer.review.decision(id_).released:
                released = ReleasePayload(id=id_, at=now)
                self._context.recorder.record(writer, new_id("release", now), Op.RELEASE, released, now=now)

        self._context.write("release", work)

    def forget_quarantined(self, entries: Iterable[str]) -> Receipt:
        """Forget entries that are in quarantine, with all memories derived from them. If one of them is not in quarantine,
        nothing is forgotten: a wrong id cannot be undone."""
        scope = checked_scope(ForgetScope(entries=check_list(entries, field="entries")))
        self._context.catch_up()

        def work(writer: Writer) -> Receipt:
            _check_are_suspects(writer, scope.entries)
            return self._context.recorder.forget(writer, scope, reason="quarantined")

        return finish_forget(self._context, self._context.write("forget", work))

    def pin(self, memory_id: str, *, pinned: bool = True) -> Memory:
        """Include this memory in every brief and recall, or no longer. It stays pinned until it is unpinned, superseded,
        forgotten or expired; feedback does not lower its importance."""
        check_query(id=memory_id)
        now = self._context.clock()

        def work(writer: Writer) -> Memory:
            memory = writer.memories.get(memory_id)
            if memory is None:
                raise NotFound("memory", memory_id)
            if pinned:
                _check_can_be_pinned(sanitized_memory(memory, now), memory_id)
            if writer.review.decision(memory_id).pinned is not pinned:
                payload = PinPayload(memory=memory_id, at=now, pinned=pinned)
                self._context.recorder.record(writer, new_id("pin", now), Op.PIN, payload, now=now)
            after = writer.memories.get(memory_id)
            assert after is not None
            return sanitized_memory(after, now)

        return self._context.write("pin", work)

    def names(self) -> list[SpeakerName]:
        """Other names of speakers that recall understands: added, removed, and learned from how people are addressed."""
        where = Filter(now=self._context.clock(), quarantined=False, audience=None)
        with self._context.operation("names") as reader:
            return list_names(reader, where)

    def add_name(self, name: str, speaker: str) -> SpeakerName:
        """Let a name in a query stand for this speaker."""
        return self._decide_name(
            NameDecision(name, check_text(speaker, field="speaker", chars_max=_NAME_CHARS_MAX))
        )

    def remove_name(self, name: str) -> SpeakerName:
        """Let a name stand for nobody, even if it was learned."""
        return self._decide_name(NameDecision(name))

    def _decide_name(self, decision: NameDecision) -> SpeakerName:
        """A keyed row, so that a replay and a sync keep it and a forget of everything erases it."""
        check_no_secret(check_text(decision.name, field="name", chars_max=_NAME_CHARS_MAX), field="name")
        now = self._context.clock()
        value = msgspec.json.encode(decision).decode()
        put = PutPayload(key=name_key(decision.name), value=value, category=SPEAKER_NAMES, at=now)
        self._context.write("name", lambda writer: self._context.recorder.put(writer, Op.PUT, put, now))
        source = "removed" if decision.speaker is None else "added"
        return SpeakerName(name=decision.name, speaker=decision.speaker, source=source)

    @property
    def _decider(self) -> str:
        return self._context.caller.actor or self._context.caller.adapter


def _is_flagged(reader: Reader, id_: str) -> bool:
    memory = reader.memories.get(id_)
    if memory is not None and with_flags(memory).flags:
        return True
    seq = reader.ledger.known([id_]).get(id_)
    if seq is None and memory is None:
        raise NotFound("memory or entry", id_)
    if seq is None:
        return False
    if any(sanitized_turn(turn).flags for turn in turns_of(reader, seq)):
        return True
    return any(with_flags(memory).flags for memory in reader.memories.of_entries([seq]))


def _check_are_suspects(reader: Reader, entry_ids: Sequence[str]) -> None:
    seqs = reader.ledger.known(entry_ids)
    remembered = reader.memories.of_entries(list(seqs.values()))
    suspected = {memory.seq for memory in remembered if with_flags(memory).quarantined}
    for entry_id in entry_ids:
        seq = seqs.get(entry_id)
        if seq is None:
            raise NotFound("entry", entry_id)
        if seq not in suspected and not any(
            sanitized_turn(turn).quarantined for turn in turns_of(reader, seq)
        ):
            raise InvalidRequest(
                f"{entry_id!r} is not in quarantine, so nothing was forgotten; list the quarantine",
                field="entries",
            )


def _check_can_be_pinned(memory: Memory, memory_id: str) -> None:
    reason = None
    if memory.state in (State.SUPERSEDED, State.EXPIRED):
        reason = f"it is {memory.state}; pin what holds now"
    elif memory.kind is Kind.EPISODE:
        reason = "an episode is derived again whenever its conversation changes; pin a memory that was derived from it"
    elif memory.category in RESERVED_CATEGORIES:
        reason = "it is reserved for the engine and never recalled"
    elif memory.quarantined:
        reason = f"it is flagged: {', '.join(memory.flags or ())}; release it first"
    if reason is not None:
        raise InvalidRequest(f"{memory_id!r} cannot be pinned: {reason}", field="id")
