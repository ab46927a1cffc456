"""Which rows a question, a listing or a forget is about. Engines turn these into conditions of a query."""

import msgspec

from memplane.clock import Instant
from memplane.types import Kind, Op, State, Tier, Visibility


class Audience(msgspec.Struct, frozen=True, kw_only=True):
    """From where somebody asks: what was said for one project or conversation alone is told only there."""

    conversation: str | None = None
    project: str | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """What `within` may say besides nothing."""
        named = ((Visibility.CONVERSATION, self.conversation), (Visibility.PROJECT, self.project))
        return tuple(f"{reach}:{name}" for reach, name in named if name is not None)

    def hears(self, within: str | None) -> bool:
        return within is None or within in self.places


EVERYWHERE = Audience()
"""Who asks from nowhere in particular is told what is told everywhere."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which memories or turns to look at. Every condition narrows; all apply before any limit."""

    now: Instant
    """What has expired by then does not exist."""
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
    """Rows the engine keeps for itself (runs) are left out unless asked for."""
    as_of: Instant | None = None
    """As it was then: what came later is not there yet, and what was replaced later still holds. It decides about
    superseded memories by itself, whatever `include_superseded` says; expired is what has expired by `now`."""
    state: State | None = None
    """In this state, whatever else the filter says about states; expired is what would otherwise not exist."""
    predicate: str | None = None
    tier: Tier | None = None
    include_faded: bool = True
    """Memories that feedback has taken out of sight are there all the same, unless one asks for what to tell."""
    quarantined: bool | None = None
    """Whether only what is flagged and not released is there, or only the rest; None is both."""
    audience: Audience | None = EVERYWHERE
    """Who is to be told. None is the owner, who lists, exports and forgets: they see everything. Left out, it hides what
    belongs to one place, so that a question that forgets to say where it comes from tells nothing it should not."""


class EntryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries of the ledger to tell. Every condition narrows."""

    ops: frozenset[Op] = frozenset()
    conversation: str | None = None
    """What was said, stored or kept in short of this conversation."""
    adapter: str | None = None
    role: str | None = None
    since: Instant | None = None
    until: Instant | None = None
    """When it was said, where it says something, else when it was recorded."""


class ForgetScope(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What to forget. Conditions narrow each other; a scope without any is refused."""

    entries: tuple[str, ...] = ()
    key: str | None = None
    prefix: str | None = None
    conversation: str | None = None
    project: str | None = None
    document: str | None = None
    """Everything that was ever uploaded under this id, and that it was in collections."""
    since: Instant | None = None
    until: Instant | None = None
    everything: bool = False
    expired_by: Instant | None = None
