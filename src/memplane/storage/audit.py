"""The audit log: operations that the ledger does not record, in a hash chain of its own."""

import msgspec

from memplane.clock import Instant, to_datetime
from memplane.storage.chain import GENESIS, audit_digest
from memplane.storage.session import SessionReader, WriteSession
from memplane.types import AuditRecord, Caller


class AuditRow(msgspec.Struct, frozen=True):
    """One audit record with its place in the audit chain."""

    seq: int
    record: AuditRecord
    at: Instant
    digest: bytes


class AuditReader(SessionReader):
    """Reads of the audit log."""

    def count(self) -> int:
        """How many audit records were ever added. Stored separately, so that missing records at the end are
        noticed."""
        return int(self._session.note("audited") or 0)

    def rows(self, *, after: int = 0, limit: int = 1_000) -> list[AuditRow]:
        """Audit records in order."""
        found = []
        for seq, at, actor, adapter, session, action, target, outcome, detail, digest in self._session.all(
            "audit", after=after, limit=limit
        ):
            record = AuditRecord(
                at=to_datetime(at),
                space=self._session.owner,
                actor=actor,
                adapter=adapter,
                session=session,
                action=action,
                target=target,
                outcome=outcome,
                detail=detail,
            )
            found.append(AuditRow(seq, record, at, digest))
        return found


class AuditWriter(AuditReader):
    """The same inside a write transaction."""

    def __init__(self, session: WriteSession) -> None:
        self._session: WriteSession = session

    def add(
        self, *, at: Instant, caller: Caller, action: str, target: str | None, outcome: str, detail: str
    ) -> None:
        """Append to the audit chain."""
        last = self._session.one("last_audit")
        seq, previous = (0, GENESIS) if last is None else last
        digest = audit_digest(previous, seq + 1, at, caller, action, target, outcome, detail)
        row = (
            seq + 1,
            at,
            caller.actor,
            caller.adapter,
            caller.session,
            action,
            target,
            outcome,
            detail,
            digest,
        )
        self._session.many("add_audit", [row])
        self._session.set_note("audited", str(seq + 1))
