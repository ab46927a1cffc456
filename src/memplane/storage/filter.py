"""Which rows a query, a listing or a forget covers. `conditions` turns these into SQL."""

import msgspec

from memplane.clock import Instant
from memplane.types import Kind, Op, State, Tier, Visibility


class Audience(msgspec.Struct, frozen=True, kw_only=True):
    """Where a query comes from: what belongs to one project or conversation is visible only there."""

    conversation: str | None = None
    project: str | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """The values of `within` that this audience may see, besides NULL."""
        named = ((Visibility.CONVERSATION, self.conversation), (Visibility.PROJECT, self.project))
        return tuple(f"{reach}:{name}" for reach, name in named if name is not None)

    def hears(self, within: str | None) -> bool:
        return within is None or within in self.places


EVERYWHERE = Audience()
"""Sees what is visible everywhere."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which memories or turns to read. Conditions are combined with AND, before any limit."""

    now: Instant
    """Memories that are expired by then are left out."""
    kinds: tuple[Kind, ...] = ()
    tags: tuple[str, ...] = ()
    since: Instant | None = None
    until: Instant | None = None
    conversation: str | None = None
    project: str | None = None
    key_prefix: str | None = None
    category: str | None = None
    include_superseded: bool = False
    include_reserved: bool = False
    """Include memories of the reserved categories, such as runs."""
    as_of: Instant | None = None
    """The state of the space at that time: without later memories, and with those that were superseded later.
    It overrides `include_superseded`. Expiry still depends on `now`."""
    state: State | None = None
    """Only memories in this state; overrides the other conditions on states."""
    predicate: str | None = None
    tier: Tier | None = None
    include_faded: bool = True
    """Include memories that negative feedback has hidden from recall."""
    include_unnoted: bool = False
    """Include claims that nobody would note; they are cold from the beginning."""
    quarantined: bool | None = None
    """Only quarantined rows (flagged and not released), or only the others; None for both."""
    audience: Audience | None = EVERYWHERE
    """Where the query comes from. None is the owner, who lists, exports and forgets, and sees everything. The
    default hides what belongs to one place, so that a caller who forgets to set it returns too little, not too
    much."""

    @property
    def is_narrow(self) -> bool:
        """Whether it asks for more than what is current and visible, so that few rows may pass."""
        named = (self.since, self.until, self.conversation, self.project, self.key_prefix, self.category)
        return bool(self.kinds or self.tags) or any(value is not None for value in named)


class EntryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries of the ledger to read. Conditions are combined with AND."""

    ops: frozenset[Op] = frozenset()
    conversation: str | None = None
    """Entries with a turn, a memory or a compaction line of this conversation."""
    adapter: str | None = None
    role: str | None = None
    since: Instant | None = None
    until: Instant | None = None
    """The time of the entry's turn if it has one, else the time of recording."""


class ForgetScope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What to forget. Conditions are combined with AND; a scope without conditions is rejected."""

    entries: tuple[str, ...] = ()
    key: str | None = None
    prefix: str | None = None
    conversation: str | None = None
    project: str | None = None
    document: str | None = None
    """Every upload with this id, and its memberships in collections."""
    since: Instant | None = None
    until: Instant | None = None
    everything: bool = False
    expired_by: Instant | None = None
