"""What an installation keeps about credentials: the part of the catalog database that identity needs.

The catalog is one database beside the spaces and holds what belongs to no single one of them. Every engine passes
tests/contract/test_credentials.py. It never holds a secret, only what a secret can be checked against.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from memplane.clock import Instant


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One key: what it opens, and what its secret is checked against."""

    id: str
    agent: str | None = None
    """Set: the credential is `agent:secret`. None: it names the id."""
    salt: bytes
    digest: bytes
    name: str
    tenant: str
    subject: str
    spaces: tuple[str, ...] | None = None
    doors: tuple[str, ...] | None = None
    rights: tuple[str, ...] = ()
    created: Instant
    expires: Instant | None = None
    used: Instant | None = None
    """Roughly: see `CredentialStore.touch`."""
    revoked: Instant | None = None
    parent: str | None = None
    """The id of the key it was made with and ends with: that of a session somebody signed in to."""
    passing: bool = False
    """A session, or the link to one: it comes and goes by itself, and is in no list of keys."""

    def __repr__(self) -> str:
        return f"KeyRecord(id={self.id!r}, name={self.name!r}, …)"


class CredentialStore(Protocol):
    """Durable home of keys. Any number of threads and processes use it at once; each read sees what any process
    finished writing before the read began."""

    def add(self, record: KeyRecord, *, once: str | None = None) -> bool:
        """Durable when it returns. With `once`, only the first call with that word in the life of the installation adds
        anything, whichever processes call: False for every other."""

    def key(self, key_id: str) -> KeyRecord | None:
        """Also one that is revoked or expired: what that means is not the store's business."""

    def keys_of_agent(self, agent: str) -> Sequence[KeyRecord]:
        """Every key bound to an agent of this name, in any tenant."""

    def list_keys(self) -> Sequence[KeyRecord]:
        """All, the oldest first."""

    def revoke(self, key_id: str, at: Instant) -> KeyRecord | None:
        """The key as it is afterwards, None if there is none. Revoking it again changes nothing."""

    def touch(self, key_id: str, at: Instant) -> None:
        """Note that a key was used. Gives up silently where it would have to wait or cannot write: nobody is refused
        for want of a note."""

    def lock(self, place: bytes, until: Instant, *, now: Instant) -> None:
        """Tell every process that a place is locked; forgets locks that are over. Gives up as `touch` does."""

    def locked_until(self, place: bytes) -> Instant | None:
        """As `lock` noted it, even if that is over."""

    def close(self) -> None: ...
