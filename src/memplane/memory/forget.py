"""Forgetting: one transaction over every table and index, a tombstone for every entry, and a receipt."""

from collections.abc import Callable
from typing import Any

import msgspec

from memplane.clock import Instant, iso, to_datetime
from memplane.errors import InvalidRequest
from memplane.ledger.ids import new_id
from memplane.ledger.payloads import Forgotten
from memplane.memory.checks import check_encodable
from memplane.storage.base import Scope, Writer
from memplane.types import Entry, Receipt

_TIMES = ("since", "until", "expired_by")


def checked_scope(scope: Scope) -> Scope:
    """A forget without a scope is refused: nobody empties a space by leaving something out."""
    if scope == Scope():
        raise InvalidRequest(
            "say what to forget: entries, key, prefix, conversation, project, since, until, or everything=True"
        )
    narrowed = msgspec.structs.replace(scope, everything=False)
    if scope.everything and narrowed != Scope():
        raise InvalidRequest(
            "everything cannot be narrowed; leave out the other conditions", field="everything"
        )
    if scope.entries and msgspec.structs.replace(scope, entries=()) != Scope():
        raise InvalidRequest("entries are named one by one; leave out the other conditions", field="entries")
    for name in ("key", "prefix", "conversation", "project"):
        check_encodable(getattr(scope, name) or "", field=name)
    for entry_id in scope.entries:
        check_encodable(entry_id, field="entries")
    if scope.since is not None and scope.until is not None and scope.since >= scope.until:
        raise InvalidRequest("since must be before until", field="since")
    return scope


def scope_words(scope: Scope) -> dict[str, Any]:
    """The scope as a receipt says it: only what was asked, times as dates."""
    words: dict[str, Any] = msgspec.to_builtins(scope)
    return {name: iso(value) if name in _TIMES else value for name, value in words.items()}


def forget(
    writer: Writer, scope: Scope, *, reason: str, now: Instant, record: Callable[[Forgotten], Entry]
) -> Receipt:
    """Erase what is in scope. Ids that were never seen get their tombstone too, so they cannot arrive later; records
    of forgetting are seen and stay."""
    found = writer.in_scope(scope)
    counts = writer.count_scope([seq for seq, _ in found])
    seen = writer.known(scope.entries)
    unseen = [(0, id_) for id_ in scope.entries if id_ not in seen]
    payload = Forgotten(
        receipt=new_id("receipt", now), at=now, scope=scope_words(scope), counts=counts, reason=reason
    )
    entry = record(payload)
    writer.erase([*found, *unseen], seq=entry.seq, at=now, reason=reason)
    return Receipt(
        id=payload.receipt,
        scope=payload.scope,
        counts=counts,
        reason=reason,
        at=to_datetime(now),
        seq=entry.seq,
        digest=writer.head().digest.hex(),
    )
