"""A run of compaction over one space: its steps, each in a transaction of its own."""

from collections.abc import Iterable, Sequence

import msgspec

from memplane.clock import DAY, Instant
from memplane.compaction.drafts import confirm_open
from memplane.compaction.retention import Retention, day_start, retention_of
from memplane.compaction.review import CompactedDay, CompactionReport
from memplane.compaction.steps import (
    OverdueLines,
    added,
    days_due,
    is_due,
    judge_some,
    overdue_digests,
    overdue_summaries,
    plan,
    remove_some,
    remove_some_lines,
)
from memplane.errors import InvalidRequest
from memplane.space.context import SpaceContext, unsearchable_count
from memplane.space.forgetting import finish_forget
from memplane.types import Receipt


def compact(context: SpaceContext, day: str | None, *, dry_run: bool) -> CompactionReport:
    """Compact the days that are due, or one day, and remove what the retention policy no longer keeps."""
    policy = retention_of(context.settings)
    now = context.clock()
    if day is not None and day_start(day) >= now - now % DAY:
        raise InvalidRequest(f"{day} is not over yet (in UTC); compact a day that is past", field="day")
    if dry_run:
        with context.events.operation(context.owner, "compact"), context.read() as reader:
            days = days_due(reader, policy, now) if day is None else [day]
            lag = context.parts.worker.lag(reader)
            return plan(reader, policy, days, now, waiting=max(lag.entries, unsearchable_count(reader)))
    context.catch_up()
    with context.store() as store:
        context.parts.worker.read_all(store)
    with context.read() as reader:
        days = days_due(reader, policy, now) if day is None else [day]
    receipts: list[Receipt] = []
    done = [_compact_day(context, policy, each, now, receipts) for each in days]
    confirmed = 0
    if policy.confirm == "auto":
        confirmed = context.write("compact", lambda writer: confirm_open(writer, context.recorder))
    return CompactionReport(
        days=tuple(done),
        confirmed=confirmed,
        digests_removed=_remove_lines(context, overdue_digests, "digests", policy, now, receipts),
        summaries_removed=_remove_lines(context, overdue_summaries, "summaries", policy, now, receipts),
        receipts=tuple(_finish_all(context, receipts)),
    )


def _compact_day(
    context: SpaceContext, policy: Retention, day: str, now: Instant, receipts: list[Receipt]
) -> CompactedDay:
    recorder = context.recorder
    report = CompactedDay(day=day, entries=0)
    while (step := context.write("compact", lambda writer: judge_some(writer, recorder, day))) is not None:
        report = added(report, step)
    if not is_due(policy, day, now):
        return report
    removed = 0
    while (
        receipt := context.write("retention", lambda writer: remove_some(writer, recorder, policy, day, now))
    ) is not None:
        receipts.append(receipt)
        removed += receipt.counts["entries"]
    return msgspec.structs.replace(report, removed=removed)


def _remove_lines(
    context: SpaceContext,
    overdue: OverdueLines,
    layer: str,
    policy: Retention,
    now: Instant,
    receipts: list[Receipt],
) -> int:
    removed = 0
    while (
        receipt := context.write(
            "retention",
            lambda writer: remove_some_lines(writer, context.recorder, overdue(writer, policy, now), layer),
        )
    ) is not None:
        receipts.append(receipt)
        removed += receipt.counts["entries"]
    return removed


def _finish_all(context: SpaceContext, receipts: Sequence[Receipt]) -> Iterable[Receipt]:
    """The files are rewritten once, whatever the number of receipts."""
    if not receipts:
        return ()
    last = finish_forget(context, receipts[-1])
    return (msgspec.structs.replace(receipt, off_disk=last.off_disk) for receipt in receipts)
