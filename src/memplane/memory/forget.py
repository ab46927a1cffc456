"""Forgetting: one transaction over every table and index, a tombstone for every entry, and a receipt."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from memplane.clock import Instant, iso, to_datetime
from memplane.errors import InvalidRequest, MemplaneError
from memplane.ledger.history import parse_line
from memplane.ledger.ids import new_id
from memplane.ledger.payloads import Forgotten, decode, victims_digest
from memplane.memory.checks import check_encodable
from memplane.storage.base import Reader, Scope, Writer
from memplane.types import Entry, Op, Receipt

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


def victims_of(reader: Reader, scope: Scope) -> list[tuple[int, str]]:
    """(seq, id) of what a forget would erase: what is shown and in scope, and what is hidden and would be."""
    found = reader.in_scope(scope)
    if not (scope.entries or scope.everything):
        found += [(entry.seq, entry.id) for entry in reader.hidden() if _hidden_in(entry, scope)]
    return sorted(set(found))


def forget(
    writer: Writer, scope: Scope, *, reason: str, now: Instant, record: Callable[[Forgotten], Entry]
) -> Receipt:
    """Erase what is in scope. Ids that were never seen get their tombstone too, so they cannot arrive later; records
    of forgetting are seen and stay."""
    found = victims_of(writer, scope)
    seen = writer.known(scope.entries)
    unseen = [(0, id_) for id_ in dict.fromkeys(scope.entries) if id_ not in seen]
    return bury(writer, [*found, *unseen], scope=scope_words(scope), reason=reason, now=now, record=record)


def bury(
    writer: Writer,
    victims: Sequence[tuple[int, str]],
    *,
    scope: dict[str, Any],
    reason: str,
    now: Instant,
    record: Callable[[Forgotten], Entry],
) -> Receipt:
    """Tombstones for these (seq, id) pairs under one receipt."""
    before = writer.tombstoned([id_ for _, id_ in victims])
    payload = Forgotten(
        receipt=new_id("receipt", now),
        at=now,
        scope=scope,
        counts=writer.count_scope([seq for seq, _ in victims if seq]),
        reason=reason,
        victims=victims_digest(id_ for _, id_ in victims if id_ not in before),
    )
    entry = record(payload)
    writer.erase(victims, seq=entry.seq, at=now, reason=reason)
    return Receipt(
        id=payload.receipt,
        scope=scope,
        counts=payload.counts,
        reason=reason,
        at=to_datetime(now),
        seq=entry.seq,
        digest=writer.head().digest.hex(),
    )


def _hidden_in(entry: Entry, scope: Scope) -> bool:
    """Whether an entry that shows nothing is in scope. One that nobody can read belongs to no key, conversation or
    time; it is forgotten by its id or with everything."""
    try:
        payload = decode(entry) if entry.op is not Op.HISTORY else None
        at = (
            parse_line(entry.body or b"", trust_ids=True).at
            if payload is None
            else getattr(payload, "at", None)
        )
    except (MemplaneError, ValueError, TypeError, RecursionError):
        return False
    if at is None:
        return False
    key = getattr(payload, "key", None)
    expires = getattr(payload, "expires", None)
    return (
        (scope.key is None or key == scope.key)
        and (scope.prefix is None or (key is not None and key.startswith(scope.prefix)))
        and (scope.expired_by is None or (expires is not None and expires <= scope.expired_by))
        and (scope.conversation is None or getattr(payload, "conversation", None) == scope.conversation)
        and (scope.project is None or getattr(payload, "project", None) == scope.project)
        and (scope.since is None or at >= scope.since)
        and (scope.until is None or at < scope.until)
    )
