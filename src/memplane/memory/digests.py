"""The results of compaction as memory: drafts, and digest lines, which replace turns once those are gone."""

from collections.abc import Iterable, Sequence

from memplane.clock import to_datetime, to_instant
from memplane.ledger.payloads import CompactPayload, DecidePayload, PromotePayload, StorePayload, decode
from memplane.safety.injection import flags_of
from memplane.storage.compaction import CompactionLine, JudgementRow, Layer, LearningDecision
from memplane.storage.store import Reader, Writer
from memplane.types import Entry, Kind, Memory, Op, within

EXTRACTOR = "digest-1"
_IMPORTANCE = 0.4


def promote(writer: Writer, entry: Entry, promoted: PromotePayload, text: str) -> None:
    """An entry that keeps something; `text` is the part that may be shown."""
    line = CompactionLine(
        id=entry.id,
        seq=entry.seq,
        layer=Layer(entry.op.value),
        day=promoted.day,
        kind=promoted.kind,
        text=text,
        at=to_datetime(promoted.at),
        sources=promoted.sources,
        recorded=entry.recorded,
        quote=promoted.quote,
        conversation=promoted.conversation,
        project=promoted.project,
        within=within(promoted.scope, conversation=promoted.conversation, project=promoted.project),
    )
    writer.compaction.add_line(line)
    surface(writer, [line])


def judged(writer: Writer, compacted: CompactPayload) -> None:
    writer.compaction.add_judgements(
        [
            JudgementRow(
                day=compacted.day,
                entry=it.entry,
                item=it.item,
                outcome=it.outcome,
                into=it.into,
                reason=it.reason,
            )
            for it in compacted.judgements
        ]
    )


def decided(writer: Writer, entry: Entry, verdict: DecidePayload) -> None:
    writer.compaction.add_decision(
        LearningDecision(
            learning=verdict.learning,
            confirmed=verdict.confirmed,
            by=verdict.by,
            at=to_datetime(entry.recorded),
            memory=verdict.memory,
        )
    )


def surface(writer: Writer, lines: Iterable[CompactionLine]) -> None:
    """A digest line becomes visible once all of its sources are gone; until then the sources are returned. So the
    result does not depend on the order of arrival, and is the same after a replay."""
    for line in lines:
        if line.layer is not Layer.DIGEST or writer.ledger.with_payload(line.sources):
            continue
        if writer.memories.get(line.id) is None:
            writer.memories.add([_memory(line)])


def _memory(line: CompactionLine) -> Memory:
    """With its date: it may have changed since, and conflict detection does not compare it with later statements."""
    return Memory(
        id=line.id,
        kind=Kind.CONTEXT,
        text=f"{line.day}: {line.text}",
        entry_id=line.id,
        seq=line.seq,
        start=0,
        end=len(line.quote),
        created_at=line.at,
        updated_at=line.at,
        conversation=line.conversation,
        project=line.project,
        quote=line.quote,
        extractor=EXTRACTOR,
        importance=_IMPORTANCE,
        within=line.within,
        flags=flags_of(line.text, line.quote),
    )


def promoted_from(reader: Reader, entry_ids: Sequence[str]) -> list[tuple[int, str]]:
    """(seq, id) of what was derived from these entries, which a forget erases with them."""
    return [(line.seq, line.id) for line in reader.compaction.lines_from(entry_ids)] if entry_ids else []


def same_learnings(reader: Reader, line: CompactionLine) -> list[CompactionLine]:
    """Drafts that say the same in the same scope, including itself, by id: one decision applies to all."""
    says = (line.kind, line.text, line.within)
    alike = [it for it in reader.compaction.lines(Layer.LEARN) if (it.kind, it.text, it.within) == says]
    return sorted(alike, key=lambda it: it.id)


def learned_from(reader: Reader, entry_id: str) -> list[str]:
    """The drafts a stored memory came from, and their source entries."""
    entry = reader.ledger.get(entry_id)
    stored = None if entry is None or entry.op is not Op.STORE or not entry.body else decode(entry)
    if not isinstance(stored, StorePayload) or stored.learning is None:
        return []
    found = reader.compaction.lines_at([stored.learning])
    group = same_learnings(reader, found[0]) if found else []
    return list(dict.fromkeys(id_ for line in group for id_ in (line.id, *line.sources)))


def instant_of(line: CompactionLine) -> int:
    return to_instant(line.at)
