"""Bodies that came under the same id. On every replica the one that was recorded first has the id; the others are kept
under ids that say so."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

import msgspec

from memplane.clock import Instant
from memplane.ledger.ids import base_of, came_under, variant_id
from memplane.storage.base import Reader
from memplane.types import Draft, Entry, Variant


class Family(msgspec.Struct, frozen=True):
    """What becomes of bodies that came under one id."""

    fresh: list[Draft]
    """Those to be added, under the ids they get."""
    renamed: list[tuple[str, str]]
    """Those that are here and get another id, in the order in which to do it: (id before, id now)."""
    variants: list[Variant]
    known: int
    """How many came that were here, or came twice."""


class _Member(msgspec.Struct, frozen=True):
    recorded: Instant
    body: bytes
    there: Entry | None
    draft: Draft | None

    @property
    def order(self) -> tuple[Instant, bytes, bool]:
        return self.recorded, sha256(self.body).digest(), self.there is None


def families(
    reader: Reader, drafts: Iterable[Draft], same: Callable[[Draft, bytes], bool]
) -> tuple[dict[str, Family], set[str]]:
    """By the id they came under; and all those ids. `same` says whether a body that is here is what became of another."""
    coming: defaultdict[str, list[Draft]] = defaultdict(list)
    for draft in drafts:
        coming[came_under(draft.id, draft.body)].append(draft)
    there: defaultdict[str, list[Entry]] = defaultdict(list)
    known = reader.entries_of(list(coming))
    for entry in [*known, *reader.entries_of([it.id for it in reader.variants([it.id for it in known])])]:
        there[base_of(entry.id) if entry.id not in coming else entry.id].append(entry)
    return {base: _family(base, came, there[base], same) for base, came in coming.items()}, set(coming)


def _family(
    base: str, came: Sequence[Draft], there: Sequence[Entry], same: Callable[[Draft, bytes], bool]
) -> Family:
    members = [_Member(entry.recorded, entry.body, entry, None) for entry in there if entry.body is not None]
    known = 0
    for draft in sorted(came, key=lambda draft: draft.recorded or 0):
        if _is_there(draft, members, same) or (there and not members):
            known += 1
        else:
            members.append(_Member(draft.recorded or 0, draft.body, None, draft))
    return _named(base, sorted(members, key=lambda member: member.order), known)


def _is_there(draft: Draft, members: Sequence[_Member], same: Callable[[Draft, bytes], bool]) -> bool:
    """Whether this body was recorded by then. One that came without its body says nothing new; one that is here without
    is waiting for its tombstone."""
    return any(
        not draft.body
        or not member.body
        or (
            member.recorded <= (draft.recorded or 0)
            and (member.body == draft.body or same(draft, member.body))
        )
        for member in members
    )


def _named(base: str, members: Sequence[_Member], known: int) -> Family:
    fresh: list[Draft] = []
    renamed: list[tuple[str, str]] = []
    variants: list[Variant] = []
    for place, member in enumerate(members):
        before = sum(other.body == member.body for other in members[:place])
        depth = before if before and members[0].body == member.body else before + 1
        id_ = variant_id(base, member.body, depth) if place else base
        if member.draft is not None:
            fresh.append(msgspec.structs.replace(member.draft, id=id_))
        elif member.there is not None and member.there.id != id_:
            renamed.append((member.there.id, id_))
        if place:
            variants.append(Variant(id=id_, base=base))
    renamed.sort(key=lambda pair: len(pair[1]), reverse=True)  # the deepest makes room for the one above it
    return Family(fresh, renamed, variants, known)
