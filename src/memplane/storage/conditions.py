"""Filters and scopes as SQL conditions. Every clause is ours; every value is a parameter."""

from typing import Any

from memplane.storage.filter import Audience, EntryFilter, Filter, ForgetScope
from memplane.storage.numbers import TURNS_PER_ENTRY_MAX
from memplane.types import RESERVED_CATEGORIES, Kind, Op, State, Tier

LIVE = "m.state IN ('active', 'contested') AND (m.expires IS NULL OR m.expires > :now)"
_TURN_OF_ENTRY = (
    f"SELECT 1 FROM turn t WHERE t.n >= l.seq * {TURNS_PER_ENTRY_MAX} "
    f"AND t.n < (l.seq + 1) * {TURNS_PER_ENTRY_MAX}"
)
# What can be forgotten; records of forgetting and purging stay.
_FORGETTABLE = (
    Op.TURN,
    Op.HISTORY,
    Op.STORE,
    Op.PUT,
    Op.RUN,
    Op.DERIVE,
    Op.DOCUMENT,
    Op.COLLECT,
    Op.DISTIL,
    Op.FEEDBACK,
    Op.LEARN,
    Op.DIGEST,
    Op.SUMMARIZE,
)
ERASABLE = ", ".join(f"'{op}'" for op in _FORGETTABLE)

_QUOTED = ", ".join(f"'{name}'" for name in RESERVED_CATEGORIES)
RESERVED = f"coalesce(m.category IN ({_QUOTED}), FALSE)"
NOT_RESERVED = f"(m.category IS NULL OR m.category NOT IN ({_QUOTED}))"

_RULED = "SELECT 1 FROM ruling r WHERE r.released = 1 AND r.id IN"
RELEASED = f"EXISTS ({_RULED} (m.id, (SELECT x.id FROM ledger x WHERE x.seq = m.seq)))"
RELEASED_ENTRY = f"EXISTS ({_RULED} (l.id))"
RELEASED_IN_ENTRY = f"EXISTS ({_RULED} (m.id, l.id))"
"""The same where the ledger's row is joined as `l`: for a turn, and for a memory."""
PINNED = "EXISTS (SELECT 1 FROM ruling r WHERE r.pinned = 1 AND r.id = m.id)"
QUARANTINED = f"(m.flags <> '' AND NOT {RELEASED})"
NOT_QUARANTINED = f"(m.flags IS NULL OR m.flags = '' OR {RELEASED})"
TURN_RELEASED = f"EXISTS ({_RULED} ((SELECT x.id FROM ledger x WHERE x.seq = t.n / {TURNS_PER_ENTRY_MAX})))"
TURN_QUARANTINED = f"(t.flags <> '' AND NOT {TURN_RELEASED})"
_NO_SUSPECT_TURN = f"(t.flags IS NULL OR t.flags = '' OR {TURN_RELEASED})"
NOT_FADED = f"(m.tier <> 'cold' OR m.leaning >= 0 OR m.state = 'superseded' OR {PINNED})"
NOT_UNNOTED = (
    f"(m.tier <> 'cold' OR m.extractor IS NULL OR m.leaning < 0 OR m.state = 'superseded' OR {PINNED})"
)
"""Claims that nobody would note are only compared with later ones and help to rank their turns."""
TIER = (
    f"CASE WHEN m.state = 'superseded' THEN m.tier WHEN {QUARANTINED} THEN CASE m.tier WHEN 'hot' THEN 'warm' "
    f"ELSE m.tier END WHEN {PINNED} THEN 'hot' ELSE m.tier END"
)
"""The tier of a memory after review: a pinned memory is hot, a quarantined one never is."""
_HOT = (
    "m.n IN (SELECT h.n FROM memory h WHERE h.tier = 'hot' "  # apart, so that the index of hot memories is used
    "UNION ALL SELECT h.n FROM ruling r JOIN memory h ON h.id = r.id WHERE r.pinned = 1 AND h.state <> 'superseded') "
    f"AND {NOT_QUARANTINED}"
)


_RULINGS = (RELEASED, RELEASED_ENTRY, RELEASED_IN_ENTRY, TURN_RELEASED, PINNED)


def without_rulings(sql: str) -> str:
    """A statement for a space without review decisions, which is usual. PostgreSQL spends time on every table
    that a statement names, even if it is empty."""
    for ruled in _RULINGS:
        sql = sql.replace(ruled, "FALSE")
    return sql


class WhereClause:
    """Conditions joined by AND, with their parameters."""

    def __init__(self) -> None:
        self._clauses: list[str] = []
        self.parameters: dict[str, Any] = {}

    def add(self, clause: str, **parameters: Any) -> None:
        self._clauses.append(clause)
        self.parameters.update(parameters)

    def __str__(self) -> str:
        return " AND ".join(self._clauses) or "TRUE"


def of_memories(where: Filter) -> WhereClause:
    out = WhereClause()
    _add_lifecycle(out, where)
    hidden = {
        NOT_RESERVED: not where.include_reserved,
        NOT_FADED: not where.include_faded,
        NOT_UNNOTED: not where.include_unnoted and where.tier is not Tier.COLD,
    }
    for condition in (name for name, applies in hidden.items() if applies):
        out.add(condition)
    if where.kinds:
        kinds = ", ".join(f"'{Kind(kind).value}'" for kind in where.kinds)
        out.add(f"m.kind IN ({kinds})")
    for number, tag in enumerate(dict.fromkeys(where.tags)):
        out.add(
            f"EXISTS (SELECT 1 FROM memory_tag g WHERE g.tag = :tag{number} AND g.n = m.n)",
            **{f"tag{number}": tag},
        )
    if where.tier is not None:
        out.add(_HOT if where.tier is Tier.HOT else f"{TIER} = '{where.tier.value}'")
    if where.quarantined is not None:
        out.add(QUARANTINED if where.quarantined else NOT_QUARANTINED)
    for name in ("predicate", "category"):
        if (value := getattr(where, name)) is not None:
            out.add(f"m.{name} = :{name}", **{name: value})
    if where.key_prefix is not None:
        _add_prefix(out, where.key_prefix)
    _add_place(out, "m", where.conversation, where.project)
    _add_range(out, "m.updated", where.since, where.until)
    _add_audience(out, "m", where.audience)
    return out


def _add_lifecycle(out: WhereClause, where: Filter) -> None:
    if where.state is not None:
        _add_state(out, where.state, where.now)
        return
    if where.as_of is not None:
        out.add("m.updated <= :as_of AND (m.superseded IS NULL OR m.superseded > :as_of)", as_of=where.as_of)
    elif not where.include_superseded:
        out.add("m.state IN ('active', 'contested')")
    out.add("(m.expires IS NULL OR m.expires > :now)", now=where.now)


def _add_state(out: WhereClause, state: State, now: int) -> None:
    """Whether a memory is expired depends on the clock; a superseded memory counts as superseded."""
    if state is State.SUPERSEDED:
        out.add("m.state = 'superseded'")
    elif state is State.EXPIRED:
        out.add("m.state <> 'superseded' AND m.expires IS NOT NULL AND m.expires <= :now", now=now)
    else:
        out.add("m.state = :state AND (m.expires IS NULL OR m.expires > :now)", state=state, now=now)


def visible_to(audience: Audience) -> WhereClause:
    """Memories that this audience may see."""
    out = WhereClause()
    _add_audience(out, "m", audience)
    return out


def of_turns(where: Filter) -> WhereClause:
    out = WhereClause()
    if where.as_of is not None:
        out.add("t.at <= :as_of", as_of=where.as_of)
    _add_place(out, "t", where.conversation, where.project)
    _add_range(out, "t.at", where.since, where.until)
    if where.quarantined is not None:
        out.add(TURN_QUARANTINED if where.quarantined else _NO_SUSPECT_TURN)
    _add_audience(out, "t", where.audience)
    return out


def of_entries(where: EntryFilter) -> WhereClause:
    out = WhereClause()
    if where.ops:
        out.add(f"l.op IN ({', '.join(repr(op.value) for op in sorted(where.ops))})")
    if where.adapter is not None:
        out.add("l.door = :door", door=where.adapter)
    if where.role is not None:
        out.add(f"EXISTS ({_TURN_OF_ENTRY} AND t.role = :role)", role=where.role)
    if where.conversation is not None:
        out.add(
            f"l.seq IN (SELECT t.n / {TURNS_PER_ENTRY_MAX} FROM turn t "
            "WHERE t.conversation = :conversation AND t.conversation IS NOT NULL "
            "UNION SELECT m.seq FROM memory m "
            "WHERE m.conversation = :conversation AND m.conversation IS NOT NULL "
            "UNION SELECT p.seq FROM promoted p WHERE p.conversation = :conversation)",
            conversation=where.conversation,
        )
    said, recorded = WhereClause(), WhereClause()
    _add_range(said, "t.at", where.since, where.until)
    _add_range(recorded, "l.recorded", where.since, where.until)
    if said.parameters:
        out.add(
            f"(EXISTS ({_TURN_OF_ENTRY} AND {said}) OR ({recorded} AND NOT EXISTS ({_TURN_OF_ENTRY})))",
            **said.parameters,
        )
    return out


def turns_in(scope: ForgetScope) -> WhereClause:
    out = WhereClause()
    if scope.document is not None:
        about = "SELECT seq FROM shelf_entry WHERE document = :document"
        out.add(f"t.n / {TURNS_PER_ENTRY_MAX} IN ({about})", document=scope.document)
    _add_place(out, "t", scope.conversation, scope.project)
    _add_range(out, "t.at", scope.since, scope.until)
    return out


def memories_in(scope: ForgetScope) -> WhereClause:
    """Explicitly stored memories. Derived ones are forgotten with their turns."""
    out = WhereClause()
    out.add("m.extractor IS NULL")
    if scope.key is not None:
        out.add("m.key = :key AND m.key IS NOT NULL", key=scope.key)
    if scope.prefix is not None:
        _add_prefix(out, scope.prefix)
    if scope.expired_by is not None:
        out.add("m.expires IS NOT NULL AND m.expires <= :expired_by", expired_by=scope.expired_by)
    _add_place(out, "m", scope.conversation, scope.project)
    _add_range(out, "m.updated", scope.since, scope.until)
    return out


def shelf_in(scope: ForgetScope) -> WhereClause:
    """Uploads and memberships. A document belongs to no conversation."""
    out = WhereClause()
    if scope.document is not None:
        out.add("e.document = :document", document=scope.document)
    if scope.project is not None:
        out.add("e.project = :project", project=scope.project)
    _add_range(out, "e.at", scope.since, scope.until)
    return out


def promoted_in(scope: ForgetScope) -> WhereClause:
    """Lines of compaction. Their raw entries may be gone, so each line has its own time and place."""
    out = WhereClause()
    _add_place(out, "p", scope.conversation, scope.project)
    _add_range(out, "p.at", scope.since, scope.until)
    return out


def of_documents(project: str | None) -> WhereClause:
    out = WhereClause()
    if project is not None:
        out.add("d.project = :project", project=project)
    return out


def _add_prefix(out: WhereClause, prefix: str) -> None:
    # substr rather than LIKE: `%`, `_` and letter case in a key are ordinary characters.
    out.add("m.key IS NOT NULL AND substr(m.key, 1, length(:prefix)) = :prefix", prefix=prefix)


def _add_place(out: WhereClause, table: str, conversation: str | None, project: str | None) -> None:
    if conversation is not None:
        out.add(f"{table}.conversation = :conversation", conversation=conversation)
    if project is not None:
        out.add(f"{table}.project = :project", project=project)


def _add_audience(out: WhereClause, table: str, audience: Audience | None) -> None:
    if audience is None:
        return
    here = {f"here{number}": place for number, place in enumerate(audience.places)}
    scopes = [f"{table}.within IS NULL", *(f"{table}.within = :{name}" for name in here)]
    out.add(f"({' OR '.join(scopes)})", **here)


def _add_range(out: WhereClause, column: str, since: int | None, until: int | None) -> None:
    if since is not None:
        out.add(f"{column} >= :since", since=since)
    if until is not None:
        out.add(f"{column} < :until", until=until)
