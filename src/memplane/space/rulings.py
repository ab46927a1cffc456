"""What a person rules about what a space remembers: that something flagged is told after all or forgotten, that something
is always told. Each is an entry of the ledger, so that a replay and every replica come to the same."""

from collections.abc import Iterable, Sequence

from memplane.errors import InvalidRequest, NotFound
from memplane.ledger.ids import new_id
from memplane.ledger.payloads import PinPayload, ReleasePayload
from memplane.memory import projection
from memplane.memory.checks import check_counts, check_limit, check_list, check_query
from memplane.memory.forget import checked_scope
from memplane.safety.quarantine import QuarantinedEntry, suspects, turns_of
from memplane.safety.sanitize import sanitized_memory, sanitized_turn, with_flags
from memplane.space.writing import Writing
from memplane.storage.base import Reader, Writer
from memplane.storage.filter import ForgetScope
from memplane.types import RESERVED_CATEGORIES, Kind, Memory, Op, Receipt, State


class Rulings(Writing):
    """Quarantine and pins of a space."""

    def quarantine(self, *, limit: int = 100, offset: int = 0) -> list[QuarantinedEntry]:
        """What is flagged and waits for a decision, the newest first: `release` it, or forget it with
        `forget_suspects`."""
        check_limit(limit)
        check_counts(offset=offset)
        with self._operation("quarantine") as reader:
            return suspects(reader, now=self._clock(), limit=limit, offset=offset)

    def quarantine_count(self) -> int:
        """How many entries wait for a decision."""
        with self._read() as reader:
            return reader.quarantine_size(now=self._clock())

    def told_count(self, memory_id: str) -> int:
        """How often a memory was told to agents, as far as that is written down or was told by this process."""
        check_query(id=memory_id)
        with self._read() as reader:
            written = reader.accesses((memory_id,)).get(memory_id, 0)
        return written + self._parts.uses.count(self.tenant, self.owner, memory_id)

    def release(self, id_: str) -> None:
        """From now on it is told as any other. Give the id of an entry, for all that was read out of it too, or that of
        one memory."""
        check_query(id=id_)
        now = self._clock()
        self.catch_up()

        def work(writer: Writer) -> None:
            if not _is_flagged(writer, id_):
                raise InvalidRequest(f"{id_!r} is not flagged; there is nothing to release", field="id")
            if not writer.ruling(id_).released:
                draft = self._draft(new_id("release", now), Op.RELEASE, ReleasePayload(id=id_, at=now))
                projection.record(writer, draft, now)

        self._write("release", work)

    def forget_suspects(self, entries: Iterable[str]) -> Receipt:
        """Forget entries that are in quarantine for good, with all that was read out of them. Where one of them is not,
        nothing is forgotten: a slip of the hand cannot be taken back."""
        scope = checked_scope(ForgetScope(entries=check_list(entries, field="entries")))
        self.catch_up()

        def work(writer: Writer) -> Receipt:
            _check_are_suspects(writer, scope.entries)
            return self._forget(writer, scope, reason="quarantined")

        return self._finish_forget(self._write("forget", work))

    def pin(self, memory_id: str, *, pinned: bool = True) -> Memory:
        """Always tell this memory, or no longer. It stays pinned until it is unpinned, replaced or forgotten, or until it
        expires; feedback does not let it fade."""
        check_query(id=memory_id)
        now = self._clock()

        def work(writer: Writer) -> Memory:
            memory = writer.memory(memory_id)
            if memory is None:
                raise NotFound("memory", memory_id)
            if pinned:
                _check_can_be_pinned(sanitized_memory(memory, now), memory_id)
            if writer.ruling(memory_id).pinned is not pinned:
                payload = PinPayload(memory=memory_id, at=now, pinned=pinned)
                projection.record(writer, self._draft(new_id("pin", now), Op.PIN, payload), now)
            after = writer.memory(memory_id)
            assert after is not None
            return sanitized_memory(after, now)

        return self._write("pin", work)


def _is_flagged(reader: Reader, id_: str) -> bool:
    memory = reader.memory(id_)
    if memory is not None and with_flags(memory).flags:
        return True
    seq = reader.known([id_]).get(id_)
    if seq is None and memory is None:
        raise NotFound("memory or entry", id_)
    if seq is None:
        return False
    if any(sanitized_turn(turn).flags for turn in turns_of(reader, seq)):
        return True
    return any(with_flags(memory).flags for memory in reader.memories_from([seq]))


def _check_are_suspects(reader: Reader, entry_ids: Sequence[str]) -> None:
    seqs = reader.known(entry_ids)
    remembered = reader.memories_from(list(seqs.values()))
    suspected = {memory.seq for memory in remembered if with_flags(memory).quarantined}
    for entry_id in entry_ids:
        seq = seqs.get(entry_id)
        if seq is None:
            raise NotFound("entry", entry_id)
        if seq not in suspected and not any(
            sanitized_turn(turn).quarantined for turn in turns_of(reader, seq)
        ):
            raise InvalidRequest(
                f"{entry_id!r} is not in quarantine, so nothing was forgotten; look at what waits there",
                field="entries",
            )


def _check_can_be_pinned(memory: Memory, memory_id: str) -> None:
    reason = None
    if memory.state in (State.SUPERSEDED, State.EXPIRED):
        reason = f"it is {memory.state}; pin what holds now"
    elif memory.kind is Kind.EPISODE:
        reason = (
            "an episode is told anew whenever its conversation changes; pin a memory that was read out of it"
        )
    elif memory.category in RESERVED_CATEGORIES:
        reason = "it is kept for the engine and never told"
    elif memory.quarantined:
        reason = f"it is flagged: {', '.join(memory.flags or ())}; release it first"
    if reason is not None:
        raise InvalidRequest(f"{memory_id!r} cannot be pinned: {reason}", field="id")
