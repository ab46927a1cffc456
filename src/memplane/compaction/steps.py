"""The steps of compaction and retention. Each runs in one write transaction.

Everything goes through the ledger. One transaction judges entries of a day and writes what is worth keeping; a later one removes
the raw entries, and only those that were judged completely. Stopping compaction at any point loses nothing, and repeating
it changes nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

import msgspec

from memplane.clock import Instant, to_datetime
from memplane.compaction.days import items_of, judged_entries, latest_in_threads, undecided
from memplane.compaction.judging import Discard, Promotion, judge
from memplane.compaction.retention import Retention, day_of, day_start, first_retained, last_day_of, week_of
from memplane.compaction.review import CompactedDay, CompactionReport
from memplane.ledger.ids import content_id
from memplane.ledger.payloads import CompactPayload, Judgement, PromotePayload, encode
from memplane.memory import projection
from memplane.memory.forget import write_tombstones
from memplane.memory.recorder import Recorder
from memplane.storage.compaction import RETENTION, CompactionLine, Layer
from memplane.storage.store import Reader, Writer
from memplane.types import NewEntry, Op, Receipt

_ENTRIES_PER_STEP = 500
"""Other writers wait for a step."""
OverdueLines = Callable[[Reader, Retention, Instant], list[CompactionLine]]
"""Finds the lines of a layer whose retention has expired."""


def days_due(reader: Reader, policy: Retention, now: Instant) -> list[str]:
    """The days whose raw entries have been kept as long as the policy says."""
    if policy.raw_days is None:
        return []
    return [day_of(begin) for begin in reader.compaction.raw_days(first_retained(policy.raw_days, now))]


def is_due(policy: Retention, day: str, now: Instant) -> bool:
    """Whether the raw entries of this day are to be removed."""
    return policy.raw_days is not None and day_start(day) < first_retained(policy.raw_days, now)


def judge_some(writer: Writer, recorder: Recorder, day: str) -> CompactedDay | None:
    """Judge some entries of a day, and append what is worth keeping with the decisions. Returns a report of this step, None
    when no entry is left."""
    entries = undecided(writer, day, limit=_ENTRIES_PER_STEP)
    if not entries:
        return None
    kept, discarded = judge(day, entries)
    judgements = [Judgement(it.entry, it.item, "discard", "", it.reason) for it in discarded]
    drafts: dict[str, NewEntry] = {}
    for it in kept:
        draft = _content_draft(recorder, Op(it.layer.value), it.promoted)
        drafts.setdefault(draft.id, draft)
        judgements.append(Judgement(it.entry, it.item, it.layer.value, draft.id, it.reason))
    record = CompactPayload(day=day, judgements=tuple(sorted(judgements, key=lambda it: (it.entry, it.item))))
    body = encode(record)
    drafts[""] = NewEntry(content_id(Op.COMPACT.value, body), Op.COMPACT, body, recorder.caller)
    _append_new(writer, recorder, drafts.values())
    return _report(day, len(entries), kept, discarded)


def added(report: CompactedDay, step: CompactedDay) -> CompactedDay:
    """The report of a day after one more step."""
    reasons = Counter(report.discarded) + Counter(step.discarded)
    return msgspec.structs.replace(
        report,
        entries=report.entries + step.entries,
        learnings=report.learnings + step.learnings,
        digested=report.digested + step.digested,
        discarded=dict(sorted(reasons.items())),
    )


def remove_some(
    writer: Writer, recorder: Recorder, policy: Retention, day: str, now: Instant
) -> Receipt | None:
    """Remove some judged entries of a day. The parts of them that its summary needs are kept in the same transaction."""
    victims = judged_entries(writer, day, limit=_ENTRIES_PER_STEP)
    if not victims:
        return None
    if policy.retains_summary_of(day, now):
        last = latest_in_threads(writer, day, [seq for seq, _ in victims])
        _append_new(writer, recorder, [_content_draft(recorder, Op.SUMMARIZE, promoted) for promoted in last])
    return _write_tombstones(writer, recorder, victims, {"retention": "raw", "day": day})


def remove_some_lines(
    writer: Writer, recorder: Recorder, overdue: Sequence[CompactionLine], layer: str
) -> Receipt | None:
    """Remove a batch of digest or summary lines whose retention has expired."""
    victims = [(line.seq, line.id) for line in overdue][:_ENTRIES_PER_STEP]
    return _write_tombstones(writer, recorder, victims, {"retention": layer}) if victims else None


def plan(
    reader: Reader, policy: Retention, days: Iterable[str], now: Instant, *, waiting: int
) -> CompactionReport:
    """What a run would do with the entries that are enriched already."""
    planned = []
    for day in days:
        entries = undecided(reader, day, limit=1 << 30)
        report = _report(day, len(entries), *judge(day, entries))
        if is_due(policy, day, now):
            removed = sum(not item.is_pinned and not item.flagged for item in items_of(reader, day))
            report = msgspec.structs.replace(report, removed=removed)
        planned.append(report)
    return CompactionReport(
        days=tuple(planned),
        digests_removed=len(overdue_digests(reader, policy, now)),
        summaries_removed=len(overdue_summaries(reader, policy, now)),
        waiting=waiting,
        dry_run=True,
    )


def overdue_summaries(reader: Reader, policy: Retention, now: Instant) -> list[CompactionLine]:
    """Summary lines whose retention has expired."""
    return [
        line
        for line in reader.compaction.lines(Layer.SUMMARY)
        if not policy.retains_summary_of(line.day, now)
    ]


def overdue_digests(reader: Reader, policy: Retention, now: Instant) -> list[CompactionLine]:
    """Lines of weeks that ended long enough ago and received no line since, and drafts that were rejected as long ago. A
    digest of old days that was written only now is kept as long as any other."""
    if policy.digest_days is None:
        return []
    before = to_datetime(now).date() - timedelta(days=policy.digest_days)
    weeks: dict[str, list[CompactionLine]] = {}
    for line in reader.compaction.lines(Layer.DIGEST):
        weeks.setdefault(week_of(line.day), []).append(line)
    over = [
        line
        for week, lines in weeks.items()
        if last_day_of(week) <= before and to_datetime(max(line.recorded for line in lines)).date() <= before
        for line in lines
    ]
    rejected = {
        id_
        for id_, it in reader.compaction.decisions().items()
        if not it.confirmed and it.at.date() <= before
    }
    return over + [line for line in reader.compaction.lines(Layer.LEARN) if line.id in rejected]


def _write_tombstones(
    writer: Writer, recorder: Recorder, victims: Sequence[tuple[int, str]], scope: dict[str, str]
) -> Receipt:
    now = recorder.clock()
    record = recorder.forget_recorder(writer, now)
    return write_tombstones(writer, victims, scope=scope, reason=RETENTION, now=now, record=record)


def _append_new(writer: Writer, recorder: Recorder, drafts: Iterable[NewEntry]) -> None:
    """Append the drafts whose ids are neither known nor forgotten."""
    by_id = {draft.id: draft for draft in drafts}
    there = writer.ledger.known(list(by_id)).keys() | writer.ledger.tombstoned(list(by_id))
    for id_, draft in by_id.items():
        if id_ not in there:
            projection.record(writer, draft, recorder.clock())


def _content_draft(recorder: Recorder, op: Op, promoted: PromotePayload) -> NewEntry:
    draft = recorder.draft("", op, promoted)
    return msgspec.structs.replace(draft, id=content_id(op.value, draft.body))


def _report(day: str, entries: int, kept: Sequence[Promotion], discarded: Sequence[Discard]) -> CompactedDay:
    def texts(layer: Layer) -> tuple[str, ...]:
        return tuple(dict.fromkeys(it.promoted.text for it in kept if it.layer is layer))

    return CompactedDay(
        day=day,
        entries=entries,
        learnings=texts(Layer.LEARN),
        digested=texts(Layer.DIGEST),
        discarded=dict(sorted(Counter(it.reason for it in discarded).items())),
    )
