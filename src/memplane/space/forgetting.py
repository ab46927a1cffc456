"""How things go from a space: forgotten by somebody, expired, or replaced long ago."""

from collections.abc import Iterable

from memplane.clock import DAY, parse_instant, to_datetime
from memplane.compaction.digests import learned_from
from memplane.errors import InvalidRequest, NotFound
from memplane.ledger.ids import new_id
from memplane.ledger.payloads import PurgePayload
from memplane.memory import projection
from memplane.memory.checks import check_list, check_query, check_text
from memplane.memory.forget import checked_scope, counts_of, entries_to_forget, scope_words
from memplane.space.records import Moment
from memplane.space.writing import Writing
from memplane.storage.base import Writer
from memplane.storage.compaction import RETENTION
from memplane.storage.filter import ForgetScope
from memplane.types import Kind, Op, Receipt


class Forgetting(Writing):
    """What leaves a space, and the receipts for it."""

    def delete(self, memory_id: str) -> Receipt:
        """Forget one memory, and with it every entry it came from."""
        memory_id = check_text(memory_id, field="id")

        def work(writer: Writer) -> Receipt:
            memory = writer.memory(memory_id)
            if memory is None:
                raise NotFound("memory", memory_id)
            if memory.kind is Kind.EPISODE:
                raise InvalidRequest(
                    "an episode is told anew from what was said; forget its conversation or entries instead",
                    field="id",
                )
            said = [memory.entry_id, *(place.own.entry_id for place in writer.evidence((memory_id,)))]
            said += learned_from(writer, memory.entry_id)
            return self._forget(writer, ForgetScope(entries=tuple(dict.fromkeys(said))), reason="deleted")

        return self._finish_forget(self._write("delete", work))

    def forget(
        self,
        *,
        entries: Iterable[str] = (),
        key: str | None = None,
        prefix: str | None = None,
        conversation: str | None = None,
        project: str | None = None,
        document: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        everything: bool = False,
        reason: str = "",
        dry_run: bool = False,
    ) -> Receipt:
        """Forget for good: not recalled, not searchable, not on disk, not back after a replay.

        Conditions narrow each other. At least one is needed; `everything=True` empties the space.
        """
        check_query(reason=reason)
        if reason == RETENTION:
            raise InvalidRequest(
                f"reason: {RETENTION!r} is what the retention policy says; give your own", field="reason"
            )
        scope = checked_scope(
            ForgetScope(
                entries=check_list(entries, field="entries"),
                key=None if key is None else key.strip(),
                prefix=prefix,
                conversation=conversation,
                project=project,
                document=document,
                since=None if since is None else parse_instant(since, field="since"),
                until=None if until is None else parse_instant(until, field="until"),
                everything=everything,
            )
        )
        if dry_run:
            self.catch_up()
            return self._dry_run(scope, reason)
        return self._finish_forget(
            self._write("forget", lambda writer: self._forget(writer, scope, reason=reason))
        )

    def wipe(self) -> bool:
        """Write the files anew, so that nothing of what was forgotten is left in any of them: for a receipt that says
        `off_disk: false`. False if someone is reading right now."""
        with self._store() as store:
            return store.wipe()

    def sweep(self) -> int:
        """Erase what has expired; returns how many facts that were."""
        scope = ForgetScope(expired_by=self._clock())

        def work(writer: Writer) -> Receipt | None:
            return (
                self._forget(writer, scope, reason="expired", op=Op.SWEEP)
                if entries_to_forget(writer, scope)
                else None
            )

        receipt = self._write("sweep", work)
        if receipt is None:
            return 0
        self._finish_forget(receipt)
        return receipt.counts["facts"] + receipt.counts["runs"]

    def purge(self, days: int | None = None) -> int:
        """Drop memories that were superseded over `days` ago (90 by default); returns how many.

        The ledger keeps the entries: a purge is about what is derived.
        """
        now = self._clock()
        days = self._settings.purge_superseded_days if days is None else days
        if days < 0:
            raise InvalidRequest("days: give 0 or more", field="days")
        before = max(0, now - days * DAY)

        def work(writer: Writer) -> int:
            count = writer.purge_superseded(before=before)
            if count:
                payload = PurgePayload(before=before, count=count)
                projection.record(writer, self._draft(new_id("purge", now), Op.PURGE, payload), now)
            return count

        return self._write("purge", work)

    def _dry_run(self, scope: ForgetScope, reason: str) -> Receipt:
        with self._read() as reader:
            counts = counts_of(reader, scope)
        return Receipt(
            id="",
            scope=scope_words(scope),
            counts=counts,
            reason=reason,
            at=to_datetime(self._clock()),
            dry_run=True,
        )
