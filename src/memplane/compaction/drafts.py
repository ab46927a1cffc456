"""Decisions about the drafts that compaction proposes: confirmed ones become memories. Each function runs in one write
transaction."""

from collections.abc import Sequence

from memplane.compaction.review import learning_status, learnings_of
from memplane.errors import InvalidRequest, NotFound
from memplane.ledger.ids import confirmed_id, content_id
from memplane.ledger.payloads import DecidePayload, PromotePayload, StorePayload, decode, encode
from memplane.memory import projection
from memplane.memory.digests import instant_of, same_learnings
from memplane.memory.recorder import Recorder, present
from memplane.storage.compaction import CompactionLine, Layer, LearningStatus
from memplane.storage.store import Reader, Writer
from memplane.types import Kind, Memory, NewEntry, Op, Visibility

_POLICY = "policy"
"""The name under which the policy confirms."""
TAG = "compacted"
"""The tag of memories that compaction proposed."""


def confirm_draft(writer: Writer, recorder: Recorder, learning_id: str, by: str) -> Memory:
    """Make one memory of all drafts that say the same. Its id follows from theirs, so that every machine that confirms them
    makes the same memory."""
    group = _same(writer, learning_id)
    decisions = writer.compaction.decisions()
    status, decision = learning_status(writer, group, decisions)
    if status is LearningStatus.CONFIRMED and decision is not None and decision.memory is not None:
        memory = writer.memories.get(decision.memory)
    else:
        memory = _store(writer, recorder, group)
    if memory is None:
        raise InvalidRequest(
            "the memory of this draft was forgotten; it returns only when it is said again",
            field="id",
        )
    for line in group:
        if line.id not in decisions or not decisions[line.id].confirmed:
            _decide(
                writer, recorder, DecidePayload(learning=line.id, confirmed=True, by=by, memory=memory.id)
            )
    return memory


def reject_draft(writer: Writer, recorder: Recorder, learning_id: str, by: str) -> None:
    """Record that no memory is to be made of a draft."""
    group = _same(writer, learning_id)
    decisions = writer.compaction.decisions()
    status, decision = learning_status(writer, group, decisions)
    if status is LearningStatus.CONFIRMED and decision is not None:
        raise InvalidRequest(
            f"{learning_id} was confirmed by {decision.by} and is the memory {decision.memory}; "
            "delete that memory instead",
            field="id",
        )
    for line in group:
        if line.id not in decisions:
            _decide(writer, recorder, DecidePayload(learning=line.id, confirmed=False, by=by))


def confirm_open(writer: Writer, recorder: Recorder) -> int:
    """Confirm the open drafts that come from the owner alone; returns how many. A draft from a named speaker, for example the
    sender of an e-mail, waits for a person."""
    waiting = [it for it in learnings_of(writer) if it.standing is LearningStatus.OPEN]
    owned = [it for it in waiting if not any(_speaker_of(writer, id_) for id_ in it.ids)]
    for learning in owned:
        confirm_draft(writer, recorder, learning.id, _POLICY)
    return len(owned)


def _same(writer: Writer, learning_id: str) -> list[CompactionLine]:
    found = [line for line in writer.compaction.lines_at([learning_id]) if line.layer is Layer.LEARN]
    if not found:
        raise NotFound("learning", learning_id)
    return same_learnings(writer, found[0])


def _store(writer: Writer, recorder: Recorder, group: Sequence[CompactionLine]) -> Memory | None:
    ids = {confirmed_id(line.id): line for line in group}
    gone = writer.ledger.tombstoned(list(ids))
    id_ = next((id_ for id_ in ids if id_ not in gone), None)
    if id_ is None:
        return None
    if writer.ledger.known([id_]):
        return writer.memories.get(id_)
    line = ids[id_]
    stored = StorePayload(
        kind=Kind(line.kind),
        content=line.text,
        at=instant_of(line),
        tags=(TAG, line.day),
        conversation=line.conversation,
        project=line.project,
        scope=Visibility.GLOBAL if line.within is None else Visibility(line.within.partition(":")[0]),
        learning=line.id,
    )
    recorder.record(writer, id_, Op.STORE, stored, now=recorder.clock())
    return present(writer.memories.get(id_))


def _decide(writer: Writer, recorder: Recorder, verdict: DecidePayload) -> None:
    body = encode(verdict)
    draft = NewEntry(content_id(Op.DECIDE.value, body), Op.DECIDE, body, recorder.caller)
    if not writer.ledger.known([draft.id]):
        projection.record(writer, draft, recorder.clock())


def _speaker_of(reader: Reader, learning_id: str) -> str | None:
    entry = reader.ledger.get(learning_id)
    if entry is None or entry.body is None:
        return None
    promoted = decode(entry)
    return promoted.speaker if isinstance(promoted, PromotePayload) else None
