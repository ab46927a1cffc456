"""Raw days decay into what is worth keeping: compaction, its review, and retention.

Everything goes through the ledger. A day is judged and what is worth keeping is written down in one transaction; raw
entries go in a later one, and only those that were judged as a whole. So whoever kills it loses nothing, and whoever
runs it again changes nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

import msgspec

from memplane.clock import DAY, Instant, to_datetime
from memplane.compaction.days import items_of, judged_entries, latest_in_threads, undecided
from memplane.compaction.digests import instant_of, same_learnings
from memplane.compaction.judging import Discard, Promotion, judge
from memplane.compaction.retention import (
    Retention,
    day_of,
    day_start,
    first_retained,
    last_day_of,
    retention_of,
    week_of,
)
from memplane.compaction.review import (
    CompactedDay,
    Compaction,
    DueDay,
    Learning,
    RetentionStatus,
    learning_status,
    learnings_of,
)
from memplane.errors import InvalidRequest, NotFound
from memplane.ledger.ids import confirmed_id, content_id
from memplane.ledger.payloads import (
    CompactPayload,
    DecidePayload,
    Judgement,
    PromotePayload,
    StorePayload,
    decode,
    encode,
)
from memplane.memory import projection
from memplane.memory.checks import check_caller, check_limit, check_query
from memplane.memory.forget import write_tombstones
from memplane.space.records import lag_of
from memplane.space.writing import Writing, present
from memplane.storage.base import Reader, Writer
from memplane.storage.compaction import RETENTION, CompactionLine, JudgementRow, Layer, LearningStatus
from memplane.types import Entry, Kind, Memory, NewEntry, Op, Receipt, Visibility

_ENTRIES_PER_STEP = 500
"""Writers wait for a step."""
_POLICY = "policy"
"""Who confirms where nobody is asked."""
DueItems = Callable[[Reader, Retention, Instant], list[CompactionLine]]
"""Which lines of a layer are not to be kept any longer."""
TAG = "compacted"
"""On memories that compaction proposed."""


class Compacting(Writing):
    """How raw days of a space are kept in short, and what retention removes."""

    def compact(self, *, day: str | None = None, dry_run: bool = False) -> Compaction:
        """Keep in short what was said on the days whose time is over, then remove those days; or keep one day in short,
        which is removed only where its time is over.

        Raises `LLMFailed` where a language model reads what was said and is away: what is not read is not removed.
        """
        policy = retention_of(self._settings)
        now = self._clock()
        if day is not None and day_start(day) >= now - now % DAY:
            raise InvalidRequest(f"{day} is not over yet (in UTC); compact a day that is past", field="day")
        if dry_run:
            with self._events.operation(self.owner, "compact"), self._read() as reader:
                return self._plan(reader, policy, day, now)
        self.catch_up()
        with self._store() as store:
            self._parts.worker.read_all(store)
        with self._read() as reader:
            days = _days(reader, policy, day, now)
        receipts: list[Receipt] = []
        done = [self._compact_day(policy, each, now, receipts) for each in days]
        confirmed = self._write("compact", self._confirm_open) if policy.confirm == "auto" else 0
        return Compaction(
            days=tuple(done),
            confirmed=confirmed,
            digests_removed=self._remove_over(_due_digests, "digests", policy, now, receipts),
            summaries_removed=self._remove_over(_due_summaries, "summaries", policy, now, receipts),
            receipts=tuple(self._finish_all(receipts)),
        )

    def retention(self) -> RetentionStatus:
        """How long what is kept here, and what would go now."""
        policy = retention_of(self._settings)
        now = self._clock()
        with self._read() as reader:
            days = _days(reader, policy, None, now)
            return RetentionStatus(
                policy=policy,
                words=policy.words,
                due=tuple(DueDay(day, len(items_of(reader, day))) for day in days),
                digest_lines_due=len(_due_digests(reader, policy, now)),
                summary_lines_due=len(_due_summaries(reader, policy, now)),
                learnings_open=sum(it.standing is LearningStatus.OPEN for it in learnings_of(reader)),
            )

    # ── review ───────────────────────────────────────────────────────────────────────────────────────────────

    def learnings(self) -> list[Learning]:
        """What compaction learned about how to act: drafts, and what was decided about them; those that wait first."""
        with self._operation("learnings") as reader:
            return learnings_of(reader)

    def judgements(
        self, day: str | None = None, *, limit: int = 1_000, offset: int = 0
    ) -> list[JudgementRow]:
        """Every decision of compaction about a day, or about all; the newest day first. In ids and reasons alone."""
        check_limit(limit)
        if day is not None:
            day_start(day)
        with self._operation("judgements") as reader:
            return reader.judged_on(day, limit=limit, offset=offset)

    def digest_lines(self) -> list[CompactionLine]:
        """Every line of the weekly digests, by day and when it was said."""
        with self._operation("digests") as reader:
            return reader.lines(Layer.DIGEST)

    def days_said(self) -> list[str]:
        """The days that are over (UTC), the oldest first, of which something is known that was said, if only in short."""
        with self._operation("days") as reader:
            before = self._clock()
            found = {day_of(begin) for begin in reader.raw_days(before - before % DAY)}
            return sorted(found | {line.day for line in reader.lines(Layer.SUMMARY)})

    def said_on(self, day: str, *, limit: int | None = None) -> list[Entry]:
        """What was said on a day and is there still; and of what retention took, what was said last in each thread. With a
        limit, only the first of it."""
        begin = day_start(day)
        with self._operation("days") as reader:
            seqs = [raw.seq for raw in reader.raw_between(begin, begin + DAY)]
            seqs += [line.seq for line in reader.lines(Layer.SUMMARY, day)]
            return [entry for entry in reader.entries_at(seqs[:limit]) if entry.body]

    def confirm(self, learning_id: str, *, by: str = "") -> Memory:
        """A learning becomes a memory, stored on purpose. Confirming again changes nothing."""
        check_query(id=learning_id)
        check_caller(by, field="by")

        def work(writer: Writer) -> Memory:
            return self._confirm(writer, self._learning(writer, learning_id), by or self._decider)

        return self._write("confirm", work)

    def reject(self, learning_id: str, *, by: str = "") -> None:
        """A learning is not to become a memory; it may still be confirmed later. Rejecting again changes nothing."""
        check_query(id=learning_id)
        check_caller(by, field="by")

        def work(writer: Writer) -> None:
            group = self._learning(writer, learning_id)
            decisions = writer.verdicts()
            standing, decision = learning_status(writer, group, decisions)
            if standing is LearningStatus.CONFIRMED and decision is not None:
                raise InvalidRequest(
                    f"{learning_id} was confirmed by {decision.by} and is the memory {decision.memory}; "
                    "delete that memory instead",
                    field="id",
                )
            for line in group:
                if line.id not in decisions:
                    self._decide(
                        writer, DecidePayload(learning=line.id, confirmed=False, by=by or self._decider)
                    )

        self._write("reject", work)

    @property
    def _decider(self) -> str:
        return self.caller.actor or self.caller.door

    @staticmethod
    def _learning(writer: Writer, learning_id: str) -> list[CompactionLine]:
        found = [line for line in writer.lines_at([learning_id]) if line.layer is Layer.LEARN]
        if not found:
            raise NotFound("learning", learning_id)
        return same_learnings(writer, found[0])

    def _confirm(self, writer: Writer, group: Sequence[CompactionLine], by: str) -> Memory:
        """One memory for all that say the same. Which one follows from the learnings, so that machines that confirm
        the same make the same."""
        decisions = writer.verdicts()
        standing, decision = learning_status(writer, group, decisions)
        if standing is LearningStatus.CONFIRMED and decision is not None and decision.memory is not None:
            memory = writer.memory(decision.memory)
        else:
            memory = self._store_learning(writer, group)
        if memory is None:
            raise InvalidRequest(
                "what this became was forgotten; a forgotten thing comes back only when it is said again",
                field="id",
            )
        for line in group:
            if line.id not in decisions or not decisions[line.id].confirmed:
                self._decide(writer, DecidePayload(learning=line.id, confirmed=True, by=by, memory=memory.id))
        return memory

    def _store_learning(self, writer: Writer, group: Sequence[CompactionLine]) -> Memory | None:
        ids = {confirmed_id(line.id): line for line in group}
        gone = writer.tombstoned(list(ids))
        id_ = next((id_ for id_ in ids if id_ not in gone), None)
        if id_ is None:
            return None
        if writer.known([id_]):
            return writer.memory(id_)
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
        projection.record(writer, self._draft(id_, Op.STORE, stored), self._clock())
        return present(writer.memory(id_))

    def _confirm_open(self, writer: Writer) -> int:
        """A policy takes the owner's word alone: what somebody with a name said, in an e-mail for one, waits for a
        person."""
        waiting = [it for it in learnings_of(writer) if it.standing is LearningStatus.OPEN]
        owned = [it for it in waiting if not any(_speaker_of(writer, id_) for id_ in it.ids)]
        for learning in owned:
            self._confirm(writer, self._learning(writer, learning.id), _POLICY)
        return len(owned)

    def _decide(self, writer: Writer, verdict: DecidePayload) -> None:
        body = encode(verdict)
        draft = NewEntry(content_id(Op.DECIDE.value, body), Op.DECIDE, body, self.caller)
        if not writer.known([draft.id]):
            projection.record(writer, draft, self._clock())

    # ── compaction ───────────────────────────────────────────────────────────────────────────────────────────

    def _compact_day(
        self, policy: Retention, day: str, now: Instant, receipts: list[Receipt]
    ) -> CompactedDay:
        report = CompactedDay(day=day, entries=0)
        while (step := self._write("compact", lambda writer: self._judge_some(writer, day))) is not None:
            report = _added(report, *step)
        if not _is_due(policy, day, now):
            return report
        removed = 0
        while (
            receipt := self._write("retention", lambda writer: self._remove_some(writer, policy, day, now))
        ) is not None:
            receipts.append(receipt)
            removed += receipt.counts["entries"]
        return msgspec.structs.replace(report, removed=removed)

    def _judge_some(self, writer: Writer, day: str) -> tuple[int, list[Promotion], list[Discard]] | None:
        """Judge some entries of a day; what is worth keeping, and what was decided, is durable with it."""
        entries = undecided(writer, day, limit=_ENTRIES_PER_STEP)
        if not entries:
            return None
        kept, discarded = judge(day, entries)
        judgements = [Judgement(it.entry, it.item, "discard", "", it.reason) for it in discarded]
        drafts: dict[str, NewEntry] = {}
        for it in kept:
            draft = self._content_draft(Op(it.layer.value), it.promoted)
            drafts.setdefault(draft.id, draft)
            judgements.append(Judgement(it.entry, it.item, it.layer.value, draft.id, it.reason))
        record = CompactPayload(
            day=day, judgements=tuple(sorted(judgements, key=lambda it: (it.entry, it.item)))
        )
        body = encode(record)
        drafts[""] = NewEntry(content_id(Op.COMPACT.value, body), Op.COMPACT, body, self.caller)
        self._keep(writer, drafts.values())
        return len(entries), kept, discarded

    def _keep(self, writer: Writer, drafts: Iterable[NewEntry]) -> None:
        """What is known, or was forgotten, is not kept again."""
        by_id = {draft.id: draft for draft in drafts}
        there = writer.known(list(by_id)).keys() | writer.tombstoned(list(by_id))
        for id_, draft in by_id.items():
            if id_ not in there:
                projection.record(writer, draft, self._clock())

    def _content_draft(self, op: Op, promoted: PromotePayload) -> NewEntry:
        draft = self._draft("", op, promoted)
        return msgspec.structs.replace(draft, id=content_id(op.value, draft.body))

    def _remove_some(self, writer: Writer, policy: Retention, day: str, now: Instant) -> Receipt | None:
        """What the day's summary is made of stays as long as summaries do, and is kept with what goes."""
        victims = judged_entries(writer, day, limit=_ENTRIES_PER_STEP)
        if not victims:
            return None
        if policy.keeps_summary_of(day, now):
            last = latest_in_threads(writer, day, [seq for seq, _ in victims])
            self._keep(writer, [self._content_draft(Op.SUMMARIZE, promoted) for promoted in last])
        return self._bury_for_retention(writer, victims, {"retention": "raw", "day": day})

    def _remove_over(
        self, over: DueItems, layer: str, policy: Retention, now: Instant, receipts: list[Receipt]
    ) -> int:
        removed = 0

        def work(writer: Writer) -> Receipt | None:
            victims = [(line.seq, line.id) for line in over(writer, policy, now)][:_ENTRIES_PER_STEP]
            return self._bury_for_retention(writer, victims, {"retention": layer}) if victims else None

        while (receipt := self._write("retention", work)) is not None:
            receipts.append(receipt)
            removed += receipt.counts["entries"]
        return removed

    def _bury_for_retention(
        self, writer: Writer, victims: Sequence[tuple[int, str]], scope: dict[str, str]
    ) -> Receipt:
        now = self._clock()
        record = self._recorded(writer, now)
        return write_tombstones(writer, victims, scope=scope, reason=RETENTION, now=now, record=record)

    def _finish_all(self, receipts: Sequence[Receipt]) -> Iterable[Receipt]:
        """The files are written anew once, whatever the number of receipts."""
        if not receipts:
            return ()
        last = self._finish_forget(receipts[-1])
        return (msgspec.structs.replace(receipt, off_disk=last.off_disk) for receipt in receipts)

    def _plan(self, reader: Reader, policy: Retention, day: str | None, now: Instant) -> Compaction:
        """What a run would do, as far as everything is read already."""
        planned = []
        for each in _days(reader, policy, day, now):
            entries = undecided(reader, each, limit=1 << 30)
            report = CompactedDay(
                day=each,
                entries=0,
                removed=sum(not item.is_pinned and not item.flagged for item in items_of(reader, each))
                if _is_due(policy, each, now)
                else 0,
            )
            planned.append(_added(report, len(entries), *judge(each, entries)))
        lag = self._parts.worker.lag(reader)
        return Compaction(
            days=tuple(planned),
            digests_removed=len(_due_digests(reader, policy, now)),
            summaries_removed=len(_due_summaries(reader, policy, now)),
            waiting=max(lag.entries, lag_of(reader)),
            dry_run=True,
        )


def _speaker_of(reader: Reader, learning_id: str) -> str | None:
    entry = reader.entry(learning_id)
    if entry is None or entry.body is None:
        return None
    promoted = decode(entry)
    return promoted.speaker if isinstance(promoted, PromotePayload) else None


def _added(
    report: CompactedDay, entries: int, kept: Sequence[Promotion], discarded: Sequence[Discard]
) -> CompactedDay:
    def texts(layer: Layer) -> tuple[str, ...]:
        return tuple(dict.fromkeys(it.promoted.text for it in kept if it.layer is layer))

    reasons = Counter(report.discarded)
    reasons.update(it.reason for it in discarded)
    return msgspec.structs.replace(
        report,
        entries=report.entries + entries,
        learnings=report.learnings + texts(Layer.LEARN),
        digested=report.digested + texts(Layer.DIGEST),
        discarded=dict(sorted(reasons.items())),
    )


def _days(reader: Reader, policy: Retention, day: str | None, now: Instant) -> list[str]:
    if day is not None:
        return [day]
    if policy.raw_days is None:
        return []
    return [day_of(begin) for begin in reader.raw_days(first_retained(policy.raw_days, now))]


def _is_due(policy: Retention, day: str, now: Instant) -> bool:
    return policy.raw_days is not None and day_start(day) < first_retained(policy.raw_days, now)


def _due_summaries(reader: Reader, policy: Retention, now: Instant) -> list[CompactionLine]:
    return [line for line in reader.lines(Layer.SUMMARY) if not policy.keeps_summary_of(line.day, now)]


def _due_digests(reader: Reader, policy: Retention, now: Instant) -> list[CompactionLine]:
    """Lines of weeks that ended long enough ago and that nothing came to since; and learnings that were rejected as
    long ago. A digest of old days that was written only now is kept as long as any."""
    if policy.digest_days is None:
        return []
    before = to_datetime(now).date() - timedelta(days=policy.digest_days)
    weeks: dict[str, list[CompactionLine]] = {}
    for line in reader.lines(Layer.DIGEST):
        weeks.setdefault(week_of(line.day), []).append(line)
    over = [
        line
        for week, lines in weeks.items()
        if last_day_of(week) <= before and to_datetime(max(line.recorded for line in lines)).date() <= before
        for line in lines
    ]
    rejected = {id_ for id_, it in reader.verdicts().items() if not it.confirmed and it.at.date() <= before}
    return over + [line for line in reader.lines(Layer.LEARN) if line.id in rejected]
