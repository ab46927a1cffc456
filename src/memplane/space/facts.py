"""Keyed facts of a space beyond put and get: listing, categories, expiry, and what recorded runs teach."""

from memplane.clock import DAY, Instant
from memplane.memory.checks import check_limit, check_query
from memplane.memory.forget import entries_to_forget
from memplane.memory.runs import (
    PACK_HISTORY,
    PIPELINE_HISTORY,
    PLAN_HISTORY,
    Defaults,
    PackRun,
    PipelineRun,
    PlanGroup,
    PlanRun,
    group_plans,
    learn,
    run_row,
)
from memplane.safety.sanitize import sanitized_memory
from memplane.space.context import SpaceContext
from memplane.space.deprecated import CallableListing
from memplane.space.forgetting import finish_forget
from memplane.storage.filter import Filter, ForgetScope
from memplane.storage.memories import FactCategory
from memplane.storage.store import Writer
from memplane.types import Memory, Op, Receipt

_ROWS_MAX = 100_000
_CATEGORY_KEYS_MAX = 5
_SWEEPS = "sweeps"
"""The note of the times at which expired facts were looked for and not erased yet."""
_SWEEPS_APART = DAY // 2


class Facts(CallableListing):
    """`space.facts`: keyed facts beyond `put`, `get` and `history`."""

    def __init__(self, context: SpaceContext) -> None:
        self._context = context

    def categories(self) -> list[FactCategory]:
        """Categories of keyed facts with their counts and the keys written last."""
        with self._context.operation("categories") as reader:
            return reader.memories.categories(now=self._context.clock(), keys_max=_CATEGORY_KEYS_MAX)

    def record_run(self, run: PackRun | PipelineRun | PlanRun) -> Memory:
        """Record how a pack, pipeline or plan ran, for `defaults` and `plans`."""
        now = self._context.clock()
        row = run_row(run, now)
        return self._context.write(
            "record_run", lambda writer: self._context.recorder.put(writer, Op.RUN, row, now)
        )

    def defaults(self) -> Defaults:
        """Default inputs for the next run, learned from earlier runs."""
        return learn(
            (row.category or "", row.key or "", row.text)
            for row in self._runs("defaults", PACK_HISTORY, PIPELINE_HISTORY)
        )

    def plans(self) -> list[PlanGroup]:
        """Plans, grouped by intent, the most frequent first."""
        return group_plans(row.text for row in self._runs("plans", PLAN_HISTORY))

    def sweep(self) -> int:
        """Erase expired facts; returns how many."""
        return self._erase_expired(self._context.clock())

    def sweep_after_grace(self) -> int:
        """Erase facts that were seen expired `expired_grace_days` ago; returns how many. Call it once a day.

        An expired fact is not returned by any read, so nothing depends on when it is erased, and a clock that jumps forward must
        not erase it for good. What counts is therefore the time that calls were apart, not the expiry alone: a fact is erased when a
        call saw it expired and another one sees it so much later. A time in the future, from before the clock was set back, is
        dropped."""
        now = self._context.clock()
        grace = self._context.settings.expired_grace_days * DAY
        with self._context.read() as reader:
            noted = (reader.state.note(_SWEEPS) or "").split()
        seen = [at for at in map(int, noted) if at < now]
        if not grace or not seen or now - seen[-1] >= _SWEEPS_APART:
            seen.append(now)
        due = [at for at in seen if now - at >= grace]
        erased = self._erase_expired(due[-1]) if due else 0
        kept = seen[len(due) :]
        with self._context.store() as store:
            store.write(lambda writer: writer.state.set_note(_SWEEPS, " ".join(map(str, kept))))
        return erased

    def _erase_expired(self, by: Instant) -> int:
        scope = ForgetScope(expired_by=by)

        def work(writer: Writer) -> Receipt | None:
            return (
                self._context.recorder.forget(writer, scope, reason="expired", op=Op.SWEEP)
                if entries_to_forget(writer, scope)
                else None
            )

        receipt = self._context.write("sweep", work)
        if receipt is None:
            return 0
        finish_forget(self._context, receipt)
        return receipt.counts["facts"] + receipt.counts["runs"]

    def _runs(self, operation: str, *categories: str) -> list[Memory]:
        now = self._context.clock()
        with self._context.operation(operation) as reader:
            return [
                row
                for category in categories
                for row in reader.memories.find(
                    Filter(now=now, category=category, include_reserved=True), limit=_ROWS_MAX
                )
            ]

    # Last, because in a class body the name of this method hides the type `list` from what follows.
    def list(
        self, prefix: str = "", *, category: str | None = None, runs: bool = False, limit: int = 1_000
    ) -> list[Memory]:
        """Live keyed facts whose key begins with `prefix`, newest first; with `runs`, also recorded runs
        and plans."""
        check_query(prefix=prefix, category=category)
        check_limit(limit)
        where = Filter(now=self._context.clock(), key_prefix=prefix, category=category, include_reserved=runs)
        with self._context.operation("facts") as reader:
            return [
                sanitized_memory(memory, where.now) for memory in reader.memories.find(where, limit=limit)
            ]
