"""Credentials: the part of the catalog that authentication needs.

It never contains a secret, only a salted digest to check a secret against.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from memplane.clock import Instant
from memplane.storage.catalog.catalog import Catalog, CatalogWriter


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One key: what it opens, and the digest its secret is checked against."""

    id: str
    agent: str | None = None
    """If set, the credential is `agent:secret`; otherwise it contains the id."""
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
    """Approximate; see `CredentialStore.touch`."""
    revoked: Instant | None = None
    parent: str | None = None
    """The id of the key that a login session was created with. The session ends with it."""
    passing: bool = False
    """A login session, or the link to one: it expires by itself and is not listed."""

    def __repr__(self) -> str:
        return f"KeyRecord(id={self.id!r}, name={self.name!r}, …)"


_FIELDS = KeyRecord.__struct_fields__
_LISTS = frozenset({"spaces", "doors", "rights"})
_names = msgspec.json.Decoder(tuple[str, ...])


class CredentialStore:
    """The durable home of keys. Any number of threads and processes use it at once; each read sees what any process
    finished writing before the read began. Its connections are its own, so that a login never waits for other writes to the catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def add(self, record: KeyRecord, *, once: str | None = None) -> bool:
        """Add a key, durably. With `once`, only the first call with that word adds a key, in the whole life of
        the installation and from any process; every other returns False."""

        def work(writer: CatalogWriter) -> bool:
            if once is not None and not writer.run("first_time", word=once):
                return False
            writer.run_many("add_key", [_row(record)])
            return True

        return self._catalog.write(work)

    def key(self, key_id: str) -> KeyRecord | None:
        """The key with this id, even if it is revoked or expired."""
        found = self._catalog.read("key", id=key_id)
        return _record(found[0]) if found else None

    def keys_of_agent(self, agent: str) -> Sequence[KeyRecord]:
        """Every key bound to an agent of this name, in any tenant."""
        return [_record(row) for row in self._catalog.read("keys_of_agent", agent=agent)]

    def list_keys(self) -> Sequence[KeyRecord]:
        """Every key, oldest first."""
        return [_record(row) for row in self._catalog.read("keys")]

    def revoke(self, key_id: str, at: Instant) -> KeyRecord | None:
        """Revoke a key and return it; None if there is none. Revoking it again changes nothing."""
        if self.key(key_id) is None:
            return None
        self._catalog.write(lambda writer: writer.run("revoke", id=key_id, at=at))
        return self.key(key_id)

    def touch(self, key_id: str, at: Instant) -> None:
        """Record that a key was used. Gives up silently if it would have to wait or cannot write, so that a
        login never fails because of it."""
        self._catalog.try_write(lambda writer: writer.run("touch", id=key_id, at=at))

    def lock(self, place: bytes, until: Instant, *, now: Instant) -> None:
        """Block logins from an address for every process, and drop blocks that are over. Gives up as `touch`
        does."""

        def work(writer: CatalogWriter) -> None:
            writer.run("forget_locks", now=now)
            writer.run("lock", place=place, until=until)

        self._catalog.try_write(work)

    def locked_until(self, place: bytes) -> Instant | None:
        """Until when `lock` blocks an address, even if that is over."""
        found = self._catalog.read("locked_until", place=place)
        return int(found[0][0]) if found else None

    def close(self) -> None:
        """Release the connections."""
        self._catalog.close()


def _row(record: KeyRecord) -> tuple[Any, ...]:
    return tuple(_column(name, getattr(record, name)) for name in _FIELDS)


def _column(name: str, value: Any) -> Any:
    return msgspec.json.encode(value).decode() if name in _LISTS and value is not None else value


def _record(row: Sequence[Any]) -> KeyRecord:
    fields = dict(zip(_FIELDS, row, strict=True))
    for name in _LISTS:
        if fields[name] is not None:
            fields[name] = _names.decode(fields[name])
    fields["passing"] = bool(fields["passing"])
    return KeyRecord(**fields)
