"""Forgetting: one transaction over every table and index, a tombstone per entry, and a receipt."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from memplane.clock import Instant, iso, to_datetime
from memplane.errors import InvalidRequest, MemplaneError
from memplane.ledger.history import parse_line
from memplane.ledger.ids import base_of, models_of, new_id
from memplane.ledger.payloads import ForgetEffects, ForgetPayload, decode, forgotten_ids_digest
from memplane.memory import projection
from memplane.memory.checks import check_encodable
from memplane.memory.digests import promoted_from, surface
from memplane.memory.forget_effects import forget_effects
from memplane.storage.claims import Evidence
from memplane.storage.episodes import OpenSitting
from memplane.storage.filter import ForgetScope
from memplane.storage.ledger import LedgerRow
from memplane.storage.numbers import TURNS_PER_ENTRY_MAX, turn_number
from memplane.storage.state import ErasureStep
from memplane.storage.store import Reader, Writer
from memplane.types import PAUSE, REBUILD, Entry, Memory, Op, Receipt, State, Turn

# Receipts, read from the ledger.


def receipt_of(row: LedgerRow, reader: Reader) -> Receipt:
    """The receipt in the row of a forget, as far as it is carried out."""
    payload = decode(row.entry)
    assert isinstance(payload, ForgetPayload)
    return Receipt(
        id=payload.receipt,
        scope=payload.scope,
        counts=payload.counts,
        reason=payload.reason,
        at=to_datetime(payload.at),
        seq=row.position,
        digest=row.digest.hex(),
        off_disk=all(row.position <= reader.state.erased(step).position for step in ErasureStep),
    )


_FOLLOWERS_PER_QUERY = 64
"""Usually one; entries that arrive later with an earlier time add more."""
_TIMES = ("since", "until", "expired_by")


def checked_scope(scope: ForgetScope) -> ForgetScope:
    """Reject a forget without a scope, so a missing argument cannot empty a space."""
    if scope == ForgetScope():
        raise InvalidRequest(
            "say what to forget: entries, key, prefix, conversation, project, document, since, until, or everything=True"
        )
    narrowed = msgspec.structs.replace(scope, everything=False)
    if scope.everything and narrowed != ForgetScope():
        raise InvalidRequest(
            "everything cannot be narrowed; leave out the other conditions", field="everything"
        )
    if scope.entries and msgspec.structs.replace(scope, entries=()) != ForgetScope():
        raise InvalidRequest("entries are named one by one; leave out the other conditions", field="entries")
    for name in ("key", "prefix", "conversation", "project", "document"):
        check_encodable(getattr(scope, name) or "", field=name)
    for entry_id in scope.entries:
        check_encodable(entry_id, field="entries")
    if scope.since is not None and scope.until is not None and scope.since >= scope.until:
        raise InvalidRequest("the range of time must end after it begins", field="since")
    return scope


def scope_words(scope: ForgetScope) -> dict[str, Any]:
    """The scope as shown in a receipt: only the given conditions, times as dates."""
    words: dict[str, Any] = msgspec.to_builtins(scope)
    return {name: iso(value) if name in _TIMES else value for name, value in words.items()}


def entries_to_forget(reader: Reader, scope: ForgetScope) -> list[tuple[int, str]]:
    """(seq, id) of everything a forget would erase: visible entries in scope, hidden ones that would be, LLM records
    of either, and what compaction kept of them."""
    found = reader.ledger.in_scope(scope)
    if not (scope.entries or scope.everything):
        found += [(entry.seq, entry.id) for entry in reader.ledger.hidden() if _hidden_in(entry, scope)]
    found += promoted_from(reader, [*scope.entries, *(id_ for _, id_ in found)])
    return sorted({*found, *_along(reader, found)})


def forget(
    writer: Writer, scope: ForgetScope, *, reason: str, now: Instant, record: Callable[[ForgetPayload], Entry]
) -> Receipt:
    """Erase what is in scope. Unknown ids get a tombstone too, so they cannot arrive later; records of forgets are
    never erased."""
    found = entries_to_forget(writer, scope)
    seen = writer.ledger.known(scope.entries)
    unseen = [(0, id_) for id_ in dict.fromkeys(scope.entries) if id_ not in seen]
    return write_tombstones(
        writer, [*found, *unseen], scope=scope_words(scope), reason=reason, now=now, record=record
    )


def write_tombstones(
    writer: Writer,
    victims: Sequence[tuple[int, str]],
    *,
    scope: dict[str, Any],
    reason: str,
    now: Instant,
    record: Callable[[ForgetPayload], Entry],
) -> Receipt:
    """Set tombstones for these (seq, id) pairs and their dependents, under one receipt."""
    victims = [*victims, *_along(writer, victims)]
    before = writer.ledger.tombstoned([id_ for _, id_ in victims])
    victims = [victim for victim in victims if victim[1] not in before]
    loss = forget_impact(writer, victims)
    payload = ForgetPayload(
        receipt=new_id("receipt", now),
        at=now,
        scope=scope,
        counts=_counts(writer, victims, loss),
        reason=reason,
        victims=forgotten_ids_digest(id_ for _, id_ in victims),
        superseded=loss.superseded,
        aftermath=loss.effects,
    )
    record(payload)
    head = writer.ledger.head()
    erase(writer, victims, loss, position=head.position, at=now, reason=reason)
    return Receipt(
        id=payload.receipt,
        scope=scope,
        counts=payload.counts,
        reason=reason,
        at=to_datetime(now),
        seq=head.position,
        digest=head.digest.hex(),
    )


def counts_of(reader: Reader, scope: ForgetScope) -> dict[str, int]:
    """What a forget of this scope would count."""
    victims = entries_to_forget(reader, scope)
    return _counts(reader, victims, forget_impact(reader, victims))


def _counts(reader: Reader, victims: Sequence[tuple[int, str]], loss: "ForgetImpact") -> dict[str, int]:
    """The difference between before and after, per kind. A memory that has another source remains under the id of
    that source, with its conflicts: it is not counted, but the erased source is, as a claim."""
    taken = {heir.memory for heir in loss.heirs}
    counts = reader.ledger.count_scope([seq for seq, _ in victims if seq])
    counts["memories"] -= len(taken)
    counts["episodes"] = reader.episodes.count(loss.conversations)
    counts["conflicts"] = sum(
        any(id_ in loss.fates and id_ not in taken for id_ in pair) for pair in loss.contested
    )
    return counts


class ForgetImpact(msgspec.Struct, frozen=True):
    """The dependents of a forget's entries, and the rows they affect."""

    fates: Mapping[str, Memory]
    """The memories to be erased, as they were."""
    heirs: Sequence[Evidence]
    contested: Sequence[tuple[str, str]]
    conversations: Sequence[str]
    followers: Sequence[int]
    """Turns whose vectors include an erased turn."""
    superseded: tuple[str, ...]
    effects: ForgetEffects


def forget_impact(reader: Reader, victims: Sequence[tuple[int, str]]) -> ForgetImpact:
    """Collect the dependents; call before they are erased."""
    seqs = frozenset(seq for seq, _ in victims if seq)
    fates = {memory.id: memory for memory in reader.memories.of_entries(sorted(seqs))}
    heirs = [said for said in reader.claims.evidence(list(fates)) if said.own.seq not in seqs]
    odds = reader.claims.conflicts(list(fates)) if fates else []
    return ForgetImpact(
        fates=fates,
        heirs=heirs,
        contested=odds,
        conversations=reader.turns.conversations_of(sorted(seqs)),
        followers=list(_followers(reader, seqs)),
        superseded=(
            *(id_ for id_ in reader.claims.replaced_by(list(fates)) if id_ not in fates),
            *_replaced(fates, heirs),
        ),
        effects=forget_effects(reader, fates, heirs, odds),
    )


def needs_rebuild(reader: Reader, victims: Sequence[tuple[int, str]], loss: ForgetImpact) -> bool:
    """Whether the state of remaining rows depends on an erased one without a record of it: erased feedback changed
    their importance, or two replicas wrote the same key or document without knowing of each other. The remaining
    state is then derived from the ledger again."""
    seqs = [seq for seq, _ in victims if seq]
    if reader.memories.rated_by(seqs):
        return True
    if not reader.replica.merged():
        return False
    replaced = reader.claims.displaced_by(list(loss.fates))
    if any(id_ not in loss.fates and loss.fates[by].supersedes != id_ for id_, by in replaced):
        return True
    return reader.documents.brought_by_others(seqs)


def _followers(reader: Reader, seqs: frozenset[int]) -> Iterator[int]:
    """Turns whose vectors include one of these. Imports arrive in any order, so this may be any turn said after one
    of these and before the next turn that was already there."""
    for seq in sorted(seqs):
        for turn in reader.turns.between(turn_number(seq, 0), turn_number(seq, TURNS_PER_ENTRY_MAX - 1)):
            for other in _all_after(reader, turn):
                if other.seq not in seqs and reader.turns.before(other) == turn:
                    yield turn_number(other.seq, other.ordinal)


def _all_after(reader: Reader, turn: Turn) -> Iterator[Turn]:
    """Following turns that arrived later, as long as they are close enough to belong to the same passage."""
    offset = 0
    while found := reader.turns.after(turn, limit=_FOLLOWERS_PER_QUERY, offset=offset):
        for other in found:
            if abs(other.at - turn.at) >= PAUSE:
                return
            yield other
        offset += len(found)


def erase(
    writer: Writer,
    victims: Sequence[tuple[int, str]],
    loss: ForgetImpact,
    *,
    position: int,
    at: Instant,
    reason: str,
    causes: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Apply a forget at this chain position, whether it was recorded here or on another replica."""
    anew = needs_rebuild(writer, victims, loss)
    writer.ledger.erase(victims, position=position, at=at, reason=reason, causes=causes)
    if anew:
        projection.replay(writer)
        return
    surface(writer, writer.compaction.lines_from([id_ for _, id_ in victims]))
    writer.vectors.reset_turns(loss.followers)
    _inherit(writer, loss)
    _untell(writer, loss.conversations)


def _along(reader: Reader, victims: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """The dependents of these ids that exist here."""
    there = [id_ for seq, id_ in victims if seq]
    along = kin(reader, there) if there else {}
    return reader.ledger.in_scope(ForgetScope(entries=tuple(along))) if along else []


def kin(reader: Reader, ids: Iterable[str]) -> dict[str, str]:
    """Everything forgotten together with these ids, each with its cause: every body under the same id, and the LLM
    records made from them."""
    named = set(ids)
    under = {base_of(id_): id_ for id_ in named}
    along = {base: id_ for base, id_ in under.items() if base not in named}
    along |= {it.id: under[it.base] for it in reader.replica.variants(list(under)) if it.id not in named}
    sources = {model: id_ for id_ in (*named, *along) for model in models_of(id_)}
    made = reader.ledger.known(list(sources))
    along |= {id_: sources[id_] for id_ in made if id_ not in named}
    return along | {
        it.id: sources[it.base] for it in reader.replica.variants(list(made)) if it.id not in named
    }


def _replaced(fates: Mapping[str, Memory], heirs: Sequence[Evidence]) -> list[str]:
    """Among successors, the ones that inherit having been superseded."""
    first = {heir.memory: heir.own.id for heir in reversed(heirs)}
    return [id_ for gone, id_ in first.items() if fates[gone].state is State.SUPERSEDED]


def _inherit(writer: Writer, loss: ForgetImpact) -> None:
    """A memory with several sources survives if one is forgotten: the next source takes over with the same state.
    Feedback on the first is dropped, since it was given on what is forgotten."""
    taken: dict[str, str] = {}
    for heir in loss.heirs:
        if heir.memory in taken:
            writer.claims.add_evidence(Evidence(taken[heir.memory], heir.own))
            continue
        fate = loss.fates[heir.memory]
        stands = msgspec.structs.replace(
            heir.own,
            state=State.ACTIVE if fate.state is State.CONTESTED else fate.state,
            tier=fate.tier if fate.state is State.SUPERSEDED else heir.own.tier,
            superseded_by=fate.superseded_by,
            superseded_at=fate.superseded_at,
        )
        writer.memories.add([stands])
        taken[heir.memory] = heir.own.id
    for pair in loss.contested:
        left, right = (taken.get(id_, id_) for id_ in pair)
        if writer.memories.get(left) is not None and writer.memories.get(right) is not None:
            writer.claims.contest(left, right)


def _untell(writer: Writer, cut: Sequence[str]) -> None:
    """Rebuild the episodes of a conversation that lost a turn, since that turn may have shaped them. If it lost all
    turns, not even the name remains."""
    unheard = turn_number(writer.state.marks().derived + 1, 0)
    for conversation in cut:
        last = writer.turns.last_of(conversation, before=unheard)
        writer.episodes.drop(conversation)
        if last is None:
            writer.episodes.set_done(conversation)
        else:
            writer.episodes.set_pending(OpenSitting(conversation, 0, REBUILD))


def _hidden_in(entry: Entry, scope: ForgetScope) -> bool:
    """Whether a hidden entry is in scope. An unreadable entry has no key, conversation or time; it is forgotten by id
    or with everything."""
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
        and (scope.document is None or getattr(payload, "document", None) == scope.document)
        and (scope.since is None or at >= scope.since)
        and (scope.until is None or at < scope.until)
    )
